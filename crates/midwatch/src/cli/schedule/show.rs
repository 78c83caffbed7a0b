//! `midwatch schedule show`

use std::process::ExitCode;

use api::{
    AddingAgent, Backfill, Error, PolicyPreview, Schedule, ScheduleShow, ScheduleShown,
    StoredAction, Terms,
};
use clap::Args;

use super::upcoming::{upcoming, when};
use super::{ID, target};
use crate::access::send;
use crate::cli::support::render::{count_of, fitted_pairs, paragraphs};
use crate::cli::support::short_id::short_ids;
use crate::context::Context;
use crate::terminal_escape::fence_prompt;
use crate::view::View;

/// Show a schedule: its next times, its prompt, its terms, and what the policy decides on its runs
#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    #[arg(help = ID)]
    id: String,
}

pub(super) async fn run(context: &Context, show: Show) -> Result<ExitCode, Error> {
    let answer = send(context, ScheduleShow { id: show.id }).await?;
    context.output.show(&answer, |answer| render(answer, &context.view));
    Ok(ExitCode::SUCCESS)
}

/// What it does and when, how it went, its next times and its prompt; its terms come last.
fn render(answer: &ScheduleShown, view: &View) -> String {
    let ScheduleShown { schedule, next, bounds, policy } = answer;
    let prompt = schedule.action.prompt.as_deref();
    let prompt = prompt.map(|prompt| fence_prompt(prompt, &[], view.width));
    let mut effective = schedule.terms.clone();
    if let Some(bounds) = bounds {
        (effective.window, effective.per_day) = (bounds.window.clone(), Some(bounds.per_day));
    }
    let facts = facts(schedule, view).into_iter().chain([("policy", policy.sentence.clone())]);
    let details = term_rows(&effective, view).into_iter().chain(decision_row(policy));
    let details = details.chain(history(schedule, view));
    paragraphs([
        fitted_pairs(view, facts),
        upcoming(schedule, next, view),
        prompt.unwrap_or_default(),
        fitted_pairs(view, details),
    ])
}

/// What the policy will decide on the runs of a schedule.
pub(super) fn policy_rows(preview: &PolicyPreview) -> Vec<(&'static str, String)> {
    [("policy", preview.sentence.clone())].into_iter().chain(decision_row(preview)).collect()
}

/// The verdict, the rules that decide, and the versions of both.
fn decision_row(preview: &PolicyPreview) -> Option<(&'static str, String)> {
    let decision = preview.ruling.as_ref()?;
    let rules: Vec<String> = decision.rules.iter().map(|rule| format!("`{rule}`")).collect();
    let (verdict, posture, policy) = (&decision.verdict, &decision.posture, &decision.policy);
    let rules = rules.join(", ");
    Some(("decision", format!("{verdict} by {rules} in {posture}, policy version {policy}")))
}

fn facts(schedule: &Schedule, view: &View) -> Vec<(&'static str, String)> {
    let some = |name, value: &Option<String>| value.clone().map(|value| (name, value));
    let paused = schedule.paused.as_ref().map(|paused| {
        let note = paused.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
        format!("by {}, {}{note}", paused.by, view.moment(&paused.at))
    });
    let live = short_ids(schedule.live.iter().map(String::as_str));
    let live = (!live.is_empty()).then(|| live.join(", "));
    let last_run = schedule.last_run_id.as_ref().zip(schedule.last_run_at.as_ref());
    let rows = [
        Some(("name", schedule.name.clone())),
        Some(("id", schedule.id.clone())),
        Some(("when", when(&schedule.describe, &schedule.tz))),
        Some(("target", target(&schedule.action))),
        some("payload", &schedule.action.payload),
        schedule.sensitive.then(|| ("sensitive", sensitive(&schedule.action).to_owned())),
        schedule.tier.map(|tier| ("tier", tier.to_string())),
        Some(("status", schedule.status.to_string())),
        some("paused", &paused),
        (0 < schedule.failures).then(|| ("failures", format!("{} in a row", schedule.failures))),
        last_run.map(|(id, at)| {
            let id = short_ids(std::iter::once(id.as_str())).concat();
            ("last run", format!("{id}, {}", view.moment(at)))
        }),
        some("live runs", &live),
        (!schedule.followers.is_empty()).then(|| ("dependents", schedule.followers.join(", "))),
        schedule.backfill.as_ref().map(|it| ("backfill", backfill(it, view))),
    ];
    rows.into_iter().flatten().collect()
}

fn history(schedule: &Schedule, view: &View) -> Vec<(&'static str, String)> {
    let rows = [
        // Runs that were started by hand are not counted.
        Some(("fired", count_of(schedule.fires, "time", "times"))),
        schedule.made_by.as_ref().map(|by| ("added by", author(by))),
        Some(("revision", schedule.revision.to_string())),
        Some(("created", view.moment(&schedule.created_at))),
        Some(("changed", view.moment(&schedule.changed_at))),
        Some(("times are", view.zone_name().to_owned())),
    ];
    rows.into_iter().flatten().collect()
}

