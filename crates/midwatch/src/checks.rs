//! What is looked at before the daemon starts, around the watch: its files, its environment, its
//! process. What the watch itself can tell is `runtime`'s, and what follows from a finding is the
//! kernel's. `midwatch doctor` looks at the same.

use std::fs;
use std::os::unix::fs::MetadataExt;
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
const SIGNING_KEY: &str = "signing.key";

/// What can be seen before the store is opened. From here on this process leaves no core dumps.
pub fn around(context: &Context, config: &Config) -> Vec<Finding> {
    let mut found = orders_files(context);
    found.extend(data_files(context));
    found.extend(key_files(context));
    found.extend(arguments(config));
    found.extend(core_dumps());
    found
}

/// Whoever can write these gives the orders.
pub fn orders_files(context: &Context) -> Vec<Finding> {
    let data = context.directory.path();
    let files = [data.to_owned(), context.config_path(), data.join(POLICY_FILE)];
    let found = files.iter().filter_map(|path| open_to_others(path, WRITABLE));
    found.map(|found| found.finding(Check::Files, "change", "chmod go-w")).collect()
}

/// The data, where it is in files.
fn data_files(context: &Context) -> Vec<Finding> {
    let database = context.directory.database();
    let beside = |end: &str| {
        let mut name = database.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    };
    let files = ["", "-wal", "-shm"].map(beside);
    let found = files.iter().filter_map(|path| open_to_others(path, READABLE));
    found.map(|found| found.finding(Check::Files, "read", "chmod 600")).collect()
}

/// The key that opens what is sealed, and whose the key is that signs. Whether others can read that one, and
/// whether it is there, is looked at when the log is opened.
fn key_files(context: &Context) -> Vec<Finding> {
    let path = |name: &str| context.directory.path().join(name);
    let files = [(path(SIGNING_KEY), 0), (path("sealing.key"), READABLE)];
    files.iter().filter_map(|(path, bits)| key_file(path, *bits)).collect()
}

/// The signing key of a directory that has a log, without a look at the log.
pub fn signing_key(context: &Context) -> Option<Finding> {
    let path = context.directory.path().join(SIGNING_KEY);
    match fs::metadata(&path) {
        Ok(_) => key_file(&path, READABLE),
        Err(error) => {
            let what = format!("`{}`: {error}", path.display());
            Some(Finding::new(Check::Key, what, "put back your copy of it"))
        }
    }
}

fn key_file(path: &Path, bits: u32) -> Option<Finding> {
    open_to_others(path, bits).map(|found| found.finding(Check::Key, "read", "chmod 600"))
}

/// A file or directory with which others can do something.
#[derive(Debug, PartialEq, Eq)]
enum Open<'a> {
    ByMode(&'a Path),
    /// It is theirs, whatever its mode is now.
    ByOwner(&'a Path, u32),
}

/// Whether others can, by one of these bits or because it is theirs.
fn open_to_others(path: &Path, bits: u32) -> Option<Open<'_>> {
    let found = fs::metadata(path).ok()?;
    let is_trusted = |uid: u32| uid == 0 || uid == rustix::process::geteuid().as_raw();
    match found.mode() & bits {
        _ if !is_trusted(found.uid()) => Some(Open::ByOwner(path, found.uid())),
        0 => None,
        _ => Some(Open::ByMode(path)),
    }
}

impl Open<'_> {
    /// What they can do, and how to mend it.
    fn finding(&self, check: Check, can: &str, mend: &str) -> Finding {
        match self {
            Open::ByMode(path) => {
                let shown = path.display();
                let what = format!("others can {can} `{shown}`");
                Finding::new(check, what, format!("{mend} {shown}"))
            }
            Open::ByOwner(path, owner) => {
                let (shown, own) = (path.display(), rustix::process::geteuid().as_raw());
                let what = format!("user {owner} can {can} `{shown}`, whose owner they are");
                Finding::new(check, what, format!("chown {own} {shown}"))
            }
        }
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
