//! The page of `midwatch status`. What needs a person comes first, each line with the command that helps; then what is
//! running and what is next. `--all` adds what rarely matters.

use api::display::on_one_line;
use api::{
    Budget, BudgetLimit, Capability, Channel, DiskUse, Failures, LiveRuns, NextDue, PausedSchedule,
    RunState, Status, StatusRun, WaitingRun,
};

use crate::cli::support::lease;
use crate::cli::support::render::{NAME_COLUMNS, count_of, entries, pairs, size};
use crate::cli::support::short_id::short_ids;
use crate::cli::support::table::cut;
use crate::view::View;
use crate::wrap::wrap;

/// The most items of one kind to name on the page.
const NAMED_MAX: usize = 5;
/// Longer reasons are cut off.
const REASON_COLUMNS_MAX: usize = 80;

type Row = (&'static str, String);

pub(super) fn render(status: &Status, view: &View, all: bool) -> String {
    let rows = std::iter::once(presence(status, view)).chain(attention(status, view));
    let rows = rows.chain(now_and_next(status, view));
    let details = all.then(|| details(status, view)).into_iter().flatten();
    let times = ("times are", view.zone_name().to_owned());
    let rows = rows.chain(details).chain([times]);
    let width = view.width.saturating_sub(NAME_COLUMNS);
    pairs(rows.map(|(name, value)| {
        let lines = value.lines().map(|line| wrap(line, width, "  "));
        (name, lines.collect::<Vec<_>>().join("\n"))
    }))
}

fn presence(Status { daemon, .. }: &Status, view: &View) -> Row {
    match (daemon.pid, &daemon.since) {
        (Some(pid), Some(since)) => {
            ("daemon", format!("running, pid {pid}, since {}", view.moment(since)))
        }
        _ => ("ATTENTION", "no daemon is running, so nothing fires: `midwatch up`".to_owned()),
    }
}

/// What needs a person, most urgent first.
fn attention(status: &Status, view: &View) -> impl Iterator<Item = Row> {
    let Status { daemon, ledger, authority, budget, notices, .. } = status;
    let texts = [
        failed_runs(&status.failures, view),
        unknown_outcomes(&status.unknown_runs, view),
        paused_schedules(&status.paused_schedules),
        waiting_runs(&status.waiting, view),
        silenced_agents(&status.silenced),
        lease::attention(authority, view),
    ];
    let budgets = used_up(budget, view);
    let troubles = [
        ledger.stopped.as_ref().map(|why| {
            format!("the store is stopped, so nothing is recorded and no run starts: {why} (`midwatch doctor`)")
        }),
        ledger.failing.as_ref().filter(|_| ledger.stopped.is_none()).map(|why| {
            format!("nothing can be recorded, so no run starts: {why} (`midwatch doctor`)")
        }),
        ledger.clock.as_ref().map(|what| format!("the clock is wrong: {what}")),
        startup_warnings(&daemon.warnings),
    ];
    let notices = notices.iter().filter_map(|channel| failing_channel(channel, view));
    let texts = texts.into_iter().flatten().chain(budgets).chain(troubles.into_iter().flatten());
    let texts: Vec<String> = texts.chain(notices).collect();
    texts.into_iter().map(|text| ("ATTENTION", text))
}

fn now_and_next(status: &Status, view: &View) -> impl Iterator<Item = Row> {
    let Status { failures, waiting, running, runs, upcoming, authority, .. } = status;
    let no_failure = match (failures.incomplete, failures.seen) {
        (true, _) => {
            "nothing among the newest runs; `midwatch run list --state failed` shows older ones"
                .to_owned()
        }
        (false, true) => format!("nothing since you last looked, {}", view.moment(&failures.since)),
        (false, false) => "nothing in the last 24 hours".to_owned(),
    };
    let is_frozen_or_expired = lease::attention(authority, view).is_some();
    let rows = [
        (failures.runs.is_empty() && !failures.since.is_empty()).then_some(("failed", no_failure)),
        waiting.is_empty().then(|| ("waiting", "nothing waits for you".to_owned())),
        Some(("running", running_now(running, runs, view))),
        Some(("next", next_due(upcoming, view))),
        (!is_frozen_or_expired).then(|| ("lease", lease::deadline(&authority.lease, view))),
    ];
    rows.into_iter().flatten()
}

/// What rarely matters.
fn details(status: &Status, view: &View) -> Vec<Row> {
    let Status { daemon, ledger, agents, schedules, budget, notices, .. } = status;
    let signed = match ledger.checkpoint {
        0 => format!("{}, not signed yet", entries(ledger.entries)),
        signed => format!("{}, signed up to {signed}", entries(ledger.entries)),
    };
    let rows = [
        Some(("posture", format!("{} (policy version {})", daemon.posture, daemon.policy))),
        disabled(&status.capabilities).map(|text| ("disabled", text)),
        Some(("agents", agents.to_string())),
        Some(("schedules", schedules.to_string())),
        Some(("budget", used_today(budget))),
        Some(("ledger", signed)),
        daemon.running.then(|| ("ledger check", checked(&ledger.check))),
        Some(("public key", ledger.key.clone())),
        Some(("data", daemon.data.clone())),
        Some(("store", daemon.store.clone())),
        status.disk.as_ref().map(|disk| ("disk", disk_use(disk))),
        Some(("version", daemon.version.clone())),
    ];
    let channels = notices.iter().map(|it| ("notices", channel(it, view)));
    rows.into_iter().flatten().chain(channels).collect()
}

/// The result of the check at the start, when the ledger had fewer entries than now.
fn checked(result: &str) -> String {
    match result.strip_prefix("sound: ") {
        Some(entries) => format!("sound when the daemon started ({entries})"),
        None => result.to_owned(),
    }
}

/// The failed runs since the reader last looked. Those with an unknown outcome have their own line until they are settled.
fn failed_runs(failures: &Failures, view: &View) -> Option<String> {
    let failed: Vec<&StatusRun> =
        failures.runs.iter().filter(|run| run.state == RunState::Failed).collect();
    if failed.is_empty() {
        return None;
    }
    let since = match failures.seen {
        true => format!("since you last looked, {}", view.moment(&failures.since)),
        false => "in the last 24 hours".to_owned(),
    };
    let more = if failures.incomplete { " or more" } else { "" };
    let runs = count_of(failed.len() as u64, "run", "runs");
    let named = named_runs(&failed, view, "midwatch run list --state failed");
    Some(format!("{runs}{more} failed {since}\n{named}\n`midwatch status --seen` clears this"))
}

/// One line per run: its name, when and why, and the command that shows it.
fn named_runs(runs: &[&StatusRun], view: &View, list: &str) -> String {
    let ids = short_ids(runs.iter().map(|run| run.run_id.as_str()));
    let lines = runs.iter().zip(&ids).take(NAMED_MAX).map(|(run, id)| {
        let reason = run.message.as_ref().or(run.reason.as_ref());
        let reason = reason.map(|reason| cut(&on_one_line(reason), REASON_COLUMNS_MAX));
        let reason = reason.map(|reason| format!(", {reason}")).unwrap_or_default();
        let (name, at) = (name_of(run), view.moment(&run.at));
        format!("{name}, {at}{reason}: `midwatch run show {id}`")
    });
    let more = runs.len().saturating_sub(NAMED_MAX);
    let more = (0 < more).then(|| format!("and {more} more: `{list}`"));
    lines.chain(more).collect::<Vec<_>>().join("\n")
}

fn name_of(run: &StatusRun) -> &str {
    run.schedule_name.as_deref().unwrap_or(&run.schedule_id)
}

fn unknown_outcomes(unknown: &[StatusRun], view: &View) -> Option<String> {
    let runs: Vec<&StatusRun> = unknown.iter().collect();
    let first = short_ids(runs.iter().map(|run| run.run_id.as_str())).into_iter().next()?;
    let count = count_of(runs.len() as u64, "run", "runs");
    let named = named_runs(&runs, view, "midwatch run list --state unknown");
    Some(format!(
        "the outcome of {count} is unknown: check what happened, then \
         `midwatch run settle {first} --as done|failed`\n{named}"
    ))
}

/// Schedules that were paused after failures.
fn paused_schedules(paused: &[PausedSchedule]) -> Option<String> {
    let first = paused.first()?;
    let name = |it: &PausedSchedule| it.schedule_name.clone().unwrap_or(it.schedule_id.clone());
    let schedules = count_of(paused.len() as u64, "schedule was", "schedules were");
    let names = listed(paused.iter().map(name));
    let id = &first.schedule_id;
    Some(format!(
        "{schedules} paused after failed runs ({names}): `midwatch run list --schedule {id}`, then \
         `midwatch schedule resume {id}`"
    ))
}

/// Runs that wait for an approval, the first to expire first.
fn waiting_runs(waiting: &[WaitingRun], view: &View) -> Option<String> {
    let ids = short_ids(waiting.iter().map(|run| run.approval_id.as_str()));
    let first = ids.first()?;
    let runs = count_of(waiting.len() as u64, "run waits", "runs wait");
    let lines = waiting.iter().zip(&ids).take(NAMED_MAX).map(|(run, id)| {
        let name = run.schedule_name.as_ref().unwrap_or(&run.schedule_id);
        format!("{name}, until {}: `midwatch approval show {id}`", view.moment(&run.approve_by))
    });
    let more = waiting.len().saturating_sub(NAMED_MAX);
    let more = (0 < more).then(|| format!("and {more} more: `midwatch approval list`"));
    let named = lines.chain(more).collect::<Vec<_>>().join("\n");
    Some(format!("{runs} for your approval: `midwatch approval approve {first}`\n{named}"))
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

/// One sentence per budget that keeps runs from starting.
fn used_up(budget: &Budget, view: &View) -> Vec<String> {
    let until = view.moment(&budget.until);
    let sentence = |limit: &BudgetLimit| {
        let BudgetLimit { scope, what, used, most, .. } = limit;
        let name = limit.schedule_name.as_ref().or(limit.name.as_ref());
        let owner = name.map(|name| format!("{scope} {name}"));
        let of_owner = owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
        let effect = match (&owner, what.as_str()) {
            (None, _) => "nothing starts".to_owned(),
            (Some(_), "runs" | "tokens" | "money") => format!("no run{of_owner} starts"),
            (Some(owner), _) => format!("{owner} changes nothing"),
        };
        format!(
            "today's budget of {what}{of_owner} is used up ({used} of {most}); {effect} before {until}"
        )
    };
    let sentences = budget.used_up.iter().take(NAMED_MAX).map(sentence);
    let more = budget.used_up.len().saturating_sub(NAMED_MAX);
    let more =
        (0 < more).then(|| format!("{more} more budgets are used up: `midwatch status --budgets`"));
    sentences.chain(more).collect()
}

fn startup_warnings(warnings: &[String]) -> Option<String> {
    let names = warnings.join("`, `");
    (!warnings.is_empty())
        .then(|| format!("the daemon started with warnings: `{names}` (`midwatch doctor`)"))
}

/// A notice channel whose deliveries fail.
fn failing_channel(channel: &Channel, view: &View) -> Option<String> {
    let since = view.moment(channel.failing_since.as_ref()?);
    let what = channel.last_failure.as_ref().map(|it| it.what.as_str()).unwrap_or_default();
    let name = &channel.channel;
    Some(format!("notices do not reach {name} since {since}: {what} (`midwatch notice list`)"))
}

fn running_now(running: &[StatusRun], runs: &LiveRuns, view: &View) -> String {
    let lines = running
        .iter()
        .take(NAMED_MAX)
        .map(|run| format!("{}, since {}", name_of(run), view.moment(&run.at)));
    let more = running.len().saturating_sub(NAMED_MAX);
    let more = (0 < more).then(|| format!("and {more} more: `midwatch run list --state running`"));
    let nothing = running.is_empty().then(|| "nothing".to_owned());
    let queued =
        (0 < runs.queued).then(|| count_of(runs.queued as u64, "run queued", "runs queued"));
    nothing.into_iter().chain(lines).chain(more).chain(queued).collect::<Vec<_>>().join("\n")
}

fn next_due(upcoming: &[NextDue], view: &View) -> String {
    let lines = upcoming.iter().map(|next| {
        let name = next.schedule_name.as_ref().unwrap_or(&next.schedule_id);
        format!("{name}, {}", view.moment(&next.at))
    });
    match upcoming.is_empty() {
        true => "nothing is due: `midwatch schedule add` adds a schedule".to_owned(),
        false => lines.collect::<Vec<_>>().join("\n"),
    }
}

/// Some names, and how many more there are.
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    let shown = names.take(NAMED_MAX).collect::<Vec<_>>().join(", ");
    match more {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Capabilities that are supported and on by default, but disabled.
fn disabled(capabilities: &[Capability]) -> Option<String> {
    let names = capabilities.iter().filter(|it| it.supported && !it.enabled && !it.opt_in);
    let names: Vec<&str> = names.map(|it| it.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("{} (`midwatch status --capabilities`)", names.join(", ")))
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

fn disk_use(disk: &DiskUse) -> String {
    let DiskUse { database, outputs, logs, exports, bytes_per_day, .. } = disk;
    let database = database.map(|bytes| format!("database {}, ", size(bytes))).unwrap_or_default();
    let (outputs, logs, exports) = (size(*outputs), size(*logs), size(*exports));
    let growth = size(*bytes_per_day);
    format!("{database}outputs {outputs}, exports {exports}, logs {logs}; grows by {growth} a day")
}

/// The last deliveries of a notice channel.
fn channel(Channel { channel, last_success, last_failure, .. }: &Channel, view: &View) -> String {
    let success = last_success.as_ref().map(|at| format!("last sent {}", view.moment(at)));
    let failure =
        last_failure.as_ref().map(|it| format!("last failed {}: {}", view.moment(&it.at), it.what));
    let results: Vec<String> = success.into_iter().chain(failure).collect();
    match results.is_empty() {
        true => format!("{channel}: nothing sent yet"),
        false => format!("{channel}: {}", results.join("; ")),
    }
}
