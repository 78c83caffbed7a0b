//! Runs an attempt with the backend that its agent is configured for.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use kernel::agent::Agent;
use kernel::approval::ExecutionFingerprint;
use kernel::backend::{Backend, BackendKind};
use kernel::budget::Usage;
use kernel::policy_decision::Details;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::attempt::{Attempt, AttemptResult, Failure, Outcome, Reason};
use crate::command::CommandAttempt;
use crate::environment::EnvironmentOf;
use crate::fingerprint::{self, FingerprintInput};
use crate::http::Http;
use crate::letta::{self, Turn};
use crate::live_output::LiveOutput;
use crate::output::Recorder;
use crate::output_filter::OutputFilter;
use crate::problems::{self, find_problems};
use crate::process::kill_orphans;
use crate::script;
use crate::secrets::Secrets;
use crate::webhook::{self, WebhookCall};
use crate::{AgentBackend, ServerCheck};

/// How long to look at the files of an agent.
const PROBLEMS_TIME_MAX: Duration = Duration::from_secs(5);

pub struct Backends {
    outputs: PathBuf,
    environment: BTreeMap<String, String>,
    secrets: Arc<dyn Secrets>,
    http: Http,
    environment_of: EnvironmentOf,
    /// A lock per Letta agent, so that it gets one prompt at a time.
    conversations: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// Whether this version can prompt agents of this kind. Attempts of other kinds fail permanently.
pub const fn supports(kind: BackendKind) -> bool {
    match kind {
        BackendKind::Builtin | BackendKind::Command => true,
        BackendKind::Letta | BackendKind::Webhook => true,
        BackendKind::Openai | BackendKind::Anthropic | BackendKind::Mcp => false,
    }
}

impl Backends {
    /// `outputs` is the directory for output files, created when the first is written. A program gets only the
    /// variables of `environment` that its agent allows; `environment_of` says in messages whose they are.
    pub fn new(
        outputs: PathBuf,
        environment: BTreeMap<String, String>,
        secrets: Arc<dyn Secrets>,
        http: Http,
        environment_of: EnvironmentOf,
    ) -> Backends {
        let conversations = Mutex::default();
        Backends { outputs, environment, secrets, http, environment_of, conversations }
    }

    fn conversation(&self, id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut all = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
        // Drop the locks that are not in use.
        all.retain(|_, lock| 1 < Arc::strong_count(lock));
        Arc::clone(all.entry(id.to_owned()).or_default())
    }

    async fn run_backend(
        &self,
        attempt: &Attempt,
        recorder: &mut Recorder,
        stop: &CancellationToken,
    ) -> (Outcome, Option<Usage>) {
        let client = (&self.http, &*self.secrets);
        let outcome = match &attempt.agent.backend {
            Backend::Builtin { script: None } => {
                recorder.write(attempt.prompt.as_bytes()).await;
                Outcome::Done
            }
            Backend::Builtin { script: Some(path) } => {
                with_time_limit(attempt.time_max, stop, script::play(path, attempt, recorder)).await
            }
            Backend::Command(_)
                if attempt.is_sensitive && attempt.agent.backend.exposes_prompt() =>
            {
                let message =
                    "the prompt is sensitive, and every user could read it as an argument";
                Outcome::Failed(Failure::permanent(Reason::NotAllowed, message))
            }
            Backend::Command(program) => {
                let command = CommandAttempt {
                    program,
                    attempt,
                    environment: &self.environment,
                    environment_of: self.environment_of,
                };
                let secrets = self.secrets.with_values(&command.secrets());
                command.run(OutputFilter::new(recorder, &*secrets), stop).await
            }
            Backend::Letta(server) => match Turn::new(client, server, attempt) {
                Ok(turn) => {
                    let conversation = self.conversation(&server.remote_id);
                    // The dispatcher keeps runs apart, but not `agent test`.
                    let _turn = tokio::select! {
                        turn = conversation.lock() => turn,
                        () = stop.cancelled() => return (Outcome::Cancelled, None),
                    };
                    return turn.run(recorder, stop).await;
                }
                Err(failure) => Outcome::Failed(failure),
            },
            Backend::Webhook(webhook) => match WebhookCall::new(client, webhook, attempt) {
                Ok(call) => call.run(recorder, stop).await,
                Err(failure) => Outcome::Failed(failure),
            },
            Backend::Openai { .. } => unsupported(BackendKind::Openai),
            Backend::Anthropic { .. } => unsupported(BackendKind::Anthropic),
            Backend::Mcp(_) => unsupported(BackendKind::Mcp),
        };
        (outcome, None)
    }
}

impl AgentBackend for Backends {
    fn run(&self, attempt: Attempt, stop: CancellationToken) -> BoxFuture<'_, AttemptResult> {
        Box::pin(async move {
            let mut recorder = match attempt.is_sensitive {
                true => Recorder::new(None, LiveOutput::default()),
                false => Recorder::new(
                    Some(self.outputs.join(file_name(&attempt))),
                    attempt.live_output.clone(),
                ),
            };
            let (outcome, usage) = match stop.is_cancelled() {
                true => (Outcome::Cancelled, None),
                false => self.run_backend(&attempt, &mut recorder, &stop).await,
            };
            AttemptResult { outcome, output: recorder.finish().await, usage }
        })
    }

