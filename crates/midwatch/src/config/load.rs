//! Loading: defaults, then the file, then the environment, then checks across keys.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use agents::Scheme;
use kernel::money::Money;
use redact::redact;
use runtime::Retention;

use super::Posture;
use super::document::{Entry, entries};
use super::error::Fault;
use super::keys::{KEYS, Key};
use super::kind::Invalid;
use super::raw::Raw;
use super::text::{TextPosition, check_size, without_mark};
use super::{
    Approval, Budget, Config, Error, Flags, Http, Lease, Ledger, Level, Loaded, Log, Notice,
    Origin, Runs,
};
use super::{Setting, Storage, Value, variables};

/// A configuration before its keys are set. Every key has a default, so these values are never used.
const BLANK: Config = Config {
    posture: Posture::StrictProd,
    log: Log { level: Level::Error, file_bytes_max: 0, files_max: 0 },
    ledger: Ledger { checkpoint_copy: None, heartbeat: Duration::ZERO },
    runs: Runs { drain: Duration::ZERO },
    lease: Lease { ask_after: Duration::ZERO, pause_after: Duration::ZERO },
    budget: Budget {
        runs: 0,
        runs_per_agent: 0,
        tokens: 0,
        tokens_per_agent: 0,
        money: Money::ZERO,
        money_per_agent: Money::ZERO,
        changes_per_agent: 0,
        bytes_per_agent: 0,
    },
    approval: Approval { pending_per_agent: 0, asks_per_agent: 0, denied_for: Duration::ZERO },
    retention: Retention {
        outputs_age: Duration::ZERO,
        outputs_bytes: 0,
        logs_age: Duration::ZERO,
        exports_age: Duration::ZERO,
        exports_bytes: 0,
        responses_age: Duration::ZERO,
    },
    store: Storage { url: None, password: None, ca_file: None },
    notice: Notice { command: Vec::new(), url: None, token: None },
    http: Http { listen: None, toolsets: Vec::new() },
    feature_flags: Flags {
        local_approvals: false,
        token_files: false,
        schedules_by_runs: false,
        notices: false,
    },
};

impl Config {
    /// Loads `file` (its name, and its text from [`read`](super::read)) and then `environment`, which
    /// overrides it. Returns the first fault of the file, or else the first of the environment.
    pub fn load(
        file: Option<(&Path, &str)>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Loaded, Error> {
        let mut draft = Draft::with_defaults()?;
        let file = file.map(|(path, text)| (path, without_mark(text)));
        if let Some((path, text)) = file {
            check_size(text.len(), path)?;
            draft.read_file(text).map_err(|fault| fault.in_file(path, text))?;
        }
        draft.read_variables(environment)?;
        draft.check_lease(file)?;
        draft.check_encryption(file)?;
        let values = draft.chosen.iter().map(|chosen| chosen.value(file)).collect();
        let (warnings, overridden) =
            (variables::unknown_variables(environment, &draft.config), draft.overridden);
        Ok(Loaded { config: draft.config, values, warnings, overridden })
    }
}

/// A configuration that is being loaded.
struct Draft {
    config: Config,
    /// One per key, in the order of [`KEYS`].
    chosen: Vec<Chosen>,
    /// Keys of the file that the environment overrides.
    overridden: Vec<&'static str>,
}

struct Chosen {
    key: &'static Key,
    setting: Setting,
    source: Source,
}

enum Source {
    Default,
    File { key_span: Range<usize> },
    Variable,
}

impl Draft {
    fn with_defaults() -> Result<Draft, Error> {
        let chosen = Vec::with_capacity(KEYS.len());
        let mut draft = Draft { config: BLANK, chosen, overridden: Vec::new() };
        for key in KEYS {
            let setting = key.kind.set(&mut draft.config, &key.default);
            let setting = setting.map_err(|invalid| {
                Error::of_environment(message(key, key.path, &invalid, &key.default), invalid.hint)
            })?;
            draft.chosen.push(Chosen { key, setting, source: Source::Default });
        }
        Ok(draft)
    }

