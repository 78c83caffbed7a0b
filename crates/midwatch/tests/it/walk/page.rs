//! A page of the manual as parts: prose that stays as it is, and sessions whose commands are run.
//!
//! Two comments, which readers of the page do not see, direct the walk. Each is a line of its own:
//! `<!-- walk: wait run.ended 2 -->` waits until the ledger has two such entries, and
//! `<!-- walk: run COMMAND -->` runs a command whose output does not matter.

use std::fmt::{self, Display};

const FENCE: &str = "```";
const SESSION: &str = "```console";
const PROMPT: &str = "$ ";
const COMMENT: (&str, &str) = ("<!-- walk: ", " -->");

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Lines that are not run.
    Prose(String),
    /// Waits for this many ledger entries of a kind.
    Wait {
        kind: String,
        count: usize,
    },
    /// A command that readers do not see.
    Hidden(String),
    Session(Vec<Step>),
}

/// A command and what it prints. Both may have several lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) command: String,
    pub(super) output: String,
}

impl Page {
    pub(super) fn parse(text: &str) -> Result<Page, String> {
        let mut parts = Vec::new();
        let mut lines = text.split_inclusive('\n');
        let mut is_fenced = false;
        while let Some(line) = lines.next() {
            let bare = line.trim_end();
            if bare == SESSION && !is_fenced {
                let session: Vec<&str> =
                    lines.by_ref().map(str::trim_end).take_while(|it| *it != FENCE).collect();
                parts.push(Part::Session(steps(&session)?));
                continue;
            }
            if bare.starts_with(FENCE) {
                is_fenced = !is_fenced;
            }
            match directive(bare).filter(|_| !is_fenced) {
                Some(directive) => parts.push(parse_directive(directive)?),
                None => match parts.last_mut() {
                    Some(Part::Prose(prose)) => prose.push_str(line),
                    _ => parts.push(Part::Prose(line.to_owned())),
                },
            }
        }
        Ok(Page { parts })
    }
}

fn directive(line: &str) -> Option<&str> {
    line.strip_prefix(COMMENT.0)?.strip_suffix(COMMENT.1)
}

fn parse_directive(text: &str) -> Result<Part, String> {
    match text.split_once(' ') {
        Some(("run", command)) => Ok(Part::Hidden(command.to_owned())),
        Some(("wait", event)) => {
            let (kind, count) = event.split_once(' ').unwrap_or((event, "1"));
            let count = count.parse().map_err(|_| format!("not a number: `{count}`"))?;
            Ok(Part::Wait { kind: kind.to_owned(), count })
        }
        _ => Err(format!("unknown directive: `{text}`")),
    }
}

fn steps(lines: &[&str]) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = lines.iter();
    while let Some(line) = lines.next() {
        if let Some(command) = line.strip_prefix(PROMPT) {
            let mut command = command.to_owned();
            // A backslash continues the command, and a here-document ends with its own word.
            let end = command.split_once("<<").map(|(_, word)| word.trim_matches('\'').to_owned());
            while command.ends_with('\\')
                || end.as_ref().is_some_and(|end| !command.ends_with(&format!("\n{end}")))
            {
                let more = lines.next().ok_or_else(|| format!("`{command}` has no end"))?;
                command.push_str(&format!("\n{more}"));
            }
            steps.push(Step { command, output: String::new() });
        } else {
            let step = steps.last_mut().ok_or("a session begins with a command")?;
            step.output.push_str(&format!("{line}\n"));
        }
    }
    Ok(steps)
}

impl Display for Page {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Prose(text) => out.write_str(text),
            Part::Wait { kind, count: 1 } => writeln!(out, "{}wait {kind}{}", COMMENT.0, COMMENT.1),
            Part::Wait { kind, count } => {
                writeln!(out, "{}wait {kind} {count}{}", COMMENT.0, COMMENT.1)
            }
            Part::Hidden(command) => writeln!(out, "{}run {command}{}", COMMENT.0, COMMENT.1),
            Part::Session(steps) => {
                writeln!(out, "{SESSION}")?;
                for Step { command, output } in steps {
                    write!(out, "{PROMPT}{command}\n{output}")?;
                }
                writeln!(out, "{FENCE}")
            }
        })
    }
}

#[test]
fn pages_are_parsed_into_commands_and_output() {
    let text = "# Title\n```console\n$ one \\\n  more\nout\n\n$ cat <<'END'\n$ not a command\nEND\n```\n\
                <!-- walk: wait run.ended 2 -->\n<!-- walk: run touch x -->\n```\n$ not run\n```\n";
    let page = Page::parse(text).unwrap();
    let step = |command: &str, output: &str| Step {
        command: command.to_owned(),
        output: output.to_owned(),
    };
    assert_eq!(
        page.parts,
        [
            Part::Prose("# Title\n".to_owned()),
            Part::Session(vec![
                step("one \\\n  more", "out\n\n"),
                step("cat <<'END'\n$ not a command\nEND", ""),
            ]),
            Part::Wait { kind: "run.ended".to_owned(), count: 2 },
            Part::Hidden("touch x".to_owned()),
            Part::Prose("```\n$ not run\n```\n".to_owned()),
        ]
    );
    assert_eq!(page.to_string(), text);
}

#[test]
fn a_page_that_cannot_be_walked_is_refused() {
    let check = |text: &str, expected: &str| {
        assert_eq!(Page::parse(text), Err(expected.to_owned()));
    };
    check("```console\nout\n```\n", "a session begins with a command");
    check("```console\n$ one \\\n```\n", "`one \\` has no end");
    check("<!-- walk: sleep 5 -->\n", "unknown directive: `sleep 5`");
    check("<!-- walk: wait run.ended twice -->\n", "not a number: `twice`");
}
