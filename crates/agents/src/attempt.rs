//! One attempt of a run: its input and its result.

use std::path::PathBuf;
use std::time::Duration;

use kernel::Timestamp;
use kernel::agent::Agent;
use kernel::budget::Usage;
use kernel::run::FailureKind;

use crate::letta::StopReason;
use crate::live_output::LiveOutput;

/// The input of one attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub run: String,
    /// `None` for a test of an agent, which belongs to no schedule.
    pub schedule: Option<String>,
    pub slot: Option<String>,
    /// Counts the attempts of the run from 1, and goes on after a manual retry.
    pub number: u32,
    /// Grows with every attempt of the run, also after a manual retry.
    pub epoch: u32,
    pub started_at: Timestamp,
    pub agent: Agent,
    pub prompt: String,
    /// Prompt and output are for the agent only: neither is written to a file or shown.
    pub is_sensitive: bool,
    pub time_max: Duration,
    /// Receives the output while the attempt runs.
    pub live_output: LiveOutput,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptResult {
    pub outcome: Outcome,
    pub output: Output,
    /// `None` when the backend reports no usage.
    pub usage: Option<Usage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Failed(Failure),
    /// It was stopped, possibly after some of its work was done.
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub reason: Reason,
    /// A sentence for people.
    pub message: String,
    pub kind: FailureKind,
}

/// The reason of a failure; its text is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The program exited with a code other than 0.
    Exit,
    /// The program was killed by a signal that Midwatch did not send.
    Signal,
    Timeout,
    /// The program exited and left processes running.
    LeftoverProcesses,
    /// The program, script or directory cannot be used.
    NotStarted,
    /// A script of canned answers says that it failed.
    Script,
    /// The agent's secret reference leads to no secret.
    SecretMissing,
    /// A request to this address is forbidden, or the request cannot be built.
    NotAllowed,
    /// No connection could be made.
    NotReached,
    /// The connection broke after the request was sent.
    ConnectionLost,
    ResponseTooLong,
    /// The response is malformed.
    ResponseUnreadable,
    Redirected,
    CredentialsRefused,
    /// The agent or the url does not exist.
    NotFound,
    TooManyRequests,
    PaymentRequired,
    RequestRefused,
    ServerError,
    /// A Letta agent stopped before it was done.
    Stopped(StopReason),
    /// This version does not support the agent's backend.
    BackendMissing,
}

/// The output of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The beginning, at most [`TEXT_BYTES_MAX`](crate::TEXT_BYTES_MAX).
    pub text: String,
    /// Length of the whole output, stored or not.
    pub bytes: u64,
    /// Holds the output, up to [`FILE_BYTES_MAX`](crate::FILE_BYTES_MAX), unless `text` is all of it.
    pub file: Option<PathBuf>,
}

impl Reason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Exit => "exit",
            Reason::Signal => "signal",
            Reason::Timeout => "timeout",
            Reason::LeftoverProcesses => "left_behind",
            Reason::NotStarted => "not_started",
            Reason::Script => "script",
            Reason::SecretMissing => "secret_missing",
            Reason::NotAllowed => "not_allowed",
            Reason::NotReached => "not_reached",
            Reason::ConnectionLost => "connection_lost",
            Reason::ResponseTooLong => "answer_too_long",
            Reason::ResponseUnreadable => "answer_unreadable",
            Reason::Redirected => "redirected",
            Reason::CredentialsRefused => "credentials_refused",
            Reason::NotFound => "not_found",
            Reason::TooManyRequests => "too_many_requests",
            Reason::PaymentRequired => "payment_required",
            Reason::RequestRefused => "request_refused",
            Reason::ServerError => "server_error",
            Reason::Stopped(stop) => stop.as_str(),
            Reason::BackendMissing => "backend_missing",
        }
    }
}

impl Failure {
    fn new(kind: FailureKind, reason: Reason, message: impl Into<String>) -> Failure {
        Failure { reason, message: message.into(), kind }
    }

    pub(crate) fn transient(reason: Reason, message: impl Into<String>) -> Failure {
        Failure::transient_after(Duration::ZERO, reason, message)
    }

    /// Another attempt may help after a wait.
    pub(crate) fn transient_after(
        wait: Duration,
        reason: Reason,
        message: impl Into<String>,
    ) -> Failure {
        let wait_us = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
        Failure::new(FailureKind::Transient { wait_us }, reason, message)
    }

    pub(crate) fn permanent(reason: Reason, message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Permanent, reason, message)
    }

    pub(crate) fn payment_required(reason: Reason, message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::PaymentRequired, reason, message)
    }

    pub(crate) fn delivered(reason: Reason, message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Delivered, reason, message)
    }

    pub(crate) fn indeterminate(reason: Reason, message: impl Into<String>) -> Failure {
        Failure::new(FailureKind::Indeterminate, reason, message)
    }

    pub(crate) fn timeout(time_max: Duration) -> Failure {
        Failure::transient(Reason::Timeout, format!("timed out after {time_max:?}"))
    }
}
