//! Names of schedules imported from a crontab: the comment above the line, or else its command.

use std::collections::{HashMap, HashSet};

use calendar::Cron;
use kernel::schedule::NAME_CHARS_MAX;

use super::crontab::split_word;

/// Shorter than a name may be, but enough to recognise a command.
const COMMAND_CHARS_MAX: usize = 60;
/// Characters that decorate comments.
const DECORATIONS: [char; 8] = ['#', '-', '=', '~', '*', '_', '|', ' '];
/// The first two words of a comment that names the columns.
const MINUTE_HEADINGS: [&str; 6] = ["m", "mm", "min", "mins", "minute", "minutes"];
const HOUR_HEADINGS: [&str; 5] = ["h", "hh", "hr", "hour", "hours"];

/// Unique names; the same lines always get the same names.
#[derive(Debug, Default)]
pub(super) struct Names {
    used: HashSet<String>,
    /// The last number used for each name, so that many equal lines stay fast.
    numbers: HashMap<String, usize>,
}

impl Names {
    pub(super) fn name(&mut self, comment: Option<&str>, command: &str) -> String {
        let base = comment.and_then(name_in_comment).unwrap_or_else(|| name_of_command(command));
        let count = self.numbers.entry(base.clone()).or_default();
        loop {
            *count += 1;
            let suffix = if *count == 1 { String::new() } else { format!(" ({count})") };
            let name = shortened(&base, NAME_CHARS_MAX - suffix.chars().count()) + &suffix;
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The name in a comment; `None` if it is a commented-out line, the heading of the columns, or written
/// by a program.
fn name_in_comment(comment: &str) -> Option<String> {
    let comment = normalize(comment);
    let text = comment.trim_matches(DECORATIONS).trim_end_matches(':');
    let uncommented = comment.trim_start_matches(['#', ' ']);
    let words: Vec<&str> = uncommented.split(' ').collect();
    let is_job = uncommented.starts_with('@')
        || words.get(..5).is_some_and(|fields| Cron::parse(&fields.join(" ")).is_ok());
    let (first, rest) = split_word(text);
    let [first, second] = [first, split_word(rest).0].map(str::to_ascii_lowercase);
    let is_heading =
        MINUTE_HEADINGS.contains(&first.as_str()) && HOUR_HEADINGS.contains(&second.as_str());
    let is_written_by_cron = text.starts_with("(Cron version") || text.starts_with("DO NOT EDIT");
    let is_decoration = !text.chars().any(char::is_alphanumeric);
    (!is_job && !is_heading && !is_written_by_cron && !is_decoration).then(|| text.to_owned())
}

/// The first words of a command.
fn name_of_command(command: &str) -> String {
    let command = normalize(command);
    let mut length = 0;
    let fits = |word: &&str| {
        length += word.chars().count() + 1;
        length <= COMMAND_CHARS_MAX + 1
    };
    let words: Vec<&str> = command.split(' ').take_while(fits).collect();
    match words.join(" ") {
        none if none.is_empty() => shortened(&command, COMMAND_CHARS_MAX),
        all if all == command => all,
        some => format!("{some} …"),
    }
}

/// On one line, with single spaces.
fn normalize(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn shortened(text: &str, chars_max: usize) -> String {
    match text.chars().count() <= chars_max {
        true => text.to_owned(),
        false => text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(comment: Option<&str>, command: &str, expected: &str) {
        let found = Names::default().name(comment, command);
        assert_eq!(found, expected, "{comment:?} {command}");
    }

    #[test]
    fn descriptive_comment_is_the_name() {
        for (comment, expected) in [
            (" backup of the database", "backup of the database"),
            ("## ---- Backups: ----", "Backups"),
            (" größe\tund\u{7} mehr (täglich)", "größe und mehr (täglich)"),
            (" 5 minutes past", "5 minutes past"),
            ("", "run it"),
            (" -----------", "run it"),
            (" |  |  |  |  |", "run it"),
            (" m h  dom mon dow   command", "run it"),
            ("minute\thour\tmday\tmonth\twday\twho\tcommand", "run it"),
            (" *  *  *  *  * user-name command to be executed", "run it"),
            ("# 0 3 * * 1-5 /old/job", "run it"),
            ("@daily /old/job", "run it"),
            (" (Cron version -- $Id: crontab.c,v 2.13)", "run it"),
        ] {
            check(Some(comment), "run it", expected);
        }
    }

    #[test]
    fn first_words_of_the_command_are_the_fallback() {
        check(None, "/usr/bin/backup\t--all", "/usr/bin/backup --all");
        let full = format!("{} {}", "x".repeat(29), "y".repeat(30));
        check(None, &full, &full);
        check(None, &format!("{full}y"), &format!("{} …", "x".repeat(29)));
        check(None, &format!("{full} z"), &format!("{full} …"));
        check(None, &"x".repeat(61), &format!("{}…", "x".repeat(59)));
    }

    #[test]
    fn names_are_unique_and_within_the_limit() {
        let mut names = Names::default();
        let mut name = |comment: &str| names.name(Some(comment), "run");
        assert_eq!(name("backup"), "backup");
        assert_eq!(name("backup (2)"), "backup (2)");
        assert_eq!(name("backup"), "backup (3)");
        let longest = "ä".repeat(NAME_CHARS_MAX);
        assert_eq!(name(&longest), longest);
        let cut = |length| "ä".repeat(length);
        assert_eq!(name(&format!("{longest}ä")), format!("{}…", cut(NAME_CHARS_MAX - 1)));
        assert_eq!(name(&longest), format!("{}… (2)", cut(NAME_CHARS_MAX - 5)));
    }
}
