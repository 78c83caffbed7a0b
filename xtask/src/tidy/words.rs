//! Rules about words that must not be in the project: paths of one person's machine, and promises
//! that nobody tracks. The words are put together here, so that this file does not break its rules.

use crate::workspace::Workspace;

const HOMES: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!(r"\Us", r"ers\"),
];

const OPEN_ENDS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];

/// Endings of files in which an open end is a remark and not a sample of somebody's text.
const CODE: &[&str] = &[".css", ".js", ".py", ".rs", ".service", ".sh", ".sql", ".toml"];

pub(super) fn home_paths(workspace: &Workspace) -> Vec<String> {
    places(workspace, |_| true, |line| HOMES.iter().any(|home| is_home_path(line, home)))
}

pub(super) fn open_ends(workspace: &Workspace) -> Vec<String> {
    let code = |path: &str| CODE.iter().any(|ending| path.ends_with(ending));
    places(workspace, code, |line| OPEN_ENDS.iter().any(|word| is_open_end(line, word)))
}

/// Path, number and text of each line that breaks a rule.
fn places(
    workspace: &Workspace,
    covers: impl Fn(&str) -> bool,
    breaks: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut places = Vec::new();
    for (path, text) in workspace.files.iter().filter(|(path, _)| covers(path)) {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| breaks(line)) {
            places.push(format!("{path}:{}: {}", index + 1, line.trim()));
        }
    }
    places
}

/// Whether a line holds an absolute path below `home`: the name of a person or a file follows, and nothing
/// before it makes the path a part of another one.
fn is_home_path(line: &str, home: &str) -> bool {
    line.match_indices(home).any(|(at, _)| {
        let (before, rest) = line.split_at(at);
        let joined = before.ends_with(|it: char| it.is_alphanumeric() || "_-.~}/$".contains(it));
        let windows = before.ends_with(':') && home.starts_with('\\');
        let after = rest.get(home.len()..).unwrap_or("");
        let named = after.starts_with(|it: char| it.is_alphanumeric() || "_.".contains(it));
        named && (windows || !joined)
    })
}

/// Whether a line holds `word` as a word of its own, without the number of an issue behind it.
fn is_open_end(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let (before, rest) = line.split_at(at);
        let after = rest.get(word.len()..).unwrap_or("");
        let part = |it: char| it.is_alphanumeric() || it == '_';
        !before.ends_with(part) && !after.starts_with(part) && !names_issue(after)
    })
}

fn names_issue(after: &str) -> bool {
    let number = after.strip_prefix("(#").and_then(|rest| rest.split_once(')'));
    number.is_some_and(|(digits, _)| {
        !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
    })
}
