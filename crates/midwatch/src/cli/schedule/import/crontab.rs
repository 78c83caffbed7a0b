//! A crontab, line by line: settings, jobs, and what is neither. Pure. What a line means for a
//! schedule is not decided here; only what has no command, or more fields than cron knows, is
//! refused here, because it would be read as something else.

use serde::Serialize;

/// Whether lines have a column for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    User,
    System,
}

/// A line that says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub number: usize,
    pub text: &'a str,
    pub said: Said<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    Setting { name: &'a str, value: &'a str },
    Job(Job<'a>),
    Wrong(Refusal),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job<'a> {
    /// Five fields with a space between them, or an alias such as `@daily`.
    pub when: String,
    /// With [`Layout::System`] only.
    pub user: Option<&'a str>,
    /// Never empty. Its percent signs are as in the file.
    pub command: &'a str,
    /// What the line directly above says, if that is a comment.
    pub comment: Option<&'a str>,
}

/// Why a line is not carried over, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Refusal {
    pub reason: String,
    pub hint: String,
}

impl Refusal {
    pub(super) fn new(reason: impl Into<String>, hint: impl Into<String>) -> Refusal {
        Refusal { reason: reason.into(), hint: hint.into() }
    }
}

pub(super) fn parse(text: &str, layout: Layout) -> Vec<Line<'_>> {
    // Some editors begin a file with a mark that is not seen.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = Vec::new();
    let mut above = None;
    for (number, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        let comment = text.strip_prefix('#');
        if comment.is_none() && !text.is_empty() {
            lines.push(Line { number, text, said: said(text, layout, above) });
        }
        above = comment;
    }
    lines
}

fn said<'a>(text: &'a str, layout: Layout, comment: Option<&'a str>) -> Said<'a> {
    if let Some((name, value)) = setting(text) {
        return Said::Setting { name, value };
    }
    match job(text, layout, comment) {
        Ok(job) => Said::Job(job),
        Err(refusal) => Said::Wrong(refusal),
    }
}

/// Both sides of the equals sign may be quoted, with spaces around.
fn setting(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let name = unquoted(name.trim_end());
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (name, unquoted(value.trim_start())))
}

fn unquoted(text: &str) -> &str {
    let within = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(text)
}

fn job<'a>(text: &'a str, layout: Layout, comment: Option<&'a str>) -> Result<Job<'a>, Refusal> {
    let (when, rest) = fields(text);
    let (first, after_first) = word(rest);
    if matches!(first, "*" | "?") || first.starts_with("*/") {
        return Err(Refusal::new(
            format!("the command would begin with `{first}`, so this seems to have six fields"),
            "a crontab has no seconds; `midwatch schedule add --cron` takes them",
        ));
    }
    let (user, command) = match layout {
        Layout::User if first == "root" => {
            return Err(Refusal::new(
                "the command would begin with `root`, as lines of the system's crontab do",
                "give `--system` for a file that has a column for the user",
            ));
        }
        Layout::User => (None, rest),
        Layout::System => (Some(first), after_first),
    };
    if command.is_empty() {
        let column = if layout == Layout::System { ", a user" } else { "" };
        let form = format!("minute, hour, day-of-month, month, day-of-week{column} and a command");
        return Err(Refusal::new("there is no command in it", format!("a line is {form}")));
    }
    Ok(Job { when, user, command, comment })
}

/// When, and what follows it.
fn fields(text: &str) -> (String, &str) {
    if text.starts_with('@') {
        return match word(text) {
            // The one alias of FreeBSD's that others do not know.
            ("@every_minute", rest) => ("* * * * *".to_owned(), rest),
            (alias, rest) => (alias.to_owned(), rest),
        };
    }
    let mut rest = text;
    let fields = [(); 5].map(|()| {
        let (field, after) = word(rest);
        rest = after;
        field
    });
    (fields.join(" "), rest)
}

