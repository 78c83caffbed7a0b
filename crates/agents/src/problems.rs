//! Why a prompt to an agent would fail now, as far as this machine shows it: its program, directory, script, variables and
//! secret. Sends nothing and starts nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kernel::agent::Agent;
use kernel::backend::{Backend, BackendKind};
use kernel::program::Program;

use crate::backends::supports;
use crate::command::home;
use crate::environment::EnvironmentOf;
use crate::fingerprint::{PATH_DEFAULT, find};
use crate::script;
use crate::secrets::Secrets;

/// The backends that can be prompted, for people.
pub fn supported_backends() -> String {
    let kinds = BackendKind::ALL.into_iter().filter(|kind| supports(*kind));
    kinds.map(BackendKind::name).collect::<Vec<_>>().join(", ")
}

/// Looks at files, so it may block.
pub(crate) fn find_problems(
    agent: &Agent,
    environment: &BTreeMap<String, String>,
    of: EnvironmentOf,
    secrets: &dyn Secrets,
) -> Vec<String> {
    let secret = || {
        let unreadable = agent.credential.as_ref().and_then(|it| secrets.read(it).err());
        unreadable.map(|it| it.to_string()).into_iter().collect()
    };
    match &agent.backend {
        Backend::Builtin { script: None } => Vec::new(),
        Backend::Builtin { script: Some(path) } => {
            let problem = script::read(path).err().map(|what| script::describe(path, &what));
            problem.into_iter().collect()
        }
        Backend::Command(program) => {
            let variables = program.env.iter().map(|name| name.as_str());
            let missing = variables.filter(|name| !environment.contains_key(*name));
            let missing = missing.map(|name| of.lacks_variable(name));
            program_problem(program, environment, of).into_iter().chain(missing).collect()
        }
        Backend::Letta(_) | Backend::Webhook(_) => secret(),
        Backend::Openai { .. } | Backend::Anthropic { .. } | Backend::Mcp(_) => {
            vec![unsupported(agent.backend.kind())]
        }
    }
}

pub(crate) fn unsupported(kind: BackendKind) -> String {
    format!("this version cannot prompt an agent with backend `{kind}`")
}

/// Why a program cannot be started: its directory, or itself.
pub(crate) fn program_problem(
    program: &Program,
    environment: &BTreeMap<String, String>,
    of: EnvironmentOf,
) -> Option<String> {
    let directory = program.cwd.as_ref().map(|path| Path::new(path.as_str()));
    let directory = directory.unwrap_or_else(|| home(environment));
    directory_problem(directory).or_else(|| {
        let word = program.argv.first().map_or("", String::as_str);
        match find(word, directory, environment) {
            Some(_) => None,
            None if word.contains('/') => Some(file_problem(&directory.join(word))),
            None => Some(not_in_path(word, environment, of)),
        }
    })
}

/// The PATH of the daemon is shown, because it may differ from that of the reader's shell.
fn not_in_path(word: &str, environment: &BTreeMap<String, String>, of: EnvironmentOf) -> String {
    let path = environment.get("PATH").map_or(PATH_DEFAULT, String::as_str);
    let problem = format!("{of} finds no program `{word}` in its PATH");
    match of {
        EnvironmentOf::Daemon { .. } => format!("{problem} ({path})"),
        EnvironmentOf::Command => problem,
    }
}

fn directory_problem(path: &Path) -> Option<String> {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some(format!("`{shown}` is not a directory")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some(format!("the directory `{shown}` does not exist"))
        }
        Err(error) => Some(format!("the directory `{shown}` cannot be used: {error}")),
    }
}

/// Why the file cannot be executed.
fn file_problem(path: &Path) -> String {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => format!("`{shown}` is a directory, not a program"),
        Ok(_) => format!("`{shown}` is not executable"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("the program `{shown}` does not exist")
        }
        Err(error) => format!("the program `{shown}` cannot be used: {error}"),
    }
}
