//! `midwatch status`

use std::process::ExitCode;

use api::{
    Budget, BudgetLimit, BudgetList, Budgets, Capability, Channel, Error, LiveRuns, StatusShow,
    ToolList, ToolTally, ToolUse, Tools,
};
use clap::Args;
use serde::Serialize;

use super::support::lease;
use super::support::render::{count_of, entries, pairs, yes_no};
use super::support::table::{Column, shortened, table, whole};
use crate::access::send;
use crate::context::Context;
use crate::view::View;

const CAPABILITY_COLUMNS: [Column; 4] =
    [whole("CAPABILITY"), whole("SUPPORTED"), whole("ENABLED"), shortened("NOTE", 10)];
const BUDGET_COLUMNS: [Column; 5] =
    [shortened("SCOPE", 14), whole("BUDGET"), whole("USED"), whole("LIMIT"), whole("")];
const TOOL_COLUMNS: [Column; 11] = [
    shortened("TOOL", 16),
    whole("TODAY"),
    whole("FAILED"),
    whole("MEAN"),
    whole("LONGEST").or_left_out(2),
    whole("BYTES IN").or_left_out(5),
    whole("BYTES OUT").or_left_out(5),
    whole("RUNS").or_left_out(4),
    whole("14 DAYS").or_left_out(3),
    whole("FAILED").or_left_out(3),
    whole("ALERT").or_left_out(1),
];

/// The most used-up budgets to name on the page.
const USED_UP_SHOWN_MAX: usize = 5;

/// Show the state of the daemon and of everything that needs attention
#[derive(Debug, Args)]
pub(super) struct Status {
    /// Show what this version can do, and what is enabled
    #[arg(long)]
    capabilities: bool,
    /// Show today's use of every budget: of the installation, of agents and of schedules
    #[arg(long, conflicts_with = "capabilities")]
    budgets: bool,
    /// Show how often each tool was called and failed, and how long it took; a daemon that is killed may
    /// lose the last minute of these numbers, but no entry of the ledger
    #[arg(long, conflicts_with_all = ["capabilities", "budgets"])]
    tools: bool,
}

#[derive(Serialize)]
struct Capabilities {
    capabilities: Vec<Capability>,
}

pub(super) async fn run(context: &Context, args: Status) -> Result<ExitCode, Error> {
    let output = context.output;
    if args.budgets {
        let budgets = send(context, BudgetList {}).await?;
        output.show(&budgets, |budgets| render_budgets(budgets, &context.view));
        return Ok(ExitCode::SUCCESS);
    }
    if args.tools {
        let tools = send(context, ToolList {}).await?;
        output.show(&tools, |tools| render_tools(tools, &context.view));
        return Ok(ExitCode::SUCCESS);
    }
    let status = send(context, StatusShow {}).await?;
    match args.capabilities {
        true => {
            let answer = Capabilities { capabilities: status.capabilities };
            output.show(&answer, |answer| render_capabilities(answer, &context.view));
        }
        false => output.show(&status, |status| render(status, &context.view)),
    }
    Ok(ExitCode::SUCCESS)
}

fn render_capabilities(Capabilities { capabilities }: &Capabilities, view: &View) -> String {
    let rows = capabilities.iter().map(|it| {
        let Capability { name, supported, enabled, why, containment, .. } = it;
        let containment = containment.map(|it| it.description().to_owned());
        let note = why.clone().or(containment).unwrap_or_default();
        [name.clone(), yes_no(*supported), yes_no(*enabled), note]
    });
    table(view, CAPABILITY_COLUMNS, rows)
}

fn render_budgets(Budgets { budgets, left_out, until }: &Budgets, view: &View) -> String {
    let until = view.moment(until);
    if budgets.is_empty() {
        return format!("no budget is used today; budgets reset at {until}");
    }
    let rows = budgets.iter().map(|limit| {
        let state = if limit.used_up { "USED UP" } else { "" };
        let (used, most) = (limit.used.to_string(), limit.most.to_string());
        [scope(limit), limit.what.clone(), used, most, state.to_owned()]
    });
    let table = table(view, BUDGET_COLUMNS, rows);
    let more = match left_out {
        0 => String::new(),
        count => format!("; {count} more are not shown"),
    };
    format!("{table}\nbudgets reset at {until}{more}")
}

