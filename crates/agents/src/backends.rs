//! The backends of this version, chosen by the agent's own.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use kernel::agent::Agent;
use kernel::approval::Footing;
use kernel::backend::{Backend, BackendKind};
use kernel::budget::Usage;
use kernel::ruling::Details;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::AgentBackend;
use crate::command;
use crate::footing::{self, Look};
use crate::http::Http;
use crate::letta::{self, Turn};
use crate::output::Recorder;
use crate::process::kill_orphans;
use crate::said::Said;
use crate::script;
use crate::secrets::Secrets;
use crate::telling::Telling;
use crate::webhook::Call;
use crate::work::{Ended, Failure, Outcome, Reason, Work};

pub struct Backends {
    outputs: PathBuf,
    environment: BTreeMap<String, String>,
    secrets: Arc<dyn Secrets>,
    http: Http,
    /// One speaks at a time in each.
    conversations: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// Whether this version can prompt an agent of a kind. Whatever else fails for good, and says so.
pub const fn supports(kind: BackendKind) -> bool {
    match kind {
        BackendKind::Builtin | BackendKind::Command => true,
        BackendKind::Letta | BackendKind::Webhook => true,
        BackendKind::Openai | BackendKind::Anthropic | BackendKind::Mcp => false,
    }
}

impl Backends {
    /// `outputs` is the directory for what is too long for a text, and is made when there is such
    /// a thing. Of `environment` a program sees only what its agent allows.
    pub fn new(
        outputs: PathBuf,
        environment: BTreeMap<String, String>,
        secrets: Arc<dyn Secrets>,
        http: Http,
    ) -> Backends {
        Backends { outputs, environment, secrets, http, conversations: Mutex::default() }
    }

    fn conversation(&self, id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut all = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
        // Those in which nobody speaks are as good as new.
        all.retain(|_, lock| 1 < Arc::strong_count(lock));
        Arc::clone(all.entry(id.to_owned()).or_default())
    }

    async fn attempt(
        &self,
        work: &Work,
        recorder: &mut Recorder,
        stop: &CancellationToken,
    ) -> (Outcome, Option<Usage>) {
        let means = (&self.http, &*self.secrets);
        let outcome = match &work.agent.backend {
            Backend::Builtin { script: None } => {
                recorder.take(work.prompt.as_bytes()).await;
                Outcome::Done
            }
            Backend::Builtin { script: Some(path) } => {
                limited(work.time_max, stop, script::play(path, work, recorder)).await
            }
            Backend::Command(_) if work.is_sensitive && work.agent.backend.shows_prompts() => {
                let message = "its prompt is sensitive, and would be an argument that all can read";
                Outcome::Failed(Failure::permanent(Reason::NotAllowed, message))
            }
            Backend::Command(program) => {
                let task = command::Task { program, work, environment: &self.environment };
                let secrets = self.secrets.and(&task.secrets());
                task.run(Telling::new(recorder, &*secrets), stop).await
            }
            Backend::Letta(server) => match Turn::new(means, server, work) {
                Ok(turn) => {
                    let conversation = self.conversation(&server.remote_id);
                    // The desk sees to it that runs do not meet; a test may come in between.
                    let _turn = tokio::select! {
                        turn = conversation.lock() => turn,
                        () = stop.cancelled() => return (Outcome::Cancelled, None),
                    };
                    return turn.run(recorder, stop).await;
                }
                Err(failure) => Outcome::Failed(failure),
            },
            Backend::Webhook(webhook) => match Call::new(means, webhook, work) {
                Ok(call) => call.run(recorder, stop).await,
                Err(failure) => Outcome::Failed(failure),
            },
            Backend::Openai { .. } => missing(BackendKind::Openai),
            Backend::Anthropic { .. } => missing(BackendKind::Anthropic),
            Backend::Mcp(_) => missing(BackendKind::Mcp),
        };
        (outcome, None)
    }
}

impl AgentBackend for Backends {
    fn work(&self, work: Work, stop: CancellationToken) -> BoxFuture<'_, Ended> {
        Box::pin(async move {
            let mut recorder = match work.is_sensitive {
                true => Recorder::new(None, Said::default()),
                false => {
                    Recorder::new(Some(self.outputs.join(file_name(&work))), work.said.clone())
                }
            };
            let (outcome, usage) = match stop.is_cancelled() {
                true => (Outcome::Cancelled, None),
                false => self.attempt(&work, &mut recorder, &stop).await,
            };
            Ended { outcome, output: recorder.finish().await, usage }
        })
    }

    fn look(&self, agent: Agent) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move {
            match &agent.backend {
                Backend::Letta(server) => {
                    letta::look((&self.http, &*self.secrets), server, agent.credential.as_ref())
                        .await
                }
                Backend::Builtin { .. } | Backend::Command(_) | Backend::Openai { .. } => vec![],
                Backend::Anthropic { .. } | Backend::Webhook(_) | Backend::Mcp(_) => vec![],
            }
        })
    }

    fn footing(
        &self,
        agent: Agent,
        salt: String,
    ) -> BoxFuture<'_, Result<Option<Footing>, Failure>> {
        Box::pin(async move {
            let Backend::Command(program) = agent.backend else { return Ok(None) };
            let look = Look { program, environment: self.environment.clone(), salt };
            let looked = spawn_blocking(move || look.footing()).await;
            let broken = |_| Failure::passing(Reason::NotStarted, "its program was not looked at");
            looked.map_err(broken)?.map(Some)
        })
    }

    fn details(&self, agent: &Agent) -> Details {
        match &agent.backend {
            Backend::Command(program) => footing::details(program, &self.environment),
            other => Details::of(other),
        }
    }

    fn end_strays(&self) {
        kill_orphans();
    }
}

/// The values of the environment are nobody's business.
impl fmt::Debug for Backends {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Backends").field("outputs", &self.outputs).finish_non_exhaustive()
    }
}

/// A run's id is a plain word; whatever else it may be, it names a file and no path.
fn file_name(work: &Work) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let run: String = work.run.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("{run}-{}.txt", work.epoch)
}

async fn limited(
    time_max: Duration,
    stop: &CancellationToken,
    playing: impl Future<Output = Outcome>,
) -> Outcome {
    tokio::select! {
        biased;
        outcome = playing => outcome,
        () = stop.cancelled() => Outcome::Cancelled,
        () = tokio::time::sleep(time_max) => Outcome::Failed(Failure::timeout(time_max)),
    }
}

fn missing(kind: BackendKind) -> Outcome {
    let message = format!("this version cannot prompt an agent with backend `{kind}` yet");
    Outcome::Failed(Failure::permanent(Reason::BackendMissing, message))
}
