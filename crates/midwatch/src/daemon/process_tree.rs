//! Whether a process descends from the daemon, and so from a run. The daemon adopts processes whose parents have
//! exited, so a process cannot escape by outliving its parent; and every program of a run has a mark that it and its
//! descendants keep, so it cannot escape by outliving the daemon either.

use std::convert::Infallible;
use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};

use agents::{has_mark, kill_orphans, reap_orphans};
use futures::future::pending;
use tokio::select;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Duration, Instant, sleep};
use tracing::warn;

use super::tcp_sockets::{self, Socket};

/// Generations that are followed back.
const DEPTH_MAX: usize = 256;
/// How often the chain of parents is read while processes in it exit.
const ATTEMPTS_MAX: usize = 3;
/// Orphans that were missed on a signal are reaped after this time.
const REAP_EVERY: Duration = Duration::from_secs(10);
/// How long the processes that runs left behind have to end when the daemon stops.
const END_ORPHANS_WITHIN: Duration = Duration::from_secs(2);
const END_ORPHANS_EVERY: Duration = Duration::from_millis(10);

/// Makes this process the parent of descendants whose parents exit.
pub(super) fn adopt_orphans() {
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        warn!(%error, "failed to adopt orphans; processes left behind by runs cannot be recognised");
    }
}

/// Reaps adopted processes when they exit.
pub(super) async fn reap() -> Infallible {
    let Ok(mut ended) = signal(SignalKind::child()) else { return pending().await };
    loop {
        reap_orphans();
        select! {
            _ = ended.recv() => {}
            () = sleep(REAP_EVERY) => {}
        }
    }
}

/// Ends the processes that runs have left behind, before the daemon stops adopting them.
pub(super) async fn end_orphans() {
    let deadline = Instant::now() + END_ORPHANS_WITHIN;
    while kill_orphans() && Instant::now() < deadline {
        sleep(END_ORPHANS_EVERY).await;
        reap_orphans();
    }
}

/// Whether a process descends from the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ancestry {
    External,
    /// It descends from the program with this process id, which the daemon started.
    Descendant(i32),
    /// It, or one of its ancestors, has exited, so it may belong to a run.
    Unknown,
}

/// Whether `/proc` exists; without it ancestry cannot be determined.
pub(super) fn is_available() -> bool {
    fs::exists("/proc/self/stat").unwrap_or(false)
}

/// The ancestry of the process that owns the peer's socket. If no owner is found it is unknown, unless another user
/// owns the socket: a socket in transit between two processes has no visible owner, and a process can hide its
/// descriptors.
pub(super) fn ancestry_of_owner(socket: &Socket) -> Ancestry {
    let Ok(processes) = fs::read_dir("/proc") else { return Ancestry::Unknown };
    let names = processes.flatten().map(|process| process.file_name());
    let owners = names.filter_map(|name| name.to_str()?.parse().ok());
    let owners = owners.filter(|pid| tcp_sockets::is_owned_by(*pid, socket).unwrap_or(false));
    let owners: Vec<Ancestry> = owners.map(ancestry_of).collect();
    let is_other_user = socket.uid != rustix::process::getuid().as_raw();
    match owners.iter().find(|owner| **owner != Ancestry::External) {
        Some(ancestry) => ancestry.clone(),
        None if is_other_user || !owners.is_empty() => Ancestry::External,
        None => Ancestry::Unknown,
    }
}

pub(super) fn ancestry_of(pid: i32) -> Ancestry {
    if !is_available() {
        return Ancestry::External;
    }
    // A process without an id here is in another container; every process that the daemon starts has one.
    if pid == 0 {
        return Ancestry::External;
    }
    let ours = rustix::process::getpid().as_raw_nonzero().get();
    // If a parent exits meanwhile, the child has a new parent at the next attempt.
    let ancestry = (0..ATTEMPTS_MAX).find_map(|_| walk_up(pid, ours)).unwrap_or(Ancestry::Unknown);
    match ancestry {
        // An earlier daemon or `agent test` may have started it: its parents are gone, but not its mark.
        Ancestry::External if has_mark(pid) == Some(true) && !marked_itself(pid, ours) => {
            Ancestry::Unknown
        }
        ancestry => ancestry,
    }
}

/// Whether a process with the mark got it from its own program, as the processes of a browser do that have their sandbox
/// below them: it descends, through processes of the same program, from one without the mark.
///
/// A process of a run has the mark from its start, and so has its parent, unless another process adopted it. Only ancestors of
/// the daemon that started it can do that, so one of ours proves nothing.
fn marked_itself(pid: i32, ours: i32) -> bool {
    let program = |pid: i32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let Some(own_program) = program(pid) else { return false };
    let mut child = pid;
    for _ in 0..DEPTH_MAX {
        let Some(parent) = parent_of(child).filter(|parent| 1 < *parent) else { return false };
        if program(parent).as_ref() != Some(&own_program) {
            return false;
        }
        match has_mark(parent) {
            Some(false) => return !is_ancestor(parent, ours),
            Some(true) => child = parent,
            None => return false,
        }
    }
    false
}

/// Whether a process is an ancestor of another, as far as that can be read.
fn is_ancestor(ancestor: i32, pid: i32) -> bool {
    let mut child = pid;
    for _ in 0..DEPTH_MAX {
        match parent_of(child) {
            Some(parent) if parent == ancestor => return true,
            Some(parent) if 1 < parent => child = parent,
            Some(_) => return false,
            None => return true,
        }
    }
    true
}

/// The process id behind a pidfd, unless that process has been reaped.
pub(super) fn pid_of(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    pid.trim().parse().ok().filter(|pid| 0 <= *pid)
}

/// Follows the parents of a process. Returns `None` when one of them has exited.
fn walk_up(pid: i32, ours: i32) -> Option<Ancestry> {
    let mut child = pid;
    for _ in 0..DEPTH_MAX {
        match parent_of(child)? {
            next if next == ours => return Some(Ancestry::Descendant(child)),
            0 | 1 => return Some(Ancestry::External),
            next => child = next,
        }
    }
    // Such a long chain is an attempt to hide an ancestor.
    Some(Ancestry::Unknown)
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_parent(&stat)
}

/// Parses a line of `/proc/PID/stat`: state, parent and group follow the name, which may contain anything. For a
/// process that is being reaped, the kernel writes 0 as parent and -1 as group; that counts as exited.
fn parse_parent(stat: &str) -> Option<i32> {
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let (parent, group) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse::<i32>().ok()?);
    (group != -1).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_is_parsed_after_any_name() {
        assert_eq!(parse_parent("43 (sleep) S 7 42 42 0 -1"), Some(7));
        assert_eq!(parse_parent("43 (a) R 1 b) S 9 42 42 0"), Some(9));
        assert_eq!(
            parse_parent("43 (sh) S 0 0 0 0 -1"),
            Some(0),
            "its parent is in another container"
        );
        assert_eq!(parse_parent("43 (sh) X 0 -1 -1 0 -1"), None);
        assert_eq!(parse_parent(""), None);
    }

    #[test]
    fn daemon_is_external_and_a_missing_process_is_unknown() {
        let ours = rustix::process::getpid().as_raw_nonzero().get();
        assert_eq!(ancestry_of(ours), Ancestry::External);
        assert_eq!(ancestry_of(1), Ancestry::External);
        assert_eq!(ancestry_of(0), Ancestry::External);
        assert_eq!(ancestry_of(i32::MAX), Ancestry::Unknown);
    }
}