fn sensitive(action: &StoredAction) -> &'static str {
    match (&action.prompt, &action.payload) {
        (None, None) => "yes; only operators and its agent see its text",
        _ => "yes; its text is shown here, but not in lists, logs and exports",
    }
}

fn backfill(Backfill { next, last, .. }: &Backfill, view: &View) -> String {
    let last = view.time(last);
    match next {
        Some(next) => format!("next {}, up to {last}", view.time(next)),
        None => format!("all started, up to {last}"),
    }
}

fn term_rows(terms: &Terms, view: &View) -> Vec<(&'static str, String)> {
    let rows = [
        ("runs per day", terms.per_day.map(|count| count.to_string())),
        ("tokens per day", terms.tokens_per_day.map(|count| count.to_string())),
        ("money per day", terms.money_per_day.clone()),
        ("overlap", terms.overlap.clone()),
        ("missed", terms.missed.clone()),
        ("window", terms.window.clone()),
        ("jitter", terms.jitter.clone()),
        ("attempts", Some(attempts(terms.attempts))),
        ("backoff", terms.backoff.clone()),
        ("pause after", terms.pause_after.map(pause_after)),
        ("resume", terms.resume.clone()),
        ("priority", terms.priority.map(|priority| priority.to_string())),
        ("keys", terms.keys.as_ref().map(|keys| keys.join(", "))),
        ("max runs", terms.max_fires.map(|count| count.to_string())),
        ("starts at", terms.start_at.as_deref().map(|at| view.time(at))),
        ("ends at", terms.end_at.as_deref().map(|at| view.time(at))),
    ];
    rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn attempts(given: Option<u32>) -> String {
    given.map_or_else(|| "5, and one at tier 2".to_owned(), |count| count.to_string())
}

fn pause_after(failures: u32) -> String {
    match failures {
        0 => "never".to_owned(),
        failures => count_of(failures.into(), "failed run", "failed runs"),
    }
}

fn author(AddingAgent { run, agent }: &AddingAgent) -> String {
    match run {
        Some(run) => format!("run {run} of {agent}"),
        None => format!("{agent} itself"),
    }
}

#[cfg(test)]
mod tests {
    use api::Bounds;

    use super::super::tests::{
        agent_schedule, approval_preview, next_slots, paused_tool_schedule, view,
    };
    use super::*;

    fn check(found: &str, expected: &[&str]) {
        assert_eq!(found.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn next_times_and_prompt_come_before_the_terms() {
        let bounds = Some(Bounds { window: Some("1d".into()), per_day: 4 });
        let answer = ScheduleShown {
            schedule: agent_schedule(),
            next: next_slots(),
            bounds,
            policy: approval_preview(),
        };
        check(
            &render(&answer, &view()),
            &[
                "name           standup",
                "id             sch_0a1b2c3d",
                "when           at 13:30 every day (Europe/Berlin)",
                "target         agent ada",
                "status         active",
                "policy         each run needs approval (`@tier-2`)",
                "",
                "Europe/Berlin    IN",
                "28 Mar 13:30:00  30m",
                "29 Mar 13:30:00  23h30m",
                "",
                "prompt (not written by Midwatch, shown unchanged)",
                "  | What changed?",
                "  | Be brief.",
                "",
                "runs per day   4",
                "overlap        skip",
                "window         1d",
                "attempts       5, and one at tier 2",
                "pause after    1 failed run",
                "decision       ask by `@tier-2`, `own/x` in staging, policy version 0123abcd",
                "fired          0 times",
                "revision       1",
                "created        27 Mar 09:00:00 (1d4h ago)",
                "changed        27 Mar 09:00:00 (1d4h ago)",
                "times are      Europe/Berlin",
            ],
        );
    }

    #[test]
    fn pause_and_live_runs_are_shown() {
        let sentence = "each run fails: there is no tool `fs.list` yet".to_owned();
        let policy = PolicyPreview { by_itself: false, ruling: None, sentence };
        let next = vec!["2026-03-28T13:00:00Z".to_owned()];
        let answer = ScheduleShown { schedule: paused_tool_schedule(), next, bounds: None, policy };
        check(
            &render(&answer, &view()),
            &[
                "name           look",
                "id             sch_ffffffff",
                "when           every hour (UTC)",
                "target         tool fs.list",
                "payload        {}",
                "tier           1",
                "status         paused",
                "paused         by uid:1000, 28 Mar 10:00:00 (3h ago): holidays",
                "failures       2 in a row",
                "last run       run_1, 28 Mar 09:00:00 (4h ago)",
                "live runs      run_1, run_2",
                "policy         each run fails: there is no tool `fs.list` yet",
                "",
                "it is paused; if it were resumed now, its next times would be",
                "UTC              Europe/Berlin    IN",
                "28 Mar 13:00:00  28 Mar 14:00:00  1h",
                "",
                "attempts       5, and one at tier 2",
                "fired          7 times",
                "revision       1",
                "created        27 Mar 09:00:00 (1d4h ago)",
                "changed        27 Mar 09:00:00 (1d4h ago)",
                "times are      Europe/Berlin",
            ],
        );
    }
}
