//! `midwatch config …`

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;

use api::{Code, ConfigReload, ConfigReloaded, Error, Reloaded};
use clap::Subcommand;
use serde::Serialize;

use crate::access::ask;
use crate::config::{Loaded, Setting, sample};
use crate::context::{Context, shown};
use crate::output::table;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a configuration file in which everything is explained
    Init,
    /// Look for errors in the configuration
    Check,
    /// Show every value in effect, and where it comes from
    Show,
    /// Let the daemon read the configuration and `policy.toml` again
    Reload,
}

#[derive(Debug, Serialize)]
struct Written {
    config: WrittenFile,
}

#[derive(Debug, Serialize)]
struct WrittenFile {
    file: String,
}

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

#[derive(Debug, Serialize)]
struct Shown {
    config: Vec<ShownValue>,
}

#[derive(Debug, Serialize)]
struct ShownValue {
    key: &'static str,
    value: Setting,
    origin: String,
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Init => init(context)?,
        Command::Check => check(context)?,
        Command::Show => show(context, context.load_config()?),
        Command::Reload => {
            let answer = ask(context, ConfigReload {}).await?;
            context.output.show(&answer, |ConfigReloaded { reloaded }| told(reloaded));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Never over a file that is there.
fn init(context: &Context) -> Result<(), Error> {
    let path = context.config_path();
    if path == context.directory.config() {
        context.directory.create()?;
    }
    let write = || -> io::Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(sample().as_bytes())?;
        file.sync_all()
    };
    match write() {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let what = format!("there is a configuration file `{}` already", path.display());
            return Err(Error::new(Code::Exists, what).hint("move it away to get a new one"));
        }
        Err(error) => {
            let what = format!("`{}` cannot be written: {error}", path.display());
            return Err(Error::new(Code::Failed, what));
        }
    }
    let written = Written { config: WrittenFile { file: shown(&path) } };
    context.output.show(&written, |written| format!("wrote {}", written.config.file));
    Ok(())
}

fn check(context: &Context) -> Result<(), Error> {
    let loaded = context.load_config()?;
    let path = context.config_path();
    let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
    let checked =
        Checked { config: CheckedFile { file: shown(&path), found: path.exists(), warnings } };
    context.output.show(&checked, |Checked { config }| {
        let mut text = match config.found {
            true => format!("{} is good", config.file),
            false => format!("there is no {}; the defaults are in effect", config.file),
        };
        for warning in &config.warnings {
            text.push_str(&format!("\nwarning: {warning}"));
        }
        text
    });
    Ok(())
}

fn show(context: &Context, loaded: Loaded) {
    let values = loaded.values.into_iter().map(|value| ShownValue {
        key: value.key,
        value: value.value,
        origin: value.origin.to_string(),
    });
    let shown = Shown { config: values.collect() };
    context.output.show(&shown, |shown| {
        let rows = shown
            .config
            .iter()
            .map(|value| [value.key.to_owned(), value.value.to_string(), value.origin.clone()]);
        table(["KEY", "VALUE", "FROM"], rows)
    });
}

fn told(Reloaded { policy, changed, waiting, warnings, .. }: &Reloaded) -> String {
    let quoted = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
        names.join(", ")
    };
    let mut lines = vec![match changed.is_empty() {
        true => format!("everything is as it was (rules of version {policy})"),
        false => format!("{} taken up (rules of version {policy})", quoted(changed)),
    }];
    if !waiting.is_empty() {
        lines.push(format!("{} waits for a restart", quoted(waiting)));
    }
    let warnings = warnings.iter().map(|it| format!("warning: {}; {}", it.what, it.fix));
    lines.into_iter().chain(warnings).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use api::Finding;

    use super::*;

    #[test]
    fn what_a_reload_did_is_told() {
        let reloaded = |changed: &[&str], waiting: &[&str], warnings| Reloaded {
            config_hash: "0".into(),
            policy: "0a1b".into(),
            changed: changed.iter().map(ToString::to_string).collect(),
            waiting: waiting.iter().map(ToString::to_string).collect(),
            warnings,
        };
        let nothing = told(&reloaded(&[], &[], vec![]));
        assert_eq!(nothing, "everything is as it was (rules of version 0a1b)");
        let warning = Finding {
            check: "approvers".into(),
            refuses: false,
            what: "nobody can approve".into(),
            fix: "give out a token".into(),
        };
        let much = told(&reloaded(&["budget.runs", "policy.toml"], &["posture"], vec![warning]));
        let expected = [
            "`budget.runs`, `policy.toml` taken up (rules of version 0a1b)",
            "`posture` waits for a restart",
            "warning: nobody can approve; give out a token",
        ];
        assert_eq!(much, expected.join("\n"));
    }
}
