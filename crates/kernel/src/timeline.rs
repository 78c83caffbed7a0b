//! The timeline: every event as one short sentence for people.
//!
//! A sentence is made of ids, names, codes and counts. Like a notice it holds nothing that an agent wrote, and no prompt,
//! output, failure message or note. Names of schedules are not in most events; who shows the line looks them up by its
//! subject.
//!
//! The match has no wildcard arm: a new event needs a sentence.

use crate::agent::{self, AgentName};
use crate::approval::{self, LapseReason};
use crate::authority::{self, LeaseState};
use crate::device::{self, EndReason};
use crate::installation as watch;
use crate::notice::code;
use crate::principal::SYSTEM_NAME;
use crate::run::{self, Ended, Occurrence, Origin, Outcome, Queued, StartBlocker};
use crate::schedule::{self, MovedWhy, Passed};
use crate::slot::Source;
use crate::tool::{self, ToolName};
use crate::{ApprovalId, EventBody, Principal, RunId, ScheduleId, seen, token};

/// One event, as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub subject: Subject<'a>,
    /// What happened to the subject, without a full stop.
    pub text: String,
    /// The approval that it is about.
    pub approval: Option<&'a ApprovalId>,
    /// Whether it only keeps the records of Midwatch, and is hidden unless requested.
    pub is_bookkeeping: bool,
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    Schedule(&'a ScheduleId),
    /// A run, and so its schedule.
    Run(&'a RunId),
    Agent(&'a AgentName),
    Tool(&'a ToolName),
    /// Midwatch itself, and people.
    Installation,
}

/// Whether a daemon runs, as far as the events tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DaemonState {
    #[default]
    Unknown,
    Running,
    Stopped,
}

impl DaemonState {
    /// The state after an event. Commands cause events without a daemon, so most of them tell nothing.
    #[must_use]
    pub const fn after(self, body: &EventBody) -> DaemonState {
        let EventBody::Installation(_, event) = body else { return self };
        match event {
            watch::Event::Started(_) | watch::Event::Heartbeat(_) => DaemonState::Running,
            watch::Event::Genesis(_) | watch::Event::Stopped(_) => DaemonState::Stopped,
            // A restored ledger may be that of a running daemon.
            watch::Event::Rebuilt(_) => DaemonState::Unknown,
            _ => self,
        }
    }
}

/// The line of an event after others, with the state that those left. Assumes that one daemon at a time writes them.
pub fn line_after<'a>(before: DaemonState, body: &'a EventBody, actor: &str) -> Line<'a> {
    let line = line(body, actor);
    match (before, body) {
        (DaemonState::Running, EventBody::Installation(_, watch::Event::Started(_))) => {
            Line { text: format!("{}; the last one was killed or crashed", line.text), ..line }
        }
        _ => line,
    }
}

/// The line of an event that this actor caused.
pub fn line<'a>(body: &'a EventBody, actor: &str) -> Line<'a> {
    let by = match actor {
        SYSTEM_NAME => String::new(),
        actor => format!(" by {actor}"),
    };
    match body {
        EventBody::Agent(name, event) => agent_line(name, event, &by),
        EventBody::Approval(id, event) => approval_line(id, event),
        EventBody::Authority(_, event) => Line::of(Subject::Installation, authority_text(event)),
        EventBody::Device(_, event) => Line::of(Subject::Installation, device_text(event)),
        EventBody::Run(id, event) => Line::of(Subject::Run(id), run_text(event, &by)),
        EventBody::Schedule(id, event) => schedule_line(id, event, &by),
        EventBody::Seen(person, seen::Event::Marked(_)) => {
            Line::of(Subject::Installation, format!("status seen by {person}")).bookkeeping()
        }
        EventBody::Token(_, event) => Line::of(Subject::Installation, token_text(event)),
        EventBody::Tool(name, event) => Line::of(Subject::Tool(name), tool_text(event, &by)),
        EventBody::Installation(_, event) => installation_line(event, &by),
    }
}

