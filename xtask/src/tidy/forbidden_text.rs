//! Rules about text that must not be in the project: paths of a developer's machine, and remarks about later work that
//! name no issue. The words are put together here, so that this file does not break its own rules.

use crate::workspace::Workspace;

const HOMES: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!(r"\Us", r"ers\"),
];

const REMARKS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];

/// Endings of code files. In other files the words may be sample text.
const CODE_ENDINGS: &[&str] = &[".css", ".js", ".py", ".rs", ".service", ".sh", ".sql", ".toml"];

pub(super) fn home_paths(workspace: &Workspace) -> Vec<String> {
    matching_lines(workspace, |_| true, |line| HOMES.iter().any(|home| is_home_path(line, home)))
}

pub(super) fn untracked_remarks(workspace: &Workspace) -> Vec<String> {
    let is_code = |path: &str| CODE_ENDINGS.iter().any(|ending| path.ends_with(ending));
    matching_lines(workspace, is_code, |line| REMARKS.iter().any(|word| is_untracked(line, word)))
}

/// Path, number and text of each line that breaks a rule.
fn matching_lines(
    workspace: &Workspace,
    applies_to: impl Fn(&str) -> bool,
    breaks: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in workspace.files.iter().filter(|(path, _)| applies_to(path)) {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| breaks(line)) {
            found.push(format!("{path}:{}: {}", index + 1, line.trim()));
        }
    }
    found
}

/// Whether a line holds an absolute path below `home`: a user or file name follows, and nothing before it makes it a
/// part of a longer path.
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

/// Whether a line holds `word` as a whole word that no issue number follows.
fn is_untracked(line: &str, word: &str) -> bool {
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
