//! Faults: a full, failing or read-only disk, damaged files, hostile clients, and stops at the wrong moment.

mod directory_lock;
mod disk;
mod export_interrupted;
mod read_only;
mod restore_disk_full;
mod signing_key;
mod socket;
mod stop;
mod verify_while_growing;
mod version;

use std::path::Path;
use std::process::Command;

use crate::support::world::{PROGRAM, World};

/// The system calls that flush a file to the disk.
const FLUSHES: &str = "fsync,fdatasync";

/// The program under `strace`, which injects this fault into the system call. Each thread counts its own calls.
/// With `paths`, only calls on these files count.
pub(crate) fn inject_fault(world: &World, call: &str, fault: &str, paths: &[&Path]) -> Command {
    let mut probe = world.wrapped("strace");
    let found = probe.arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(found, "`strace` is needed for this test; `cargo xtask test` installs it");

    let mut command = world.wrapped("strace");
    // With `--daemonize` the child process is the program, not the tracer.
    command.args(["--daemonize", "--follow-forks", "-qq", "--output=/dev/null"]);
    command.args([format!("--trace={call}"), format!("--inject={call}:{fault}")]);
    for path in paths {
        command.arg("--trace-path").arg(path);
    }
    command.arg(PROGRAM);
    command
}