impl<'a> Line<'a> {
    fn of(subject: Subject<'a>, text: impl Into<String>) -> Line<'a> {
        Line { subject, text: text.into(), approval: None, is_bookkeeping: false }
    }

    fn bookkeeping(self) -> Line<'a> {
        Line { is_bookkeeping: true, ..self }
    }
}

fn agent_line<'a>(name: &'a AgentName, event: &agent::Event, by: &str) -> Line<'a> {
    let line = |text: String| Line::of(Subject::Agent(name), text);
    match event {
        agent::Event::Registered(it) => {
            line(format!("agent registered{by} ({}, tier {})", it.backend.kind(), it.tier))
        }
        agent::Event::Changed(it) => {
            line(format!("agent changed{by} ({}, tier {})", it.backend.kind(), it.tier))
        }
        agent::Event::Tested(_) => line(format!("agent tested{by}")),
        agent::Event::TestSpent(_) => line("cost of the test recorded".to_owned()).bookkeeping(),
        agent::Event::Removed(_) => line(format!("agent removed{by}")),
    }
}

fn approval_line<'a>(id: &'a ApprovalId, event: &'a approval::Event) -> Line<'a> {
    let (run, text, is_bookkeeping) = match event {
        approval::Event::Requested(it) => {
            (&it.plan.run, "run waits for approval".to_owned(), false)
        }
        approval::Event::Assented(it) => {
            let text = format!("approved by {}; more people must approve", it.decision.by);
            (&it.run, text, false)
        }
        approval::Event::Decided(it) => {
            let verb = if it.decision.is_approved { "approved" } else { "denied" };
            (&it.run, format!("run {verb} by {}", it.decision.by), false)
        }
        // The same commit starts the run.
        approval::Event::Consumed(it) => (&it.run, "approval used".to_owned(), true),
        approval::Event::Lapsed(it) => {
            let by = it.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            let text = match it.why {
                LapseReason::Expired => "approval expired".to_owned(),
                LapseReason::Revoked => format!("approval revoked{by}"),
                LapseReason::Changed => "approval void: the plan of the run changed".to_owned(),
                LapseReason::Unsigned => "approval void: a signature is not valid".to_owned(),
                LapseReason::RunEnded => "approval void: the run ended".to_owned(),
                LapseReason::NotNeeded => "approval no longer needed".to_owned(),
                LapseReason::LeaseRenewed => {
                    format!("approval no longer needed: the lease was renewed{by}")
                }
            };
            (&it.run, text, false)
        }
    };
    Line { subject: Subject::Run(run), text, approval: Some(id), is_bookkeeping }
}

fn authority_text(event: &authority::Event) -> String {
    match event {
        authority::Event::Frozen(it) => format!("frozen by {}: no run starts", it.by),
        authority::Event::Thawed(it) => format!("thawed by {}: runs start again", it.by),
        authority::Event::Renewed(it) => format!("lease renewed by {}", it.by),
        authority::Event::Warned(it) => match it.state {
            LeaseState::Full | LeaseState::Ask => {
                "the lease expires soon: then every run needs approval".to_owned()
            }
            LeaseState::Paused => "the lease expires soon: then no run starts".to_owned(),
        },
    }
}

fn run_text(event: &run::Event, by: &str) -> String {
    match event {
        run::Event::Queued(queued) => format!("run queued{}", origin(queued, by)),
        run::Event::Started(started) => match started.attempt {
            0 | 1 => "run started".to_owned(),
            attempt => format!("run started, attempt {attempt}"),
        },
        run::Event::Retried(retried) => {
            let code = code(&retried.cause).map(|code| format!(": {code}")).unwrap_or_default();
            format!("attempt failed{code}; another follows")
        }
        run::Event::CancelRequested(cancel) => format!("cancel requested by {}", cancel.by),
        run::Event::Ended(ended) => end(ended),
        run::Event::Requeued(requeued) => format!("retry requested by {}", requeued.by),
        run::Event::Settled(settled) => {
            let outcome = match settled.outcome {
                Outcome::Done => "done",
                Outcome::Failed => "failed",
                Outcome::Cancelled => "cancelled",
                Outcome::Unknown => "unknown",
            };
            format!("run settled as {outcome} by {}", settled.by)
        }
    }
}

