//! What every command needs: the data directory, the configuration, the environment and the output format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, io};

use api::{Code, ConfigValue, Error};
use etcetera::BaseStrategy;
use kernel::authority::Lease;
use kernel::backend::SecretRef;
use kernel::budget::Limits;
use runtime::{POLICY_FILE, ReloadableConfig};
use sha2::{Digest, Sha256};

use crate::access::TOKEN_VARIABLE;
use crate::config::{self, Config, Loaded};
use crate::directory::Directory;
use crate::output::{Format, Output};
use crate::storage::Storage;
use crate::view::View;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Clone, Debug)]
pub struct Context {
    pub directory: Directory,
    pub environment: BTreeMap<String, String>,
    pub output: Output,
    /// How text is laid out.
    pub view: View,
    /// Whether this process acts for an agent, even if a person started it.
    pub assistant: bool,
    /// Whether a person at a terminal runs this command and has not been reported yet.
    looks: Arc<AtomicBool>,
    config_file: Option<PathBuf>,
}

impl Context {
    pub fn new(
        data: Option<PathBuf>,
        config_file: Option<PathBuf>,
        environment: BTreeMap<String, String>,
        output: Output,
        view: View,
    ) -> Result<Context, Error> {
        let data = data.map_or_else(default_data, Ok)?;
        let data = std::path::absolute(&data).unwrap_or(data);
        let directory = Directory::at(data);
        let looks = Arc::default();
        Ok(Context { directory, environment, output, view, assistant: false, looks, config_file })
    }

    /// A person at a terminal runs this command. Its first connection says so: those that follow may be made while
    /// nobody looks.
    pub fn set_look(&self) {
        self.looks.store(true, Ordering::Relaxed);
    }

    /// Whether a person runs this command, once.
    pub(crate) fn take_look(&self) -> bool {
        self.looks.swap(false, Ordering::Relaxed) && !self.assistant
    }

    /// The same context for a process that acts for an agent.
    #[must_use]
    pub fn for_assistant(&self) -> Context {
        Context { assistant: true, ..self.clone() }
    }

    /// The same context for another data directory.
    #[must_use]
    pub fn in_directory(&self, data: PathBuf) -> Context {
        Context { directory: Directory::at(data), ..self.clone() }
    }

    /// The path of the configuration file, which need not exist.
    pub fn config_path(&self) -> PathBuf {
        self.config_file.clone().unwrap_or_else(|| self.directory.config())
    }

    pub fn load_config(&self) -> Result<Loaded, Error> {
        let path = self.config_path();
        let failed = |error| config_error(error, self.output.format);
        let text = config::read(&path).map_err(failed)?;
        if text.is_none() && self.config_file.is_some() {
            let what = format!("the configuration file `{}` does not exist", path.display());
            return Err(
                Error::new(Code::NotFound, what).hint("create one with `midwatch config init`")
            );
        }
        let file = text.as_deref().map(|text| (path.as_path(), text));
        Config::load(file, &self.environment).map_err(failed)
    }

    /// The configuration without a file and without variables.
    pub fn defaults(&self) -> Result<Config, Error> {
        let loaded = Config::load(None, &BTreeMap::new());
        loaded.map(|it| it.config).map_err(|error| config_error(error, self.output.format))
    }

    /// What keeps a daemon from starting with this configuration and policy.
    pub fn config_faults(&self) -> Vec<String> {
        let config = match self.load_config() {
            Ok(loaded) => loaded.config,
            Err(error) => return vec![error.message],
        };
        let policy = self.policy();
        let rules =
            policy.and_then(|own| runtime::rules(config.posture, &own, self.directory.path()));
        rules.err().map(|error| error.message).into_iter().collect()
    }

    /// The store that the configuration names.
    pub fn storage(&self) -> Result<Storage, Error> {
        Storage::of(self, &self.load_config()?.config)
    }

