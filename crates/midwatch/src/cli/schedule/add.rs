//! `midwatch schedule add`

use std::path::PathBuf;
use std::process::ExitCode;

use api::{
    Code, Error, ScheduleAdd, ScheduleAddAll, ScheduleAdded, ScheduleStatus, SchedulesAdded,
    StatusShow,
};
use clap::{ArgGroup, Args};

use super::flags::{Action, Terms};
use super::show::policy_rows;
use super::trigger::{TRIGGERS, Trigger};
use super::upcoming::{upcoming, when};
use super::{add_file, limits, name_and_id};
use crate::access::send;
use crate::cli::support::lease::terms;
use crate::cli::support::render::{fitted_pairs, paragraphs, warnings};
use crate::cli::support::table::{shortened, table, whole};
use crate::context::Context;
use crate::output::Format;
use crate::view::View;
use crate::wrap::{fit, wrap};

const EXAMPLES: &str = "\
Examples:
  midwatch schedule add --name standup --cron '30 9 * * MON-FRI' \\
      --tz Europe/Berlin --agent ada \\
      --prompt 'Summarise what changed since yesterday.'
  midwatch schedule add --name triage --every 10m --agent ada \\
      --prompt @triage.md --per-day 50
  midwatch schedule add --name report --after standup --agent ada \\
      --prompt 'Report how it went.'
  midwatch schedule add --file schedules.toml --dry-run";

const UNCHANGED: &str = "nothing was changed";

/// Add a schedule; repeating the same command changes nothing
///
/// Prints the trigger in words, the next five times, and whether its runs need approval. `--dry-run` prints
/// the same without adding it. `midwatch schedule next` tries out a trigger; its help explains how to write
/// one.
#[derive(Debug, Args)]
#[group(skip)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("trigger").required(true).args(TRIGGERS).arg("file"))]
#[command(group = ArgGroup::new("action").required(true).args(["agent", "tool", "file"]))]
pub(in crate::cli) struct Add {
    /// The name of the schedule, on one line
    #[arg(long, value_name = "NAME", required_unless_present = "file")]
    name: Option<String>,

    /// Add all schedules of a list, or none: a JSON or TOML file, `-` for JSON on stdin
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    file: Option<PathBuf>,

    /// Add it paused
    #[arg(long, conflicts_with = "file")]
    paused: bool,

    /// Show what would be added, and whether its runs would need approval, without adding it
    #[arg(long)]
    dry_run: bool,

    #[command(flatten, next_help_heading = "When")]
    trigger: Trigger,
    #[command(flatten, next_help_heading = "What")]
    action: Action,
    #[command(flatten, next_help_heading = "Terms")]
    terms: Terms,
}

