//! `midwatch promptyoself execute`: gets due prompts delivered, once or until it is stopped.
//!
//! This command sends nothing itself. The daemon delivers prompts, and only one daemon runs at a time: if
//! none is running, this command runs one for as long as it needs it. So each prompt is sent once, however
//! many of these commands run, and a prompted agent can schedule its next prompt.

mod report;

use std::pin::pin;
use std::time::Duration;

use api::wire::Hello;
use api::{Code, Error, Run, RunShow, RunState, Schedule, ScheduleShow, StatusShow};
use calendar::parse_instant;
use clap::Args;
use clap::builder::BoolishValueParser;
use compat::promptyoself::register::invalid_input;
use futures::future::pending;
use kernel::Timestamp;
use runtime::{Clock, SystemClock};
use tokio::select;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use transport::connect;

use super::{OUTPUT, has_token, schedules, settings};
use crate::access::{TOKEN_VARIABLE, send};
use crate::context::{Context, VERSION};
use crate::daemon::{self, Start};
use report::{ExecuteResult, Total, Unreported};

/// How often to check whether a run has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long to wait for deliveries. Longer ones continue; `midwatch run list` shows them.
const WAIT_MAX: Duration = Duration::from_secs(1_800);
/// A run whose retry is later than this is reported before it.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(10);
/// The variable that limits how long deliveries may take after a loop is stopped.
const DRAIN: &str = "MIDWATCH_RUNS_DRAIN";
const DRAIN_OF_LOOP: &str = "500ms";

/// Deliver due prompts
#[derive(Debug, Args)]
pub(super) struct Execute {
    /// Continue until a signal arrives
    #[arg(long = "loop", value_name = "BOOL", num_args = 0..=1, default_value = "false",
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
          value_parser = BoolishValueParser::new())]
    is_loop: bool,
    /// With --loop: seconds between two reports
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    interval: Option<String>,
    /// With --loop: print the results of each interval as a line of JSON
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "false",
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
          value_parser = BoolishValueParser::new())]
    report: bool,
}

/// How an attempt to run the daemon ended.
enum DaemonTurn {
    /// Another process runs the daemon, or has stopped it.
    Again,
    Stopped,
}

pub(super) async fn run(context: &Context, execute: Execute) -> Result<ExecuteResult, Error> {
    let interval = execute.interval.as_deref();
    let interval = seconds(interval.unwrap_or(settings::interval(&context.environment)))?;
    if !execute.is_loop {
        return run_once(context).await;
    }
    let report = |result: ExecuteResult| {
        if execute.report {
            let _ = OUTPUT.show_line(&result, |_| String::new());
        }
    };
    run_loop(context, interval, report).await
}

fn seconds(text: &str) -> Result<Duration, Error> {
    let seconds: u64 =
        text.trim().parse().map_err(|_| invalid_input("Interval must be a number (seconds)"))?;
    Ok(Duration::from_secs(seconds.max(1)))
}

/// Waits until the prompts that are due now are delivered.
async fn run_once(context: &Context) -> Result<ExecuteResult, Error> {
    let started = SystemClock.now();
    let mut unreported = Unreported::since_now(context).await?;
    let due: Vec<Schedule> =
        schedules(context).await?.into_iter().filter(|it| is_due(it, started)).collect();
    if due.is_empty() {
        return Ok(ExecuteResult::of_all(Vec::new()));
    }
    check_not_frozen(context).await?;
    let delivered = wait_for_deliveries(context, &due, started);
    if is_daemon_running(context).await? {
        delivered.await?;
    } else {
        run_daemon_while(context, delivered).await?;
    }
    let items = unreported.take(context, is_reportable).await?;
    Ok(ExecuteResult::of_all(items))
}

/// Gets prompts delivered until a signal arrives. Calls `report` with the results of each interval.
async fn run_loop(
    context: &Context,
    interval: Duration,
    report: impl Fn(ExecuteResult),
) -> Result<ExecuteResult, Error> {
    let context = &with_short_drain(context);
    let mut unreported = Unreported::since_now(context).await?;
    let mut total = Total::default();
    let mut stop = Box::pin(daemon::stop_signal()?);
    loop {
        let reports = async {
            loop {
                sleep(interval).await;
                // After a failure the next interval reports the same runs.
                if let Ok(items) = unreported.take(context, is_ended).await {
                    report(total.add(items));
                }
            }
        };
        select! {
            turn = run_daemon(context, interval, &mut stop) => match turn? {
                DaemonTurn::Again => {}
                DaemonTurn::Stopped => break,
            },
            () = reports => {}
        }
    }
    let items = unreported.take(context, is_ended).await?;
    total.add(items);
    Ok(total.into_result())
}

/// A stopped loop must end within a second.
fn with_short_drain(context: &Context) -> Context {
    let mut context = context.clone();
    context.environment.entry(DRAIN.to_owned()).or_insert_with(|| DRAIN_OF_LOOP.to_owned());
    context
}

/// Runs the daemon until `stop`. While another process runs it, waits for that to end.
async fn run_daemon(
    context: &Context,
    interval: Duration,
    stop: &mut (impl Future<Output = String> + Unpin),
) -> Result<DaemonTurn, Error> {
    if is_daemon_running(context).await? {
        return Ok(select! {
            () = daemon_stopped(context, interval) => DaemonTurn::Again,
            _ = stop => DaemonTurn::Stopped,
        });
    }
    match daemon::run(context, Start::default(), stop, |_| {}).await {
        Err(running) if running.code == Code::AlreadyRunning => Ok(DaemonTurn::Again),
        ended => {
            ended.map(|()| DaemonTurn::Stopped).map_err(|error| no_daemon_error(context, error))
        }
    }
}

