//! Transcripts of commands for snapshots, without the parts that differ from run to run.

use crate::support::world::{Outcome, World};

/// Commands and their output, as a terminal shows them.
pub(crate) struct Transcript<'w> {
    world: &'w World,
    text: String,
    normalize: fn(&World, &str) -> String,
}

impl<'w> Transcript<'w> {
    pub(crate) fn new(world: &'w World) -> Transcript<'w> {
        Transcript { world, text: String::new(), normalize }
    }

    /// For commands whose output is the same on every run.
    pub(crate) fn verbatim(world: &'w World) -> Transcript<'w> {
        Transcript { normalize: |_, text| text.to_owned(), ..Transcript::new(world) }
    }

    pub(crate) fn run(&mut self, arguments: &[&str]) -> &mut Self {
        let outcome = self.world.run(arguments);
        let command: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        self.add(&command.join(" "), &outcome)
    }

    /// The same command for people and for programs.
    pub(crate) fn both(&mut self, arguments: &[&str]) -> &mut Self {
        self.run(arguments).run(&[&["--json"], arguments].concat())
    }

    pub(crate) fn add(&mut self, command: &str, outcome: &Outcome) -> &mut Self {
        let mut text = format!("$ midwatch {command}\n{}", outcome.stdout);
        for line in outcome.stderr.lines() {
            text.push_str(&format!("stderr: {line}\n"));
        }
        if outcome.code != Some(0) {
            let code = outcome.code.map_or("none".to_owned(), |code| code.to_string());
            text.push_str(&format!("exit code: {code}\n"));
        }
        self.text.push_str(&format!("{}\n", (self.normalize)(self.world, &text)));
        self
    }

    /// Adds a line that describes the next commands.
    pub(crate) fn heading(&mut self, text: &str) -> &mut Self {
        self.text.push_str(&format!("--- {text}\n"));
        self
    }

    pub(crate) fn finish(&self) -> &str {
        &self.text
    }
}

/// Quotes a word as a shell needs it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{word}'"),
    }
}

/// Replaces paths, times, ids, keys, hashes and process ids with a placeholder in brackets.
pub(crate) fn normalize(world: &World, text: &str) -> String {
    let text = text.replace(&world.data().display().to_string(), "[DATA]");
    let text = text.replace(&world.root().display().to_string(), "[ROOT]");
    let text = text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    let text = text.replace(calendar::tzdata_version(), "[TZDATA]");
    let mut rest = text.as_str();
    let mut out = String::with_capacity(rest.len());
    while let Some(first) = rest.chars().next() {
        let local = local_time(&out, rest).map(|length| ("[WHEN]", length));
        let found = || PATTERNS.iter().find_map(|pattern| pattern.find(&out, rest));
        let (text, length) = match local.or_else(found) {
            Some(found) => found,
            None => (&rest[..first.len_utf8()], first.len_utf8()),
        };
        out.push_str(text);
        rest = &rest[length..];
    }
    out
}

/// The length of a local time with its distance from now, such as `18 Nov 03:00:00 (5m ago)`.
fn local_time(before: &str, rest: &str) -> Option<usize> {
    const MONTHS: &str = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";
    let (day, after) = rest.split_once(' ')?;
    let (month, after) = after.split_once(' ')?;
    // A year follows if it is not the present one.
    let year = pattern("", "", "dddd ").find("", after).map_or(0, |(_, length)| length);
    let time = &after[year..];
    let is_day = !day.is_empty() && day.len() <= 2 && day.chars().all(is_digit);
    let is_month = month.len() == 3 && MONTHS.contains(month);
    let is_new_word = !before.ends_with(is_digit);
    let clock = pattern("", "", "dd:dd:dd").find("", time)?.1;
    let length = day.len() + month.len() + 2 + year + clock;
    let distance = rest[length..].strip_prefix(" (").and_then(|text| text.split_once(')'));
    let distance = distance.map_or(0, |(text, _)| " (".len() + text.len() + ")".len());
    (is_day && is_month && is_new_word).then_some(length + distance)
}

/// A varying part of an output. In `shape`, `d` is a digit, `x` a hexadecimal digit, `b` a base64 character,
/// any other character itself; any number of characters that satisfy `more` follow.
struct Pattern {
    placeholder: &'static str,
    /// The text that must precede it.
    after: &'static str,
    shape: &'static str,
    more: fn(char) -> bool,
}

const fn pattern(placeholder: &'static str, after: &'static str, shape: &'static str) -> Pattern {
    Pattern { placeholder, after, shape, more: |_| false }
}

const PATTERNS: &[Pattern] = &[
    Pattern {
        more: |c| c.is_ascii_digit() || ".Z".contains(c),
        ..pattern("[TIME]", "", "dddd-dd-ddTdd:dd:dd")
    },
    pattern("[ID]", "", "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
    pattern("[HASH]", "", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    pattern("[HASH]…", "", "xxxxxxxxxxxx…"),
    Pattern { more: is_base64, ..pattern("+[KEY]", "[ID]", "+xxxxxxxx+") },
    Pattern { more: is_base64, ..pattern("[SIGNATURE]", "— midwatch/[ID] ", "") },
    pattern("[TREE ROOT]", "", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb="),
    pattern("[MICROSECONDS]", "", "dddddddddddddddd"),
    pattern("[MONTH]", "", "dddd-dd"),
    // Sizes depend on the page size of the disk and on when a file was last written.
    Pattern { more: is_size, ..pattern("[SIZE]", "\"database\": ", "d") },
    Pattern { more: is_size, ..pattern("[SIZE]", "\"logs\": ", "d") },
    Pattern { more: is_size, ..pattern("[SIZE]", "\"bytes_per_day\": ", "d") },
    Pattern { more: is_size, ..pattern("[SIZE]", "database ", "d") },
    Pattern { more: is_size, ..pattern("[SIZE]", "logs ", "d") },
    Pattern { more: is_size, ..pattern("[SIZE]", "grows by ", "d") },
    Pattern { more: is_digit, ..pattern("[PID]", "\"pid\": ", "d") },
    Pattern { more: is_digit, ..pattern("[PID]", "pid ", "d") },
    Pattern { more: is_digit, ..pattern("[PID]", "process ", "d") },
    Pattern { more: is_digit, ..pattern("[UID]", "uid:", "d") },
];

fn is_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+/=".contains(c)
}

fn is_size(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

impl Pattern {
    fn find(&self, before: &str, rest: &str) -> Option<(&'static str, usize)> {
        if !before.ends_with(self.after) {
            return None;
        }
        let mut found = rest.chars();
        for shape in self.shape.chars() {
            let found = found.next()?;
            let fits = match shape {
                'd' => found.is_ascii_digit(),
                'b' => is_base64(found),
                'x' => matches!(found, '0'..='9' | 'a'..='f'),
                other => found == other,
            };
            if !fits {
                return None;
            }
        }
        let more: usize = found.take_while(|c| (self.more)(*c)).map(char::len_utf8).sum();
        let length = self.shape.len() + more;
        (0 < length).then_some((self.placeholder, length))
    }
}
