//! Rules about crates: their manifests, their names, their place in ARCHITECTURE.md.

use crate::workspace::Workspace;

/// Names that say nothing, whole or as a part between hyphens.
const VAGUE: &[&str] =
    &["base", "common", "core", "helpers", "misc", "shared", "types", "util", "utils"];

pub(super) fn without_lints(workspace: &Workspace) -> Vec<String> {
    let manifests = workspace.packages.iter().map(|package| format!("{}/Cargo.toml", package.dir));
    let strangers = manifests.filter(|path| !inherits_lints(workspace.text(path)));
    strangers.map(|path| format!("{path} does not inherit the lints of the workspace")).collect()
}

fn inherits_lints(manifest: &str) -> bool {
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[lints]" && line.replace(' ', "") == "workspace=true" {
            return true;
        }
    }
    false
}

pub(super) fn second_clippy_toml(workspace: &Workspace) -> Vec<String> {
    let ours = |path: &&String| path.as_str() != "clippy.toml";
    let named = |path: &&String| path.ends_with("clippy.toml");
    workspace.files.keys().filter(ours).filter(named).cloned().collect()
}

pub(super) fn vague_names(workspace: &Workspace) -> Vec<String> {
    let names = workspace.packages.iter().map(|package| &package.name);
    let vague = names.filter(|name| name.split(['-', '_']).any(|part| VAGUE.contains(&part)));
    vague.map(|name| format!("crate `{name}`")).collect()
}

pub(super) fn absent_from_architecture(workspace: &Workspace) -> Vec<String> {
    let Some(text) = workspace.files.get("ARCHITECTURE.md") else {
        return vec!["there is no ARCHITECTURE.md".to_owned()];
    };
    // The tree is the page's first fenced block; a crate is a word that ends with a slash.
    let tree: Vec<&str> = text.split("```").nth(1).unwrap_or("").split_whitespace().collect();
    let names = workspace.packages.iter().map(|package| &package.name);
    let absent = names.filter(|name| !tree.contains(&format!("{name}/").as_str()));
    absent.map(|name| format!("ARCHITECTURE.md does not name `{name}/` in its tree")).collect()
}
