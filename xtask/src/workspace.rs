//! The workspace as data: its packages, from `cargo metadata`, and the text of its files.
//!
//! It is read once, so that rules are functions of it and tests can construct one. Paths are relative to the root and
//! use `/`. Build output, hidden folders, binary files and files above [`FILE_BYTES_MAX`] are left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// Larger files hold data, not prose or code.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// Hidden folders that belong to the project.
const HIDDEN_INCLUDED: &[&str] = &[".cargo", ".ci", ".github"];

#[derive(Clone, Debug, Default)]
pub struct Workspace {
    pub packages: Vec<Package>,
    /// Path and text of each file.
    pub files: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub struct Package {
    pub name: String,
    /// The folder of its manifest.
    pub dir: String,
    /// The root source file of each target.
    pub roots: Vec<String>,
    pub dependencies: Vec<Dependency>,
}

#[derive(Clone, Debug)]
pub struct Dependency {
    pub name: String,
    pub kind: Kind,
    /// Whether it is a package of this workspace.
    pub inside: bool,
    pub features: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Normal,
    Build,
    Dev,
}

impl Workspace {
    pub fn read(root: &Path) -> Result<Workspace> {
        let args = ["metadata", "--no-deps", "--format-version", "1"];
        let packages = packages(&process::output(root, "cargo", &args)?)?;
        let mut files = BTreeMap::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for path in entries(&folder)? {
                if path.is_dir() {
                    folders.push(path);
                } else if let Some(text) = text(&path)? {
                    files.insert(relative(root, &path)?, text);
                }
            }
        }
        Ok(Workspace { packages, files })
    }

    /// The text of a file; empty if the file does not exist.
    pub fn text(&self, path: &str) -> &str {
        self.files.get(path).map_or("", String::as_str)
    }

    /// Path and text of all Rust files.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        files.filter(|(path, _)| path.ends_with(".rs"))
    }
}

/// The files and folders in a folder, without symbolic links and folders that are not part of the project.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let listing = fs::read_dir(folder).with_context(|| format!("cannot list {folder:?}"))?;
    for entry in listing {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_foreign = kind.is_dir()
            && (name == "target" || name.starts_with('.') && !HIDDEN_INCLUDED.contains(&&*name));
        if !is_foreign && !kind.is_symlink() {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}

fn text(path: &Path) -> Result<Option<String>> {
    let metadata = fs::metadata(path).with_context(|| format!("cannot inspect {path:?}"))?;
    if !metadata.is_file() || FILE_BYTES_MAX < metadata.len() {
        return Ok(None);
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {path:?}"))?;
    Ok(String::from_utf8(bytes).ok())
}

fn relative(root: &Path, path: &Path) -> Result<String> {
    let path = path.strip_prefix(root).with_context(|| format!("{path:?} is outside {root:?}"))?;
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    Ok(parts.join("/"))
}

/// Reads the part of `cargo metadata`'s output that the rules need. It is read by hand because a derived parser would
/// compile its procedural macros with other features than the workspace does, and so twice.
fn packages(metadata: &str) -> Result<Vec<Package>> {
    let metadata: Value =
        serde_json::from_str(metadata).context("cannot parse the output of `cargo metadata`")?;
    let root = Path::new(string(&metadata, "workspace_root")?);
    list(&metadata, "packages")?.iter().map(|it| package(root, it)).collect()
}

fn package(root: &Path, it: &Value) -> Result<Package> {
    let manifest = Path::new(string(it, "manifest_path")?);
    let targets = list(it, "targets")?.iter();
    let roots = targets.map(|target| relative(root, Path::new(string(target, "src_path")?)));
    Ok(Package {
        name: string(it, "name")?.to_owned(),
        dir: relative(root, manifest.parent().unwrap_or(root))?,
        roots: roots.collect::<Result<_>>()?,
        dependencies: list(it, "dependencies")?.iter().map(dependency).collect::<Result<_>>()?,
    })
}

fn dependency(it: &Value) -> Result<Dependency> {
    let kind = match it.get("kind").and_then(Value::as_str) {
        Some("dev") => Kind::Dev,
        Some("build") => Kind::Build,
        _ => Kind::Normal, // Cargo prints `null` for a normal dependency. An unknown kind is checked like one.
    };
    let features = list(it, "features")?.iter();
    let features = features.map(|name| name.as_str().map(str::to_owned).context("not a feature"));
    Ok(Dependency {
        name: string(it, "name")?.to_owned(),
        kind,
        inside: it.get("path").is_some_and(Value::is_string),
        features: features.collect::<Result<_>>()?,
    })
}

fn string<'a>(it: &'a Value, key: &str) -> Result<&'a str> {
    it.get(key).and_then(Value::as_str).with_context(|| format!("`cargo` printed no `{key}`"))
}

fn list<'a>(it: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    it.get(key).and_then(Value::as_array).with_context(|| format!("`cargo` printed no `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_metadata() {
        let output = r#"{"workspace_root": "/w", "packages": [{
            "name": "store", "manifest_path": "/w/crates/store/Cargo.toml",
            "targets": [{"src_path": "/w/crates/store/src/lib.rs"}],
            "dependencies": [
                {"name": "ledger", "kind": null, "path": "/w/crates/ledger", "features": []},
                {"name": "tokio", "kind": "dev", "features": ["rt"]},
                {"name": "cc", "kind": "build", "features": []}
            ]}]}"#;
        let packages = packages(output).unwrap();
        assert_eq!(packages.len(), 1);
        assert_eq!(packages[0].dir, "crates/store");
        assert_eq!(packages[0].roots, ["crates/store/src/lib.rs"]);
        let found: Vec<_> =
            packages[0].dependencies.iter().map(|it| (&*it.name, it.kind, it.inside)).collect();
        let expected = [
            ("ledger", Kind::Normal, true),
            ("tokio", Kind::Dev, false),
            ("cc", Kind::Build, false),
        ];
        assert_eq!(found, expected);
        assert_eq!(packages[0].dependencies[1].features, ["rt"]);
    }
}
