//! A directory, an environment and the backends in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agents::{
    AgentBackend, Attempt, AttemptResult, Backends, EnvironmentOf, Http, LiveOutput, Outcome,
    SecretError, Secrets,
};
use kernel::Timestamp;
use kernel::agent::Agent;
use kernel::backend::{Backend, BackendKind, SecretRef, Settings, Tier};
use kernel::run::FailureKind;
use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Far more than any test takes; reaching it means that something hangs.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) const SECRET: &str = "canary-4f1d0c";

/// The secret in the environment, and additional values to redact.
#[derive(Debug, Default)]
struct TestSecrets {
    also: Vec<String>,
}

impl Secrets for TestSecrets {
    fn read(&self, secret: &SecretRef) -> Result<String, SecretError> {
        match secret {
            SecretRef::Env(name) if name == "SECRET" => Ok(SECRET.to_owned()),
            other => Err(SecretError(format!("there is no secret `{other}`"))),
        }
    }

    fn redact(&self, text: &str) -> String {
        let also = self.also.iter();
        also.fold(text.replace(SECRET, "[hidden]"), |text, it| text.replace(it, "[hidden]"))
    }

    fn with_values(&self, values: &[&str]) -> Arc<dyn Secrets> {
        Arc::new(TestSecrets { also: values.iter().map(ToString::to_string).collect() })
    }
}

pub(crate) struct World {
    root: TempDir,
    pub(crate) backends: Backends,
}

impl World {
    pub(crate) fn new() -> World {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().canonicalize().unwrap().to_str().unwrap().to_owned();
        let environment = [
            ("HOME", home.as_str()),
            ("LANG", "C.UTF-8"),
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("TZ", "UTC"),
            ("ALLOWED", "yes"),
            ("SECRET", SECRET),
        ];
        let environment: BTreeMap<_, _> =
            environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let outputs = root.path().canonicalize().unwrap().join("outputs");
        let secrets = Arc::new(TestSecrets::default());
        let of = EnvironmentOf::Daemon { pid: 7 };
        let backends = Backends::new(outputs, environment, secrets, Http::new(), of);
        World { root, backends }
    }

    /// Also the home directory, where programs are started.
    pub(crate) fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub(crate) async fn run(&self, attempt: Attempt) -> AttemptResult {
        self.run_until(attempt, CancellationToken::new()).await
    }

    pub(crate) async fn run_until(
        &self,
        attempt: Attempt,
        stop: CancellationToken,
    ) -> AttemptResult {
        tokio::time::timeout(HANG_TIMEOUT, self.backends.run(attempt, stop))
            .await
            .expect("it hangs")
    }

    /// Runs a script for `sh`.
    pub(crate) async fn sh(&self, script: &str) -> AttemptResult {
        self.run(sh(script)).await
    }

    /// Waits until `count` process ids are written to a file, and returns them.
    pub(crate) async fn pids(&self, file: &str, count: usize) -> Vec<Pid> {
        let path = self.root().join(file);
        let read = || -> Vec<Pid> {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
            whole.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
        };
        until(|| count <= read().len()).await;
        read()
    }
}

/// Polls until a condition holds.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let polling = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG_TIMEOUT, polling).await.expect("the condition never held");
}

/// Whether a process is running; a zombie is not.
pub(crate) fn is_running(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let state = stat.ok().and_then(|stat| stat.rsplit_once(") ")?.1.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Whether a process exists, possibly as a zombie.
pub(crate) fn exists(pid: Pid) -> bool {
    test_kill_process(pid).is_ok()
}

pub(crate) fn attempt(backend: Backend, prompt: &str) -> Attempt {
    let at = Timestamp::from_micros(0);
    let agent = Agent {
        name: "ada".parse().unwrap(),
        backend,
        tier: Tier::LocalWrite,
        credential: None,
        repeatable: false,
        price: kernel::money::Price::default(),
        schedules_made: 0,
        denials: 0,
        raised_to_1: 0,
        raised_to_2: 0,
        changed_by: Vec::new(),
        registered_at: at,
        changed_at: at,
    };
    Attempt {
        run: "run-7".into(),
        schedule: None,
        slot: None,
        number: 1,
        epoch: 1,
        started_at: at,
        agent,
        prompt: prompt.into(),
        is_sensitive: false,
        time_max: HANG_TIMEOUT,
        live_output: LiveOutput::default(),
    }
}

pub(crate) fn command(settings: Settings, argv: &[&str], prompt: &str) -> Attempt {
    let argv = argv.iter().map(ToString::to_string).collect();
    let settings = Settings { argv, ..settings };
    attempt(Backend::parse(BackendKind::Command, settings).unwrap(), prompt)
}

pub(crate) fn sh(script: &str) -> Attempt {
    command(Settings::default(), &["sh", "-c", script], "")
}

/// An outcome as `reason kind: message`.
pub(crate) fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "done".into(),
        Outcome::Cancelled => "cancelled".into(),
        Outcome::Failed(failure) => {
            let kind = match failure.kind {
                FailureKind::Permanent => "permanent".to_owned(),
                FailureKind::PaymentRequired => "payment_required".to_owned(),
                FailureKind::Transient { wait_us: 0 } => "transient".to_owned(),
                FailureKind::Transient { wait_us } => {
                    format!("transient after {}s", wait_us / 1_000_000)
                }
                FailureKind::Delivered => "delivered".to_owned(),
                FailureKind::Indeterminate => "indeterminate".to_owned(),
            };
            format!("{} {kind}: {}", failure.reason.as_str(), failure.message)
        }
    }
}

pub(crate) fn text_of(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
