//! Agent backends: an [`AgentBackend`] runs one attempt of a run and returns how it ended.
//!
//! Nothing here decides whether, when or how often an agent is prompted, and nothing is recorded: an attempt
//! returns an outcome, never an error. Every attempt has a time limit, can be stopped, and leaves no process of
//! its group running, even when its future is dropped.
//!
//! [`Hook`], a program of the operator's, and [`Http`], the client for outgoing requests, are here because they
//! need the same limits.

mod attempt;
mod backends;
mod command;
mod egress;
mod endpoint;
mod environment;
mod event_stream;
mod failure;
mod fingerprint;
mod hook;
mod http;
mod letta;
mod live_output;
mod output;
mod output_filter;
mod problems;
mod process;
mod script;
mod secrets;
mod webhook;

use std::fmt::Debug;

use futures::future::BoxFuture;
use kernel::agent::Agent;
use kernel::approval::ExecutionFingerprint;
use kernel::policy_decision::Details;
use tokio_util::sync::CancellationToken;

pub use attempt::{Attempt, AttemptResult, Failure, Outcome, Output, Reason};
pub use backends::{Backends, supports};
pub use command::{KILL_WAIT, PIPE_WAIT, TERM_WAIT};
pub use egress::Egress;
pub use environment::EnvironmentOf;
pub use hook::{HOOK_OUTPUT_BYTES_MAX, Hook, HookResult};
pub use http::{Get, Http, HttpResponse, Lookup, PLACEHOLDER_TOKEN, Post, RequestError, Scheme};
pub use letta::StopReason;
pub use live_output::{LIVE_OUTPUT_BYTES_MAX, LiveOutput};
pub use output::{FILE_BYTES_MAX, TEXT_BYTES_MAX};
pub use problems::supported_backends;
pub use process::{has_mark, is_marked, kill_orphans, reap_orphans, run_of_process};
pub use script::SCRIPT_BYTES_MAX;
pub use secrets::{SecretError, Secrets};

pub trait AgentBackend: Debug + Send + Sync + 'static {
    /// Runs an attempt until it ends, exceeds its time limit, or `stop` is cancelled.
    fn run(&self, attempt: Attempt, stop: CancellationToken) -> BoxFuture<'_, AttemptResult>;

    /// Why a prompt to this agent would fail now, as far as this machine shows it: a missing program or directory, a
    /// secret that cannot be read. One sentence each. Sends nothing.
    fn find_problems(&self, _agent: Agent) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }

    /// Asks an agent's server about itself, without prompting the agent. Empty for agents without a server.
    fn check_server(&self, _agent: Agent) -> BoxFuture<'_, ServerCheck> {
        Box::pin(async { ServerCheck::default() })
    }

    /// Hashes what a prompt to this agent executes on this machine: program, directory and variables. `None` for
    /// agents that execute nothing here, an error if the program cannot be started. `salt` goes into the hashes
    /// of variables.
    fn fingerprint(
        &self,
        _agent: Agent,
        _salt: String,
    ) -> BoxFuture<'_, Result<Option<ExecutionFingerprint>, Failure>> {
        Box::pin(async { Ok(None) })
    }

    /// The attributes of this agent that policy rules can match: its host, the program that is started, and the
    /// directory. Opens no file.
    fn details(&self, agent: &Agent) -> Details {
        Details::from_backend(&agent.backend)
    }

    /// Kills the processes that earlier attempts left behind, as far as they can be found.
    fn end_leftover_processes(&self) {}
}

/// What an agent's server says, in sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerCheck {
    /// What the server is, and what it knows of the agent.
    pub facts: Vec<String>,
    /// Why a prompt would fail, as far as the server shows it.
    pub problems: Vec<String>,
}

/// For an engine that runs no agents.
#[derive(Debug)]
pub struct NoBackend;

impl AgentBackend for NoBackend {
    fn run(&self, _attempt: Attempt, _stop: CancellationToken) -> BoxFuture<'_, AttemptResult> {
        let failure = Failure {
            reason: Reason::NotStarted,
            message: "this process runs no agents".to_owned(),
            kind: kernel::run::FailureKind::Permanent,
        };
        let outcome = Outcome::Failed(failure);
        Box::pin(async { AttemptResult { outcome, output: Output::default(), usage: None } })
    }
}
