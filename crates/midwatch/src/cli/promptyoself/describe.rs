//! The document of `--describe`: the definition of the commands, in the format of plugin hosts.

use clap::{Arg, Command};
use serde_json::{Value, json};

use super::NAME;
use crate::context::VERSION;

const CONTRACT_VERSION: &str = "1.0";
/// Parameters that are whole numbers. The command line takes them as text, for better error messages.
const INTEGERS: [&str; 3] = ["id", "interval", "max_repetitions"];
/// Required parameters. The commands check them, with messages that clients know.
const REQUIRED: [(&str, &str); 4] =
    [("register", "agent_id"), ("register", "prompt"), ("cancel", "id"), ("upload", "source_code")];

pub(super) fn document() -> Value {
    let definition = crate::cli::definition();
    let plugin = definition.find_subcommand(NAME);
    let about = plugin.map(about).unwrap_or_default();
    let commands: Vec<Value> =
        plugin.into_iter().flat_map(Command::get_subcommands).map(command).collect();
    json!({
        "contract_version": CONTRACT_VERSION,
        "plugin": { "name": NAME, "version": VERSION, "description": about },
        "commands": commands,
    })
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn command(command: &Command) -> Value {
    let arguments = command.get_arguments().filter(|argument| !argument.is_global_set());
    let parameters: Vec<Value> =
        arguments.filter_map(|argument| parameter(command.get_name(), argument)).collect();
    json!({ "name": command.get_name(), "description": about(command), "parameters": parameters })
}

/// The name has underscores, which the host turns into dashes.
fn parameter(command: &str, argument: &Arg) -> Option<Value> {
    let name = argument.get_long()?.replace('-', "_");
    if name == "help" {
        return None;
    }
    let description = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let required = REQUIRED.contains(&(command, name.as_str()));
    let is_flag = argument.get_num_args().is_some_and(|values| values.min_values() == 0);
    Some(match is_flag {
        true => json!({
            "name": name, "type": "boolean", "description": description, "required": false,
            "arg_style": "flag", "default": false,
        }),
        false => {
            let kind = if INTEGERS.contains(&name.as_str()) { "integer" } else { "string" };
            json!({ "name": name, "type": kind, "description": description, "required": required })
        }
    })
}
