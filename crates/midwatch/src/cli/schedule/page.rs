//! What people see of schedules.

use api::{
    Action, Backfill, Bounds, Foretold, MadeBy, Schedule, ScheduleAdded, ScheduleEdited,
    ScheduleResumed, ScheduleShown, Schedules, SchedulesAdded, Terms,
};
use kernel::Timestamp;

use super::times::{upcoming, warned, when};
use crate::output::{counted, pairs, paragraphs, table, table_with_more};
use crate::safe::fenced;

/// What a dry run has to say for itself.
const UNCHANGED: &str = "nothing was changed";

pub(super) fn list(answer: &Schedules) -> String {
    if answer.schedules.is_empty() && answer.agent.is_some() {
        return "no such schedules; `midwatch schedule list` shows all".into();
    }
    if answer.schedules.is_empty() {
        return "no schedules yet; add one with `midwatch schedule add --name NAME --every 1h \
                --agent AGENT --prompt TEXT`"
            .into();
    }
    let rows = answer.schedules.iter().map(|schedule| {
        [
            schedule.id.clone(),
            schedule.name.clone(),
            schedule.status.clone(),
            schedule.next_run_at.clone().unwrap_or_default(),
            target(&schedule.action),
            when(&schedule.describe, &schedule.tz),
        ]
    });
    let head = ["ID", "NAME", "STATUS", "NEXT", "TARGET", "WHEN"];
    table_with_more(head, rows, answer.cursor.as_deref())
}

pub(super) fn added(answer: &ScheduleAdded, now: Timestamp) -> String {
    let ScheduleAdded { schedule, created, next, bounds, orders, warnings, dry_run } = answer;
    let said = match (created, dry_run, schedule.status.as_str()) {
        (true, false, _) => "added".to_owned(),
        (true, true, _) => "would be added".to_owned(),
        (false, _, "active") => "was there already".to_owned(),
        (false, _, status) => format!("was there already, and is {status}"),
    };
    let orders = match (orders, dry_run) {
        (Some(orders), true) => pairs(foretold(orders)),
        (Some(orders), false) if !orders.by_itself => orders.sentence.clone(),
        (Some(_) | None, _) => String::new(),
    };
    paragraphs([
        format!("schedule {} {said}{}", called(schedule), unchanged(*dry_run)),
        when(&schedule.describe, &schedule.tz),
        bounds.as_ref().map(held).unwrap_or_default(),
        orders,
        upcoming(schedule, next, now),
        warned(warnings),
    ])
}

pub(super) fn all_added(SchedulesAdded { schedules, dry_run }: &SchedulesAdded) -> String {
    if schedules.is_empty() {
        return "the list is empty".into();
    }
    let rows = schedules.iter().map(|it| {
        let said = match (it.created, dry_run) {
            (true, false) => "added",
            (true, true) => "would be added",
            (false, _) => "was there already",
        };
        let next = match it.paused {
            true => "paused".to_owned(),
            false => it.next.first().cloned().unwrap_or_default(),
        };
        [it.id.clone(), it.name.clone(), said.to_owned(), next]
    });
    let warnings = schedules.iter().flat_map(|it| {
        it.warnings.iter().map(|warning| format!("warning: `{}`: {warning}", it.name))
    });
    let warnings: Vec<String> = warnings.collect();
    let orders = schedules.iter().filter_map(|it| {
        let orders = it.orders.as_ref().filter(|orders| !orders.by_itself)?;
        Some(format!("`{}`: {}", it.name, orders.sentence))
    });
    let orders: Vec<String> = orders.collect();
    let table = table(["ID", "NAME", "", "NEXT"], rows);
    let unchanged = if *dry_run { UNCHANGED } else { "" };
    paragraphs([table, orders.join("\n"), warnings.join("\n"), unchanged.to_owned()])
}

pub(super) fn edited(answer: &ScheduleEdited, now: Timestamp) -> String {
    let ScheduleEdited { schedule, changed, next, bounds, warnings } = answer;
    let said = if *changed { "changed" } else { "is so already" };
    paragraphs([
        format!("schedule {} {said}", called(schedule)),
        when(&schedule.describe, &schedule.tz),
        bounds.as_ref().map(held).unwrap_or_default(),
        upcoming(schedule, next, now),
        warned(warnings),
    ])
}

