//! Rules about Rust files: each opens with its module doc, and a target compiles each.
//!
//! Declarations are found line by line, as rustfmt leaves them. A `mod name;` inside an inline module is not followed.

use std::collections::BTreeSet;

use crate::workspace::Workspace;

pub(super) fn without_module_doc(workspace: &Workspace) -> Vec<String> {
    let folders: Vec<String> =
        workspace.packages.iter().map(|package| format!("{}/src/", package.dir)).collect();
    let shipped = |path: &str| folders.iter().any(|folder| path.starts_with(folder));
    let undocumented =
        workspace.sources().filter(|(path, text)| shipped(path) && !text.starts_with("//!"));
    undocumented.map(|(path, _)| format!("{path} does not begin with `//!`")).collect()
}

pub(super) fn dead(workspace: &Workspace) -> Vec<String> {
    let compiled = compiled_files(workspace);
    let dead = workspace.sources().filter(|(path, _)| !compiled.contains(*path));
    dead.map(|(path, _)| format!("{path} is not reached by any `mod`")).collect()
}

/// All files that a target compiles.
fn compiled_files(workspace: &Workspace) -> BTreeSet<String> {
    let mut compiled = BTreeSet::new();
    let mut queue: Vec<String> = Vec::new();
    for root in workspace.packages.iter().flat_map(|package| &package.roots) {
        let folder = parent(root);
        queue.extend(children(root, folder, workspace.text(root)));
        compiled.insert(root.clone());
    }
    while let Some(path) = queue.pop() {
        let Some(text) = workspace.files.get(&path) else { continue };
        let folder = path.strip_suffix("/mod.rs").or(path.strip_suffix(".rs")).unwrap_or(&path);
        let next = children(&path, folder, text);
        if compiled.insert(path) {
            queue.extend(next);
        }
    }
    compiled
}

/// The possible paths of the modules that a file declares. `folder` holds the modules without a `#[path]`.
fn children(path: &str, folder: &str, text: &str) -> Vec<String> {
    let mut children = Vec::new();
    let mut explicit_path = None;
    for line in text.lines().map(str::trim) {
        if let Some(path) = line.strip_prefix("#[path = \"") {
            explicit_path = path.strip_suffix("\"]");
        } else if let Some(name) = declared_module(line) {
            match explicit_path.take() {
                Some(file) => children.push(normalized(&format!("{}/{file}", parent(path)))),
                None => children
                    .extend([format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")]),
            }
        }
    }
    children
}

/// The name in `mod name;`, whatever its visibility.
fn declared_module(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None => line,
    };
    let (name, _) = rest.trim_start().strip_prefix("mod ")?.split_once(';')?;
    Some(name.strip_prefix("r#").unwrap_or(name))
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A path without `.` and `..`.
fn normalized(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