    fn read_file(&mut self, text: &str) -> Result<(), Fault> {
        for entry in entries(text) {
            let Entry { key, value, key_span, value_span } = entry?;
            let source = Source::File { key_span };
            self.choose(key, &value, source).map_err(|invalid| Fault {
                span: value_span,
                message: message(key, key.path, &invalid, &value),
                hint: invalid.hint,
                is_secret: key.kind.is_secret(),
            })?;
        }
        Ok(())
    }

    fn read_variables(&mut self, environment: &BTreeMap<String, String>) -> Result<(), Error> {
        for key in KEYS {
            let name = key.variable();
            let Some(value) = environment.get(&name) else { continue };
            let value = Raw::Variable(value);
            self.choose(key, &value, Source::Variable).map_err(|invalid| {
                Error::of_environment(message(key, &name, &invalid, &value), invalid.hint)
            })?;
        }
        Ok(())
    }

    fn choose(&mut self, key: &'static Key, value: &Raw, source: Source) -> Result<(), Invalid> {
        let setting = key.kind.set(&mut self.config, value)?;
        if let Some(chosen) = self.chosen.iter_mut().find(|it| it.key.path == key.path) {
            if let (Source::File { .. }, Source::Variable) = (&chosen.source, &source) {
                self.overridden.push(key.path);
            }
            *chosen = Chosen { key, setting, source };
        }
        Ok(())
    }

    /// Runs must need approval before none starts.
    fn check_lease(&self, file: Option<(&Path, &str)>) -> Result<(), Error> {
        let Lease { ask_after, pause_after } = self.config.lease;
        if pause_after.is_zero() || ask_after < pause_after {
            return Ok(());
        }
        let hint = "write a longer span, or `0s`";
        let what = "is not longer than `lease.ask_after`";
        let pause = self.chosen.iter().find(|it| it.key.path == "lease.pause_after");
        pause.map_or(Ok(()), |pause| Err(pause.contradiction(what, hint.to_owned(), file)))
    }

    /// Notices must leave the machine encrypted, except in the posture `debug`.
    fn check_encryption(&self, file: Option<(&Path, &str)>) -> Result<(), Error> {
        let is_plaintext =
            self.config.notice.url.as_ref().and_then(Scheme::of) == Some(Scheme::Plaintext);
        if !is_plaintext || self.config.posture.trust().plain_notices {
            return Ok(());
        }
        let hint = "write `https`, name this machine, or use the posture `debug`";
        let what = "goes to another machine without encryption";
        let url = self.chosen.iter().find(|it| it.key.path == "notice.url");
        url.map_or(Ok(()), |url| Err(url.contradiction(what, hint.to_owned(), file)))
    }
}

impl Chosen {
    /// The error for a value that contradicts another one.
    fn contradiction(&self, what: &str, hint: String, file: Option<(&Path, &str)>) -> Error {
        let hint = Some(hint);
        let message = |name: &str| format!("`{name}` {what}");
        match (&self.source, file) {
            (Source::File { key_span }, Some((path, text))) => {
                let (span, message) = (key_span.clone(), message(self.key.path));
                Fault { span, message, hint, is_secret: false }.in_file(path, text)
            }
            (Source::Variable, _) => Error::of_environment(message(&self.key.variable()), hint),
            (_, _) => Error::of_environment(message(self.key.path), hint),
        }
    }

    fn value(&self, file: Option<(&Path, &str)>) -> Value {
        let value = match &self.setting {
            Setting::Text(text) => Setting::Text(redact(text).into_owned()),
            Setting::List(words) => {
                Setting::List(words.iter().map(|word| redact(word).into_owned()).collect())
            }
            Setting::Number(_) | Setting::Flag(_) => self.setting.clone(),
        };
        let origin = match (&self.source, file) {
            (Source::File { key_span }, Some((path, text))) => {
                let line = TextPosition::of(text, key_span.clone()).line;
                Origin::File { path: path.to_owned(), line }
            }
            (Source::Variable, _) => Origin::Variable { name: self.key.variable() },
            (_, _) => Origin::Default,
        };
        Value { key: self.key.path, value, origin }
    }
}

fn message(key: &Key, name: &str, invalid: &Invalid, found: &Raw) -> String {
    // The value may be the secret itself instead of a reference to it.
    if key.kind.is_secret() {
        return format!("`{name}` must be {}", invalid.expected);
    }
    format!("`{name}` must be {}, not {}", invalid.expected, found.described())
}
