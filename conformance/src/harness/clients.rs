//! Clients of the SDKs that people use, which run the same story, and Claude Code, which asks for permissions.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use super::Row;
use super::install::{Installed, PYTHONS};
use super::world::World;

pub(super) fn run_stories(installed: &Installed, world: &World) -> Result<Vec<Row>> {
    // Node finds packages next to the script.
    let scripts = installed.dir().join("clients");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("clients"), &scripts)?;
    let mut rows = Vec::new();
    for transport in ["stdio", "http"] {
        let address = match transport {
            "stdio" => world.program.display().to_string(),
            _ => world.url.clone(),
        };
        let run_story = |name: &str, mut command: Command| -> Result<Row> {
            let output =
                world.envs(command.args([transport, &address]).stdin(Stdio::null())).output()?;
            let mut row =
                Row { name: format!("story, {name}, {transport}"), passed: 0, failures: vec![] };
            match output.status.success() {
                true => row.passed += 1,
                false => row.failures.push(String::from_utf8_lossy(&output.stderr).into_owned()),
            }
            Ok(row)
        };
        for name in ["typescript1", "typescript2", "claude_code"] {
            let mut node = installed.node();
            node.arg(scripts.join(format!("{name}.mjs")));
            rows.push(run_story(name, node)?);
        }
        for (name, _) in PYTHONS {
            let mut python = Command::new(installed.python(name));
            python.arg(scripts.join(format!("{name}.py")));
            rows.push(run_story(name, python)?);
        }
    }
    Ok(rows)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