pub(super) fn resumed(answer: &ScheduleResumed, now: Timestamp) -> String {
    let ScheduleResumed { schedule, changed, skipped, released, next } = answer;
    let verb = if *changed { "resumed" } else { "was not paused" };
    let mut text = format!("schedule {} {verb}", called(schedule));
    if *skipped != 0 {
        let slots = counted(*skipped, "slot", "slots");
        text.push_str(&format!("; {slots} in the pause left out"));
    }
    if !released.is_empty() {
        text.push_str(&format!("; goes on with what waited: {}", released.join(", ")));
    }
    paragraphs([text, upcoming(schedule, next, now)])
}

/// The prompt comes last: it may be long.
pub(super) fn shown(answer: &ScheduleShown, now: Timestamp) -> String {
    let ScheduleShown { schedule, next, bounds, orders } = answer;
    let prompt = schedule.action.prompt.as_deref().map(fenced);
    let mut held = schedule.terms.clone();
    if let Some(bounds) = bounds {
        (held.window, held.per_day) = (bounds.window.clone(), Some(bounds.per_day));
    }
    let rows = facts(schedule).into_iter().chain(terms(&held)).chain(foretold(orders));
    paragraphs([pairs(rows), upcoming(schedule, next, now), prompt.unwrap_or_default()])
}

/// What holds a schedule, in a line.
fn held(Bounds { window, per_day }: &Bounds) -> String {
    let runs = counted((*per_day).into(), "run", "runs");
    match window {
        Some(window) => format!("a missed slot is caught up within {window}; at most {runs} a day"),
        None => format!("at most {runs} a day"),
    }
}

/// Its name, and the id by which other commands know it.
pub(in crate::cli) fn called(schedule: &Schedule) -> String {
    format!("`{}` ({})", schedule.name, schedule.id)
}

/// Who or what gets to work.
fn target(action: &Action) -> String {
    match (&action.agent, &action.tool) {
        (Some(agent), _) => format!("agent {agent}"),
        (None, Some(tool)) => format!("tool {tool}"),
        (None, None) => String::new(),
    }
}

fn unchanged(dry_run: bool) -> String {
    if dry_run { format!("; {UNCHANGED}") } else { String::new() }
}

/// What the standing orders will say of its runs.
fn foretold(Foretold { ruling, sentence, .. }: &Foretold) -> Vec<(&'static str, String)> {
    let ruling = ruling.as_ref().map(|it| {
        let rules: Vec<String> = it.rules.iter().map(|rule| format!("`{rule}`")).collect();
        let (verdict, posture, policy) = (&it.verdict, &it.posture, &it.policy);
        ("ruling", format!("{verdict} by {} in {posture}, policy {policy}", rules.join(", ")))
    });
    [("orders", sentence.clone())].into_iter().chain(ruling).collect()
}

fn facts(schedule: &Schedule) -> Vec<(&'static str, String)> {
    let some = |name, value: &Option<String>| value.clone().map(|value| (name, value));
    let paused = schedule.paused.as_ref().map(|paused| {
        let note = paused.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
        format!("by {} at {}{note}", paused.by, paused.at)
    });
    let live = (!schedule.live.is_empty()).then(|| schedule.live.join(", "));
    let last_run = schedule.last_run_id.as_ref().zip(schedule.last_run_at.as_ref());
    let rows = [
        Some(("id", schedule.id.clone())),
        Some(("name", schedule.name.clone())),
        Some(("when", when(&schedule.describe, &schedule.tz))),
        Some(("target", target(&schedule.action))),
        some("payload", &schedule.action.payload),
        schedule.sensitive.then(|| ("sensitive", sensitive(&schedule.action).to_owned())),
        schedule.tier.map(|tier| ("tier", tier.to_string())),
        Some(("status", schedule.status.clone())),
        some("paused", &paused),
        Some(("runs", schedule.fires.to_string())),
        Some(("failures", format!("{} in a row", schedule.failures))),
        last_run.map(|(id, at)| ("last run", format!("{id} at {at}"))),
        some("live", &live),
        (!schedule.followers.is_empty()).then(|| ("followed by", schedule.followers.join(", "))),
        schedule.backfill.as_ref().map(|it| ("backfill", backfill(it))),
        schedule.made_by.as_ref().map(|by| ("added by", maker(by))),
        Some(("revision", schedule.revision.to_string())),
        Some(("created at", schedule.created_at.clone())),
        Some(("changed at", schedule.changed_at.clone())),
    ];
    rows.into_iter().flatten().collect()
}

