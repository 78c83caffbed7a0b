//! What calls for a human: which events do, in which words, and what makes a call needless again.
//!
//! A notice leaves the machine. So it holds ids, names of agents and codes, and nothing that an agent
//! or a user has written: no prompt, no output, no message of a failure, no name of a schedule.
//!
//! To add a kind, give [`Kind`] a variant and [`of`] an arm; if something can settle it, [`settled`] too.

use calendar::format_instant;

use crate::approval::{self, Asked};
use crate::authority::{self, Step, Warned};
use crate::event::Body;
use crate::id::{ApprovalId, RunId, ScheduleId};
use crate::run::{self, Cause, Ended, Outcome, WATCH};
use crate::schedule::{self, Paused};
use crate::time::Timestamp;
use crate::tool::{self, Alerted, ToolName};

/// A longer code is none of ours.
const CODE_BYTES_MAX: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub kind: Kind,
    /// The id of what it is about.
    pub subject: String,
    /// One sentence.
    pub text: String,
    /// What a human would type next.
    pub command: String,
    pub at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    ApprovalAsked,
    RunFailed,
    RunUnknown,
    SchedulePaused,
    LeaseLow,
    ToolFailing,
}

impl Kind {
    /// As receivers know it; it never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::ApprovalAsked => "approval_asked",
            Kind::RunFailed => "run_failed",
            Kind::RunUnknown => "run_unknown",
            Kind::SchedulePaused => "schedule_paused",
            Kind::LeaseLow => "lease_low",
            Kind::ToolFailing => "tool_failing",
        }
    }
}

/// What an event has to tell a human, if it needs one.
pub fn of(body: &Body) -> Option<Notice> {
    match body {
        Body::Approval(id, approval::Event::Asked(asked)) => Some(approval_asked(id, asked)),
        Body::Run(id, run::Event::Ended(ended)) => match ended.outcome {
            Outcome::Failed => Some(run_failed(id, ended)),
            Outcome::Unknown => Some(run_unknown(id, ended)),
            Outcome::Done | Outcome::Cancelled => None,
        },
        Body::Schedule(id, schedule::Event::Paused(paused)) if paused.by == WATCH => {
            Some(schedule_paused(id, paused))
        }
        Body::Authority(instance, authority::Event::Warned(warned)) => {
            Some(lease_low(instance, warned))
        }
        Body::Tool(name, tool::Event::Alerted(alerted)) => Some(tool_failing(name, alerted)),
        // Whatever is not listed above needs nobody.
        _ => None,
    }
}

/// What nobody need be called for any more after an event, by its id: somebody has dealt with it, or it
/// is over.
pub fn settled(body: &Body) -> Option<&str> {
    match body {
        Body::Approval(
            id,
            approval::Event::Decided(_) | approval::Event::Consumed(_) | approval::Event::Lapsed(_),
        ) => Some(id.as_str()),
        Body::Run(id, run::Event::Requeued(_) | run::Event::Settled(_)) => Some(id.as_str()),
        Body::Schedule(id, schedule::Event::Resumed(_) | schedule::Event::Removed(_)) => {
            Some(id.as_str())
        }
        Body::Authority(instance, authority::Event::Renewed(_)) => Some(instance),
        // Whatever is not listed above changes nothing about it.
        _ => None,
    }
}

fn approval_asked(id: &ApprovalId, asked: &Asked) -> Notice {
    let run = &asked.plan.run;
    let of = match (&asked.plan.agent, &asked.plan.tool) {
        (Some(agent), _) => format!("agent {agent}"),
        (None, Some(tool)) => format!("tool {}", tool.name),
        (None, None) => asked.plan.schedule.to_string(),
    };
    Notice {
        kind: Kind::ApprovalAsked,
        subject: id.to_string(),
        text: format!("Run {run} of {of} waits for approval."),
        command: format!("midwatch approval show {id}"),
        at: asked.at,
    }
}

fn run_failed(id: &RunId, ended: &Ended) -> Notice {
    let code = ended.cause.as_ref().and_then(code).map(|code| format!(" ({code})"));
    Notice {
        kind: Kind::RunFailed,
        subject: id.to_string(),
        text: format!("Run {id} of {} failed{}.", ended.schedule, code.unwrap_or_default()),
        command: format!("midwatch run show {id}"),
        at: ended.at,
    }
}

fn run_unknown(id: &RunId, ended: &Ended) -> Notice {
    let schedule = &ended.schedule;
    Notice {
        kind: Kind::RunUnknown,
        subject: id.to_string(),
        text: format!("Run {id} of {schedule} was cut off, and nobody knows how it ended."),
        command: format!("midwatch run show {id}"),
        at: ended.at,
    }
}

fn schedule_paused(id: &ScheduleId, paused: &Paused) -> Notice {
    Notice {
        kind: Kind::SchedulePaused,
        subject: id.to_string(),
        text: format!("Schedule {id} was paused because its runs failed."),
        command: format!("midwatch schedule show {id}"),
        at: paused.at,
    }
}

fn lease_low(instance: &str, warned: &Warned) -> Notice {
    let from = format_instant(warned.from.as_micros());
    let what = match warned.step {
        Step::Full | Step::Ask => "every run asks for approval",
        Step::Paused => "no run begins any more",
    };
    Notice {
        kind: Kind::LeaseLow,
        subject: instance.to_owned(),
        text: format!("No human was here for long: from {from} on {what}."),
        command: "midwatch lease renew".to_owned(),
        at: warned.at,
    }
}

fn tool_failing(name: &ToolName, alerted: &Alerted) -> Notice {
    let Alerted { calls, failures, .. } = alerted;
    Notice {
        kind: Kind::ToolFailing,
        subject: name.to_string(),
        text: format!("Of {calls} calls of {name} in this hour {failures} failed."),
        command: "midwatch status --tools".to_owned(),
        at: alerted.at,
    }
}

/// The code of a cause, if it is one: a word of ours, whoever has written the log.
fn code(cause: &Cause) -> Option<&str> {
    let code = cause.code.as_str();
    let is_plain = code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    (is_plain && (1..=CODE_BYTES_MAX).contains(&code.len())).then_some(code)
}
