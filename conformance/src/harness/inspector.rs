//! The official inspector, which reports what strict clients reject.

use anyhow::Result;

use super::Row;
use super::install::Installed;
use super::world::World;

/// Lists the tools in both eras over both transports. Every line on stderr is a failure.
pub(super) fn run_strict(installed: &Installed, world: &World) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for transport in ["stdio", "http"] {
        for era in ["legacy", "modern"] {
            let mut node = installed.node();
            node.arg(installed.package(".bin/mcp-inspector")).arg("--cli");
            match transport {
                "stdio" => node.arg(&world.program).arg("mcp").args(["--transport", "stdio"]),
                _ => {
                    let header = format!("Authorization: Bearer {}", world.token);
                    node.arg(&world.url).args(["--transport", "http", "--header", &header])
                }
            };
            node.args(["--method", "tools/list", "--strict", "--protocol-era", era]);
            let output = world.envs(&mut node).output()?;
            let mut row = Row {
                name: format!("inspector --strict, {transport}, {era}"),
                passed: 0,
                failures: vec![],
            };
            let complaints = String::from_utf8_lossy(&output.stderr);
            row.failures.extend(
                complaints.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned),
            );
            match output.status.success() && output.stdout.starts_with(b"{") {
                true => row.passed += 1,
                false => row.failures.push(format!("the inspector ended with {}", output.status)),
            }
            rows.push(row);
        }
    }
    Ok(rows)
}
