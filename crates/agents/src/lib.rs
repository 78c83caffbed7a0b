//! Those who do the work of a run: one [`Doer`] takes one attempt and says how it ended.
//!
//! Nothing here decides whether, when or how often something is done, and nothing is recorded: an
//! attempt ends in an outcome, never in an error. Every attempt has a time limit, can be stopped,
//! and leaves no process of its group behind, also when its future is dropped.
//!
//! The means to reach out are here as well, because they need the same care: a [`Hook`] of the operator's,
//! and [`Http`].

mod backends;
mod command;
mod events;
mod failure;
mod footing;
mod hook;
mod http;
mod letta;
mod link;
mod output;
mod process;
mod reach;
mod said;
mod script;
mod secrets;
mod telling;
mod webhook;
mod work;

use std::fmt::Debug;

use futures::future::BoxFuture;
use kernel::agent::Agent;
use kernel::approval::Footing;
use kernel::ruling::Details;
use tokio_util::sync::CancellationToken;

pub use backends::{Backends, supports};
pub use command::{KILL_WAIT, PIPE_WAIT, TERM_WAIT};
pub use hook::{Given, HOOK_SAID_BYTES_MAX, Hook};
pub use http::{Answer, Get, Http, Lookup, NO_TOKEN, Post, Unanswered, Way};
pub use letta::Stop;
pub use output::{FILE_BYTES_MAX, TEXT_BYTES_MAX};
pub use process::{bury_orphans, run_of};
pub use reach::Reach;
pub use said::{SAID_BYTES_MAX, Said};
pub use script::SCRIPT_BYTES_MAX;
pub use secrets::Secrets;
pub use work::{Ended, Failure, Outcome, Output, Reason, Work};

pub trait AgentBackend: Debug + Send + Sync + 'static {
    /// Does the work until it has ended, its time is over, or `stop` is cancelled.
    fn work(&self, work: Work, stop: CancellationToken) -> BoxFuture<'_, Ended>;

    /// What can be seen of an agent without prompting it, in sentences; nothing where there is no server.
    fn look(&self, _agent: Agent) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }

    /// What a prompt to this agent stands on, where it stands on something of this machine, or why there is
    /// nothing to stand on. `salt` goes into the hashes of values.
    fn footing(
        &self,
        _agent: Agent,
        _salt: String,
    ) -> BoxFuture<'_, Result<Option<Footing>, Failure>> {
        Box::pin(async { Ok(None) })
    }

    /// What rules can narrow their view to when this agent is prompted: where it is, which program is
    /// started, and in which directory. It opens nothing.
    fn details(&self, agent: &Agent) -> Details {
        Details::of(&agent.backend)
    }

    /// Ends what earlier work has left behind, as far as it can be found.
    fn end_strays(&self) {}
}
