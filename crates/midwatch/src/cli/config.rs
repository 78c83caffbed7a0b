//! `midwatch config …`

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;

use api::{Code, ConfigAsk, ConfigReload, ConfigReloaded, ConfigValue, Error, Reloaded};
use clap::Subcommand;
use serde::Serialize;

use crate::access::{ask, ask_daemon};
use crate::config::{Loaded, Setting, sample};
use crate::context::{Context, shown};
use crate::output::{paragraphs, table};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a configuration file in which everything is explained
    Init,
    /// Look for errors in the configuration
    Check,
    /// Show every value in effect, and where it comes from
    ///
    /// By the files, and by the environment of this command. Where a daemon goes by other values, because its
    /// environment is another or because it has not read the files again, they follow.
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
    /// What the daemon goes by otherwise: its environment is another, or the files have changed since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    daemon: Vec<ConfigValue>,
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
        Command::Show => {
            let loaded = context.load_config()?;
            let in_force = match ask_daemon(context, ConfigAsk {}).await {
                Ok(in_force) => in_force.map(|it| it.values).unwrap_or_default(),
                Err(refused) => {
                    context.output.remark(&format!("the daemon's values are not known: {refused}"));
                    Vec::new()
                }
            };
            show(context, loaded, in_force);
        }
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

fn show(context: &Context, loaded: Loaded, in_force: Vec<ConfigValue>) {
    let daemon = otherwise(&loaded, in_force);
    let values = loaded.values.into_iter().map(|value| ShownValue {
        key: value.key,
        value: value.value,
        origin: value.origin.to_string(),
    });
    let shown = Shown { config: values.collect(), daemon };
    context.output.show(&shown, page);
}

/// The values in force that are others than those which were loaded here.
fn otherwise(loaded: &Loaded, in_force: Vec<ConfigValue>) -> Vec<ConfigValue> {
    let is_same = |it: &ConfigValue| {
        loaded.values.iter().any(|own| own.key == it.key && own.value.to_string() == it.value)
    };
    in_force.into_iter().filter(|it| !is_same(it)).collect()
}

fn page(Shown { config, daemon }: &Shown) -> String {
    let head = ["KEY", "VALUE", "FROM"];
    let rows = config.iter().map(|it| [it.key.to_owned(), it.value.to_string(), it.origin.clone()]);
    let rows = table(head, rows);
    if daemon.is_empty() {
        return rows;
    }
    let others = daemon.iter().map(|it| [it.key.clone(), it.value.clone(), it.origin.clone()]);
    let why = "This is by the files and the environment of this command. The daemon goes by other values:";
    paragraphs([rows, format!("{why}\n{}", table(head, others))])
}

fn told(reloaded: &Reloaded) -> String {
    let Reloaded { policy, changed, waiting, overridden, warnings, .. } = reloaded;
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
    if !overridden.is_empty() {
        let keys = quoted(overridden);
        lines.push(format!("{keys} goes by the daemon's environment, whatever the file says"));
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
            overridden: waiting.iter().map(|_| "log.level".to_owned()).collect(),
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
            "`log.level` goes by the daemon's environment, whatever the file says",
            "warning: nobody can approve; give out a token",
        ];
        assert_eq!(much, expected.join("\n"));
    }
}
