//! Pages of the manual that are generated from definitions: commands, error codes, tools and capabilities.

use std::fmt::Write;

use api::Code;
use mcp::{Effect, Toolset};
use runtime::capability::{self, Capability};
use serde_json::{Value, json};

use crate::cli;

/// `docs/commands.md`
pub fn commands_page() -> String {
    let mut page = String::from(
        "# Commands\n\nGenerated from the definition of the command line. Every command also takes the \
         common options of\n`midwatch`, which are listed only there, and `--help`.\n",
    );
    let mut definition = cli::definition().term_width(100);
    definition.build();
    write_command(&definition, &mut page, definition.clone());
    page
}

/// Writes the help of a command and of the commands below it. `shown` is the command without what the page has already.
fn write_command(command: &clap::Command, page: &mut String, mut shown: clap::Command) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = shown.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    // Writing to a string does not fail.
    let _ = write!(page, "\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim());
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        write_command(inner, page, without_common_options(inner));
    }
}

fn without_common_options(command: &clap::Command) -> clap::Command {
    command.clone().mut_args(|option| {
        let heading = option.get_help_heading();
        match heading == Some(cli::COMMON) || option.get_id() == "help" {
            true => option.hide(true),
            false => option,
        }
    })
}

/// `docs/errors.md`
pub fn errors_page() -> String {
    let mut page = String::from(
        "# Error codes\n\nGenerated. Every error has a stable code, a message and often a hint; with `--json` it \
         is\n`{\"error\":{\"code\",\"message\",\"hint\"}}`. The code determines the exit code of the \
         command,\nand the status over [HTTP](http.md).\n\n| code | exit | HTTP | meaning |\n|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let (exit, status) = (code.exit_code(), code.http_status());
        let _ = writeln!(page, "| `{}` | {exit} | {status} | {} |", code.name(), code.meaning());
    }
    page
}

/// `docs/mcp-tools.json`: the tools as clients see them, with the toolset and the equivalent command of each.
pub fn tools_manifest() -> String {
    let tools: Vec<Value> = mcp::tools().map(tool_manifest).collect();
    let mut text = serde_json::to_string_pretty(&json!({ "tools": tools })).unwrap_or_default();
    text.push('\n');
    text
}

fn tool_manifest(tool: &mcp::Tool) -> Value {
    let mut definition = serde_json::to_value(tool.definition()).unwrap_or_default();
    if let Value::Object(fields) = &mut definition {
        fields.insert("toolset".to_owned(), tool.toolset.name().into());
        fields.insert("command".to_owned(), format!("midwatch {}", tool.cli_command).into());
    }
    definition
}

/// `docs/mcp-tools.md`
pub fn tools_page() -> String {
    let mut page = String::from(
        "# Tools of the MCP server\n\nGenerated from the table of tools; `mcp-tools.json` has it with the \
         schemas, for programs. How to use the\nserver is described in `mcp.md`.\n",
    );
    for toolset in Toolset::ALL {
        let default = if toolset.is_default() { "on by default" } else { "off by default" };
        let (name, meaning) = (toolset.name(), toolset.description());
        let _ = write!(page, "\n## {name}\n\n{meaning} It is {default}.\n\n");
        let _ = writeln!(
            page,
            "| tool | description | effect | equivalent command |\n|---|---|---|---|"
        );
        for tool in mcp::tools().filter(|tool| tool.toolset == *toolset) {
            let effect = match tool.effect {
                Effect::Read => "reads",
                Effect::Write if tool.idempotent => "changes",
                Effect::Write => "changes on each call",
                Effect::Destroy => "removes",
            };
            let mcp::Tool { name, summary, cli_command, .. } = tool;
            let _ =
                writeln!(page, "| `{name}` | {summary} | {effect} | `midwatch {cli_command}` |");
        }
    }
    page
}

/// `docs/classes.md`
pub fn classes_page() -> String {
    let mut page = String::from(
        "# Capability classes\n\nGenerated from the closed table that the policy uses. A rule names classes, a \
         family such as `net.*`, or `*`; a\nclass that is not listed here counts as tier 2. The tiers are \
         explained in `safety.md`.\n\n| class | tier | description |\n|---|---|---|\n",
    );
    for Capability { name, tier, meaning } in capability::ALL {
        let _ = writeln!(page, "| `{name}` | {} | {meaning} |", tier.number());
    }
    page
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// Rewrites a stale page and fails.
    fn check(name: &str, page: &str) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        if fs::read_to_string(&path).unwrap_or_default() != page {
            fs::write(&path, page).unwrap();
            panic!("docs/{name} was stale and has been rewritten: commit it");
        }
    }

    #[test]
    fn commands_page_is_fresh() {
        check("commands.md", &commands_page());
    }

    #[test]
    fn common_options_are_listed_once() {
        let page = commands_page();
        for text in ["Common options:", "Print exact times in UTC", "--help\n"] {
            assert_eq!(page.matches(text).count(), 1, "{text}");
        }
    }

    #[test]
    fn tools_page_is_fresh() {
        check("mcp-tools.md", &tools_page());
    }

    #[test]
    fn tools_manifest_is_fresh() {
        check("mcp-tools.json", &tools_manifest());
    }

    #[test]
    fn classes_page_is_fresh() {
        check("classes.md", &classes_page());
    }

    #[test]
    fn every_tool_has_an_equivalent_command() {
        let page = commands_page();
        for tool in mcp::tools() {
            let command = tool.cli_command.split(" --").next().unwrap_or_default();
            assert!(page.contains(&format!("## midwatch {command}\n")), "{tool:?}");
        }
    }

    #[test]
    fn openapi_is_fresh() {
        check("openapi.json", &api::openapi::text());
    }

    #[test]
    fn errors_page_is_fresh() {
        check("errors.md", &errors_page());
    }
}
