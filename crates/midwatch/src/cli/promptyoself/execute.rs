//! `execute`: has prompts delivered that are due, once or for as long as it is left running.
//!
//! Nothing is sent from here. Whoever keeps the watch delivers, and only one process at a time does: the
//! daemon if there is one, else this command, which keeps the watch meanwhile. So however many of these run
//! at once, each prompt is sent once; and an agent that is prompted can schedule the next one.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use api::wire::Hello;
use api::{Code, Error, Run, RunList, RunShow, Schedule, ScheduleShow, StatusAsk};
use calendar::parse_instant;
use client::connect;
use compat::promptyoself::agents::Agents;
use compat::promptyoself::register::refused;
use compat::promptyoself::view;
use futures::future::pending;
use kernel::Timestamp;
use runtime::{Clock, SystemClock};
use serde::Serialize;
use tokio::select;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::settings::held_to;
use super::{agents, has_token, schedules};
use crate::access::{TOKEN, ask};
use crate::context::{Context, VERSION};
use crate::daemon;

/// How often to look whether a run has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long to wait for deliveries; what takes longer goes on, and is shown by `midwatch run list`.
const WAIT_MAX: Duration = Duration::from_secs(1_800);
/// A run that is tried again later than that is reported as it stands.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(10);
/// Items of a report, the newest; those before are counted.
const ITEMS_MAX: usize = 1_000;
const PAGE_RUNS: u32 = 100;
/// How long prompts that are being delivered may take once a loop is told to stop.
const DRAIN: &str = "MIDWATCH_RUNS_DRAIN";
const DRAIN_OF_LOOP: &str = "500ms";

