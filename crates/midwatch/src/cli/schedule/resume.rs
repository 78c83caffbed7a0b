//! `midwatch schedule resume`

use std::process::ExitCode;

use api::{Error, ScheduleResume, ScheduleResumed};
use clap::Args;

use super::upcoming::upcoming;
use super::{ID, name_and_id};
use crate::access::send;
use crate::cli::support::render::{count_of, paragraphs};
use crate::context::Context;
use crate::view::View;

/// Resume a paused schedule and show what was skipped meanwhile
#[derive(Debug, Args)]
pub(in crate::cli) struct Resume {
    #[arg(help = ID)]
    id: String,
}

pub(super) async fn run(context: &Context, resume: Resume) -> Result<ExitCode, Error> {
    let answer = send(context, ScheduleResume { id: resume.id }).await?;
    context.output.show(&answer, |answer| render(answer, &context.view));
    Ok(ExitCode::SUCCESS)
}

fn render(answer: &ScheduleResumed, view: &View) -> String {
    let ScheduleResumed { schedule, changed, skipped, released, next } = answer;
    let result = if *changed { "resumed" } else { "was not paused" };
    let mut text = format!("schedule {} {result}", name_and_id(schedule));
    if *skipped != 0 {
        let slots = count_of(*skipped, "slot", "slots");
        text.push_str(&format!("; {slots} skipped during the pause"));
    }
    if !released.is_empty() {
        text.push_str(&format!("; waiting slots start now: {}", released.join(", ")));
    }
    paragraphs([text, upcoming(schedule, next, view)])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{agent_schedule, view};
    use super::*;

    #[test]
    fn skipped_and_released_slots_are_shown() {
        let rendered = |changed, skipped| {
            let (released, next) = (Vec::new(), Vec::new());
            let schedule = agent_schedule();
            render(&ScheduleResumed { schedule, changed, skipped, released, next }, &view())
        };
        let name = "schedule `standup` (sch_0a1b2c3d)";
        assert_eq!(rendered(false, 0), format!("{name} was not paused"));
        assert_eq!(rendered(true, 0), format!("{name} resumed"));
        assert_eq!(rendered(true, 1), format!("{name} resumed; 1 slot skipped during the pause"));
        assert_eq!(rendered(true, 2), format!("{name} resumed; 2 slots skipped during the pause"));
        let released = vec!["2026-03-28T11:30:00Z".to_owned()];
        let (schedule, next) = (agent_schedule(), Vec::new());
        let answer = ScheduleResumed { schedule, changed: true, skipped: 0, released, next };
        let waiting = "waiting slots start now: 2026-03-28T11:30:00Z";
        assert_eq!(render(&answer, &view()), format!("{name} resumed; {waiting}"));
    }
}
