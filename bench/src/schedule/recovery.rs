//! From starting the program after a `kill -9` to its `ready` line and to the first slot that it
//! decides, with a million schedules in the store.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use rusqlite::{Connection, OpenFlags};

use super::conditions::{Bar, Conditions};
use super::growth::plans;
use super::large::{Large, total};
use super::place::now_us;
use super::{Options, block_on};
use crate::{spread, start};

const SCHEDULES: usize = 1_000_000;
/// How long it fires before it is killed, and after it was started.
const FIRES_FOR: Duration = Duration::from_secs(5);
const MS_MAX: f64 = 150.0;

/// In milliseconds since the start.
struct Recovered {
    ready: f64,
    decided: f64,
    /// When a run of such a slot began: by then the decision was on the disk.
    begun: f64,
}

pub(crate) fn run(options: &Options, large: &mut Large) -> anyhow::Result<()> {
    let plans = plans(options.schedules(SCHEDULES));
    let dir = tempfile::tempdir_in(options.dir())?;
    let what = format!("{} schedules, {} rounds", total(&plans), options.rounds);
    let conditions = Conditions::begin("recovery", &what, dir.path())?;
    let data = block_on(large.with(&options.dir(), &plans))?;
    let program = start::program()?;
    let (mut readies, mut decided) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let mut daemon = start::start(&program, &data)?;
        std::thread::sleep(FIRES_FOR);
        daemon.kill()?;
        daemon.wait()?;
        let found = recover(&program, &data)?;
        println!(
            "  round    ready {:.0} ms, slot decided {:.0} ms, its run begun {:.0} ms",
            found.ready, found.decided, found.begun
        );
        readies.push(found.ready);
        decided.push(found.begun);
    }
    Bar::AtMost(MS_MAX).show("ms to ready", spread(readies).0);
    Bar::AtMost(MS_MAX).show("ms to the first slot on the disk", spread(decided).0);
    conditions.end(dir.path())
}

/// Starts it on what the killed one left, and kills it again.
fn recover(program: &Path, data: &Path) -> anyhow::Result<Recovered> {
    let (started_us, started) = (now_us(), Instant::now());
    let mut daemon = start::start(program, data)?;
    let ready = started.elapsed().as_secs_f64() * 1e3;
    std::thread::sleep(FIRES_FOR);
    // Before it is killed: whoever opens the file afterwards would do a part of the recovery.
    let found = first_slot(data);
    daemon.kill()?;
    daemon.wait()?;
    let (decided_us, begun_us) = found?;
    let ms = |at_us: i64| (at_us - started_us) as f64 / 1e3;
    Ok(Recovered { ready, decided: ms(decided_us), begun: ms(begun_us) })
}

/// When the first run was queued after the newest start, and when it began.
fn first_slot(data: &Path) -> anyhow::Result<(i64, i64)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(data.join("midwatch.db"), flags)?;
    let started = "SELECT seq FROM entry WHERE kind = 'watch.started' ORDER BY seq DESC LIMIT 1";
    let started: i64 = connection.query_row(started, (), |row| row.get(0))?;
    let queued = "SELECT ts_us, noun_id FROM entry
                  WHERE seq > ?1 AND kind = 'run.queued' ORDER BY seq LIMIT 1";
    let queued = connection.query_row(queued, [started], |row| Ok((row.get(0)?, row.get(1)?)));
    let (queued_us, run): (i64, String) = queued.context("no slot was decided")?;
    let begun = "SELECT ts_us FROM entry
                 WHERE seq > ?1 AND kind = 'run.started' AND noun_id = ?2 ORDER BY seq LIMIT 1";
    let begun = connection.query_row(begun, (started, run), |row| row.get(0));
    Ok((queued_us, begun.context("its run did not begin")?))
}
