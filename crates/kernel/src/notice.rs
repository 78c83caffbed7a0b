//! Notices: which events need a human's attention, the text of the notice, and which later events settle it.
//!
//! A notice leaves the machine. So it holds ids, agent names and codes, and nothing that an agent
//! or a user wrote: no prompt, no output, no failure message. The name of its schedule is added when it is sent, if only
//! people have written it.
//!
//! To add a kind, add a variant to [`Kind`] and an arm to [`notice_for`]; if an event can settle it, also one
//! to [`settled_subject`].

use calendar::format_instant;

use crate::approval::{self, Requested};
use crate::authority::{self, LeaseState, Warned};
use crate::device::{self, Added};
use crate::installation::{self, BudgetUsedUp, ChannelFailing};
use crate::principal::Principal;
use crate::run::{self, Cause, Ended, Outcome};
use crate::schedule::{self, Paused};
use crate::time::Timestamp;
use crate::tool::{self, Alerted, ToolName};
use crate::{ApprovalId, DeviceId, EventBody, RunId, ScheduleId};

/// No code of ours is longer.
const CODE_BYTES_MAX: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub kind: Kind,
    /// The id of the approval, run, schedule, tool, device or installation.
    pub subject: String,
    /// One sentence.
    pub text: String,
    /// The command that a human would run next.
    pub command: String,
    /// The schedule that it is about.
    pub schedule: Option<ScheduleId>,
    pub at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    ApprovalRequested,
    RunFailed,
    RunUnknown,
    SchedulePaused,
    LeaseLow,
    ToolFailing,
    BudgetUsedUp,
    ChannelFailing,
    DeviceAdded,
}

impl Kind {
    /// The name that receivers filter by; it never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::ApprovalRequested => "approval_asked",
            Kind::RunFailed => "run_failed",
            Kind::RunUnknown => "run_unknown",
            Kind::SchedulePaused => "schedule_paused",
            Kind::LeaseLow => "lease_low",
            Kind::ToolFailing => "tool_failing",
            Kind::BudgetUsedUp => "budget_used_up",
            Kind::ChannelFailing => "channel_failing",
            Kind::DeviceAdded => "device_added",
        }
    }
}

/// The notice of an event, if it needs a human's attention.
pub fn notice_for(body: &EventBody) -> Option<Notice> {
    match body {
        EventBody::Approval(id, approval::Event::Requested(requested)) => {
            Some(approval_requested(id, requested))
        }
        EventBody::Run(id, run::Event::Ended(ended)) => match ended.outcome {
            Outcome::Failed => Some(run_failed(id, ended)),
            Outcome::Unknown => Some(run_unknown(id, ended)),
            Outcome::Done | Outcome::Cancelled => None,
        },
        EventBody::Schedule(id, schedule::Event::Paused(paused))
            if paused.by == Principal::System =>
        {
            Some(schedule_paused(id, paused))
        }
        EventBody::Authority(instance, authority::Event::Warned(warned)) => {
            Some(lease_low(instance, warned))
        }
        EventBody::Tool(name, tool::Event::Alerted(alerted)) => Some(tool_failing(name, alerted)),
        EventBody::Installation(_, installation::Event::BudgetUsedUp(used_up)) => {
            Some(budget_used_up(used_up))
        }
        EventBody::Installation(_, installation::Event::ChannelFailing(failing)) => {
            Some(channel_failing(failing))
        }
        EventBody::Device(id, device::Event::Added(added)) => Some(device_added(id, added)),
        // No other event needs attention.
        _ => None,
    }
}

/// The subject whose notices an event settles: someone handled it, or it is over.
pub fn settled_subject(body: &EventBody) -> Option<&str> {
    match body {
        EventBody::Approval(
            id,
            approval::Event::Decided(_) | approval::Event::Consumed(_) | approval::Event::Lapsed(_),
        ) => Some(id.as_str()),
        EventBody::Run(id, run::Event::Requeued(_) | run::Event::Settled(_)) => Some(id.as_str()),
        EventBody::Schedule(id, schedule::Event::Resumed(_) | schedule::Event::Removed(_)) => {
            Some(id.as_str())
        }
        EventBody::Authority(instance, authority::Event::Renewed(_)) => Some(instance),
        // No other event settles a notice.
        _ => None,
    }
}

