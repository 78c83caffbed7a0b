//! How late slots reach their handler when they are spread evenly over a minute, compared with Restate's delayed calls.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agents::NoBackend;

use super::backends::LatenessBackend;
use super::conditions::{Bar, Conditions, quantile};
use super::instance::{Instance, now_us};
use super::peers::{self, Peers};
use super::workload::Workload;
use super::{Options, block_on};

const SCHEDULES: usize = 10_000;
const EVERY_MS: i64 = 60_000;
/// Every schedule, and every timer of the peer, is due once in this time.
const EVERY_S: u64 = 60;
const P99_MS_MAX: f64 = 100.0;
const RATIO_MAX: f64 = 0.2;

/// In milliseconds.
struct Lateness {
    p50: f64,
    p99: f64,
    max: f64,
}

pub(crate) fn run(options: &Options, peers: Option<&Peers>) -> anyhow::Result<()> {
    let schedules = options.schedules(SCHEDULES);
    let dir = tempfile::tempdir_in(options.dir())?;
    let what = format!("{schedules} once a minute, {} s", options.seconds);
    let conditions = Conditions::start("lateness", &what, dir.path())?;
    let ours = block_on(ours(dir.path(), schedules, options.seconds))?;
    Bar::AtMost(P99_MS_MAX).print("p99 in ms", ours.p99);
    match peers {
        None => peers::print_not_measured(),
        Some(peers) => {
            let dir = tempfile::tempdir_in(options.dir())?;
            let timers = schedules as u64 * options.seconds / EVERY_S;
            let theirs = restate(peers, dir.path(), timers, options.seconds)?;
            Bar::AtMost(RATIO_MAX).print("p99 to Restate's", ours.p99 / theirs.p99);
        }
    }
    conditions.end(dir.path())
}

async fn ours(data: &Path, schedules: usize, seconds: u64) -> anyhow::Result<Lateness> {
    let instance = Instance::open(data, Arc::new(NoBackend)).await?;
    let workload = Workload {
        name: "schedule",
        schedules,
        agents: 1,
        first_us: 0,
        spread_us: EVERY_MS * 1_000,
        every_ms: EVERY_MS,
        terms: api::Terms::default(),
    };
    workload.add(&instance.handle).await?;
    instance.close().await?;
    // Slots that came due while schedules were added do not count.
    let backend = Arc::new(LatenessBackend::from(now_us()));
    let instance = Instance::open(data, backend.clone()).await?;
    let started = instance.mark().await?;
    let stop = async {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        "measured".to_owned()
    };
    instance.engine.run(&[], vec![], stop).await?;
    let cost = started.until(instance.mark().await?);
    let late = backend.take_late_us();
    anyhow::ensure!(!late.is_empty(), "nothing fired");
    let ms = |thousandths| quantile(&late, thousandths) / 1e3;
    let found = Lateness { p50: ms(500), p99: ms(990), max: ms(1_000) };
    println!(
        "  ours     {} fired; late p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms; {}",
        late.len(),
        found.p50,
        found.p99,
        found.max,
        cost.each(late.len() as u64)
    );
    Ok(found)
}

fn restate(peers: &Peers, dir: &Path, timers: u64, seconds: u64) -> anyhow::Result<Lateness> {
    let args = [dir.display().to_string(), timers.to_string(), seconds.to_string()];
    let timeout = Duration::from_secs(240 + seconds);
    let figures = peers.run("restate.mjs", &args, timeout)?;
    let found = Lateness {
        p50: figures.get("p50_ms")?,
        p99: figures.get("p99_ms")?,
        max: figures.get("max_ms")?,
    };
    println!(
        "  Restate  {} of {timers} fired; late p50 {:.0} ms, p99 {:.0} ms, max {:.0} ms; sent {:.0}/s",
        figures.get("fired")?,
        found.p50,
        found.p99,
        found.max,
        figures.get("sent_per_s")?
    );
    Ok(found)
}
