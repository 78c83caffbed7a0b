//! What an imported schedule is called: by the comment above its line, or by its command.

use std::collections::{HashMap, HashSet};

use calendar::Cron;
use kernel::schedule::NAME_CHARS_MAX;

use super::crontab::word;

/// A command is told from others by less than a name may have.
const COMMAND_CHARS_MAX: usize = 60;
/// What comments are adorned with.
const ADORNMENTS: [char; 8] = ['#', '-', '=', '~', '*', '_', '|', ' '];
/// How the line above the first job begins that names the columns.
const MINUTES: [&str; 6] = ["m", "mm", "min", "mins", "minute", "minutes"];
const HOURS: [&str; 5] = ["h", "hh", "hr", "hour", "hours"];

/// Names that were given. No two are the same, and the same lines get the same names.
#[derive(Debug, Default)]
pub(super) struct Names {
    given: HashSet<String>,
    /// How often each was wanted, so that many lines that are alike take no longer.
    wanted: HashMap<String, usize>,
}

impl Names {
    pub(super) fn name(&mut self, comment: Option<&str>, command: &str) -> String {
        let base = comment.and_then(told).unwrap_or_else(|| beginning(command));
        let count = self.wanted.entry(base.clone()).or_default();
        loop {
            *count += 1;
            let suffix = if *count == 1 { String::new() } else { format!(" ({count})") };
            let name = shortened(&base, NAME_CHARS_MAX - suffix.chars().count()) + &suffix;
            if self.given.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// What a comment says about the line below, if it does: it may as well be a line that was taken
/// out, the heading of the columns, or what a program wrote there.
fn told(comment: &str) -> Option<String> {
    let comment = printable(comment);
    let text = comment.trim_matches(ADORNMENTS).trim_end_matches(':');
    let uncommented = comment.trim_start_matches(['#', ' ']);
    let words: Vec<&str> = uncommented.split(' ').collect();
    let is_job = uncommented.starts_with('@')
        || words.get(..5).is_some_and(|fields| Cron::parse(&fields.join(" ")).is_ok());
    let (first, rest) = word(text);
    let [first, second] = [first, word(rest).0].map(str::to_ascii_lowercase);
    let is_heading = MINUTES.contains(&first.as_str()) && HOURS.contains(&second.as_str());
    let is_of_cron = text.starts_with("(Cron version") || text.starts_with("DO NOT EDIT");
    let says_nothing = !text.chars().any(char::is_alphanumeric);
    (!is_job && !is_heading && !is_of_cron && !says_nothing).then(|| text.to_owned())
}

/// The first words of a command.
fn beginning(command: &str) -> String {
    let command = printable(command);
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

/// On one line, with one space where there is any.
fn printable(text: &str) -> String {
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
    fn a_comment_is_a_name_if_it_tells_about_the_line() {
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
    fn else_the_first_words_of_the_command_are_the_name() {
        check(None, "/usr/bin/backup\t--all", "/usr/bin/backup --all");
        let full = format!("{} {}", "x".repeat(29), "y".repeat(30));
        check(None, &full, &full);
        check(None, &format!("{full}y"), &format!("{} …", "x".repeat(29)));
        check(None, &format!("{full} z"), &format!("{full} …"));
        check(None, &"x".repeat(61), &format!("{}…", "x".repeat(59)));
    }

    #[test]
    fn names_are_unique_and_no_longer_than_a_name_may_be() {
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
