//! Reads the configuration and policy files again while the daemon runs.

use std::sync::Arc;

use api::Error;
use redact::Redactor;
use runtime::{ConfigReader, Reread};

use crate::config::{Loaded, Value, is_reloadable};
use crate::context::Context;
use crate::daemon::notification_channels;
use crate::local_checks;
use crate::output::{Format, Output};

/// The files, and their values when the daemon started.
#[derive(Debug)]
pub(super) struct ConfigFiles {
    context: Context,
    started: Vec<Value>,
    redactor: Arc<Redactor>,
}

impl ConfigFiles {
    pub(super) fn new(context: &Context, loaded: &Loaded, redactor: Arc<Redactor>) -> ConfigFiles {
        // Errors are one line each, without an excerpt of the file.
        let mut context = context.clone();
        context.output = Output { format: Format::Json, ..context.output };
        ConfigFiles { context, started: loaded.values.clone(), redactor }
    }
}

impl ConfigReader for ConfigFiles {
    fn read(&self) -> Result<Reread, Error> {
        let mut loaded = self.context.load_config()?;
        let found = local_checks::check_policy_files(&self.context);
        if let Some(refusal) = runtime::refusal(loaded.config.posture, &found) {
            return Err(refusal);
        }
        let waiting = reset_to_started(&mut loaded.values, &self.started);
        let overridden = loaded.overridden.iter().map(|key| (*key).to_owned()).collect();
        let channels =
            notification_channels::from_config(&self.context, &loaded.config, &self.redactor)?;
        let config = self.context.reloadable_config(&loaded)?;
        Ok(Reread { config, waiting, overridden, channels })
    }
}

/// Resets keys that need a restart to their values at the start, and returns those that had changed.
fn reset_to_started(values: &mut [Value], started: &[Value]) -> Vec<String> {
    let mut waiting = Vec::new();
    for value in values.iter_mut().filter(|it| !is_reloadable(it.key)) {
        let Some(before) = started.iter().find(|it| it.key == value.key) else { continue };
        if before.value != value.value {
            waiting.push(value.key.to_owned());
            *value = before.clone();
        }
    }
    waiting
}
