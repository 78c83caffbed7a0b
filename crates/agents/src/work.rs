//! One attempt: what is asked for, and how it ended.

use std::path::PathBuf;
use std::time::Duration;

use kernel::Timestamp;
use kernel::agent::Agent;
use kernel::budget::Usage;
use kernel::run::Kind;

use crate::letta::Stop;
use crate::said::Said;

/// One attempt of a run, ready to be done.
#[derive(Clone, Debug)]
pub struct Work {
    pub run: String,
    /// What the run was made for, unless somebody asked for it by hand.
    pub schedule: Option<String>,
    pub slot: Option<String>,
    /// Counted from 1, and again from 1 when somebody asks for the run again.
    pub attempt: u32,
    /// Grows with every try of the run.
    pub epoch: u32,
    /// When it was begun.
    pub at: Timestamp,
    pub agent: Agent,
    pub prompt: String,
    /// The prompt is for nobody else, nor is what is said about it: neither is left in a file or shown.
    pub is_sensitive: bool,
    pub time_max: Duration,
    /// Where whatever it says can be heard at once.
    pub said: Said,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub outcome: Outcome,
    pub output: Output,
    /// As far as somebody tells.
    pub usage: Option<Usage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Failed(Failure),
    /// It was told to stop, and may have done a part.
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub reason: Reason,
    /// One sentence for people.
    pub message: String,
    pub kind: Kind,
}

/// A failure in one word that never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The program ended with another code than 0.
    Exit,
    /// The program was ended by a signal that did not come from us.
    Signal,
    /// The time was over.
    Timeout,
    /// The program ended and left others running.
    LeftBehind,
    /// There was nothing that could be started.
    NotStarted,
    /// The script says so.
    Script,
    /// There is no secret where the agent says.
    SecretMissing,
    /// A request may not go where the agent says, or cannot be sent as it is.
    NotAllowed,
    /// Nobody took the request.
    NotReached,
    /// The connection broke after the request was sent.
    ConnectionLost,
    /// The answer is longer than it may be.
    AnswerTooLong,
    /// The answer cannot be understood.
    AnswerUnreadable,
    Redirected,
    CredentialsRefused,
    /// There is no such agent, or nobody at this url.
    NotFound,
    TooManyRequests,
    /// Nobody has paid.
    PaymentRequired,
    RequestRefused,
    ServerError,
    /// A Letta agent stopped for another reason than that it was done.
    Stopped(Stop),
    /// This version cannot prompt such an agent.
    BackendMissing,
}

/// What was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The beginning, at most [`TEXT_BYTES_MAX`](crate::TEXT_BYTES_MAX).
    pub text: String,
    /// How much was said in all, kept or not.
    pub bytes: u64,
    /// Where the bytes are, up to [`FILE_BYTES_MAX`](crate::FILE_BYTES_MAX), unless the text is all.
    pub file: Option<PathBuf>,
}

impl Reason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Exit => "exit",
            Reason::Signal => "signal",
            Reason::Timeout => "timeout",
            Reason::LeftBehind => "left_behind",
            Reason::NotStarted => "not_started",
            Reason::Script => "script",
            Reason::SecretMissing => "secret_missing",
            Reason::NotAllowed => "not_allowed",
            Reason::NotReached => "not_reached",
            Reason::ConnectionLost => "connection_lost",
            Reason::AnswerTooLong => "answer_too_long",
            Reason::AnswerUnreadable => "answer_unreadable",
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
    fn new(kind: Kind, reason: Reason, message: impl Into<String>) -> Failure {
        Failure { reason, message: message.into(), kind }
    }

    pub(crate) fn passing(reason: Reason, message: impl Into<String>) -> Failure {
        Failure::after(Duration::ZERO, reason, message)
    }

    /// Another attempt may help, but not at once.
    pub(crate) fn after(wait: Duration, reason: Reason, message: impl Into<String>) -> Failure {
        let wait_us = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
        Failure::new(Kind::Passing { wait_us }, reason, message)
    }

    pub(crate) fn permanent(reason: Reason, message: impl Into<String>) -> Failure {
        Failure::new(Kind::Permanent, reason, message)
    }

    pub(crate) fn unpaid(reason: Reason, message: impl Into<String>) -> Failure {
        Failure::new(Kind::Unpaid, reason, message)
    }

    pub(crate) fn delivered(reason: Reason, message: impl Into<String>) -> Failure {
        Failure::new(Kind::Delivered, reason, message)
    }

    pub(crate) fn doubtful(reason: Reason, message: impl Into<String>) -> Failure {
        Failure::new(Kind::Doubtful, reason, message)
    }

    pub(crate) fn timeout(time_max: Duration) -> Failure {
        Failure::passing(Reason::Timeout, format!("it took longer than {time_max:?}"))
    }
}
