//! Loading: defaults, then the file, then the environment, then whether the whole makes sense.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use agents::Way;
use kernel::money::Money;

use super::Posture;
use super::document::{Entry, entries};
use super::error::Fault;
use super::keys::{KEYS, Key};
use super::kind::{Kind, Raw, Wrong};
use super::text::{Place, check_size, without_mark};
use super::{
    Approval, Budget, Config, Error, Flags, Http, Lease, Ledger, Level, Loaded, Log, Notice,
    Origin, Runs,
};
use super::{Setting, Storage, Value, variables};
use crate::redact::redact;

/// What a configuration holds before its keys are set. Each key has a default, so none of this is
/// ever seen.
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
    },
    approval: Approval { pending_per_agent: 0, asks_per_agent: 0, denied_for: Duration::ZERO },
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
    /// Reads `file` (its name, and its text from [`read`](super::read)), then lets `environment`
    /// override it. Reports the first fault of the file, or else the first of the environment.
    pub fn load(
        file: Option<(&Path, &str)>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Loaded, Error> {
        let mut draft = Draft::of_defaults()?;
        let file = file.map(|(path, text)| (path, without_mark(text)));
        if let Some((path, text)) = file {
            check_size(text.len(), path)?;
            draft.read_file(text).map_err(|fault| fault.in_file(path, text))?;
        }
        draft.read_variables(environment)?;
        draft.check_lease(file)?;
        draft.check_ways(file)?;
        let values = draft.chosen.iter().map(|chosen| chosen.value(file)).collect();
        let (warnings, overridden) = (variables::unknown(environment), draft.overridden);
        Ok(Loaded { config: draft.config, values, warnings, overridden })
    }
}

/// A configuration in the making.
struct Draft {
    config: Config,
    /// One per key, in the order of [`KEYS`].
    chosen: Vec<Chosen>,
    /// Keys of the file that the environment has too.
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
    fn of_defaults() -> Result<Draft, Error> {
        let chosen = Vec::with_capacity(KEYS.len());
        let mut draft = Draft { config: BLANK, chosen, overridden: Vec::new() };
        for key in KEYS {
            let setting = key.kind.set(&mut draft.config, &key.default);
            let setting = setting.map_err(|wrong| {
                Error::of_environment(message(key, key.path, &wrong, &key.default), wrong.hint)
            })?;
            draft.chosen.push(Chosen { key, setting, source: Source::Default });
        }
        Ok(draft)
    }

    fn read_file(&mut self, text: &str) -> Result<(), Fault> {
        for entry in entries(text) {
            let Entry { key, value, key_span, value_span } = entry?;
            let source = Source::File { key_span };
            self.choose(key, &value, source).map_err(|wrong| Fault {
                span: value_span,
                message: message(key, key.path, &wrong, &value),
                hint: wrong.hint,
            })?;
        }
        Ok(())
    }

    fn read_variables(&mut self, environment: &BTreeMap<String, String>) -> Result<(), Error> {
        for key in KEYS {
            let name = key.variable();
            let Some(value) = environment.get(&name) else { continue };
            let value = Raw::Word(value);
            self.choose(key, &value, Source::Variable).map_err(|wrong| {
                Error::of_environment(message(key, &name, &wrong, &value), wrong.hint)
            })?;
        }
        Ok(())
    }

    fn choose(&mut self, key: &'static Key, value: &Raw, source: Source) -> Result<(), Wrong> {
        let setting = key.kind.set(&mut self.config, value)?;
        if let Some(chosen) = self.chosen.iter_mut().find(|it| it.key.path == key.path) {
            if let (Source::File { .. }, Source::Variable) = (&chosen.source, &source) {
                self.overridden.push(key.path);
            }
            *chosen = Chosen { key, setting, source };
        }
        Ok(())
    }

    /// People are asked before everything stops.
    fn check_lease(&self, file: Option<(&Path, &str)>) -> Result<(), Error> {
        let Lease { ask_after, pause_after } = self.config.lease;
        if pause_after.is_zero() || ask_after < pause_after {
            return Ok(());
        }
        let hint = "give it a longer span, or `0s`";
        let what = "is not longer than `lease.ask_after`";
        let pause = self.chosen.iter().find(|it| it.key.path == "lease.pause_after");
        pause.map_or(Ok(()), |pause| Err(pause.contradiction(what, hint.to_owned(), file)))
    }

    /// What is told of runs leaves the machine encrypted, unless somebody tries things out.
    fn check_ways(&self, file: Option<(&Path, &str)>) -> Result<(), Error> {
        let is_open = self.config.notice.url.as_ref().and_then(Way::to) == Some(Way::Open);
        if !is_open || self.config.posture.trust().plain_notices {
            return Ok(());
        }
        let hint = "write `https`, name this machine, or try it out with the posture `debug`";
        let what = "goes to another machine without encryption";
        let url = self.chosen.iter().find(|it| matches!(it.key.kind, Kind::Url(_)));
        url.map_or(Ok(()), |url| Err(url.contradiction(what, hint.to_owned(), file)))
    }
}

impl Chosen {
    /// What was chosen does not go with the rest.
    fn contradiction(&self, what: &str, hint: String, file: Option<(&Path, &str)>) -> Error {
        let hint = Some(hint);
        let message = |name: &str| format!("`{name}` {what}");
        match (&self.source, file) {
            (Source::File { key_span }, Some((path, text))) => {
                let fault = Fault { span: key_span.clone(), message: message(self.key.path), hint };
                fault.in_file(path, text)
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
                let line = Place::of(text, key_span.clone()).line;
                Origin::File { path: path.to_owned(), line }
            }
            (Source::Variable, _) => Origin::Variable { name: self.key.variable() },
            (_, _) => Origin::Default,
        };
        Value { key: self.key.path, value, origin }
    }
}

fn message(key: &Key, name: &str, wrong: &Wrong, found: &Raw) -> String {
    // What stands where a secret is named may be the secret.
    if matches!(key.kind, Kind::Secret(_)) {
        return format!("`{name}` must be {}", wrong.expected);
    }
    format!("`{name}` must be {}, not {}", wrong.expected, found.named())
}
