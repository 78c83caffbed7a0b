//! Checks of files, environment and process before the daemon starts, which `midwatch doctor` repeats. Checks that
//! need the open installation are in `runtime`; what a finding leads to is decided in `kernel`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kernel::posture::{Check, Finding};
use kernel::token;
use runtime::POLICY_FILE;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::process::{set_dumpable_behavior, setrlimit};

use crate::access::TOKEN_VARIABLE;
use crate::config::Config;
use crate::context::Context;

/// Mode bits with which other users can read.
const READABLE: u32 = 0o077;
/// Mode bits with which other users can write.
const WRITABLE: u32 = 0o022;
const SIGNING_KEY: &str = "signing.key";

/// Runs the checks that do not need the store. Also turns off core dumps of this process.
pub fn check_files_and_process(context: &Context, config: &Config) -> Vec<Finding> {
    let mut found = check_policy_files(context);
    found.extend(check_data_files(context));
    found.extend(check_key_files(context));
    found.extend(check_arguments(config));
    found.extend(disable_core_dumps());
    found
}

/// Checks the files that decide what is allowed: other users must not write them.
pub fn check_policy_files(context: &Context) -> Vec<Finding> {
    let data = context.directory.path();
    let files = [data.to_owned(), context.config_path(), data.join(POLICY_FILE)];
    let found = files.iter().filter_map(|path| find_exposed(path, WRITABLE));
    found.map(|found| found.finding(Check::Files, "change", "chmod go-w")).collect()
}

/// Checks the files of the embedded store.
fn check_data_files(context: &Context) -> Vec<Finding> {
    let database = context.directory.database();
    let beside = |end: &str| {
        let mut name = database.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    };
    let files = ["", "-wal", "-shm"].map(beside);
    let found = files.iter().filter_map(|path| find_exposed(path, READABLE));
    found.map(|found| found.finding(Check::Files, "read", "chmod 600")).collect()
}

/// Checks the sealing key, and the owner of the signing key. Opening the ledger checks the signing key's mode and
/// existence.
fn check_key_files(context: &Context) -> Vec<Finding> {
    let path = |name: &str| context.directory.path().join(name);
    let files = [(path(SIGNING_KEY), 0), (path("sealing.key"), READABLE)];
    files.iter().filter_map(|(path, bits)| check_key_file(path, *bits)).collect()
}

/// Checks the signing key of an existing installation without opening its ledger.
pub fn check_signing_key(context: &Context) -> Option<Finding> {
    let path = context.directory.path().join(SIGNING_KEY);
    match fs::metadata(&path) {
        Ok(_) => check_key_file(&path, READABLE),
        Err(error) => {
            let what = format!("`{}`: {error}", path.display());
            Some(Finding::new(Check::Key, what, "restore it from your copy"))
        }
    }
}

fn check_key_file(path: &Path, bits: u32) -> Option<Finding> {
    find_exposed(path, bits).map(|found| found.finding(Check::Key, "read", "chmod 600"))
}

/// A file or directory that another user has access to.
#[derive(Debug, PartialEq, Eq)]
enum Exposed<'a> {
    ByMode(&'a Path),
    /// Another user owns it, and can change its mode.
    ByOwner(&'a Path, u32),
}

/// Returns the file if other users have access to it, by one of these mode bits or as its owner.
fn find_exposed(path: &Path, bits: u32) -> Option<Exposed<'_>> {
    let found = fs::metadata(path).ok()?;
    let is_trusted = |uid: u32| uid == 0 || uid == rustix::process::geteuid().as_raw();
    match found.mode() & bits {
        _ if !is_trusted(found.uid()) => Some(Exposed::ByOwner(path, found.uid())),
        0 => None,
        _ => Some(Exposed::ByMode(path)),
    }
}

impl Exposed<'_> {
    /// The finding: what other users can do, and the command that fixes it.
    fn finding(&self, check: Check, can: &str, fix: &str) -> Finding {
        match self {
            Exposed::ByMode(path) => {
                let shown = path.display();
                let what = format!("other users can {can} `{shown}`");
                Finding::new(check, what, format!("{fix} {shown}"))
            }
            Exposed::ByOwner(path, owner) => {
                let (shown, own) = (path.display(), rustix::process::geteuid().as_raw());
                let what = format!("user {owner} owns `{shown}` and can {can} it");
                Finding::new(check, what, format!("chown {own} {shown}"))
            }
        }
    }
}

/// Checks that the daemon's environment has no token: the daemon needs none, and other processes could read it there.
pub fn check_environment(context: &Context) -> Option<Finding> {
    let is_set = context.environment.get(TOKEN_VARIABLE).is_some_and(|it| !it.is_empty());
    is_set.then(|| {
        let what = format!("the daemon's environment has a token in {TOKEN_VARIABLE}");
        let fix = format!("start it without the token: `env -u {TOKEN_VARIABLE} midwatch up`");
        Finding::new(Check::Secrets, what, fix)
    })
}

/// Checks that no argument is a token: every user can read the arguments of a process.
fn check_arguments(config: &Config) -> Option<Finding> {
    config.notice.command.iter().any(|word| token::contains_secret(word)).then(|| {
        let what = "`notice.command` contains a token";
        let fix = "let that program read a token from a file, and revoke this one";
        Finding::new(Check::Secrets, what, fix)
    })
}

/// Keeps crash dumps and debuggers of the same user away from the keys and tokens in memory.
pub(crate) fn disable_core_dumps() -> Option<Finding> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let disabled = setrlimit(Resource::Core, none)
        .and_then(|()| set_dumpable_behavior(DumpableBehavior::NotDumpable));
    disabled.err().map(|error| {
        let what = format!("core dumps cannot be turned off: {error}");
        Finding::new(Check::CoreDumps, what, "allow `prctl` and `setrlimit` for this process")
    })
}
