//! Rule about links: a relative link of a Markdown page names a file, and a heading of it if it has a fragment; a page of
//! `docs` that a source file names, as hints for users do, exists.

use crate::workspace::Workspace;

/// What a link to another place begins with.
const ELSEWHERE: &[&str] = &["http://", "https://", "mailto:"];

pub(super) fn dead(workspace: &Workspace) -> Vec<String> {
    let pages = workspace.files.iter().filter(|(path, _)| path.ends_with(".md"));
    let mut found = Vec::new();
    for (page, text) in pages {
        for (number, line) in prose(text) {
            let dead = targets(line).filter(|target| !leads(workspace, page, target));
            found.extend(dead.map(|target| format!("{page}:{number}: `{target}` does not exist")));
        }
    }
    for (path, text) in workspace.sources().filter(|(path, _)| !path.contains("/tests/")) {
        for (index, line) in text.lines().enumerate() {
            let dead = named_pages(line).filter(|page| !workspace.files.contains_key(*page));
            found.extend(dead.map(|page| format!("{path}:{}: `{page}` does not exist", index + 1)));
        }
    }
    found
}

/// The pages of the manual that a line of a source file names, by their paths from the root.
fn named_pages(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("docs/").filter_map(|(at, _)| {
        let name = line
            .get(at..)?
            .split(|it: char| !it.is_alphanumeric() && !"/-_.".contains(it))
            .next()?;
        let page = name.trim_end_matches('.');
        page.ends_with(".md").then_some(page)
    })
}

/// The numbered lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    let lines = text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    });
    lines.map(|(index, line)| (index + 1, line))
}

/// The targets of the links in a line: what `](` and `)` enclose.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

fn leads(workspace: &Workspace, page: &str, target: &str) -> bool {
    if ELSEWHERE.iter().any(|begin| target.starts_with(begin)) {
        return true;
    }
    let (path, heading) = match target.split_once('#') {
        Some((path, heading)) => (path, Some(heading)),
        None => (target, None),
    };
    let Some(path) = resolve(page, path) else { return false };
    let folder = format!("{path}/");
    match (workspace.files.get(&path), heading) {
        (Some(text), Some(heading)) => headings(text).any(|it| it == heading),
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => workspace.files.keys().any(|file| file.starts_with(&folder)),
    }
}

/// The path from the root of a target that a page names; `None` if it is outside of the repository.
fn resolve(page: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(page.to_owned());
    }
    let mut folders: Vec<&str> = page.split('/').collect();
    folders.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => (),
            ".." => drop(folders.pop()?),
            name => folders.push(name),
        }
    }
    Some(folders.join("/"))
}

/// The fragments of the headings of a page, as GitHub makes them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let titles = prose(text).filter_map(|(_, line)| line.strip_prefix('#'));
    titles.map(|title| {
        let title = title.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
        kept.map(|it| if it == ' ' { '-' } else { it }).collect()
    })
}