/// Why a run was queued, unless its time has come.
fn origin(queued: &Queued, by: &str) -> String {
    match &queued.occurrence {
        Occurrence::Manual { .. } => by.to_owned(),
        Occurrence::Backfill(slot) => format!(" to backfill the slot of {}", slot.wall),
        Occurrence::Slot(slot) => match (&slot.source, slot.origin) {
            (Some(Source::Run(_)), _) => " after another run".to_owned(),
            (Some(Source::Event(_)), _) => " by an event".to_owned(),
            (None, Origin::CatchUp) => format!(" to catch up the slot of {}", slot.wall),
            (None, Origin::Buffer) => format!(" for the waiting slot of {}", slot.wall),
            (None, _) => String::new(),
        },
    }
}

fn end(ended: &Ended) -> String {
    let code = ended.cause.as_ref().and_then(code);
    let code = code.map(|code| format!(": {code}")).unwrap_or_default();
    match (ended.blocked_by, ended.refused, ended.outcome) {
        (Some(StartBlocker::Lease), ..) => "run not started: the lease has expired".to_owned(),
        (Some(StartBlocker::Budget), ..) => "run not started: a budget is used up".to_owned(),
        (None, true, _) => format!("run not allowed to start{code}"),
        (None, false, Outcome::Done) => "run done".to_owned(),
        (None, false, Outcome::Failed) => format!("run failed{code}"),
        (None, false, Outcome::Cancelled) => "run cancelled".to_owned(),
        (None, false, Outcome::Unknown) => "run interrupted, outcome unknown".to_owned(),
    }
}

fn schedule_line<'a>(id: &'a ScheduleId, event: &schedule::Event, by: &str) -> Line<'a> {
    let line = |text: String| Line::of(Subject::Schedule(id), text);
    match event {
        schedule::Event::Added(_) => line(format!("schedule added{by}")),
        schedule::Event::Changed(_) => line(format!("schedule changed{by}")),
        schedule::Event::Paused(it) if it.by == Principal::System => {
            line("schedule paused, because its runs failed".to_owned())
        }
        schedule::Event::Paused(it) => line(format!("schedule paused by {}", it.by)),
        schedule::Event::Resumed(_) => line(format!("schedule resumed{by}")),
        schedule::Event::Removed(_) => line(format!("schedule removed{by}")),
        schedule::Event::Moved(it) => match it.why {
            MovedWhy::Finished => line("next slot set".to_owned()).bookkeeping(),
            MovedWhy::TzRebased => line("next slot moved: time zone rules changed".to_owned()),
            MovedWhy::ClockCorrected => line("next slot moved: the clock was corrected".to_owned()),
        },
        schedule::Event::BackfillStarted(it) => {
            line(format!("backfill of {} started by {}", count_of(it.count, "slot"), it.by))
        }
        schedule::Event::BackfillMoved(it) => match it.next {
            Some(_) => line("backfill skipped a slot that has a run".to_owned()).bookkeeping(),
            None => line("backfill ended".to_owned()),
        },
        schedule::Event::Passed(it) => line(passed(it)),
        schedule::Event::Buffered(it) => {
            line(format!("slot of {} waits until an earlier run ends", it.wall))
        }
        schedule::Event::Dropped(it) => {
            line(format!("waiting slot dropped: {}", it.disposition.meaning()))
        }
    }
}

fn passed(passed: &Passed) -> String {
    // With the offset of the schedule's zone, so that a surface can show it in the zone of the reader.
    let (wall, meaning) = (&passed.wall, passed.disposition.meaning());
    match passed.count {
        0 | 1 => format!("no run for the slot of {wall}: {meaning}"),
        count => format!("no run for {} up to {wall}: {meaning}", count_of(count, "slot")),
    }
}

