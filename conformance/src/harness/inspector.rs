//! The inspector, which knows what strict clients do not accept.

use anyhow::Result;

use super::Row;
use super::install::Installed;
use super::world::World;

/// Every list in both eras, over both transports. Not a word is expected.
pub(super) fn strict(installed: &Installed, world: &World) -> Result<Vec<Row>> {
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
            let said = world.envs(&mut node).output()?;
            let mut row = Row {
                what: format!("inspector --strict, {transport}, {era}"),
                passed: 0,
                wrong: vec![],
            };
            let complaints = String::from_utf8_lossy(&said.stderr);
            row.wrong.extend(
                complaints.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned),
            );
            match said.status.success() && said.stdout.starts_with(b"{") {
                true => row.passed += 1,
                false => row.wrong.push(format!("it ended with {}", said.status)),
            }
            rows.push(row);
        }
    }
    Ok(rows)
}