async fn daemon_stopped(context: &Context, interval: Duration) {
    loop {
        sleep(interval).await;
        if !is_daemon_running(context).await.unwrap_or(true) {
            return;
        }
    }
}

/// Runs the daemon until `work` is done. If another process runs it already, only does the work.
async fn run_daemon_while(
    context: &Context,
    work: impl Future<Output = Result<(), Error>>,
) -> Result<(), Error> {
    let (ready, is_ready) = oneshot::channel();
    let (done, is_done) = oneshot::channel::<String>();
    let daemon = daemon::run(
        context,
        Start::default(),
        async { is_done.await.unwrap_or_else(|_| "the work is done".to_owned()) },
        |_| {
            let _ = ready.send(());
        },
    );
    let (mut daemon, mut work) = (pin!(daemon), pin!(work));
    let worked = async {
        match is_ready.await {
            Ok(()) => work.as_mut().await,
            // The daemon failed to start; its result is handled below.
            Err(_) => pending().await,
        }
    };
    let worked = select! {
        ended = &mut daemon => match ended {
            Err(running) if running.code == Code::AlreadyRunning => return work.await,
            ended => return ended.map_err(|error| no_daemon_error(context, error)),
        },
        worked = worked => worked,
    };
    let _ = done.send("all due prompts are delivered".to_owned());
    daemon.await.and(worked)
}

/// The error of a caller with a token, which may not run the daemon.
fn no_daemon_error(context: &Context, error: Error) -> Error {
    if error.code != Code::UnsafeSetup || !has_token(context) {
        return error;
    }
    let what = format!(
        "no daemon is running, and a caller with a token in {TOKEN_VARIABLE} may not run one, so nothing is \
         delivered"
    );
    Error::new(error.code, what).hint(format!(
        "start `midwatch up` without {TOKEN_VARIABLE}, or unset {TOKEN_VARIABLE} here"
    ))
}

/// Waits until the due prompts are delivered or wait for approval, or a signal arrives.
async fn wait_for_deliveries(
    context: &Context,
    due: &[Schedule],
    started: Timestamp,
) -> Result<(), Error> {
    let stop = daemon::stop_signal()?;
    let waited = async {
        let deadline = Instant::now() + WAIT_MAX;
        for schedule in due {
            while !is_delivered(context, &schedule.id, started).await? && Instant::now() < deadline
            {
                sleep(POLL_INTERVAL).await;
            }
        }
        Ok(())
    };
    select! {
        waited = waited => waited,
        _ = stop => Ok(()),
    }
}

/// Whether all slots and runs of a schedule that were due at `started` can be reported.
async fn is_delivered(context: &Context, id: &str, started: Timestamp) -> Result<bool, Error> {
    let schedule = match send(context, ScheduleShow { id: id.to_owned() }).await {
        Err(gone) if gone.code == Code::NotFound => return Ok(true),
        shown => shown?.schedule,
    };
    if is_at_or_before(schedule.next_run_at.as_deref(), started) {
        return Ok(false);
    }
    for id in schedule.live {
        let run = send(context, RunShow { id }).await?.run;
        let was_due = is_at_or_before(run.slot.as_deref().or(Some(&run.queued_at)), started);
        if was_due && !is_reportable(&run) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a schedule has a due slot or a live run.
fn is_due(schedule: &Schedule, now: Timestamp) -> bool {
    let is_prompt = schedule.action.agent.is_some();
    is_prompt
        && (is_at_or_before(schedule.next_run_at.as_deref(), now) || !schedule.live.is_empty())
}

fn is_at_or_before(instant: Option<&str>, now: Timestamp) -> bool {
    let at_us = instant.and_then(|text| parse_instant(text, None).ok());
    at_us.is_some_and(|at_us| at_us <= now.as_micros())
}

/// Whether a run has ended, or waits for a human.
fn is_ended(run: &Run) -> bool {
    match run.state {
        RunState::Queued | RunState::Running => false,
        RunState::WaitingPermission
        | RunState::Done
        | RunState::Failed
        | RunState::Cancelled
        | RunState::Unknown => true,
    }
}

/// Whether a run has ended, or its next attempt is too late to wait for.
fn is_reportable(run: &Run) -> bool {
    let soon =
        SystemClock.now().after_us(RETRY_WAIT_MAX.as_micros().try_into().unwrap_or(i64::MAX));
    is_ended(run) || (run.retry_at.is_some() && !is_at_or_before(run.retry_at.as_deref(), soon))
}

/// Refuses to wait for deliveries that a freeze prevents.
async fn check_not_frozen(context: &Context) -> Result<(), Error> {
    match send(context, StatusShow {}).await?.authority.frozen {
        None => Ok(()),
        Some(_) => Err(Error::new(Code::NotNow, "Midwatch is frozen, so nothing is delivered")
            .hint("end the freeze with `midwatch thaw`")),
    }
}

async fn is_daemon_running(context: &Context) -> Result<bool, Error> {
    Ok(connect(&context.directory.socket()?, &Hello::new(VERSION)).await?.is_some())
}