/// A count and its noun: `1 slot`, `2 slots`.
fn count_of(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn token_text(event: &token::Event) -> String {
    match event {
        token::Event::Created(it) => {
            format!("token of {} created by {} ({})", it.name.as_str(), it.by, it.role.name())
        }
        token::Event::Revoked(it) => format!("token revoked by {}", it.by),
    }
}

fn device_text(event: &device::Event) -> String {
    match event {
        device::Event::Added(it) => {
            format!("{} signed in with {} ({})", it.person, it.browser, it.role.name())
        }
        device::Event::Revoked(it) => match it.why {
            EndReason::Revoked => format!("device revoked by {}", it.by),
            EndReason::Expired => "device expired".to_owned(),
            EndReason::Idle => "device ended, because it was not used".to_owned(),
        },
    }
}

fn tool_text(event: &tool::Event, by: &str) -> String {
    match event {
        tool::Event::Called(call) => match &call.code {
            Some(code) => format!("tool called{by}: {code}"),
            None => format!("tool called{by}"),
        },
        tool::Event::Alerted(it) => {
            format!("{} of {} calls failed in this hour", it.failures, it.calls)
        }
    }
}

fn installation_line(event: &watch::Event, by: &str) -> Line<'static> {
    let line = |text: String| Line::of(Subject::Installation, text);
    match event {
        watch::Event::Genesis(_) => line("installation created".to_owned()),
        watch::Event::Started(it) => {
            line(format!("daemon started (version {}, {})", it.version, it.posture))
        }
        watch::Event::Stopped(it) => line(format!("daemon stopped ({})", it.reason)),
        watch::Event::Heartbeat(_) => line("heartbeat".to_owned()).bookkeeping(),
        watch::Event::Exported(it) => {
            line(format!("ledger of {} exported, entries {} to {}", it.month, it.first, it.last))
        }
        watch::Event::Rebuilt(it) => {
            let differences = count_of(it.differences, "difference");
            line(format!("tables rebuilt from the ledger ({differences})"))
        }
        watch::Event::KeyReplaced(_) => line("signing key replaced".to_owned()),
        watch::Event::TzChanged(it) => {
            let moved = count_of(it.moved, "schedule");
            line(format!("time zone data changed to {}; {moved} moved", it.to))
        }
        watch::Event::Refused(it) => {
            let call = it.call.as_ref().map(|call| format!(": {call}")).unwrap_or_default();
            let before = match it.before {
                0 => String::new(),
                before => format!(", and {before} before"),
            };
            line(format!("refused {}{call} ({}{before})", it.by, it.code))
        }
        watch::Event::ClockAnomaly(it) => line(match (it.is_accepted, it.from < it.to) {
            (true, _) => format!("clock behind the ledger accepted{by}"),
            (false, true) => "the clock jumped ahead".to_owned(),
            (false, false) => "the clock jumped back".to_owned(),
        }),
        watch::Event::Reloaded(it) => {
            let changed = match it.changed.is_empty() {
                true => "nothing changed".to_owned(),
                false => it.changed.join(", "),
            };
            line(format!("configuration reloaded{by} ({changed})"))
        }
        watch::Event::ReloadRefused(it) => {
            line(format!("reload of the configuration refused ({})", it.code))
        }
        watch::Event::CleanedUp(it) => {
            let files = count_of(it.outputs + it.logs + it.exports + it.leftovers, "file");
            line(format!("cleanup removed {files}, {} bytes", it.bytes))
        }
        watch::Event::BudgetUsedUp(it) => {
            let of = it.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            let (scope, what) = (&it.scope, &it.what);
            line(format!("budget of {what} of {scope}{of} used up ({} of {})", it.used, it.most))
        }
        watch::Event::ChannelFailing(it) => {
            line(format!("notices do not reach the channel {}", it.channel))
        }
        watch::Event::ToolsUsed(_) => line("tool calls counted".to_owned()).bookkeeping(),
    }
}
