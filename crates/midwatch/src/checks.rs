//! What is looked at before the daemon starts, around the watch: its files, its environment, its
//! process. What the watch itself can tell is `runtime`'s, and what follows from a finding is the
//! kernel's. `midwatch doctor` looks at the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use kernel::posture::{Check, Finding};
use kernel::token;
use runtime::POLICY_FILE;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::process::{set_dumpable_behavior, setrlimit};

use crate::access::TOKEN;
use crate::config::Config;
use crate::context::Context;

/// Others can read.
const READABLE: u32 = 0o077;
/// Others can write.
const WRITABLE: u32 = 0o022;

/// What can be seen before the store is opened. From here on this process leaves no core dumps.
pub fn around(context: &Context, config: &Config) -> Vec<Finding> {
    let mut found = orders_files(context);
    found.extend(data_files(context));
    found.extend(arguments(config));
    found.extend(core_dumps());
    found
}

/// Whoever can write these gives the orders.
pub fn orders_files(context: &Context) -> Vec<Finding> {
    let files = [context.config_path(), context.directory.path().join(POLICY_FILE)];
    let open = files.iter().filter(|path| has_mode(path, WRITABLE));
    let finding = |path: &PathBuf| {
        let shown = path.display();
        let what = format!("others can change `{shown}`");
        Finding::new(Check::Files, what, format!("chmod go-w {shown}"))
    };
    open.map(finding).collect()
}

/// The data, where it is in files.
fn data_files(context: &Context) -> Vec<Finding> {
    let database = context.directory.database();
    let beside = |end: &str| {
        let mut name = database.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    };
    let files = ["", "-wal", "-shm"].map(beside).into_iter();
    let finding = |path: PathBuf| {
        let shown = path.display();
        let what = format!("others can read `{shown}`");
        Finding::new(Check::Files, what, format!("chmod 600 {shown}"))
    };
    files.filter(|path| has_mode(path, READABLE)).map(finding).collect()
}

/// The signing key of a directory that has one.
pub fn key_file(path: &Path) -> Option<Finding> {
    let shown = path.display();
    match fs::metadata(path) {
        Err(error) => {
            let what = format!("`{shown}`: {error}");
            Some(Finding::new(Check::Key, what, "put back your copy of it"))
        }
        Ok(found) if found.permissions().mode() & READABLE != 0 => {
            let what = format!("others can read `{shown}`");
            Some(Finding::new(Check::Key, what, format!("chmod 600 {shown}")))
        }
        Ok(_) => None,
    }
}

/// A daemon that is started from here would be nobody, and need nobody's token; whoever looks at its
/// process could take it.
pub fn environment(context: &Context) -> Option<Finding> {
    let is_set = context.environment.get(TOKEN).is_some_and(|it| !it.is_empty());
    is_set.then(|| {
        let what = format!("the environment of the daemon holds a token in {TOKEN}");
        let fix = format!("start it without: `env -u {TOKEN} midwatch up`");
        Finding::new(Check::Secrets, what, fix)
    })
}

/// Everybody on the machine can read the arguments of a process.
fn arguments(config: &Config) -> Option<Finding> {
    config.notice.command.iter().any(|word| token::is_in(word)).then(|| {
        let what = "a token stands among the words of `notice.command`";
        let fix = "let that program read it from a file of its own; revoke that token";
        Finding::new(Check::Secrets, what, fix)
    })
}

/// Neither a crash nor a debugger of the same user gets at the keys in memory.
fn core_dumps() -> Option<Finding> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let kept = setrlimit(Resource::Core, none)
        .and_then(|()| set_dumpable_behavior(DumpableBehavior::NotDumpable));
    kept.err().map(|error| {
        let what = format!("core dumps cannot be turned off: {error}");
        Finding::new(Check::CoreDumps, what, "let the system allow `prctl` and `setrlimit`")
    })
}

/// Whether a file is there and has one of these bits.
fn has_mode(path: &Path, bits: u32) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & bits != 0)
}
