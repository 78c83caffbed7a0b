//! Parses a crontab line by line: settings, jobs and invalid lines. Pure. A line without command, or with
//! more fields than cron has, is refused here, because it would be misread.

use compat::import::LeftOut;

/// The columns of a crontab: `System` has one for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    User,
    System,
}

/// A line that is neither empty nor a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub number: usize,
    pub text: &'a str,
    pub kind: LineKind<'a>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineKind<'a> {
    Setting { name: &'a str, value: &'a str },
    Job(Job<'a>),
    Invalid(LeftOut),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job<'a> {
    /// Five fields with a space between them, or an alias such as `@daily`.
    pub when: String,
    /// With [`Layout::System`] only.
    pub user: Option<&'a str>,
    /// Never empty. Its percent signs are as in the file.
    pub command: &'a str,
    /// The comment on the line directly above.
    pub comment: Option<&'a str>,
}

pub(super) fn parse_crontab(text: &str, layout: Layout) -> Vec<Line<'_>> {
    // Some editors start a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = Vec::new();
    let mut above = None;
    for (number, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        let comment = text.strip_prefix('#');
        if comment.is_none() && !text.is_empty() {
            lines.push(Line { number, text, kind: parse_line(text, layout, above) });
        }
        above = comment;
    }
    lines
}

fn parse_line<'a>(text: &'a str, layout: Layout, comment: Option<&'a str>) -> LineKind<'a> {
    if let Some((name, value)) = parse_setting(text) {
        return LineKind::Setting { name, value };
    }
    match parse_job(text, layout, comment) {
        Ok(job) => LineKind::Job(job),
        Err(refusal) => LineKind::Invalid(refusal),
    }
}

/// Both sides of the equals sign may be quoted and have spaces around them.
fn parse_setting(text: &str) -> Option<(&str, &str)> {
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

fn parse_job<'a>(
    text: &'a str,
    layout: Layout,
    comment: Option<&'a str>,
) -> Result<Job<'a>, LeftOut> {
    let (when, rest) = time_fields(text);
    let (first, after_first) = split_word(rest);
    if matches!(first, "*" | "?") || first.starts_with("*/") {
        return Err(LeftOut::new(
            format!("the command would start with `{first}`; the line seems to have six fields"),
            "a crontab has no seconds; use `midwatch schedule add --cron` for them",
        ));
    }
    let (user, command) = match layout {
        Layout::User if first == "root" => {
            return Err(LeftOut::new(
                "the command would start with `root`, as in a system crontab",
                "use `--system` for a file with a user column",
            ));
        }
        Layout::User => (None, rest),
        Layout::System => (Some(first), after_first),
    };
    if command.is_empty() {
        let column = if layout == Layout::System { ", a user" } else { "" };
        let form = format!("minute, hour, day-of-month, month, day-of-week{column} and a command");
        return Err(LeftOut::new("it has no command", format!("a line has {form}")));
    }
    Ok(Job { when, user, command, comment })
}

/// The time fields, and the rest of the line.
fn time_fields(text: &str) -> (String, &str) {
    if text.starts_with('@') {
        return match split_word(text) {
            // An alias that only FreeBSD has.
            ("@every_minute", rest) => ("* * * * *".to_owned(), rest),
            (alias, rest) => (alias.to_owned(), rest),
        };
    }
    let mut rest = text;
    let fields = [(); 5].map(|()| {
        let (field, after) = split_word(rest);
        rest = after;
        field
    });
    (fields.join(" "), rest)
}

/// The first word and the rest.
pub(super) fn split_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line as its number and its parts, separated by bars.
    fn check(layout: Layout, text: &str, expected: &[&str]) {
        let found = parse_crontab(text, layout).into_iter().map(|line| match line.kind {
            LineKind::Setting { name, value } => format!("{} {name}|{value}", line.number),
            LineKind::Job(Job { when, user, command, comment }) => {
                let user = user.map_or_else(String::new, |user| format!("|{user}"));
                let comment = comment.map_or_else(String::new, |comment| format!("|{comment}"));
                format!("{} {when}{user}|{command}{comment}", line.number)
            }
            LineKind::Invalid(refusal) => format!("{} {}", line.number, refusal.reason),
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{text:?}");
    }

    #[test]
    fn user_crontab_lines() {
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
    fn comment_belongs_to_the_line_below() {
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
    fn setting_lines() {
        for (text, expected) in [
            ("PATH=/bin:/usr/bin", &["1 PATH|/bin:/usr/bin"][..]),
            ("MAILTO=", &["1 MAILTO|"]),
            ("MAILTO=\"\"", &["1 MAILTO|"]),
            ("  CRON_TZ = 'Europe/Berlin' ", &["1 CRON_TZ|Europe/Berlin"]),
            ("\"A_1\"=\"x = y\"", &["1 A_1|x = y"]),
            ("A='", &["1 A|'"]),
            ("1A=b", &["1 it has no command"]),
            ("=b", &["1 it has no command"]),
        ] {
            check(Layout::User, text, expected);
        }
    }

    #[test]
    fn system_crontab_lines() {
        for (text, expected) in [
            ("17 * * * * root cd / && run", &["1 17 * * * *|root|cd / && run"][..]),
            ("@daily\twww-data\trun it", &["1 @daily|www-data|run it"]),
            ("17 * * * * root", &["1 it has no command"]),
            ("SHELL=/bin/sh", &["1 SHELL|/bin/sh"]),
        ] {
            check(Layout::System, text, expected);
        }
    }

    #[test]
    fn lines_that_would_be_misread_are_refused() {
        let six = "1 the command would start with `*`; the line seems to have six fields";
        let root = "1 the command would start with `root`, as in a system crontab";
        for (text, expected) in [
            ("0 3 * *", "1 it has no command"),
            ("0 3 * * *", "1 it has no command"),
            ("@daily", "1 it has no command"),
            ("hello", "1 it has no command"),
            ("0 0 3 * * * run", six),
            ("0 0 3 ? * * run", six),
            ("17 * * * * root run", root),
        ] {
            check(Layout::User, text, &[expected]);
        }
        check(Layout::System, "0 0 3 * * * root run", &[six]);
    }
}