fn approval_requested(id: &ApprovalId, requested: &Requested) -> Notice {
    let run = &requested.plan.run;
    let owner = match (&requested.plan.agent, &requested.plan.tool) {
        (Some(agent), _) => format!("agent {agent}"),
        (None, Some(tool)) => format!("tool {}", tool.name),
        (None, None) => requested.plan.schedule.to_string(),
    };
    let waits = match &requested.plan.previous {
        None => "waits for approval".to_owned(),
        Some(previous) => {
            let code = previous.cause.as_ref().and_then(code).map(|code| format!(" ({code})"));
            let (ran, code) = (previous.describe_briefly(), code.unwrap_or_default());
            format!("waits for approval of another attempt; {ran}{code}")
        }
    };
    Notice {
        kind: Kind::ApprovalRequested,
        subject: id.to_string(),
        text: format!("Run {run} of {owner} {waits}."),
        command: format!("midwatch approval show {id}"),
        schedule: Some(requested.plan.schedule.clone()),
        at: requested.at,
    }
}

fn run_failed(id: &RunId, ended: &Ended) -> Notice {
    let code = ended.cause.as_ref().and_then(code).map(|code| format!(" ({code})"));
    Notice {
        kind: Kind::RunFailed,
        subject: id.to_string(),
        text: format!("Run {id} of {} failed{}.", ended.schedule, code.unwrap_or_default()),
        command: format!("midwatch run show {id}"),
        schedule: Some(ended.schedule.clone()),
        at: ended.at,
    }
}

fn run_unknown(id: &RunId, ended: &Ended) -> Notice {
    let schedule = &ended.schedule;
    Notice {
        kind: Kind::RunUnknown,
        subject: id.to_string(),
        text: format!("Run {id} of {schedule} was interrupted; its outcome is unknown."),
        command: format!("midwatch run show {id}"),
        schedule: Some(ended.schedule.clone()),
        at: ended.at,
    }
}

fn schedule_paused(id: &ScheduleId, paused: &Paused) -> Notice {
    Notice {
        kind: Kind::SchedulePaused,
        subject: id.to_string(),
        text: format!("Schedule {id} was paused because its runs failed."),
        command: format!("midwatch schedule show {id}"),
        schedule: Some(id.clone()),
        at: paused.at,
    }
}

fn lease_low(instance: &str, warned: &Warned) -> Notice {
    let from = format_instant(warned.from.as_micros());
    let what = match warned.state {
        LeaseState::Full | LeaseState::Ask => "every run needs approval",
        LeaseState::Paused => "no run starts",
    };
    Notice {
        kind: Kind::LeaseLow,
        subject: instance.to_owned(),
        text: format!("Confirm that you are still there, or from {from} on {what}."),
        command: "midwatch lease renew".to_owned(),
        schedule: None,
        at: warned.at,
    }
}

fn tool_failing(name: &ToolName, alerted: &Alerted) -> Notice {
    let Alerted { calls, failures, .. } = alerted;
    Notice {
        kind: Kind::ToolFailing,
        subject: name.to_string(),
        text: format!("{failures} of {calls} calls of {name} failed in this hour."),
        command: "midwatch status --tools".to_owned(),
        schedule: None,
        at: alerted.at,
    }
}

fn budget_used_up(used_up: &BudgetUsedUp) -> Notice {
    let BudgetUsedUp { scope, name, what, used, most, until, at } = used_up;
    let (owner, subject) = match name {
        Some(name) => (format!("{scope} {name}"), format!("{name}/{what}")),
        None => ("all agents together".to_owned(), what.clone()),
    };
    let until = format_instant(until.as_micros());
    Notice {
        kind: Kind::BudgetUsedUp,
        subject,
        text: format!(
            "The daily budget of {what} of {owner} is used up ({used} of {most}); runs that need it \
             start again at {until}."
        ),
        command: "midwatch status --budgets".to_owned(),
        schedule: None,
        at: *at,
    }
}

fn device_added(id: &DeviceId, added: &Added) -> Notice {
    let Added { person, role, browser, at, .. } = added;
    Notice {
        kind: Kind::DeviceAdded,
        subject: id.to_string(),
        text: format!("{person} signed in as {} with {browser}.", role.name()),
        command: format!("midwatch device revoke {id}"),
        schedule: None,
        at: *at,
    }
}

fn channel_failing(ChannelFailing { channel, at }: &ChannelFailing) -> Notice {
    Notice {
        kind: Kind::ChannelFailing,
        subject: channel.clone(),
        text: format!("Notices through the channel {channel} are not delivered."),
        command: "midwatch notice list".to_owned(),
        schedule: None,
        at: *at,
    }
}

/// The code of a cause, if it looks like one of ours. A forged ledger could hold any text there.
pub(crate) fn code(cause: &Cause) -> Option<&str> {
    let code = cause.code.as_str();
    let is_plain = code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    (is_plain && (1..=CODE_BYTES_MAX).contains(&code.len())).then_some(code)
}
