//! Which command a command line names, and errors of the parser.

use std::ffi::OsString;
use std::process::ExitCode;

use api::{Code, Error, nearest};
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::definition;
use crate::output::{Format, Output};

/// Commands of other programs, and what does the same here.
const OTHER_WORDS: [(&str, &str); 10] = [
    ("start", "up"),
    ("serve", "up"),
    ("daemon", "up"),
    ("shutdown", "stop"),
    ("kill", "stop"),
    ("logs", "timeline"),
    ("history", "timeline"),
    ("approve", "approval approve"),
    ("deny", "approval deny"),
    ("import", "schedule import"),
];
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

/// The parser's error as one line.
pub(in crate::cli) fn usage_error(error: &clap::Error, subcommands: &[String]) -> Error {
    let texts = |kind| context_texts(error, kind);
    match (error.kind(), texts(ContextKind::InvalidArg), texts(ContextKind::PriorArg)) {
        (ErrorKind::MissingRequiredArgument, missing, _) if !missing.is_empty() => {
            Error::new(Code::BadUsage, missing_arguments(&missing)).hint(see_help(subcommands))
        }
        (ErrorKind::ArgumentConflict, given, others) if !given.is_empty() && !others.is_empty() => {
            let names: Vec<String> =
                given.iter().chain(&others).map(|argument| quoted_name(argument)).collect();
            let what = format!("{} cannot be used together", names.join(" and "));
            Error::new(Code::BadUsage, what).hint(see_help(subcommands))
        }
        (ErrorKind::InvalidSubcommand, ..) => unknown_command(error, subcommands),
        (ErrorKind::ValueValidation, given, _) if !given.is_empty() => {
            invalid_value(error, &given.join(" "), subcommands)
        }
        _ => first_paragraph(error, subcommands),
    }
}

/// A value that an argument does not take, and what it takes.
fn invalid_value(error: &clap::Error, argument: &str, subcommands: &[String]) -> Error {
    let value = context_texts(error, ContextKind::InvalidValue).join(" ");
    let what = format!("invalid value `{value}` for {}", quoted_name(argument));
    let why = std::error::Error::source(error).map(|why| format!(": {why}")).unwrap_or_default();
    Error::new(Code::BadUsage, format!("{what}{why}")).hint(see_help(subcommands))
}

/// Any other error. Its text has paragraphs: the error, then perhaps a tip and the usage.
fn first_paragraph(error: &clap::Error, subcommands: &[String]) -> Error {
    let text = error.render().to_string();
    let on_one_line = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let paragraphs: Vec<String> = text.split("\n\n").map(on_one_line).collect();
    let after = |word: &str| paragraphs.iter().find_map(|it| it.strip_prefix(word));
    let hint = after("tip: ").map_or_else(|| see_help(subcommands), str::to_owned);
    Error::new(Code::BadUsage, after("error: ").unwrap_or(&text)).hint(hint)
}

/// What the parser knows about an error.
fn context_texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Names what is missing. Of a group, such as `<--cron <EXPRESSION>|--every <SPAN>>`, one is enough.
fn missing_arguments(missing: &[String]) -> String {
    let named: Vec<String> = missing
        .iter()
        .map(|argument| match group(argument).as_slice() {
            [] => quoted_name(argument),
            names => format!("one of {}", names.join(", ")),
        })
        .collect();
    match named.as_slice() {
        [one] => format!("{one} is missing"),
        several => format!("missing: {}", several.join("; ")),
    }
}

/// The flags of a group; empty for a single argument.
fn group(argument: &str) -> Vec<String> {
    let inner = argument.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    match inner.filter(|inner| inner.contains('|')) {
        Some(inner) => inner.split('|').map(quoted_name).collect(),
        None => Vec::new(),
    }
}

/// A flag without its value, or the name of another argument, in backticks.
fn quoted_name(argument: &str) -> String {
    let name = argument.split_once(' ').filter(|_| argument.starts_with("--"));
    format!("`{}`", name.map_or(argument, |(flag, _)| flag))
}

fn unknown_command(error: &clap::Error, subcommands: &[String]) -> Error {
    let path: String = subcommands.iter().map(|name| format!("{name} ")).collect();
    let typed = context_texts(error, ContextKind::InvalidSubcommand).join(" ");
    let definition = definition();
    let within = subcommands.iter().try_fold(&definition, |it, name| it.find_subcommand(name));
    let names: Vec<&str> =
        within.into_iter().flat_map(|it| it.get_subcommands()).map(|it| it.get_name()).collect();
    let other_word = OTHER_WORDS.iter().filter(|_| subcommands.is_empty());
    let meant = other_word.filter(|(word, _)| *word == typed).map(|(_, command)| *command).next();
    let meant = meant.or_else(|| nearest(&typed, names.into_iter()));
    let what = format!("there is no command `{path}{typed}`");
    Error::new(Code::BadUsage, what).hint(match meant {
        Some(meant) => format!("did you mean `midwatch {path}{meant}`?"),
        None => see_help(subcommands),
    })
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
    #[test]
    fn usage_errors_name_what_is_missing_and_what_was_meant() {
        for (line, message, hint) in [
            ("agent add x", "`--backend` is missing", "see `midwatch agent add --help`"),
            (
                "schedule add --name x",
                "missing: one of `--cron`, `--every`, `--daily`, `--at`, `--after`, `--event`, `--again`, \
                 `--file`; one of `--agent`, `--tool`, `--file`",
                "see `midwatch schedule add --help`",
            ),
            (
                "schedule add --name x --every 1h --daily 09:00 --agent a",
                "`--every` and `--daily` cannot be used together",
                "see `midwatch schedule add --help`",
            ),
            (
                "ledger tail --limit many",
                "invalid value `many` for `--limit`: write a whole number from 1 to 1000",
                "see `midwatch ledger tail --help`",
            ),
            ("start", "there is no command `start`", "did you mean `midwatch up`?"),
            ("stopp", "there is no command `stopp`", "did you mean `midwatch stop`?"),
            ("agnet list", "there is no command `agnet`", "did you mean `midwatch agent`?"),
            ("run strat", "there is no command `run strat`", "did you mean `midwatch run start`?"),
            ("run logs", "there is no command `run logs`", "see `midwatch run --help`"),
            ("frobnicate", "there is no command `frobnicate`", "see `midwatch --help`"),
        ] {
            let arguments: Vec<OsString> =
                std::iter::once("midwatch").chain(line.split(' ')).map(OsString::from).collect();
            let error = definition().try_get_matches_from(&arguments).unwrap_err();
            let found = usage_error(&error, &subcommands(&arguments));
            assert_eq!(
                (found.message.as_str(), found.hint.as_deref()),
                (message, Some(hint)),
                "{line}"
            );
        }
    }
}
