//! The walk: pages of the manual whose commands are run, and whose output must be what the program prints.
//!
//! A page is Markdown. In its fenced blocks of the kind `console`, a line that begins with `$ ` is a command, and what
//! follows is its output. All commands of a page are run in one terminal of 80 columns, from an empty home directory.
//! `cargo xtask walk` rewrites the output of the pages.

mod normalize;
mod page;
mod terminal;
mod translate;

use std::fs;
use std::path::Path;

use page::{Page, Part, Step};
use terminal::Terminal;
use translate::Translation;

/// Set by `cargo xtask walk`: pages are rewritten instead of compared.
const REWRITE: &str = "MIDWATCH_WALK_REWRITE";

/// What the home directory has before the first command of a page.
const PREPARED: &[(&str, &str)] = &[
    ("docs/howto/cron.md", include_str!("prepare/cron.sh")),
    ("docs/import.md", include_str!("prepare/import.sh")),
];

#[test]
fn readme() {
    check("README.md");
}

#[test]
fn guide() {
    check("docs/guide.md");
}

#[test]
fn cron() {
    check("docs/howto/cron.md");
}

#[test]
fn imports() {
    check("docs/import.md");
}

#[test]
fn approvals() {
    check("docs/howto/approvals.md");
}

#[test]
fn strict_prod() {
    check("docs/howto/strict-prod.md");
}

#[test]
fn notices() {
    check("docs/howto/notices.md");
}

#[test]
fn backup() {
    check("docs/howto/backup.md");
}

#[test]
fn postgresql() {
    check("docs/howto/postgresql.md");
}

/// Walks a page and compares it with what the program prints; rewrites it if that was asked for.
fn check(path: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
    let page = Page::parse(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(page.to_string(), text, "{path} is not parsed without loss");
    let prepared = PREPARED.iter().find(|(name, _)| *name == path).map_or("", |(_, script)| script);
    let mut walk = Walk::new(page.clone(), prepared);
    // Schedules of the pages fire at full quarters. A walk that one of them interrupted is not what the page describes.
    if !walk.differences.is_empty() && walk.crossed_a_quarter {
        walk = Walk::new(page, prepared);
    }
    if walk.differences.is_empty() {
        return;
    }
    if rewrites() {
        fs::write(&file, walk.page.to_string()).unwrap();
        return;
    }
    panic!(
        "{path} is not what the program prints; `cargo xtask walk` rewrites it\n\n{}",
        walk.differences.join("\n")
    );
}

#[expect(clippy::disallowed_methods, reason = "`cargo xtask walk` asks for it this way")]
fn rewrites() -> bool {
    std::env::var_os(REWRITE).is_some()
}

/// A page after its commands were run.
struct Walk {
    /// With the output of this walk.
    page: Page,
    /// For each command whose output differs: what the page has, and what the program printed.
    differences: Vec<String>,
    crossed_a_quarter: bool,
}

impl Walk {
    fn new(mut page: Page, prepared: &str) -> Walk {
        let started = terminal::quarter_hour();
        let mut terminal = Terminal::new();
        assert_eq!(terminal.run(prepared), "", "the home directory is prepared");
        let mut translation = Translation::default();
        let mut differences = Vec::new();
        for part in &mut page.parts {
            match part {
                Part::Prose(_) => (),
                Part::Wait { kind, count } => terminal.wait_for_events(kind, *count),
                Part::Hidden(command) => drop(terminal.run(command)),
                Part::Session(steps) => {
                    for step in steps {
                        differences.extend(take(step, &mut terminal, &mut translation));
                    }
                }
            }
        }
        let crossed_a_quarter = started != terminal::quarter_hour();
        Walk { page, differences, crossed_a_quarter }
    }
}

/// Runs one command and puts what was run and printed into the step. Returns the difference, if there is one.
fn take(step: &mut Step, terminal: &mut Terminal, translation: &mut Translation) -> Option<String> {
    let command = translation.command(&step.command);
    let printed = terminal.run(&command);
    translation.learn(&step.output, &printed);
    let output = terminal.shown(&printed);
    let differs = normalize::words(&step.output) != normalize::words(&output);
    let difference = differs.then(|| {
        let (expected, words) = (normalize::text(&step.output), normalize::text(&output));
        format!("$ {command}\n--- page\n{expected}\n--- program\n{words}\n--- exactly\n{output}")
    });
    *step = Step { command: terminal.shown(&command), output };
    difference
}