#[derive(Debug, Serialize)]
#[serde(tag = "status", rename = "success")]
pub(super) struct Executed {
    executed: Vec<Item>,
    message: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Item {
    Delivered {
        id: u64,
        agent_id: String,
        delivered: bool,
        next_run: Option<String>,
        repetition_count: u64,
        max_repetitions: Option<u64>,
        completed: bool,
    },
    Failed {
        id: u64,
        agent_id: String,
        delivered: bool,
        error: String,
        next_run: Option<String>,
    },
}

/// The runs that were not reported yet.
#[derive(Debug)]
struct Unreported {
    /// Every run up to this one is from before, but for those that are open.
    newest: String,
    open: BTreeSet<String>,
}

/// How one turn at keeping the watch has ended.
enum Turn {
    Again,
    Over,
}

pub(super) fn seconds(text: &str) -> Result<Duration, Error> {
    let seconds: u64 =
        text.trim().parse().map_err(|_| refused("Interval must be a number (seconds)"))?;
    Ok(Duration::from_secs(seconds.max(1)))
}

/// Has delivered what is due now.
pub(super) async fn once(context: &Context) -> Result<Executed, Error> {
    let started = SystemClock.now();
    let mut unreported = Unreported::now(context).await?;
    let due: Vec<Schedule> =
        schedules(context).await?.into_iter().filter(|it| is_due(it, started)).collect();
    if due.is_empty() {
        return Ok(Executed::of(Vec::new(), 0));
    }
    check_authority(context).await?;
    let settled = settle(context, &due, started);
    if is_kept(context).await? {
        settled.await?;
    } else {
        keep_while(context, settled).await?;
    }
    let items = unreported.take(context, is_told).await?;
    Ok(Executed::of_all(items))
}

/// Has prompts delivered until a signal comes. `told` gets what happened in each interval.
pub(super) async fn on_and_on(
    context: &Context,
    interval: Duration,
    told: impl Fn(Executed),
) -> Result<Executed, Error> {
    let context = &hurried(context);
    let mut unreported = Unreported::now(context).await?;
    let mut total = Total::default();
    let mut stop = Box::pin(daemon::signals()?);
    loop {
        let ticks = async {
            loop {
                sleep(interval).await;
                // What could not be asked for now is told the next time.
                if let Ok(items) = unreported.take(context, is_over).await {
                    told(total.add(items));
                }
            }
        };
        select! {
            turn = turn(context, interval, &mut stop) => match turn? {
                Turn::Again => {}
                Turn::Over => break,
            },
            () = ticks => {}
        }
    }
    let items = unreported.take(context, is_over).await?;
    total.add(items);
    Ok(Executed::of(total.items, total.count))
}

/// Whoever ends a loop expects it to be gone within a second.
fn hurried(context: &Context) -> Context {
    let mut context = context.clone();
    context.environment.entry(DRAIN.to_owned()).or_insert_with(|| DRAIN_OF_LOOP.to_owned());
    context
}

/// Keeps the watch until it is told to stop; while somebody else does so, waits for them to leave.
async fn turn(
    context: &Context,
    interval: Duration,
    stop: &mut (impl Future<Output = String> + Unpin),
) -> Result<Turn, Error> {
    if is_kept(context).await? {
        return Ok(select! {
            () = until_left(context, interval) => Turn::Again,
            _ = stop => Turn::Over,
        });
    }
    match daemon::keep(context, stop, |_| {}).await {
        Err(held) if held.code == Code::AlreadyRunning => Ok(Turn::Again),
        kept => kept.map(|()| Turn::Over).map_err(|error| unkept(context, error)),
    }
}

async fn until_left(context: &Context, interval: Duration) {
    loop {
        sleep(interval).await;
        if !is_kept(context).await.unwrap_or(true) {
            return;
        }
    }
}

/// Keeps the watch until `work` is done; if somebody else does so already, that will do.
async fn keep_while(
    context: &Context,
    work: impl Future<Output = Result<(), Error>>,
) -> Result<(), Error> {
    let (ready, is_ready) = oneshot::channel();
    let (done, is_done) = oneshot::channel::<String>();
    let kept = daemon::keep(
        context,
        async { is_done.await.unwrap_or_else(|_| "its work is over".to_owned()) },
        |_| {
            let _ = ready.send(());
        },
    );
    let (mut kept, mut work) = (pin!(kept), pin!(work));
    let worked = async {
        match is_ready.await {
            Ok(()) => work.as_mut().await,
            // The watch is another's, or cannot be kept, and nobody delivers.
            Err(_) => pending().await,
        }
    };
    let worked = select! {
        ended = &mut kept => match ended {
            Err(held) if held.code == Code::AlreadyRunning => return work.await,
            ended => return ended.map_err(|error| unkept(context, error)),
        },
        worked = worked => worked,
    };
    let _ = done.send("everything that was due is done".to_owned());
    kept.await.and(worked)
}

/// Why the watch cannot be kept from here, and who has to do it.
fn unkept(context: &Context, error: Error) -> Error {
    if error.code != Code::UnsafeSetup || !has_token(context) {
        return error;
    }
    let what = format!(
        "no daemon keeps the watch, and nobody keeps it with a token in {TOKEN}, so nothing is delivered"
    );
    Error::new(error.code, what)
        .hint(format!("let a daemon deliver: `midwatch up` without {TOKEN}; or unset it here"))
}

/// Waits until what was due has ended, waits for a human, or a signal comes.
async fn settle(context: &Context, due: &[Schedule], started: Timestamp) -> Result<(), Error> {
    let stop = daemon::signals()?;
    let waited = async {
        let deadline = Instant::now() + WAIT_MAX;
        for schedule in due {
            while !is_settled(context, &schedule.id, started).await? && Instant::now() < deadline {
                sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
    };
    select! {
        waited = waited => waited,
        _ = stop => Ok(()),
    }
}

async fn is_settled(context: &Context, id: &str, started: Timestamp) -> Result<bool, Error> {
    let schedule = match ask(context, ScheduleShow { id: id.to_owned() }).await {
        Err(gone) if gone.code == Code::NotFound => return Ok(true),
        shown => shown?.schedule,
    };
    if is_by(schedule.next_run_at.as_deref(), started) {
        return Ok(false);
    }
    for id in schedule.live {
        let run = ask(context, RunShow { id }).await?.run;
        let is_of_then = is_by(run.slot.as_deref().or(Some(&run.queued_at)), started);
        if is_of_then && !is_told(&run) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether something is to be done about a schedule: a slot, or a run that was left.
fn is_due(schedule: &Schedule, now: Timestamp) -> bool {
    let is_prompt = schedule.action.agent.is_some();
    is_prompt && (is_by(schedule.next_run_at.as_deref(), now) || !schedule.live.is_empty())
}

fn is_by(instant: Option<&str>, now: Timestamp) -> bool {
    let at_us = instant.and_then(|text| parse_instant(text, None).ok());
    at_us.is_some_and(|at_us| at_us <= now.as_micros())
}

/// Whether nothing more happens to a run by itself.
fn is_over(run: &Run) -> bool {
    !matches!(run.state.as_str(), "queued" | "running")
}

/// Whether there is nothing more to say about a run for now.
fn is_told(run: &Run) -> bool {
    let soon =
        SystemClock.now().after_us(RETRY_WAIT_MAX.as_micros().try_into().unwrap_or(i64::MAX));
    is_over(run) || (run.retry_at.is_some() && !is_by(run.retry_at.as_deref(), soon))
}

/// Nothing is delivered by a watch that is frozen, however long one waits.
async fn check_authority(context: &Context) -> Result<(), Error> {
    match ask(context, StatusAsk {}).await?.authority.frozen {
        None => Ok(()),
        Some(_) => Err(Error::new(Code::NotNow, "the watch is frozen, so nothing is delivered")
            .hint("`midwatch thaw` lets things go on")),
    }
}

async fn is_kept(context: &Context) -> Result<bool, Error> {
    Ok(connect(&context.directory.socket()?, &Hello::new(VERSION)).await?.is_some())
}

impl Unreported {
    /// From now on.
    async fn now(context: &Context) -> Result<Unreported, Error> {
        if context.storage()?.is_missing(&context.directory)? {
            return Ok(Unreported { newest: String::new(), open: BTreeSet::new() });
        }
        let newest = ask(context, RunList { limit: Some(1), ..RunList::default() }).await?;
        let newest = newest.runs.into_iter().next().map(|run| run.id).unwrap_or_default();
        let open = schedules(context).await?.into_iter().flat_map(|schedule| schedule.live);
        Ok(Unreported { newest, open: open.collect() })
    }

    /// What has ended since, or of which all `is_told` that can be, the oldest first.
    async fn take(
        &mut self,
        context: &Context,
        is_told: fn(&Run) -> bool,
    ) -> Result<Vec<Item>, Error> {
        if context.storage()?.is_missing(&context.directory)? {
            return Ok(Vec::new());
        }
        let mut runs = Vec::new();
        for id in &self.open {
            runs.push(ask(context, RunShow { id: id.clone() }).await?.run);
        }
        runs.extend(self.newer(context).await?);
        runs.sort_by(|one, other| one.id.cmp(&other.id));
        let (over, open): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(is_told);
        let (schedules, agents) = match over.is_empty() {
            true => (Vec::new(), Agents::default()),
            false => (schedules(context).await?, agents::registered(context).await?),
        };
        // Nothing is waited for from here on: whoever gives up before finds it all the next time.
        let newest = over.iter().chain(&open).map(|run| run.id.clone()).max();
        self.newest = newest.unwrap_or_default().max(std::mem::take(&mut self.newest));
        self.open = open.into_iter().map(|run| run.id).collect();
        let own = held_to(&context.environment)?;
        let items = over.iter().filter_map(|run| {
            let id = run.schedule_id.as_deref()?;
            let schedule = schedules.iter().find(|schedule| schedule.id == id)?;
            let seen = view::item(schedule, &agents)?;
            own.is_none_or(|own| own == seen.agent_id).then(|| Item::of(run, seen))
        });
        Ok(items.collect())
    }

    async fn newer(&self, context: &Context) -> Result<Vec<Run>, Error> {
        let (mut runs, mut cursor) = (Vec::new(), None);
        loop {
            let asked = RunList { limit: Some(PAGE_RUNS), cursor, ..RunList::default() };
            let page = ask(context, asked).await?;
            let expected = runs.len() + page.runs.len();
            runs.extend(page.runs.into_iter().take_while(|run| self.newest < run.id));
            cursor = page.cursor;
            if runs.len() < expected || cursor.is_none() {
                return Ok(runs);
            }
        }
    }
}

impl Item {
    fn of(run: &Run, seen: view::Item) -> Item {
        let view::Item { id, agent_id, next_run, repetition_count, max_repetitions, .. } = seen;
        if run.state == "done" {
            let completed = max_repetitions.is_some_and(|max| max <= repetition_count);
            return Item::Delivered {
                id,
                agent_id,
                delivered: true,
                next_run,
                repetition_count,
                max_repetitions,
                completed,
            };
        }
        let error = match (&run.approval_id, &run.message) {
            (Some(approval), _) if run.state == "waiting_permission" => {
                format!("it waits for a human: `midwatch approval show {approval}`")
            }
            (_, Some(message)) => match run.retry_at.as_ref().filter(|_| !is_over(run)) {
                Some(at) => format!("{message}; it is tried again at {at}"),
                None => message.clone(),
            },
            (_, None) => format!("run {} is {}", run.id, run.state),
        };
        Item::Failed { id, agent_id, delivered: false, error, next_run }
    }
}

impl Executed {
    fn of(executed: Vec<Item>, count: usize) -> Executed {
        Executed { executed, message: format!("{count} prompts executed") }
    }

    fn of_all(items: Vec<Item>) -> Executed {
        let count = items.len();
        Executed::of(items, count)
    }
}

/// All that was executed so far.
#[derive(Debug, Default)]
struct Total {
    items: Vec<Item>,
    count: usize,
}

impl Total {
    /// What came to it.
    fn add(&mut self, items: Vec<Item>) -> Executed {
        self.count += items.len();
        self.items.extend(items.iter().cloned());
        self.items.drain(..self.items.len().saturating_sub(ITEMS_MAX));
        Executed::of_all(items)
    }
}
