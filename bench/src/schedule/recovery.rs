//! The time from starting the program after a `kill -9` to its `ready` line and to the first decided slot, with a million
//! schedules.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use rusqlite::{Connection, OpenFlags};

use super::conditions::{Bar, Conditions};
use super::growth::workloads;
use super::instance::now_us;
use super::large_store::{LargeStore, total};
use super::{Options, block_on};
use crate::{spread, start};

const SCHEDULES: usize = 1_000_000;
/// How long the daemon runs before each kill.
const RUN_TIME: Duration = Duration::from_secs(5);
const MS_MAX: f64 = 150.0;

/// In milliseconds since the start.
struct Recovered {
    ready: f64,
    decided: f64,
    /// The start of the run of that slot: by then the decision was on the disk.
    run_started: f64,
}

pub(crate) fn run(options: &Options, large: &mut LargeStore) -> anyhow::Result<()> {
    let workloads = workloads(options.schedules(SCHEDULES));
    let dir = tempfile::tempdir_in(options.dir())?;
    let what = format!("{} schedules, {} rounds", total(&workloads), options.rounds);
    let conditions = Conditions::start("recovery", &what, dir.path())?;
    let data = block_on(large.prepare(&options.dir(), &workloads))?;
    let program = start::program()?;
    let (mut readies, mut decided) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let mut daemon = start::start(&program, &data)?;
        std::thread::sleep(RUN_TIME);
        daemon.kill()?;
        daemon.wait()?;
        let found = recover(&program, &data)?;
        println!(
            "  round    ready {:.0} ms, slot decided {:.0} ms, its run started {:.0} ms",
            found.ready, found.decided, found.run_started
        );
        readies.push(found.ready);
        decided.push(found.run_started);
    }
    Bar::AtMost(MS_MAX).print("ms to ready", spread(readies).0);
    Bar::AtMost(MS_MAX).print("ms to the first slot on the disk", spread(decided).0);
    conditions.end(dir.path())
}

/// Starts the daemon after a kill, measures, and kills it again.
fn recover(program: &Path, data: &Path) -> anyhow::Result<Recovered> {
    let (started_us, started) = (now_us(), Instant::now());
    let mut daemon = start::start(program, data)?;
    let ready = started.elapsed().as_secs_f64() * 1e3;
    std::thread::sleep(RUN_TIME);
    // Before the kill, because opening the file afterwards would already recover a part of it.
    let found = first_slot(data);
    daemon.kill()?;
    daemon.wait()?;
    let (decided_us, run_started_us) = found?;
    let ms = |at_us: i64| (at_us - started_us) as f64 / 1e3;
    Ok(Recovered { ready, decided: ms(decided_us), run_started: ms(run_started_us) })
}

/// When the first run after the last start of the daemon was queued, and when it started.
fn first_slot(data: &Path) -> anyhow::Result<(i64, i64)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(data.join("midwatch.db"), flags)?;
    let started = "SELECT seq FROM entry WHERE kind = 'watch.started' ORDER BY seq DESC LIMIT 1";
    let started: i64 = connection.query_row(started, (), |row| row.get(0))?;
    let queued = "SELECT ts_us, noun_id FROM entry
                  WHERE seq > ?1 AND kind = 'run.queued' ORDER BY seq LIMIT 1";
    let queued = connection.query_row(queued, [started], |row| Ok((row.get(0)?, row.get(1)?)));
    let (queued_us, run): (i64, String) = queued.context("no slot was decided")?;
    let run_started = "SELECT ts_us FROM entry
                 WHERE seq > ?1 AND kind = 'run.started' AND noun_id = ?2 ORDER BY seq LIMIT 1";
    let run_started = connection.query_row(run_started, (started, run), |row| row.get(0));
    Ok((queued_us, run_started.context("its run did not start")?))
}
