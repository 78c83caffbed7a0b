//! `midwatch status`

use std::process::ExitCode;

use api::{Budget, Capability, Channel, Error, LiveRuns, StatusAsk};
use clap::Args;
use serde::Serialize;

use super::authority;
use crate::access::ask;
use crate::context::Context;
use crate::output::{counted, entries, pairs, table};

#[derive(Debug, Args)]
pub(super) struct Status {
    /// Show what this version can do, and whether it does so now
    #[arg(long)]
    capabilities: bool,
}

#[derive(Serialize)]
struct Capabilities {
    capabilities: Vec<Capability>,
}

pub(super) async fn run(context: &Context, asked: Status) -> Result<ExitCode, Error> {
    let status = ask(context, StatusAsk {}).await?;
    match asked.capabilities {
        true => {
            let shown = Capabilities { capabilities: status.capabilities };
            context.output.show(&shown, capabilities);
        }
        false => context.output.show(&status, page),
    }
    Ok(ExitCode::SUCCESS)
}

fn capabilities(Capabilities { capabilities }: &Capabilities) -> String {
    let word = |is_so| if is_so { "yes" } else { "no" }.to_owned();
    let rows = capabilities.iter().map(|Capability { name, supported, enabled, why }| {
        [name.clone(), word(*supported), word(*enabled), why.clone().unwrap_or_default()]
    });
    table(["CAPABILITY", "SUPPORTED", "ENABLED", "WHY NOT"], rows)
}

/// What this version can do, and does not do now.
fn switched_off(capabilities: &[Capability]) -> Option<String> {
    let off = capabilities.iter().filter(|it| it.supported && !it.enabled);
    let off: Vec<&str> = off.map(|it| it.name.as_str()).collect();
    (!off.is_empty()).then(|| format!("{} (`midwatch status --capabilities`)", off.join(", ")))
}

/// What the checks had to say when the daemon started.
fn warned(warnings: &[String]) -> Option<String> {
    let all = warnings.join("`, `");
    (!warnings.is_empty()).then(|| format!("it started with warnings: `{all}` (`midwatch doctor`)"))
}

fn page(status: &api::Status) -> String {
    let api::Status { watch, log, authority, agents, schedules, runs, next, .. } = status;
    let api::Status { budget, unknown, approvals, paused, silenced, notices, .. } = status;
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
        Some(("posture", format!("{} (rules of version {})", watch.posture, watch.policy))),
        switched_off(&status.capabilities).map(|what| ("off", what)),
        Some(("data", watch.data.clone())),
        Some(("version", watch.version.clone())),
        Some(("agents", agents.to_string())),
        Some(("schedules", schedules.to_string())),
        next.as_ref().map(|next| ("next", format!("{} at {}", next.schedule_id, next.at))),
        Some(("runs", live(runs))),
        Some(("budget", spent(budget))),
        Some(("lease", authority::until(&authority.lease))),
        warned(&watch.warnings).map(|what| ("ATTENTION", what)),
        authority::attention(authority).map(|what| ("ATTENTION", what)),
        asked(approvals).map(|what| ("ATTENTION", what)),
        cut_off(unknown).map(|what| ("ATTENTION", what)),
        failing(paused).map(|what| ("ATTENTION", what)),
        unasked(silenced).map(|what| ("ATTENTION", what)),
        Some(("log", signed)),
        watch.kept.then(|| ("check", log.check.clone())),
        log.stopped.clone().map(|reason| ("STOPPED", reason)),
        log.clock.clone().map(|what| ("CLOCK", what)),
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

/// Agents about whom nobody is asked.
fn unasked(silenced: &[String]) -> Option<String> {
    let first = silenced.first()?;
    Some(format!(
        "nobody is asked about {} any more, as people said no so often: start a run of {first} by hand and \
         approve it, or change it with `midwatch agent edit {first}`",
        silenced.join(", ")
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
