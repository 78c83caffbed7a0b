//! How late slots reach their handler when they are spread evenly over a minute, beside Restate's
//! delayed calls.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::conditions::{Bar, Conditions, at_part};
use super::doers::Noting;
use super::peers::{self, Peers};
use super::place::{Place, now_us};
use super::plan::Plan;
use super::{Options, block_on};

const SCHEDULES: usize = 10_000;
const EVERY_MS: i64 = 60_000;
/// Each is due once in this time, and so are the peer's.
const EVERY_S: u64 = 60;
const P99_MS_MAX: f64 = 100.0;
const RATIO_MAX: f64 = 0.2;

/// In milliseconds.
struct Late {
    p50: f64,
    p99: f64,
    most: f64,
}

pub(crate) fn run(options: &Options, peers: Option<&Peers>) -> anyhow::Result<()> {
    let schedules = options.schedules(SCHEDULES);
    let place = tempfile::tempdir_in(options.dir())?;
    let what = format!("{schedules} once a minute, {} s", options.seconds);
    let conditions = Conditions::begin("lateness", &what, place.path())?;
    let ours = block_on(ours(place.path(), schedules, options.seconds))?;
    Bar::AtMost(P99_MS_MAX).show("p99 in ms", ours.p99);
    match peers {
        None => peers::none(),
        Some(peers) => {
            let dir = tempfile::tempdir_in(options.dir())?;
            let timers = schedules as u64 * options.seconds / EVERY_S;
            let theirs = restate(peers, dir.path(), timers, options.seconds)?;
            Bar::AtMost(RATIO_MAX).show("p99 to Restate's", ours.p99 / theirs.p99);
        }
    }
    conditions.end(place.path())
}

async fn ours(data: &Path, schedules: usize, seconds: u64) -> anyhow::Result<Late> {
    let place = Place::open(data).await?;
    let plan = Plan {
        name: "schedule",
        schedules,
        agents: 1,
        first_us: 0,
        spread_us: EVERY_MS * 1_000,
        every_ms: EVERY_MS,
        terms: api::Terms::default(),
    };
    plan.add(&place.handle).await?;
    // What came due while schedules were added is late by that, and does not count.
    let doer = Arc::new(Noting::from(now_us()));
    let started = place.mark().await?;
    let stop = async {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        "measured".to_owned()
    };
    place.watch.keep(Arc::clone(&doer) as Arc<_>, vec![], stop).await?;
    let between = started.until(place.mark().await?);
    let late = doer.late_us();
    anyhow::ensure!(!late.is_empty(), "nothing fired");
    let ms = |part| at_part(&late, part) / 1e3;
    let found = Late { p50: ms(500), p99: ms(990), most: ms(1_000) };
    println!(
        "  ours     {} fired; late p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms; {}",
        late.len(),
        found.p50,
        found.p99,
        found.most,
        between.each(late.len() as u64)
    );
    Ok(found)
}

fn restate(peers: &Peers, dir: &Path, timers: u64, seconds: u64) -> anyhow::Result<Late> {
    let args = [dir.display().to_string(), timers.to_string(), seconds.to_string()];
    let most = Duration::from_secs(240 + seconds);
    let figures = peers.run("restate.mjs", &args, most)?;
    let found = Late {
        p50: figures.get("p50_ms")?,
        p99: figures.get("p99_ms")?,
        most: figures.get("max_ms")?,
    };
    println!(
        "  Restate  {} of {timers} fired; late p50 {:.0} ms, p99 {:.0} ms, most {:.0} ms; sent {:.0}/s",
        figures.get("fired")?,
        found.p50,
        found.p99,
        found.most,
        figures.get("sent_per_s")?
    );
    Ok(found)
}
