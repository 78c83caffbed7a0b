//! Refusals of the kernel about schedules as errors of the wire.

use api::{Code, Error};
use kernel::schedule::Refusal;

use crate::errors::{self, ToError};

impl ToError for Refusal {
    fn to_error(&self) -> Error {
        let with_code = |code| Error::new(code, self);
        match self {
            Refusal::Unknown(_) => {
                with_code(Code::NotFound).hint("`midwatch schedule list` shows the schedules")
            }
            Refusal::Taken(_) => with_code(Code::Busy).hint("try again: the schedule gets another id"),
            Refusal::UnknownAgent(name) => with_code(Code::NotFound).hint(format!(
                "register it with `midwatch agent add {name} --backend KIND`; `midwatch agent list` shows the agents"
            )),
            Refusal::NeverFires(_) => with_code(Code::InvalidInput)
                .hint("`midwatch schedule next` shows when a trigger fires; check `start_at` and `end_at` too"),
            Refusal::TierTooLow { .. } => with_code(Code::TierTooLow).hint("omit `--tier`, or raise it"),
            Refusal::TierWasRaised { min, .. } => with_code(Code::TierTooLow)
                .hint(format!("give it tier {min}, or ask a person to add it")),
            Refusal::PromptVisible(agent) => with_code(Code::InvalidInput).hint(format!(
                "`midwatch agent edit {agent} --prompt-as stdin`, or omit `--sensitive`"
            )),
            Refusal::LoosensLimits => with_code(Code::HumanNeeded)
                .hint("keep the limits, or ask a person to change them"),
            Refusal::Invalid { hint, .. } => with_code(Code::InvalidInput).hint(hint),
            Refusal::AlreadyFired(run) => with_code(Code::KeyTaken)
                .hint(format!("`midwatch run show {run}` shows it; a new key starts another run")),
            Refusal::RunIsLive(run) => with_code(Code::NotNow)
                .hint(format!("wait for it, or cancel it with `midwatch run cancel {run}`")),
            Refusal::OutOfBudget(_) => {
                with_code(Code::BudgetExhausted).hint("it may run again after midnight UTC")
            }
            Refusal::Cycle(_) | Refusal::ChainTooLong => with_code(Code::InvalidInput)
                .hint("`midwatch schedule show` lists the schedules that depend on one"),
            Refusal::TooManyDependents(_) => with_code(Code::LimitReached)
                .hint("let some of them fire after another schedule, or on an event"),
            Refusal::HasDependents(dependent) => with_code(Code::NotNow).hint(format!(
                "remove `{dependent}` first, or give it another trigger with `midwatch schedule edit`"
            )),
            Refusal::BackfillRunning(_) => with_code(Code::NotNow).hint(
                "wait until it is done, or skip the rest with `midwatch schedule backfill --end`",
            ),
            Refusal::NothingToBackfill => with_code(Code::InvalidInput)
                .hint("only past slots of a schedule with a timed trigger can be backfilled"),
            Refusal::BackfillTooLong(_) => with_code(Code::LimitReached).hint("choose a shorter range"),
            Refusal::RunNotRunning(_) | Refusal::AddedByAgentSchedule(_) => with_code(Code::NotNow)
                .hint("ask a person to add the schedule"),
            Refusal::RunsMayNotAdd => with_code(Code::SwitchedOff)
                .hint("ask a person to do it; `feature_flags.schedules_by_runs` switches it on"),
            Refusal::RunAddedTooMany => {
                with_code(Code::LimitReached).hint("ask a person to add the others")
            }
            Refusal::AgentAddedTooMany(_) => with_code(Code::LimitReached)
                .hint("`midwatch schedule list` shows them; remove some"),
            Refusal::AgentAddsToolCall(_) => with_code(Code::RoleTooLow).hint("ask a person to do it"),
            Refusal::ToolCallAddsToolCall => with_code(Code::RoleTooLow)
                .hint("let it add a schedule that prompts an agent, or ask a person to do it"),
            Refusal::OtherAgent(_) => with_code(Code::RoleTooLow)
                .hint("ask a person to do it, or to add a rule that allows `schedule.create`"),
            Refusal::RoleTooLow { .. } => errors::too_low(self),
        }
    }
}