fn render_tools(Tools { tools }: &Tools, view: &View) -> String {
    if tools.is_empty() {
        return "no tool was called yet".to_owned();
    }
    let milliseconds = |micros: u64| format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100);
    let rows = tools.iter().map(|ToolUse { tool, today, all, alerted_at }| {
        [
            tool.clone(),
            today.calls.to_string(),
            failures(today),
            milliseconds(today.mean_us),
            milliseconds(today.longest_us),
            today.bytes_in.to_string(),
            today.bytes_out.to_string(),
            today.runs.to_string(),
            all.calls.to_string(),
            failures(all),
            alerted_at.as_deref().map(|at| view.time(at)).unwrap_or_default(),
        ]
    });
    table(view, TOOL_COLUMNS, rows)
}

/// The number of failures and their share of all calls.
fn failures(ToolTally { calls, failures, .. }: &ToolTally) -> String {
    match (failures * 100).checked_div(*calls) {
        None | Some(0) if *failures == 0 => "0".to_owned(),
        share => format!("{failures} ({} %)", share.unwrap_or_default()),
    }
}

/// What a budget limits: the installation, an agent or a schedule.
fn scope(limit: &BudgetLimit) -> String {
    match &limit.name {
        Some(name) => format!("{} {name}", limit.scope),
        None => limit.scope.clone(),
    }
}

fn render(status: &api::Status, view: &View) -> String {
    let api::Status { daemon, ledger, authority, agents, schedules, runs, next, .. } = status;
    let api::Status { budget, unknown, approvals, paused, silenced, notices, .. } = status;
    let presence = match (daemon.pid, &daemon.since) {
        (Some(pid), Some(since)) => {
            ("daemon", format!("running, pid {pid}, since {}", view.moment(since)))
        }
        _ => ("ATTENTION", "no daemon is running, so nothing fires: `midwatch up`".to_owned()),
    };
    let signed = match ledger.checkpoint {
        0 => format!("{}, not signed yet", entries(ledger.entries)),
        signed => format!("{}, signed up to {signed}", entries(ledger.entries)),
    };
    let rows = [
        Some(presence),
        Some(("posture", format!("{} (policy version {})", daemon.posture, daemon.policy))),
        disabled(&status.capabilities).map(|text| ("disabled", text)),
        Some(("data", daemon.data.clone())),
        Some(("version", daemon.version.clone())),
        Some(("agents", agents.to_string())),
        Some(("schedules", schedules.to_string())),
        next.as_ref()
            .map(|next| ("next", format!("{}, {}", next.schedule_id, view.moment(&next.at)))),
        Some(("runs", live_runs(runs))),
        Some(("budget", used_today(budget))),
        Some(("lease", lease::deadline(&authority.lease, view))),
        used_up(budget, view).map(|text| ("ATTENTION", text)),
        startup_warnings(&daemon.warnings).map(|text| ("ATTENTION", text)),
        lease::attention(authority, view).map(|text| ("ATTENTION", text)),
        pending_approvals(approvals).map(|text| ("ATTENTION", text)),
        unknown_outcomes(unknown).map(|text| ("ATTENTION", text)),
        paused_schedules(paused).map(|text| ("ATTENTION", text)),
        silenced_agents(silenced).map(|text| ("ATTENTION", text)),
        Some(("ledger", signed)),
        daemon.running.then(|| ("ledger check", ledger.check.clone())),
        ledger.stopped.clone().map(|reason| ("STOPPED", reason)),
        ledger.clock.clone().map(|what| ("CLOCK", what)),
        Some(("public key", ledger.key.clone())),
        Some(("times are", view.zone_name().to_owned())),
    ];
    let channels = notices.iter().map(|it| ("notices", channel(it, view)));
    pairs(rows.into_iter().flatten().chain(channels))
}

