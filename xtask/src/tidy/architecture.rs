//! Rules about ARCHITECTURE.md: its tree names every crate, and every path that it names exists.

use crate::workspace::Workspace;

const PAGE: &str = "ARCHITECTURE.md";

/// Folders of a data directory. The page describes them too, and they are not in the repository.
const DATA_FOLDERS: &[&str] = &["approvals", "exports", "logs", "notices", "outputs", "stop"];

pub(super) fn missing_crates(workspace: &Workspace) -> Vec<String> {
    let Some(text) = workspace.files.get(PAGE) else {
        return vec![format!("{PAGE} does not exist")];
    };
    // The tree is the page's first fenced block; a crate is a word that ends with a slash.
    let tree: Vec<&str> = text.split("```").nth(1).unwrap_or("").split_whitespace().collect();
    let names = workspace.packages.iter().map(|package| &package.name);
    let absent = names.filter(|name| !tree.contains(&format!("{name}/").as_str()));
    absent.map(|name| format!("{PAGE} does not name `{name}/` in its tree")).collect()
}

pub(super) fn missing_paths(workspace: &Workspace) -> Vec<String> {
    let mut missing = Vec::new();
    let mut is_fenced = false;
    for (index, line) in workspace.text(PAGE).lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        let quoted = line.split('`').skip(1).step_by(2).filter(|_| !is_fenced);
        for path in quoted.filter(|text| is_repository_path(text)) {
            if !exists(workspace, path) {
                missing.push(format!("{PAGE}:{}: `{path}` does not exist", index + 1));
            }
        }
    }
    missing
}

/// Whether quoted text is meant as a path of the repository: not a command, a URL, or a path of a data directory.
fn is_repository_path(text: &str) -> bool {
    let is_elsewhere = text.starts_with(['/', '~', '-']) || text.contains("://");
    let first = text.split('/').next().unwrap_or("");
    (text.contains('/') || text.ends_with(".rs"))
        && !text.contains(char::is_whitespace)
        && !is_elsewhere
        && !DATA_FOLDERS.contains(&first)
}

/// Whether a file or folder has this path. Leading folders may be left out, and so may `src`.
fn exists(workspace: &Workspace, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    workspace.files.keys().any(|file| {
        let short = file.replace("/src/", "/");
        [file.as_str(), &short].iter().any(|file| has_components(file, path))
    })
}

/// Whether `file` has these components in a row: the last one is its name or one of its folders.
fn has_components(file: &str, part: &str) -> bool {
    format!("/{file}/").contains(&format!("/{part}/"))
}
