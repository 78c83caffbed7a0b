//! `midwatch config show`

use api::{ConfigShow, ConfigValue, Error};
use serde::Serialize;

use crate::access::send_to_daemon;
use crate::cli::support::render::paragraphs;
use crate::cli::support::table::{Column, shortened, table, whole};
use crate::config::{Loaded, Setting};
use crate::context::Context;
use crate::view::View;

const COLUMNS: [Column; 3] = [whole("KEY"), shortened("VALUE", 16), shortened("FROM", 24)];

#[derive(Debug, Serialize)]
struct Shown {
    config: Vec<ShownValue>,
    /// The daemon's values that differ: it has another environment, or the files have changed since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    daemon: Vec<ConfigValue>,
}

#[derive(Debug, Serialize)]
struct ShownValue {
    key: &'static str,
    value: Setting,
    origin: String,
}

pub(super) async fn run(context: &Context) -> Result<(), Error> {
    let loaded = context.load_config()?;
    let active = match send_to_daemon(context, ConfigShow {}).await {
        Ok(active) => active.map(|it| it.values).unwrap_or_default(),
        Err(refused) => {
            context.output.remark(&format!("the daemon's values are unknown: {refused}"));
            Vec::new()
        }
    };
    let daemon = differences(&loaded, active);
    let values = loaded.values.into_iter().map(|value| ShownValue {
        key: value.key,
        value: value.value,
        origin: value.origin.to_string(),
    });
    let shown = Shown { config: values.collect(), daemon };
    context.output.show(&shown, |shown| render(shown, &context.view));
    Ok(())
}

/// The daemon's active values that differ from those loaded here.
fn differences(loaded: &Loaded, active: Vec<ConfigValue>) -> Vec<ConfigValue> {
    let is_same = |it: &ConfigValue| {
        loaded.values.iter().any(|own| own.key == it.key && own.value.to_string() == it.value)
    };
    active.into_iter().filter(|it| !is_same(it)).collect()
}

fn render(Shown { config, daemon }: &Shown, view: &View) -> String {
    let rows = config.iter().map(|it| [it.key.to_owned(), it.value.to_string(), it.origin.clone()]);
    let rows = table(view, COLUMNS, rows);
    if daemon.is_empty() {
        return rows;
    }
    let others = daemon.iter().map(|it| [it.key.clone(), it.value.clone(), it.origin.clone()]);
    let note = "These values come from the files and this command's environment. The daemon uses other values:";
    paragraphs([rows, format!("{note}\n{}", table(view, COLUMNS, others))])
}
