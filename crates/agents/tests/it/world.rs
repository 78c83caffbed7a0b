//! A directory, an environment and the backends in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agents::{Backends, AgentBackend, Ended, Http, Outcome, Said, Secrets, Work};
use kernel::Timestamp;
use kernel::agent::Agent;
use kernel::backend::{Backend, BackendKind, SecretRef, Settings, Tier};
use kernel::run::Kind;
use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Far more than anything here takes; reaching it means that something hangs.
pub(crate) const HANGING: Duration = Duration::from_secs(120);

pub(crate) const SECRET: &str = "canary-4f1d0c";

/// The one that is in the environment, and what is said to be one.
#[derive(Debug, Default)]
struct OneSecret {
    also: Vec<String>,
}

impl Secrets for OneSecret {
    fn read(&self, secret: &SecretRef) -> Option<String> {
        (*secret == SecretRef::Env("SECRET".into())).then(|| SECRET.to_owned())
    }

    fn hide(&self, text: &str) -> String {
        let also = self.also.iter();
        also.fold(text.replace(SECRET, "[hidden]"), |text, it| text.replace(it, "[hidden]"))
    }

    fn and(&self, values: &[&str]) -> Arc<dyn Secrets> {
        Arc::new(OneSecret { also: values.iter().map(ToString::to_string).collect() })
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
        let backends =
            Backends::new(outputs, environment, Arc::new(OneSecret::default()), Http::new());
        World { root, backends }
    }

    /// Also the home directory, in which programs are started.
    pub(crate) fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub(crate) async fn run(&self, work: Work) -> Ended {
        self.run_until(work, CancellationToken::new()).await
    }

    pub(crate) async fn run_until(&self, work: Work, stop: CancellationToken) -> Ended {
        tokio::time::timeout(HANGING, self.backends.work(work, stop)).await.expect("it hangs")
    }

    /// Runs a script for `sh`.
    pub(crate) async fn sh(&self, script: &str) -> Ended {
        self.run(sh(script)).await
    }

    /// The numbers of processes that were written into a file, as soon as there are so many.
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

/// Polls until something is so.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let polling = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANGING, polling).await.expect("it never became so");
}

/// Whether a process still does something. One that nobody has buried yet does not.
pub(crate) fn is_alive(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let state = stat.ok().and_then(|stat| stat.rsplit_once(") ")?.1.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Whether there is such a process at all, buried or not.
pub(crate) fn exists(pid: Pid) -> bool {
    test_kill_process(pid).is_ok()
}

pub(crate) fn work(backend: Backend, prompt: &str) -> Work {
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
        registered_at: at,
        changed_at: at,
    };
    Work {
        run: "run-7".into(),
        schedule: None,
        slot: None,
        attempt: 1,
        epoch: 1,
        at,
        agent,
        prompt: prompt.into(),
        is_sensitive: false,
        time_max: HANGING,
        said: Said::default(),
    }
}

pub(crate) fn command(settings: Settings, argv: &[&str], prompt: &str) -> Work {
    let argv = argv.iter().map(ToString::to_string).collect();
    let settings = Settings { argv, ..settings };
    work(Backend::parse(BackendKind::Command, settings).unwrap(), prompt)
}

pub(crate) fn sh(script: &str) -> Work {
    command(Settings::default(), &["sh", "-c", script], "")
}

/// An outcome as `reason kind: message`.
pub(crate) fn said(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "done".into(),
        Outcome::Cancelled => "cancelled".into(),
        Outcome::Failed(failure) => {
            let lasts = match failure.kind {
                Kind::Permanent => "permanent".to_owned(),
                Kind::Unpaid => "unpaid".to_owned(),
                Kind::Passing { wait_us: 0 } => "passing".to_owned(),
                Kind::Passing { wait_us } => format!("passing after {}s", wait_us / 1_000_000),
                Kind::Delivered => "delivered".to_owned(),
                Kind::Doubtful => "doubtful".to_owned(),
            };
            format!("{} {lasts}: {}", failure.reason.as_str(), failure.message)
        }
    }
}

pub(crate) fn text_of(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
