//! Configuration and rules, read again while the daemon runs.

use api::Error;
use runtime::{Reader, Reread};

use crate::checks;
use crate::config::{Loaded, Value, is_reread};
use crate::context::Context;
use crate::output::{Format, Output};

/// The files, and what they said when the daemon started.
#[derive(Debug)]
pub(super) struct Files {
    context: Context,
    started: Vec<Value>,
}

impl Files {
    pub(super) fn new(context: &Context, loaded: &Loaded) -> Files {
        // What is wrong with a file is told in a sentence, wherever it goes.
        let mut context = context.clone();
        context.output = Output { format: Format::Json };
        Files { context, started: loaded.values.clone() }
    }
}

impl Reader for Files {
    fn read(&self) -> Result<Reread, Error> {
        let mut loaded = self.context.load_config()?;
        let found = checks::orders_files(&self.context);
        if let Some(refusal) = runtime::refusal(loaded.config.posture, &found) {
            return Err(refusal);
        }
        let waiting = keep_started(&mut loaded.values, &self.started);
        let overridden = loaded.overridden.iter().map(|key| (*key).to_owned()).collect();
        Ok(Reread { standing: self.context.standing(&loaded)?, waiting, overridden })
    }
}

/// Gives the keys that wait for a restart the values of the start, and says which were others.
fn keep_started(values: &mut [Value], started: &[Value]) -> Vec<String> {
    let mut waiting = Vec::new();
    for value in values.iter_mut().filter(|it| !is_reread(it.key)) {
        let Some(before) = started.iter().find(|it| it.key == value.key) else { continue };
        if before.value != value.value {
            waiting.push(value.key.to_owned());
            *value = before.clone();
        }
    }
    waiting
}
