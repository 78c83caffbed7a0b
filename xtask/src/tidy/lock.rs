//! Rules about Cargo.lock: crates that must not be linked at all, and crates that must not be linked twice.

use crate::workspace::Workspace;

const NEVER: &[&str] = &["aws-lc-sys", "openssl-sys"];
const ONCE: &[&str] = &["libsqlite3-sys"];

pub(super) fn banned_crates(workspace: &Workspace) -> Vec<String> {
    let lock = workspace.text("Cargo.lock");
    let count = |name: &str| {
        let entry = format!("name = \"{name}\"");
        lock.lines().filter(|line| *line == entry).count()
    };
    let never = NEVER.iter().filter(|name| 0 < count(name));
    let once = ONCE.iter().filter(|name| 1 < count(name));
    let banned = never.map(|name| format!("Cargo.lock holds `{name}`"));
    banned.chain(once.map(|name| format!("Cargo.lock holds `{name}` more than once"))).collect()
}
