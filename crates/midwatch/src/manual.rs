//! The pages of the manual that come from definitions: commands, error codes and tools.

use std::fmt::Write;

use api::Code;
use mcp::{Effect, Toolset};
use runtime::capability::{self, Capability};
use serde_json::{Value, json};

use crate::cli;

/// `docs/commands.md`
pub fn commands_page() -> String {
    let mut page = String::from(
        "# Commands\n\nGenerated from the definitions that the program parses its arguments with.\n",
    );
    let mut definition = cli::definition().term_width(100);
    definition.build();
    describe(&definition, &mut page);
    page
}

fn describe(command: &clap::Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = command.clone().render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    // Writing to a string does not fail.
    let _ = write!(page, "\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim());
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        describe(inner, page);
    }
}

/// `docs/errors.md`
pub fn errors_page() -> String {
    let mut page = String::from(
        "# Error codes\n\nGenerated. Every error has a stable code, one sentence and, where it helps, \
         a hint; with `--json`\nit is `{\"error\":{\"code\",\"message\",\"hint\"}}`. The exit code of \
         a command follows from the code.\n\n| code | exit | meaning |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        let _ = writeln!(page, "| `{}` | {} | {} |", code.name(), code.exit_code(), code.meaning());
    }
    page
}

/// `docs/mcp-tools.json`: the tools as clients see them, with the group of each and the command that does the
/// same.
pub fn tools_manifest() -> String {
    let tools: Vec<Value> = mcp::tools().map(manifest).collect();
    let mut text = serde_json::to_string_pretty(&json!({ "tools": tools })).unwrap_or_default();
    text.push('\n');
    text
}

fn manifest(tool: &mcp::Tool) -> Value {
    let mut described = serde_json::to_value(tool.described()).unwrap_or_default();
    if let Value::Object(described) = &mut described {
        described.insert("toolset".to_owned(), tool.toolset.name().into());
        described.insert("command".to_owned(), format!("midwatch {}", tool.twin).into());
    }
    described
}

/// `docs/mcp-tools.md`
pub fn tools_page() -> String {
    let mut page = String::from(
        "# Tools of the MCP server\n\nGenerated from the table that the server lists and calls its tools \
         by; `mcp-tools.json` has it for programs,\nwith the schemas. How the server is used is in \
         `mcp.md`.\n",
    );
    for toolset in Toolset::ALL {
        let default =
            if toolset.is_default() { "on unless others are chosen" } else { "off unless chosen" };
        let (name, meaning) = (toolset.name(), toolset.meaning());
        let _ = write!(page, "\n## {name}\n\n{meaning} It is {default}.\n\n");
        let _ = writeln!(page, "| tool | what it does | effect | the same as |\n|---|---|---|---|");
        for tool in mcp::tools().filter(|tool| tool.toolset == *toolset) {
            let effect = match tool.effect {
                Effect::Read => "reads",
                Effect::Write if tool.idempotent => "changes",
                Effect::Write => "changes each time",
                Effect::Destroy => "takes away",
            };
            let mcp::Tool { name, summary, twin, .. } = tool;
            let _ = writeln!(page, "| `{name}` | {summary} | {effect} | `midwatch {twin}` |");
        }
    }
    page
}

/// `docs/classes.md`
pub fn classes_page() -> String {
    let mut page = String::from(
        "# Classes of what can be done\n\nGenerated from the closed table that the standing orders go by. \
         A rule names classes, a family such as\n`net.*`, or `*`; a class that is not here counts as tier 2. \
         What the tiers mean is in `safety.md`.\n\n| class | tier | what it is |\n|---|---|---|\n",
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

    /// A stale page is written again, and then it is fresh.
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

    /// Every tool can be done without an agent too.
    #[test]
    fn every_tool_has_a_command_that_does_the_same() {
        let page = commands_page();
        for tool in mcp::tools() {
            let command = tool.twin.split(" --").next().unwrap_or_default();
            assert!(page.contains(&format!("## midwatch {command}\n")), "{tool:?}");
        }
    }

    #[test]
    fn errors_page_is_fresh() {
        check("errors.md", &errors_page());
    }
}
