//! Rules about crates: their manifests and names.

use crate::workspace::Workspace;

/// Meaningless as a whole name and as a part between hyphens.
const VAGUE: &[&str] =
    &["base", "common", "core", "helpers", "misc", "shared", "types", "util", "utils"];

pub(super) fn without_lints(workspace: &Workspace) -> Vec<String> {
    let manifests = workspace.packages.iter().map(|package| format!("{}/Cargo.toml", package.dir));
    let without = manifests.filter(|path| !inherits_lints(workspace.text(path)));
    without.map(|path| format!("{path} does not inherit the lints of the workspace")).collect()
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
    let named = workspace.files.keys().filter(|path| path.ends_with("clippy.toml"));
    named.filter(|path| path.as_str() != "clippy.toml").cloned().collect()
}

pub(super) fn vague_names(workspace: &Workspace) -> Vec<String> {
    let names = workspace.packages.iter().map(|package| &package.name);
    let vague = names.filter(|name| name.split(['-', '_']).any(|part| VAGUE.contains(&part)));
    vague.map(|name| format!("crate `{name}`")).collect()
}