fn sensitive(action: &Action) -> &'static str {
    match (&action.prompt, &action.payload) {
        (None, None) => "yes; what it says is for operators and its agent",
        _ => "yes; what it says is shown here and in no list, log or export",
    }
}

fn backfill(Backfill { next, last, .. }: &Backfill) -> String {
    match next {
        Some(next) => format!("goes on with {next}, up to {last}"),
        None => format!("all begun, up to {last}"),
    }
}

fn terms(terms: &Terms) -> Vec<(&'static str, String)> {
    let rows = [
        ("runs per day", terms.per_day.map(|count| count.to_string())),
        ("tokens per day", terms.tokens_per_day.map(|count| count.to_string())),
        ("money per day", terms.money_per_day.clone()),
        ("overlap", terms.overlap.clone()),
        ("missed", terms.missed.clone()),
        ("window", terms.window.clone()),
        ("jitter", terms.jitter.clone()),
        ("attempts", terms.attempts.map(|count| count.to_string())),
        ("backoff", terms.backoff.clone()),
        (
            "pause after",
            terms.pause_after.map(|count| counted(count.into(), "failed run", "failed runs")),
        ),
        ("resume", terms.resume.clone()),
        ("priority", terms.priority.map(|priority| priority.to_string())),
        ("keys", terms.keys.as_ref().map(|keys| keys.join(", "))),
        ("most runs", terms.max_fires.map(|count| count.to_string())),
        ("starts at", terms.start_at.clone()),
        ("ends at", terms.end_at.clone()),
    ];
    rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn maker(MadeBy { run, agent }: &MadeBy) -> String {
    match run {
        Some(run) => format!("run {run} of {agent}"),
        None => format!("{agent} itself"),
    }
}

#[cfg(test)]
mod tests {
    use api::Paused;
    use calendar::parse_instant;
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_micros(parse_instant("2026-03-28T12:00:00Z", None).unwrap())
    }

    /// Two slots with the change of the clock between them.
    fn next() -> Vec<String> {
        ["2026-03-28T12:30:00Z", "2026-03-29T11:30:00Z"].map(str::to_owned).to_vec()
    }

    fn schedule() -> Schedule {
        let document = json!({
            "id": "sch_0a1b2c3d",
            "name": "standup",
            "trigger": {"kind": "daily", "times": ["13:30"]},
            "tz": "Europe/Berlin",
            "describe": "at 13:30 every day",
            "action": {"agent": "ada", "prompt": "What changed?\nBe brief."},
            "terms": {"overlap": "skip", "pause_after": 1, "per_day": 4},
            "status": "active",
            "next_run_at": "2026-03-28T12:30:00Z",
            "live": [],
            "fires": 0,
            "failures": 0,
            "revision": 1,
            "created_at": "2026-03-27T08:00:00Z",
            "changed_at": "2026-03-27T08:00:00Z",
        });
        serde_json::from_value(document).unwrap()
    }

    fn tool() -> Schedule {
        let tool = Some("fs.list".to_owned());
        let payload = Some("{}".to_owned());
        Schedule {
            id: "sch_ffffffff".into(),
            name: "look".into(),
            tz: "UTC".into(),
            describe: "every hour".into(),
            action: Action { tool, payload, ..Action::default() },
            tier: Some(1),
            status: "paused".into(),
            paused: Some(Paused {
                by: "uid:1000".into(),
                at: "2026-03-28T09:00:00Z".into(),
                note: Some("holidays".into()),
            }),
            next_run_at: None,
            last_run_id: Some("run_1".into()),
            last_run_at: Some("2026-03-28T08:00:00Z".into()),
            live: vec!["run_1".into(), "run_2".into()],
            fires: 7,
            failures: 2,
            terms: Terms::default(),
            ..schedule()
        }
    }

    fn asks() -> Foretold {
        let ruling = api::Ruling {
            verdict: "ask".into(),
            rules: vec!["@tier-2".into(), "own/x".into()],
            posture: "staging".into(),
            policy: "0123abcd".into(),
        };
        let sentence = "each run waits for a human's approval (`@tier-2`)".to_owned();
        Foretold { by_itself: false, ruling: Some(ruling), sentence }
    }

    /// Of an add after which runs begin by themselves.
    fn answer() -> ScheduleAdded {
        ScheduleAdded {
            schedule: schedule(),
            created: true,
            next: next(),
            bounds: None,
            orders: Some(Foretold { by_itself: true, ..asks() }),
            warnings: Vec::new(),
            dry_run: false,
        }
    }

    fn check(found: &str, expected: &[&str]) {
        assert_eq!(found.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn lists_are_tables_and_an_empty_one_says_what_to_do() {
        let schedules = vec![schedule(), tool()];
        check(
            &list(&Schedules { schedules, agent: None, cursor: Some("sch_ffffffff".into()) }),
            &[
                "ID            NAME     STATUS  NEXT                  TARGET        WHEN",
                "sch_0a1b2c3d  standup  active  2026-03-28T12:30:00Z  agent ada     at 13:30 every day (Europe/Berlin)",
                "sch_ffffffff  look     paused                        tool fs.list  every hour (UTC)",
                "more: --cursor sch_ffffffff",
            ],
        );
        let nothing = list(&Schedules { schedules: Vec::new(), agent: None, cursor: None });
        assert!(nothing.starts_with("no schedules yet; add one with `midwatch schedule add"));
        let agent = Some("ada".to_owned());
        let nothing = list(&Schedules { schedules: Vec::new(), agent, cursor: None });
        assert_eq!(nothing, "no such schedules; `midwatch schedule list` shows all");
    }

    #[test]
    fn what_was_added_is_said_in_words_and_in_both_times() {
        let warnings = vec!["it is the first".to_owned(), "and the last".to_owned()];
        let bounds = Some(Bounds { window: Some("1d".into()), per_day: 4 });
        let mut answer = ScheduleAdded { warnings, bounds, ..answer() };
        check(
            &added(&answer, now()),
            &[
                "schedule `standup` (sch_0a1b2c3d) added",
                "",
                "at 13:30 every day (Europe/Berlin)",
                "",
                "a missed slot is caught up within 1d; at most 4 runs a day",
                "",
                "UTC                   Europe/Berlin              IN",
                "2026-03-28T12:30:00Z  2026-03-28T13:30:00+01:00  30m",
                "2026-03-29T11:30:00Z  2026-03-29T13:30:00+02:00  23h30m",
                "",
                "warning: it is the first",
                "warning: and the last",
            ],
        );
        answer.created = false;
        assert!(
            added(&answer, now())
                .starts_with("schedule `standup` (sch_0a1b2c3d) was there already\n")
        );
        answer.schedule = tool();
        let said = "schedule `look` (sch_ffffffff) was there already, and is paused\n";
        assert!(added(&answer, now()).starts_with(said));
    }

    #[test]
    fn what_a_human_will_be_asked_is_said_in_a_line_and_in_a_dry_run_at_length() {
        let said = |dry_run, next| {
            let orders = Some(asks());
            added(&ScheduleAdded { orders, dry_run, next, ..answer() }, now())
        };
        check(
            &said(false, Vec::new()),
            &[
                "schedule `standup` (sch_0a1b2c3d) added",
                "",
                "at 13:30 every day (Europe/Berlin)",
                "",
                "each run waits for a human's approval (`@tier-2`)",
            ],
        );
        check(
            &said(true, Vec::new()),
            &[
                "schedule `standup` (sch_0a1b2c3d) would be added; nothing was changed",
                "",
                "at 13:30 every day (Europe/Berlin)",
                "",
                "orders         each run waits for a human's approval (`@tier-2`)",
                "ruling         ask by `@tier-2`, `own/x` in staging, policy 0123abcd",
            ],
        );
    }

    #[test]
    fn a_zone_of_tomorrow_is_shown_in_utc_only() {
        let schedule = Schedule { tz: "Mars/Olympus".into(), ..schedule() };
        let answer = ScheduleAdded { schedule, ..answer() };
        check(
            &added(&answer, now()),
            &[
                "schedule `standup` (sch_0a1b2c3d) added",
                "",
                "at 13:30 every day (Mars/Olympus)",
                "",
                "2026-03-28T12:30:00Z",
                "2026-03-29T11:30:00Z",
            ],
        );
    }

    #[test]
    fn a_page_ends_with_the_prompt() {
        let bounds = Some(Bounds { window: Some("1d".into()), per_day: 4 });
        let answer = ScheduleShown { schedule: schedule(), next: next(), bounds, orders: asks() };
        check(
            &shown(&answer, now()),
            &[
                "id             sch_0a1b2c3d",
                "name           standup",
                "when           at 13:30 every day (Europe/Berlin)",
                "target         agent ada",
                "status         active",
                "runs           0",
                "failures       0 in a row",
                "revision       1",
                "created at     2026-03-27T08:00:00Z",
                "changed at     2026-03-27T08:00:00Z",
                "runs per day   4",
                "overlap        skip",
                "window         1d",
                "pause after    1 failed run",
                "orders         each run waits for a human's approval (`@tier-2`)",
                "ruling         ask by `@tier-2`, `own/x` in staging, policy 0123abcd",
                "",
                "UTC                   Europe/Berlin              IN",
                "2026-03-28T12:30:00Z  2026-03-28T13:30:00+01:00  30m",
                "2026-03-29T11:30:00Z  2026-03-29T13:30:00+02:00  23h30m",
                "",
                "prompt, as it is written (not by Midwatch)",
                "  | What changed?",
                "  | Be brief.",
            ],
        );
    }

    #[test]
    fn a_page_tells_of_the_pause_and_of_runs() {
        let sentence = "each run fails: there is no tool `fs.list` yet".to_owned();
        let orders = Foretold { by_itself: false, ruling: None, sentence };
        let next = vec!["2026-03-28T13:00:00Z".to_owned()];
        let answer = ScheduleShown { schedule: tool(), next, bounds: None, orders };
        check(
            &shown(&answer, now()),
            &[
                "id             sch_ffffffff",
                "name           look",
                "when           every hour (UTC)",
                "target         tool fs.list",
                "payload        {}",
                "tier           1",
                "status         paused",
                "paused         by uid:1000 at 2026-03-28T09:00:00Z: holidays",
                "runs           7",
                "failures       2 in a row",
                "last run       run_1 at 2026-03-28T08:00:00Z",
                "live           run_1, run_2",
                "revision       1",
                "created at     2026-03-27T08:00:00Z",
                "changed at     2026-03-27T08:00:00Z",
                "orders         each run fails: there is no tool `fs.list` yet",
                "",
                "it is paused; if it were resumed now, it would go on at",
                "UTC                   IN",
                "2026-03-28T13:00:00Z  1h",
            ],
        );
    }

    #[test]
    fn a_resumed_schedule_says_what_was_left_out() {
        let said = |changed, skipped| {
            let (released, next) = (Vec::new(), Vec::new());
            let schedule = schedule();
            resumed(&ScheduleResumed { schedule, changed, skipped, released, next }, now())
        };
        let called = "schedule `standup` (sch_0a1b2c3d)";
        assert_eq!(said(false, 0), format!("{called} was not paused"));
        assert_eq!(said(true, 0), format!("{called} resumed"));
        assert_eq!(said(true, 1), format!("{called} resumed; 1 slot in the pause left out"));
        assert_eq!(said(true, 2), format!("{called} resumed; 2 slots in the pause left out"));
        let released = vec!["2026-03-28T11:30:00Z".to_owned()];
        let (schedule, next) = (schedule(), Vec::new());
        let answer = ScheduleResumed { schedule, changed: true, skipped: 0, released, next };
        let waited = "goes on with what waited: 2026-03-28T11:30:00Z";
        assert_eq!(resumed(&answer, now()), format!("{called} resumed; {waited}"));
    }
}
