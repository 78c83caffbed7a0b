//! What the program does when the machine fails it, or somebody misuses it.

mod checkpoint_copy;
mod disk;
mod export;
mod key;
mod owner;
mod read_only;
mod restore;
mod socket;
mod stop;
mod verify;
mod version;

use std::path::Path;
use std::process::Command;

use crate::world::{PROGRAM, World};

/// What has a file on the disk.
const FLUSHES: &str = "fsync,fdatasync";

/// The program, with system calls that fail or wait as told. Calls are counted in each thread by
/// itself, and only those that concern one of `paths` are touched; all are when none is given.
fn injected(world: &World, call: &str, what: &str, paths: &[&Path]) -> Command {
    let mut probe = world.wrapped("strace");
    let found = probe.arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(found, "`strace` is needed for this test; `cargo xtask test` installs it");

    let mut command = world.wrapped("strace");
    // The tracer stands aside, so that the child is the program itself.
    command.args(["--daemonize", "--follow-forks", "-qq", "--output=/dev/null"]);
    command.args([format!("--trace={call}"), format!("--inject={call}:{what}")]);
    for path in paths {
        command.arg("--trace-path").arg(path);
    }
    command.arg(PROGRAM);
    command
}

/// All entries of the log, as they are stored.
fn log(world: &World) -> Vec<(u64, String, Vec<u8>)> {
    let database = world.database();
    let mut statement = database.prepare("SELECT seq, kind, hash FROM entry ORDER BY seq").unwrap();
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

fn add(name: &str) -> [&str; 5] {
    ["agent", "add", name, "--backend", "builtin"]
}