    /// The settings that need a restart to change.
    pub fn settings(&self, config: &Config) -> runtime::Settings {
        runtime::Settings {
            data: self.directory.path().to_owned(),
            version: VERSION.to_owned(),
            posture: config.posture,
            checkpoint_copy: config.ledger.checkpoint_copy.clone(),
            heartbeat: config.ledger.heartbeat,
            drain: config.runs.drain,
            secret_variables: secret_variables(config),
        }
    }

    /// The settings that a reload can change.
    pub fn reloadable_config(&self, loaded: &Loaded) -> Result<ReloadableConfig, Error> {
        let config = &loaded.config;
        let keys = loaded.values.iter().map(|it| ConfigValue {
            key: it.key.to_owned(),
            value: it.value.to_string(),
            origin: it.origin.to_string(),
        });
        Ok(ReloadableConfig {
            policy: self.policy()?,
            keys: keys.collect(),
            config_hash: config_hash(loaded),
            lease: lease(&config.lease),
            flags: config.feature_flags,
            retention: config.retention,
            limits: Limits {
                runs: config.budget.runs.into(),
                runs_per_agent: config.budget.runs_per_agent.into(),
                asks_per_agent: config.approval.asks_per_agent.into(),
                pending_per_agent: config.approval.pending_per_agent.into(),
                denied_for_us: micros(config.approval.denied_for),
                tokens: config.budget.tokens.into(),
                tokens_per_agent: config.budget.tokens_per_agent.into(),
                money: config.budget.money,
                money_per_agent: config.budget.money_per_agent,
                changes_per_agent: config.budget.changes_per_agent.into(),
                bytes_per_agent: config.budget.bytes_per_agent.into(),
            },
        })
    }

    /// The operator's policy files and their contents; empty if there are none.
    pub fn policy(&self) -> Result<Vec<(String, String)>, Error> {
        let path = self.directory.path().join(POLICY_FILE);
        // A dangling link is an error, not an absent policy.
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Ok(_) | Err(_) => {}
        }
        let unreadable = |what: String| {
            Error::new(Code::PolicyInvalid, what)
                .hint("nothing runs without a valid policy: make the file readable, or remove it")
        };
        match config::read(&path) {
            Ok(Some(text)) => Ok(vec![(POLICY_FILE.to_owned(), text)]),
            Ok(None) => Err(unreadable(format!("{}: the link leads nowhere", path.display()))),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }
}

/// The variables whose values only the daemon may know.
fn secret_variables(config: &Config) -> Vec<String> {
    let references = [&config.store.password, &config.notice.token];
    let named = references.into_iter().flatten().filter_map(|reference| match reference {
        SecretRef::Env(name) => Some(name.clone()),
        SecretRef::File(_) => None,
    });
    std::iter::once(TOKEN_VARIABLE.to_owned()).chain(named).collect()
}

fn lease(config::Lease { ask_after, pause_after }: &config::Lease) -> Lease {
    Lease { ask_after_us: micros(*ask_after), pause_after_us: micros(*pause_after) }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// A hash of the effective values, whatever their origin.
fn config_hash(loaded: &Loaded) -> String {
    let mut hash = Sha256::new();
    for value in &loaded.values {
        hash.update(format!("{} = {}\n", value.key, value.value));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn default_data() -> Result<PathBuf, Error> {
    let strategy = etcetera::choose_base_strategy().map_err(|error| {
        Error::new(Code::Failed, format!("there is no default data directory: {error}"))
            .hint("choose one with `--data DIR` or MIDWATCH_DATA")
    })?;
    Ok(strategy.data_dir().join("midwatch"))
}

/// Shows the invalid line to people; programs get its position in the message.
fn config_error(error: config::Error, format: Format) -> Error {
    let message = match (&error.excerpt, format) {
        (Some(excerpt), Format::Human) => format!("{error}\n{excerpt}"),
        (None, _) | (_, Format::Json) => error.to_string(),
    };
    let invalid = Error::new(Code::ConfigInvalid, message);
    match error.hint {
        Some(hint) => invalid.hint(hint),
        None => invalid,
    }
}

/// A path as text for output.
pub fn display_path(path: &Path) -> String {
    path.display().to_string()
}
