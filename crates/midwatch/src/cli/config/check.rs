//! `midwatch config check`

use api::Error;
use serde::Serialize;

use crate::context::{Context, display_path};

#[derive(Debug, Serialize)]
struct Checked {
    config: CheckedFile,
}

#[derive(Debug, Serialize)]
struct CheckedFile {
    file: String,
    found: bool,
    warnings: Vec<String>,
}

pub(super) fn run(context: &Context) -> Result<(), Error> {
    let loaded = context.load_config()?;
    let path = context.config_path();
    let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
    let checked = Checked {
        config: CheckedFile { file: display_path(&path), found: path.exists(), warnings },
    };
    context.output.say(&checked, |Checked { config }| {
        let mut text = match config.found {
            true => format!("{} is valid", config.file),
            false => format!("{} does not exist; the defaults are active", config.file),
        };
        for warning in &config.warnings {
            text.push_str(&format!("\nwarning: {warning}"));
        }
        text
    });
    Ok(())
}
