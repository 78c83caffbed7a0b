//! `midwatch status`

use std::process::ExitCode;

use api::{Budget, Channel, Error, LiveRuns, Status, StatusAsk};

use super::authority;
use crate::access::ask;
use crate::context::Context;
use crate::output::{counted, entries, pairs};

pub(super) async fn run(context: &Context) -> Result<ExitCode, Error> {
    let status = ask(context, StatusAsk {}).await?;
    context.output.show(&status, page);
    Ok(ExitCode::SUCCESS)
}

fn page(status: &Status) -> String {
    let Status { watch, log, authority, agents, schedules, runs, next, .. } = status;
    let Status { budget, unknown, approvals, paused, notices, .. } = status;
    let kept = match (watch.pid, &watch.since) {
        (Some(pid), Some(since)) => format!("kept by process {pid} since {since}"),
        _ => "not kept: no daemon runs (`midwatch up` starts one)".to_owned(),
    };
    let signed = match log.checkpoint {
        0 => format!("{}, none signed yet", entries(log.entries)),
        signed => format!("{}, signed up to {signed}", entries(log.entries)),
    };
    let rows = [
        Some(("watch", kept)),
        Some(("posture", watch.posture.clone())),
        Some(("data", watch.data.clone())),
        Some(("version", watch.version.clone())),
        Some(("agents", agents.to_string())),
        Some(("schedules", schedules.to_string())),
        next.as_ref().map(|next| ("next", format!("{} at {}", next.schedule_id, next.at))),
        Some(("runs", live(runs))),
        Some(("budget", spent(budget))),
        Some(("lease", authority::until(&authority.lease))),
        authority::attention(authority).map(|what| ("ATTENTION", what)),
        asked(approvals).map(|what| ("ATTENTION", what)),
        cut_off(unknown).map(|what| ("ATTENTION", what)),
        failing(paused).map(|what| ("ATTENTION", what)),
        Some(("log", signed)),
        watch.kept.then(|| ("check", log.check.clone())),
        log.stopped.clone().map(|reason| ("STOPPED", reason)),
        Some(("public key", log.key.clone())),
    ];
    let told = notices.iter().map(|channel| ("notices", told(channel)));
    pairs(rows.into_iter().flatten().chain(told))
}

fn live(runs: &LiveRuns) -> String {
    let waiting = match runs.waiting {
        0 => String::new(),
        waiting => format!(", {waiting} waiting for approval"),
    };
    format!("{} running, {} queued{waiting}", runs.running.len(), runs.queued)
}

/// How calling a human went by one channel.
fn told(Channel { channel, last_success, last_failure }: &Channel) -> String {
    let success = last_success.as_ref().map(|at| format!("last told at {at}"));
    let failure = last_failure.as_ref().map(|it| format!("last failed at {}: {}", it.at, it.what));
    let said: Vec<String> = success.into_iter().chain(failure).collect();
    match said.is_empty() {
        true => format!("{channel}: nothing to tell yet"),
        false => format!("{channel}: {}", said.join("; ")),
    }
}

fn spent(Budget { runs, runs_max, tokens, tokens_max }: &Budget) -> String {
    let of = |used: &i64, most: &Option<i64>| match most {
        Some(most) => format!("{used} of {most}"),
        None => used.to_string(),
    };
    let (runs, tokens) = (of(runs, runs_max), of(tokens, tokens_max));
    format!("{runs} runs begun and {tokens} tokens used today")
}

/// Questions that a human must answer.
fn asked(approvals: &[String]) -> Option<String> {
    let first = approvals.first()?;
    let questions = counted(approvals.len() as u64, "run waits", "runs wait");
    Some(format!(
        "{questions} for approval: `midwatch approval show {first}`, then \
         `midwatch approval approve {first}`"
    ))
}

/// Schedules that a human must look at.
fn failing(paused: &[String]) -> Option<String> {
    let first = paused.first()?;
    let (schedules, are) = match paused.len() {
        1 => ("1 schedule".to_owned(), "was"),
        count => (format!("{count} schedules"), "were"),
    };
    Some(format!(
        "{schedules} {are} paused because runs failed: `midwatch run list --schedule {first}`, then \
         `midwatch schedule resume {first}`"
    ))
}

/// Runs that a human must look at.
fn cut_off(unknown: &[String]) -> Option<String> {
    let first = unknown.first()?;
    let (runs, are) = match unknown.len() {
        1 => ("1 run".to_owned(), "was"),
        count => (format!("{count} runs"), "were"),
    };
    Some(format!(
        "{runs} {are} cut off, and nobody knows how that ended: \
         `midwatch run settle {first} --as done|failed`"
    ))
}
