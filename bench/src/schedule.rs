//! Schedules that fire: how late, how many, and what one costs.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agents::{Doer, Ended, Outcome, Output, Work};
use api::{Action, AgentAdd, Handle, ScheduleAdd, When, ask};
use futures::future::{BoxFuture, FutureExt, try_join_all};
use kernel::Actor;
use runtime::{Clock, SystemClock};
use tokio_util::sync::CancellationToken;

use crate::machine;
use crate::store::open;

/// Schedules that are added at a time.
const ADDED_AT_ONCE: usize = 256;

pub(crate) struct Load {
    pub(crate) schedules: usize,
    pub(crate) every_ms: i64,
    pub(crate) seconds: u64,
}

pub(crate) fn run(dir: &Path, load: &Load) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(measure(dir, load))
}

async fn measure(dir: &Path, load: &Load) -> anyhow::Result<()> {
    let place = tempfile::tempdir_in(dir)?;
    let (p50, p99) = machine::flush_ms(place.path())?;
    println!(
        "\nschedule: {} every {} ms, {} s, in {}; flush p50 {p50:.2} ms, p99 {p99:.2} ms",
        load.schedules,
        load.every_ms,
        load.seconds,
        dir.display()
    );
    let watch = open(place.path()).await?;
    let handle = watch.handle(Actor::local_user(1000));
    let started = Instant::now();
    add(&handle, load).await?;
    let rate = load.schedules as f64 / started.elapsed().as_secs_f64();
    println!("added    {rate:.0}/s, one at a time by {ADDED_AT_ONCE} callers");

    // What came due while schedules were added is late by that, and does not count.
    let hands = Arc::new(Hands { from_us: SystemClock.now().as_micros(), ..Hands::default() });
    let span = Duration::from_secs(load.seconds);
    let cpu = machine::cpu_seconds();
    let stop = async {
        tokio::time::sleep(span).await;
        "measured".to_owned()
    };
    watch.keep(hands.clone(), stop).await?;
    let cpu = machine::cpu_seconds() - cpu;
    let mut late = std::mem::take(&mut *hands.late_us.lock().unwrap_or_else(|it| it.into_inner()));
    late.sort_unstable();
    anyhow::ensure!(!late.is_empty(), "nothing fired");
    let at = |part: usize| late.get((late.len() * part / 1000).min(late.len() - 1)).copied();
    let ms = |part| at(part).unwrap_or_default() as f64 / 1e3;
    println!(
        "fired    {} in {} s: {:.0}/s; late p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms; {:.0} µs of processor each",
        late.len(),
        load.seconds,
        late.len() as f64 / span.as_secs_f64(),
        ms(500),
        ms(990),
        ms(1000),
        cpu * 1e6 / late.len() as f64,
    );
    Ok(())
}

async fn add(handle: &dyn Handle, load: &Load) -> anyhow::Result<()> {
    let agent = AgentAdd { name: "echo".into(), backend: "builtin".into(), ..AgentAdd::default() };
    ask(handle, agent).await?;
    let numbers: Vec<usize> = (0..load.schedules).collect();
    for part in numbers.chunks(ADDED_AT_ONCE) {
        try_join_all(part.iter().map(|number| ask(handle, schedule(*number, load)))).await?;
    }
    Ok(())
}

/// Spread evenly over the interval.
fn schedule(number: usize, load: &Load) -> ScheduleAdd {
    let at_us = load.every_ms * 1_000 * number as i64 / load.schedules as i64;
    ScheduleAdd {
        name: format!("schedule {number}"),
        when: When {
            every: Some(format!("{}ms", load.every_ms)),
            anchor: Some(calendar::format_instant(at_us)),
            ..When::default()
        },
        action: Action {
            agent: Some("echo".into()),
            prompt: Some("go on".into()),
            ..Action::default()
        },
        ..ScheduleAdd::default()
    }
}

/// Notes how late each run is, and does nothing.
#[derive(Debug, Default)]
struct Hands {
    from_us: i64,
    late_us: Mutex<Vec<i64>>,
}

impl Doer for Hands {
    fn work(&self, work: Work, _: CancellationToken) -> BoxFuture<'_, Ended> {
        async move {
            let now = SystemClock.now().as_micros();
            let slot = work.slot.and_then(|slot| calendar::parse_instant(&slot, None).ok());
            if let Some(slot) = slot.filter(|slot| self.from_us <= *slot) {
                let mut late = self.late_us.lock().unwrap_or_else(|it| it.into_inner());
                late.push(now - slot);
            }
            Ended { outcome: Outcome::Done, output: Output::default() }
        }
        .boxed()
    }
}
