//! The pages of the manual that come from definitions: commands and error codes.

use std::fmt::Write;

use api::Code;

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
    fn errors_page_is_fresh() {
        check("errors.md", &errors_page());
    }
}