/// The first word, and what follows it.
pub(super) fn word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line as its number and its parts, with a bar between them.
    fn check(layout: Layout, text: &str, expected: &[&str]) {
        let found = parse(text, layout).into_iter().map(|line| match line.said {
            Said::Setting { name, value } => format!("{} {name}|{value}", line.number),
            Said::Job(Job { when, user, command, comment }) => {
                let user = user.map_or_else(String::new, |user| format!("|{user}"));
                let comment = comment.map_or_else(String::new, |comment| format!("|{comment}"));
                format!("{} {when}{user}|{command}{comment}", line.number)
            }
            Said::Wrong(refusal) => format!("{} {}", line.number, refusal.reason),
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{text:?}");
    }

    #[test]
    fn lines_of_a_user() {
        for (text, expected) in [
            ("", &[][..]),
            ("\n  \n\t\n# nothing\n", &[]),
            ("0 3 * * * backup", &["1 0 3 * * *|backup"]),
            ("\u{feff}0 3 * * * backup\r\n", &["1 0 3 * * *|backup"]),
            ("  */5\t*  * jan MON-FRI\ta  b ", &["1 */5 * * jan MON-FRI|a  b"]),
            ("@daily backup --all", &["1 @daily|backup --all"]),
            ("@reboot start", &["1 @reboot|start"]),
            ("0 3 * * * A=b run", &["1 0 3 * * *|A=b run"]),
            ("@hourly A=b run", &["1 @hourly|A=b run"]),
            ("0 3 * * * date +\\%F % in", &["1 0 3 * * *|date +\\%F % in"]),
            ("0 3 * * * run # now", &["1 0 3 * * *|run # now"]),
            ("0 3 * * * größe ✓", &["1 0 3 * * *|größe ✓"]),
        ] {
            check(Layout::User, text, expected);
        }
    }

    #[test]
    fn a_comment_belongs_to_the_line_below_it() {
        for (text, expected) in [
            ("# one\n0 3 * * * a", &["2 0 3 * * *|a| one"][..]),
            ("# one\n#two\n0 3 * * * a\n0 4 * * * b", &["3 0 3 * * *|a|two", "4 0 4 * * *|b"]),
            ("# one\n\n0 3 * * * a", &["3 0 3 * * *|a"]),
            ("# one\nA=b\n0 3 * * * a", &["2 A|b", "3 0 3 * * *|a"]),
        ] {
            check(Layout::User, text, expected);
        }
    }

    #[test]
    fn settings() {
        for (text, expected) in [
            ("PATH=/bin:/usr/bin", &["1 PATH|/bin:/usr/bin"][..]),
            ("MAILTO=", &["1 MAILTO|"]),
            ("MAILTO=\"\"", &["1 MAILTO|"]),
            ("  CRON_TZ = 'Europe/Berlin' ", &["1 CRON_TZ|Europe/Berlin"]),
            ("\"A_1\"=\"x = y\"", &["1 A_1|x = y"]),
            ("A='", &["1 A|'"]),
            ("1A=b", &["1 there is no command in it"]),
            ("=b", &["1 there is no command in it"]),
        ] {
            check(Layout::User, text, expected);
        }
    }

    #[test]
    fn lines_of_the_system() {
        for (text, expected) in [
            ("17 * * * * root cd / && run", &["1 17 * * * *|root|cd / && run"][..]),
            ("@daily\twww-data\trun it", &["1 @daily|www-data|run it"]),
            ("17 * * * * root", &["1 there is no command in it"]),
            ("SHELL=/bin/sh", &["1 SHELL|/bin/sh"]),
        ] {
            check(Layout::System, text, expected);
        }
    }

    #[test]
    fn what_would_be_read_as_something_else_is_refused() {
        let six = "1 the command would begin with `*`, so this seems to have six fields";
        let root = "1 the command would begin with `root`, as lines of the system's crontab do";
        for (text, expected) in [
            ("0 3 * *", "1 there is no command in it"),
            ("0 3 * * *", "1 there is no command in it"),
            ("@daily", "1 there is no command in it"),
            ("hello", "1 there is no command in it"),
            ("0 0 3 * * * run", six),
            ("0 0 3 ? * * run", six),
            ("17 * * * * root run", root),
        ] {
            check(Layout::User, text, &[expected]);
        }
        check(Layout::System, "0 0 3 * * * root run", &[six]);
    }
}
