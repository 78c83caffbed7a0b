//! Which command a command line names, and errors of the parser.

use std::ffi::OsString;
use std::process::ExitCode;

use api::{Code, Error};
use clap::error::ErrorKind;

use crate::cli::definition;
use crate::output::{Format, Output};

/// Common flags that are followed by a value.
const FLAGS_WITH_VALUE: [&str; 3] = ["--data", "--config", "--store"];

/// The subcommands that `arguments` name, such as `["schedule", "add"]`. Works on invalid command
/// lines, too.
pub(in crate::cli) fn subcommands(arguments: &[OsString]) -> Vec<String> {
    let definition = definition();
    let (mut command, mut found) = (&definition, Vec::new());
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        if FLAGS_WITH_VALUE.contains(&word) {
            words.next();
        } else if !word.starts_with('-') {
            let Some(subcommand) = command.find_subcommand(word) else { break };
            found.push(subcommand.get_name().to_owned());
            command = subcommand;
        }
    }
    found
}

/// Prints what the parser returned instead of a command: help, the version, or an error.
pub(in crate::cli) fn report(
    error: &clap::Error,
    subcommands: &[String],
    output: &Output,
) -> ExitCode {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    let usage = Code::BadUsage.exit_code();
    let failure = match (error.kind(), output.format) {
        (DisplayHelp | DisplayVersion, _) => return print(error, 0),
        (DisplayHelpOnMissingArgumentOrSubcommand, Format::Human) => return print(error, usage),
        (DisplayHelpOnMissingArgumentOrSubcommand, Format::Json) => {
            Error::new(Code::BadUsage, "a command is missing").hint(see_help(subcommands))
        }
        _ => usage_error(error, subcommands),
    };
    output.fail(&failure);
    ExitCode::from(usage)
}

fn print(error: &clap::Error, code: u8) -> ExitCode {
    match error.print() {
        // A reader that has closed the pipe has what it wanted.
        Err(failed) if failed.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Ok(()) | Err(_) => ExitCode::from(code),
    }
}

/// The parser's error as one line. Its text has paragraphs: the error, then perhaps a tip and the usage.
pub(in crate::cli) fn usage_error(error: &clap::Error, subcommands: &[String]) -> Error {
    let text = error.render().to_string();
    let on_one_line = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let paragraphs: Vec<String> = text.split("\n\n").map(on_one_line).collect();
    let after = |word: &str| paragraphs.iter().find_map(|it| it.strip_prefix(word));
    let hint = after("tip: ").map_or_else(|| see_help(subcommands), str::to_owned);
    Error::new(Code::BadUsage, after("error: ").unwrap_or(&text)).hint(hint)
}

fn see_help(subcommands: &[String]) -> String {
    let path: String = subcommands.iter().map(|name| format!(" {name}")).collect();
    format!("see `midwatch{path} --help`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_are_found_between_flags_and_values() {
        for (line, expected) in [
            ("midwatch", &[][..]),
            ("midwatch status --json", &["status"]),
            ("midwatch --data run --json schedule add --name status", &["schedule", "add"]),
            ("midwatch event tell mail/new", &["event", "publish"]),
            ("midwatch promptyoself frobnicate", &["promptyoself"]),
            ("midwatch frobnicate promptyoself", &[]),
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(subcommands(&arguments), expected, "{line}");
        }
    }
}
