//! `midwatch status`

use std::process::ExitCode;

use api::{
    Budget, BudgetLimit, BudgetList, Budgets, Capability, Channel, Error, LiveRuns, StatusAsk,
    ToolList, ToolTally, ToolUse, Tools,
};
use clap::Args;
use serde::Serialize;

use super::authority;
use crate::access::ask;
use crate::context::Context;
use crate::output::{counted, entries, pairs, table};

/// Limits that the page names.
const USED_UP_SHOWN_MAX: usize = 5;

#[derive(Debug, Args)]
pub(super) struct Status {
    /// Show what this version can do, and whether it does so now
    #[arg(long)]
    capabilities: bool,
    /// Show what is used today of every limit, of the installation, of agents and of schedules
    #[arg(long, conflicts_with = "capabilities")]
    budgets: bool,
    /// Show how often each tool was called, how often it failed and how long it took; a daemon that is killed
    /// may lose the last minute of this, and no entry of the log
    #[arg(long, conflicts_with_all = ["capabilities", "budgets"])]
    tools: bool,
}

#[derive(Serialize)]
struct Capabilities {
    capabilities: Vec<Capability>,
}

pub(super) async fn run(context: &Context, asked: Status) -> Result<ExitCode, Error> {
    if asked.budgets {
        context.output.show(&ask(context, BudgetList {}).await?, budgets);
        return Ok(ExitCode::SUCCESS);
    }
    if asked.tools {
        context.output.show(&ask(context, ToolList {}).await?, tools);
        return Ok(ExitCode::SUCCESS);
    }
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

fn budgets(Budgets { budgets, left_out, until }: &Budgets) -> String {
    if budgets.is_empty() {
        return format!("nothing that is limited is used today; the day ends at {until}");
    }
    let rows = budgets.iter().map(|limit| {
        let state = if limit.used_up { "USED UP" } else { "" };
        let (used, most) = (limit.used.to_string(), limit.most.to_string());
        [limited(limit), limit.what.clone(), used, most, state.to_owned()]
    });
    let shown = table(["LIMIT OF", "WHAT", "USED", "MOST", ""], rows);
    let more = match left_out {
        0 => String::new(),
        count => format!("; {count} more are not shown"),
    };
    format!("{shown}\nall of it begins anew at {until}{more}")
}

fn tools(Tools { tools }: &Tools) -> String {
    if tools.is_empty() {
        return "no tool was called yet".to_owned();
    }
    let milliseconds = |micros: u64| format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100);
    let of = |tally: &ToolTally| (tally.calls.to_string(), failed(tally));
    let rows = tools.iter().map(|ToolUse { tool, today, all, alerted_at }| {
        let ((calls, failed), (calls_all, failed_all)) = (of(today), of(all));
        [
            tool.clone(),
            calls,
            failed,
            milliseconds(today.mean_us),
            milliseconds(today.longest_us),
            today.bytes_in.to_string(),
            today.bytes_out.to_string(),
            today.runs.to_string(),
            calls_all,
            failed_all,
            alerted_at.clone().unwrap_or_default(),
        ]
    });
    let head = [
        "TOOL",
        "TODAY",
        "FAILED",
        "MEAN",
        "LONGEST",
        "BYTES IN",
        "BYTES OUT",
        "RUNS",
        "14 DAYS",
        "FAILED",
        "ALERT",
    ];
    table(head, rows)
}

/// How many, and what share of all that is.
fn failed(ToolTally { calls, failures, .. }: &ToolTally) -> String {
    match (failures * 100).checked_div(*calls) {
        None | Some(0) if *failures == 0 => "0".to_owned(),
        share => format!("{failures} ({} %)", share.unwrap_or_default()),
    }
}

/// Whose limit it is.
fn limited(limit: &BudgetLimit) -> String {
    match &limit.name {
        Some(name) => format!("{} {name}", limit.scope),
        None => limit.scope.clone(),
    }
}

/// Limits that keep runs from beginning.
fn used_up(budget: &Budget) -> Option<String> {
    let of = |limit: &BudgetLimit| format!("{} of {}", limit.what, limited(limit));
    let all: Vec<String> = budget.used_up.iter().take(USED_UP_SHOWN_MAX).map(of).collect();
    let more = match budget.used_up.len().saturating_sub(USED_UP_SHOWN_MAX) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    (!all.is_empty()).then(|| {
        let (all, until) = (all.join(", "), &budget.until);
        format!("used up until {until}: {all}{more} (`midwatch status --budgets`)")
    })
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
        used_up(budget).map(|what| ("ATTENTION", what)),
        warned(&watch.warnings).map(|what| ("ATTENTION", what)),
        authority::attention(authority).map(|what| ("ATTENTION", what)),
        asked(approvals).map(|what| ("ATTENTION", what)),
        unsettled(unknown).map(|what| ("ATTENTION", what)),
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

fn spent(budget: &Budget) -> String {
    fn of<T: ToString>(used: &T, most: &Option<T>) -> String {
        match most {
            Some(most) => format!("{} of {}", used.to_string(), most.to_string()),
            None => used.to_string(),
        }
    }
    let (runs, tokens) =
        (of(&budget.runs, &budget.runs_max), of(&budget.tokens, &budget.tokens_max));
    let money = of(&budget.money, &budget.money_max);
    format!("{runs} runs begun, {tokens} tokens used and {money} spent today")
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
fn unsettled(unknown: &[String]) -> Option<String> {
    let first = unknown.first()?;
    let runs = match unknown.len() {
        1 => "1 run".to_owned(),
        count => format!("{count} runs"),
    };
    Some(format!(
        "nobody knows how {runs} ended: `midwatch run settle {first} --as done|failed`, \
         once you have looked with `midwatch run show {first}`"
    ))
}