/// Capabilities that are supported and on by default, but disabled.
fn disabled(capabilities: &[Capability]) -> Option<String> {
    let names = capabilities.iter().filter(|it| it.supported && !it.enabled && !it.opt_in);
    let names: Vec<&str> = names.map(|it| it.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("{} (`midwatch status --capabilities`)", names.join(", ")))
}

fn live_runs(runs: &LiveRuns) -> String {
    let waiting = match runs.waiting {
        0 => String::new(),
        waiting => format!(", {waiting} waiting for approval"),
    };
    format!("{} running, {} queued{waiting}", runs.running.len(), runs.queued)
}

fn used_today(budget: &Budget) -> String {
    fn of<T: ToString>(used: &T, most: &Option<T>) -> String {
        match most {
            Some(most) => format!("{} of {}", used.to_string(), most.to_string()),
            None => used.to_string(),
        }
    }
    let (runs, tokens) =
        (of(&budget.runs, &budget.runs_max), of(&budget.tokens, &budget.tokens_max));
    let money = of(&budget.money, &budget.money_max);
    format!("{runs} runs started, {tokens} tokens used and {money} spent today")
}

/// Budgets that keep runs from starting.
fn used_up(budget: &Budget, view: &View) -> Option<String> {
    let name = |limit: &BudgetLimit| {
        let (used, most) = (limit.used.to_string(), limit.most.to_string());
        format!("{} of {} ({used} of {most})", limit.what, scope(limit))
    };
    let names: Vec<String> = budget.used_up.iter().take(USED_UP_SHOWN_MAX).map(name).collect();
    let more = match budget.used_up.len().saturating_sub(USED_UP_SHOWN_MAX) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    (!names.is_empty()).then(|| {
        let (names, until) = (names.join(", "), view.time(&budget.until));
        format!("budget used up until {until}: {names}{more} (`midwatch status --budgets`)")
    })
}

fn startup_warnings(warnings: &[String]) -> Option<String> {
    let names = warnings.join("`, `");
    (!warnings.is_empty())
        .then(|| format!("the daemon started with warnings: `{names}` (`midwatch doctor`)"))
}

fn pending_approvals(approvals: &[String]) -> Option<String> {
    let first = approvals.first()?;
    let runs = count_of(approvals.len() as u64, "run waits", "runs wait");
    Some(format!(
        "{runs} for approval: `midwatch approval show {first}`, then \
         `midwatch approval approve {first}`"
    ))
}

fn unknown_outcomes(unknown: &[String]) -> Option<String> {
    let first = unknown.first()?;
    let runs = count_of(unknown.len() as u64, "run", "runs");
    Some(format!(
        "the outcome of {runs} is unknown: check with `midwatch run show {first}`, then \
         `midwatch run settle {first} --as done|failed`"
    ))
}

/// Schedules that were paused after failures.
fn paused_schedules(paused: &[String]) -> Option<String> {
    let first = paused.first()?;
    let schedules = count_of(paused.len() as u64, "schedule was", "schedules were");
    Some(format!(
        "{schedules} paused after failed runs: `midwatch run list --schedule {first}`, then \
         `midwatch schedule resume {first}`"
    ))
}

/// Agents whose approval requests are suppressed.
fn silenced_agents(silenced: &[String]) -> Option<String> {
    let first = silenced.first()?;
    Some(format!(
        "no more approval requests for {}, after too many denials: start a run of {first} by hand and \
         approve it, or change it with `midwatch agent edit {first}`",
        silenced.join(", ")
    ))
}

/// The last deliveries of a notice channel.
fn channel(Channel { channel, last_success, last_failure }: &Channel, view: &View) -> String {
    let success = last_success.as_ref().map(|at| format!("last sent {}", view.moment(at)));
    let failure =
        last_failure.as_ref().map(|it| format!("last failed {}: {}", view.moment(&it.at), it.what));
    let results: Vec<String> = success.into_iter().chain(failure).collect();
    match results.is_empty() {
        true => format!("{channel}: nothing sent yet"),
        false => format!("{channel}: {}", results.join("; ")),
    }
}
