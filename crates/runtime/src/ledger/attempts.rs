//! The attempts of a run, read from its events. Its row only has the last one.

use api::{RunAttempt, RunState};
use kernel::Timestamp;
use kernel::run::{Cause, Ended, Event, Retried, Settled, Started, State};

use crate::timestamps::rfc3339;
use crate::wire::run_state;

/// Takes the next event of the run into account.
pub(super) fn record(attempts: &mut Vec<RunAttempt>, event: &Event) {
    match event {
        Event::Started(Started { attempt, at, .. }) => attempts.push(RunAttempt {
            number: *attempt,
            started_at: rfc3339(*at),
            ended_at: None,
            outcome: RunState::Running,
            reason: None,
            message: None,
        }),
        Event::Retried(retried) if retried.did_nothing() => {
            attempts.pop();
        }
        Event::Retried(Retried { cause, at, .. }) => {
            end_last(attempts, RunState::Failed, Some(cause), *at);
        }
        Event::Ended(Ended { outcome, cause, at, .. }) => {
            end_last(attempts, run_state(&State::Ended(*outcome)), cause.as_ref(), *at);
        }
        Event::Settled(Settled { outcome, .. }) => {
            if let Some(last) = attempts.last_mut() {
                last.outcome = run_state(&State::Ended(*outcome));
            }
        }
        Event::Queued(_) | Event::CancelRequested(_) | Event::Requeued(_) => {}
    }
}

/// Ends the last attempt, if it is running: a run can also end while it waits for another attempt.
fn end_last(attempts: &mut [RunAttempt], outcome: RunState, cause: Option<&Cause>, at: Timestamp) {
    if let Some(last) = attempts.last_mut().filter(|last| last.outcome == RunState::Running) {
        last.outcome = outcome;
        last.ended_at = Some(rfc3339(at));
        last.reason = cause.map(|cause| cause.code.clone());
        last.message = cause.map(|cause| cause.message.clone()).filter(|it| !it.is_empty());
    }
}
