//! `midwatch status`

mod page;

use std::process::ExitCode;

use api::{
    BudgetLimit, BudgetList, Budgets, Capability, Error, StatusSeen, StatusShow, ToolList,
    ToolTally, ToolUse, Tools,
};
use clap::Args;
use serde::Serialize;

use super::support::render::yes_no;
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

/// Show what failed, what waits for you, what is running and what is next
///
/// What needs you comes first, each with the command that helps. Failures are those since you last looked, which
/// `--seen` records; before that, those of the last 24 hours.
#[derive(Debug, Args)]
pub(super) struct Status {
    /// Also record that you have seen this: failures up to now are not reported to you again
    #[arg(long, conflicts_with_all = ["capabilities", "budgets", "tools"])]
    seen: bool,
    /// Also show posture, versions, the ledger, its public key, notices and what budgets are used
    #[arg(long, conflicts_with_all = ["capabilities", "budgets", "tools"])]
    all: bool,
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
        false => {
            output.show(&status, |status| page::render(status, &context.view, args.all));
            if args.seen {
                let marked = send(context, StatusSeen { until: status.at }).await?;
                let until = context.view.moment(&marked.until);
                output.show_text(&format!("seen           what happened until {until}"));
            }
        }
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