    fn find_problems(&self, agent: Agent) -> BoxFuture<'_, Vec<String>> {
        let (environment, secrets) = (self.environment.clone(), Arc::clone(&self.secrets));
        let of = self.environment_of;
        Box::pin(async move {
            let find = move || find_problems(&agent, &environment, of, &*secrets);
            match timeout(PROBLEMS_TIME_MAX, spawn_blocking(find)).await {
                Ok(Ok(problems)) => problems,
                // A file system that hangs, for example.
                Ok(Err(_)) | Err(_) => vec!["its files could not be looked at in time".to_owned()],
            }
        })
    }

    fn check_server(&self, agent: Agent) -> BoxFuture<'_, ServerCheck> {
        Box::pin(async move {
            match &agent.backend {
                Backend::Letta(server) => {
                    letta::check_server(
                        (&self.http, &*self.secrets),
                        server,
                        agent.credential.as_ref(),
                    )
                    .await
                }
                Backend::Webhook(webhook) => {
                    webhook::check_server(
                        (&self.http, &*self.secrets),
                        webhook,
                        agent.credential.as_ref(),
                    )
                    .await
                }
                Backend::Builtin { .. } | Backend::Command(_) => ServerCheck::default(),
                Backend::Openai { .. } | Backend::Anthropic { .. } | Backend::Mcp(_) => {
                    ServerCheck::default()
                }
            }
        })
    }

    fn fingerprint(
        &self,
        agent: Agent,
        salt: String,
    ) -> BoxFuture<'_, Result<Option<ExecutionFingerprint>, Failure>> {
        Box::pin(async move {
            let Backend::Command(program) = agent.backend else { return Ok(None) };
            let input = FingerprintInput { program, environment: self.environment.clone(), salt };
            let computed = spawn_blocking(move || input.fingerprint()).await;
            let panicked = |_| {
                Failure::transient(
                    Reason::NotStarted,
                    "the fingerprint of the program was not computed",
                )
            };
            computed.map_err(panicked)?.map(Some)
        })
    }

    fn details(&self, agent: &Agent) -> Details {
        match &agent.backend {
            Backend::Command(program) => fingerprint::details(program, &self.environment),
            other => Details::from_backend(other),
        }
    }

    fn end_leftover_processes(&self) {
        kill_orphans();
    }
}

/// Omits the environment, which may contain secrets.
impl fmt::Debug for Backends {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Backends").field("outputs", &self.outputs).finish_non_exhaustive()
    }
}

/// Replaces other characters of the run's id, so that it is a file name and never a path.
fn file_name(attempt: &Attempt) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let run: String = attempt.run.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("{run}-{}.txt", attempt.epoch)
}

async fn with_time_limit(
    time_max: Duration,
    stop: &CancellationToken,
    work: impl Future<Output = Outcome>,
) -> Outcome {
    tokio::select! {
        biased;
        outcome = work => outcome,
        () = stop.cancelled() => Outcome::Cancelled,
        () = tokio::time::sleep(time_max) => Outcome::Failed(Failure::timeout(time_max)),
    }
}

fn unsupported(kind: BackendKind) -> Outcome {
    Outcome::Failed(Failure::permanent(Reason::BackendMissing, problems::unsupported(kind)))
}