pub(super) async fn run(context: &Context, add: Add) -> Result<ExitCode, Error> {
    let output = context.output;
    match &add.file {
        Some(file) => {
            let list = ScheduleAddAll { dry_run: add.dry_run, ..add_file::read(file)? };
            let answer = send(context, list).await?;
            output.show(&answer, |answer| render_list(answer, &context.view));
            let added = answer.schedules.iter().filter(|it| it.created && !answer.dry_run).count();
            explain_lease(context, added).await;
        }
        None => {
            let answer = send(context, add.into_request()?).await?;
            output.show(&answer, |answer| render(answer, &context.view));
            explain_lease(context, usize::from(answer.created && !answer.dry_run)).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Explains the lease to a person who has just added their first schedules, `added` of them.
async fn explain_lease(context: &Context, added: usize) {
    if added == 0 || context.output.format == Format::Json {
        return;
    }
    // The schedules are added, whether or not this can be read.
    let Ok(status) = send(context, StatusShow {}).await else { return };
    let is_first = i64::try_from(added) == Ok(status.schedules);
    if let Some(terms) = terms(&status.authority.lease).filter(|_| is_first) {
        context.output.show_text(&format!("\n{}", wrap(&terms, context.view.width, "")));
    }
}

impl Add {
    /// Reads the prompt if it is in a file or on stdin.
    fn into_request(self) -> Result<ScheduleAdd, Error> {
        if self.action.lacks_prompt() {
            let hint = "describe the task with `--prompt TEXT`";
            return Err(Error::new(Code::BadUsage, "`--prompt` is missing").hint(hint));
        }
        let (when, event_trigger) = self.trigger.into();
        Ok(ScheduleAdd {
            name: self.name.unwrap_or_default(),
            when,
            event_trigger,
            sensitive: self.action.sensitive,
            tier: self.action.tier,
            action: self.action.read()?,
            terms: self.terms.into(),
            paused: self.paused,
            dry_run: self.dry_run,
        })
    }
}

fn render(answer: &ScheduleAdded, view: &View) -> String {
    let ScheduleAdded { schedule, created, next, bounds, policy, warnings: found, dry_run } =
        answer;
    let result = match (created, dry_run, schedule.status) {
        (true, false, _) => "added".to_owned(),
        (true, true, _) => format!("would be added; {UNCHANGED}"),
        (false, false, ScheduleStatus::Active) => "already exists".to_owned(),
        (false, true, ScheduleStatus::Active) => format!("already exists; {UNCHANGED}"),
        (false, false, status) => format!("already exists and is {status}"),
        (false, true, status) => format!("already exists and is {status}; {UNCHANGED}"),
    };
    let policy = match (policy, dry_run) {
        (Some(preview), true) => fitted_pairs(view, policy_rows(preview)),
        (Some(preview), false) if !preview.by_itself => fit(&preview.sentence, view.width),
        (Some(_) | None, _) => String::new(),
    };
    paragraphs([
        fit(&format!("schedule {} {result}", name_and_id(schedule)), view.width),
        fit(&when(&schedule.describe, &schedule.tz), view.width),
        bounds.as_ref().map(limits).unwrap_or_default(),
        policy,
        upcoming(schedule, next, view),
        warnings(view, found),
    ])
}

fn render_list(SchedulesAdded { schedules, dry_run }: &SchedulesAdded, view: &View) -> String {
    if schedules.is_empty() {
        return "the list is empty".into();
    }
    let rows = schedules.iter().map(|it| {
        let result = match (it.created, dry_run) {
            (true, false) => "added",
            (true, true) => "would be added",
            (false, _) => "already exists",
        };
        let next = match it.paused {
            true => "paused".to_owned(),
            false => it.next.first().map(|at| view.time(at)).unwrap_or_default(),
        };
        [it.id.clone(), it.name.clone(), result.to_owned(), next]
    });
    let warnings = schedules.iter().flat_map(|it| {
        let line = |warning| fit(&format!("warning: `{}`: {warning}", it.name), view.width);
        it.warnings.iter().map(line)
    });
    let warnings: Vec<String> = warnings.collect();
    let policy = schedules.iter().filter_map(|it| {
        let preview = it.policy.as_ref().filter(|preview| !preview.by_itself)?;
        Some(fit(&format!("`{}`: {}", it.name, preview.sentence), view.width))
    });
    let policy: Vec<String> = policy.collect();
    let table = table(view, [whole("ID"), shortened("NAME", 12), whole(""), whole("NEXT")], rows);
    let unchanged = if *dry_run { UNCHANGED } else { "" };
    paragraphs([table, policy.join("\n"), warnings.join("\n"), unchanged.to_owned()])
}

#[cfg(test)]
mod tests {
    use api::{Bounds, PolicyPreview, Schedule};

    use super::super::tests::{
        agent_schedule, approval_preview, next_slots, paused_tool_schedule, view,
    };
    use super::*;

    fn check(found: &str, expected: &[&str]) {
        assert_eq!(found.lines().collect::<Vec<_>>(), expected);
    }

    /// The answer to an add whose runs need no approval.
    fn answer() -> ScheduleAdded {
        ScheduleAdded {
            schedule: agent_schedule(),
            created: true,
            next: next_slots(),
            bounds: None,
            policy: Some(PolicyPreview { by_itself: true, ..approval_preview() }),
            warnings: Vec::new(),
            dry_run: false,
        }
    }

    #[test]
    fn added_schedule_shows_its_trigger_limits_times_and_warnings() {
        let warnings = vec!["it is the first".to_owned(), "and the last".to_owned()];
        let bounds = Some(Bounds { window: Some("1d".into()), per_day: 4 });
        let mut answer = ScheduleAdded { warnings, bounds, ..answer() };
        check(
            &render(&answer, &view()),
            &[
                "schedule `standup` (sch_0a1b2c3d) added",
                "",
                "at 13:30 every day (Europe/Berlin)",
                "",
                "missed slots are caught up within 1d; at most 4 runs a day",
                "",
                "Europe/Berlin    IN",
                "28 Mar 13:30:00  30m",
                "29 Mar 13:30:00  23h30m",
                "",
                "warning: it is the first",
                "warning: and the last",
            ],
        );
        answer.created = false;
        let existing = "schedule `standup` (sch_0a1b2c3d) already exists\n";
        assert!(render(&answer, &view()).starts_with(existing));
        answer.schedule = paused_tool_schedule();
        let paused = "schedule `look` (sch_ffffffff) already exists and is paused\n";
        assert!(render(&answer, &view()).starts_with(paused));
    }

    #[test]
    fn approval_is_announced_in_a_line_and_in_a_dry_run_with_its_rules() {
        let rendered = |dry_run, next| {
            let policy = Some(approval_preview());
            render(&ScheduleAdded { policy, dry_run, next, ..answer() }, &view())
        };
        check(
            &rendered(false, Vec::new()),
            &[
                "schedule `standup` (sch_0a1b2c3d) added",
                "",
                "at 13:30 every day (Europe/Berlin)",
                "",
                "each run needs approval (`@tier-2`)",
            ],
        );
        check(
            &rendered(true, Vec::new()),
            &[
                "schedule `standup` (sch_0a1b2c3d) would be added; nothing was changed",
                "",
                "at 13:30 every day (Europe/Berlin)",
                "",
                "policy         each run needs approval (`@tier-2`)",
                "decision       ask by `@tier-2`, `own/x` in staging, policy version 0123abcd",
            ],
        );
    }

    #[test]
    fn times_in_an_unknown_zone_are_shown_in_utc() {
        let schedule = Schedule { tz: "Mars/Olympus".into(), ..agent_schedule() };
        let answer = ScheduleAdded { schedule, ..answer() };
        check(
            &render(&answer, &view()),
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
}
