//! `midwatch schedule edit`

use std::process::ExitCode;

use api::{Error, ScheduleEdit, ScheduleEdited, When};
use clap::{ArgGroup, Args};

use super::flags::{Action, Terms};
use super::trigger::{TRIGGERS, Trigger};
use super::upcoming::{upcoming, when};
use super::{ID, limits, name_and_id};
use crate::access::send;
use crate::cli::support::render::{paragraphs, warnings};
use crate::context::Context;
use crate::view::View;
use crate::wrap::fit;

/// Change a schedule; omitted settings keep their value
///
/// The schedule keeps its id and its runs. A new trigger replaces the old one completely. Slots that are due
/// but not decided yet are dropped.
#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("trigger").args(TRIGGERS))]
pub(in crate::cli) struct Edit {
    #[arg(help = ID)]
    id: String,

    /// The new name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Terms to reset to their defaults, such as `window,per_day`
    #[arg(long, value_name = "TERMS", value_delimiter = ',')]
    unset: Vec<String>,

    #[command(flatten, next_help_heading = "When (replaces the trigger)")]
    trigger: Trigger,
    #[command(flatten, next_help_heading = "What")]
    action: Action,
    #[command(flatten, next_help_heading = "Terms")]
    terms: Terms,
}

pub(super) async fn run(context: &Context, edit: Edit) -> Result<ExitCode, Error> {
    let answer = send(context, edit.into_request()?).await?;
    context.output.show(&answer, |answer| render(answer, &context.view));
    Ok(ExitCode::SUCCESS)
}

impl Edit {
    fn into_request(self) -> Result<ScheduleEdit, Error> {
        let (when, event_trigger) = self.trigger.into();
        Ok(ScheduleEdit {
            id: self.id,
            name: self.name,
            when: Some(when).filter(|when| *when != When::default()),
            event_trigger,
            sensitive: self.action.sensitive,
            tier: self.action.tier,
            action: self.action.read()?,
            terms: self.terms.into(),
            unset: self.unset,
        })
    }
}

fn render(answer: &ScheduleEdited, view: &View) -> String {
    let ScheduleEdited { schedule, changed, next, bounds, policy, warnings: found } = answer;
    let name = name_and_id(schedule);
    let result = match changed {
        true => format!("schedule {name} changed"),
        false => format!("schedule {name}: nothing to change"),
    };
    paragraphs([
        fit(&result, view.width),
        fit(&when(&schedule.describe, &schedule.tz), view.width),
        bounds.as_ref().map(limits).unwrap_or_default(),
        policy.as_ref().map(|it| fit(&it.sentence, view.width)).unwrap_or_default(),
        upcoming(schedule, next, view),
        warnings(view, found),
    ])
}

#[cfg(test)]
mod tests {
    use api::PolicyPreview;

    use super::super::tests::{agent_schedule, approval_preview, view};
    use super::*;

    #[test]
    fn edited_schedule_shows_whether_its_runs_start_by_themselves() {
        let rendered = |policy| {
            let schedule = agent_schedule();
            let (next, warnings) = (Vec::new(), Vec::new());
            let answer =
                ScheduleEdited { schedule, changed: true, next, bounds: None, policy, warnings };
            render(&answer, &view())
        };
        let head = "schedule `standup` (sch_0a1b2c3d) changed\n\n\
                    at 13:30 every day (Europe/Berlin)";
        let asked = rendered(Some(approval_preview()));
        assert_eq!(asked, format!("{head}\n\neach run needs approval (`@tier-2`)"));
        let sentence = "each run starts without approval".to_owned();
        let by_itself = PolicyPreview { by_itself: true, sentence, ..approval_preview() };
        let allowed = rendered(Some(by_itself));
        assert_eq!(allowed, format!("{head}\n\neach run starts without approval"));
        assert_eq!(rendered(None), head);
    }
}
