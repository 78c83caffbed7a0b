//! Whose child a process is. The daemon's own children are what runs have started, and their
//! children too: the daemon adopts those whose parents have gone, so that nobody gets away by it.

use std::convert::Infallible;
use std::fs;

use agents::bury_orphans;
use futures::future::pending;
use tokio::select;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Duration, sleep};
use tracing::warn;

use super::sockets::{self, Socket};

/// Generations that are looked back.
const DEPTH_MAX: usize = 256;
/// How often a chain with a gap is looked at again.
const LOOKS_MAX: usize = 3;
/// One that was not buried at once is looked for again.
const BURY_EVERY: Duration = Duration::from_secs(10);

/// From now on, processes whose parents have gone are children of this one.
pub(super) fn adopt_orphans() {
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        warn!(%error, "what runs leave behind cannot be told from others");
    }
}

/// Buries those that were adopted, as they end.
pub(super) async fn bury() -> Infallible {
    let Ok(mut ended) = signal(SignalKind::child()) else { return pending().await };
    loop {
        bury_orphans();
        select! {
            _ = ended.recv() => {}
            () = sleep(BURY_EVERY) => {}
        }
    }
}

/// Whose child a process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parentage {
    Stranger,
    /// It descends from this program, which we have started.
    Child(i32),
    /// It has gone, or its forefathers are: whoever spoke may be anybody.
    Unknown,
}

/// Where nothing tells of processes, nobody can be told apart.
pub(super) fn can_tell() -> bool {
    fs::exists("/proc/self/stat").unwrap_or(false)
}

/// Whose child has hold of the other end of a connection. Somebody must be seen to have hold of it: on its way from one
/// process to another nobody has, and who hides what it has may be anybody. Other users have nothing of ours.
pub(super) fn of_holder(socket: &Socket) -> Parentage {
    let Ok(processes) = fs::read_dir("/proc") else { return Parentage::Unknown };
    let names = processes.flatten().map(|process| process.file_name());
    let holders = names.filter_map(|name| name.to_str()?.parse().ok());
    let holders = holders.filter(|pid| sockets::is_held_by(*pid, socket).unwrap_or(false));
    let holders: Vec<Parentage> = holders.map(of).collect();
    let is_others = socket.uid != rustix::process::getuid().as_raw();
    match holders.iter().find(|holder| **holder != Parentage::Stranger) {
        Some(child) => child.clone(),
        None if is_others || !holders.is_empty() => Parentage::Stranger,
        None => Parentage::Unknown,
    }
}

pub(super) fn of(pid: i32) -> Parentage {
    if !can_tell() {
        return Parentage::Stranger;
    }
    // Whoever has no number here is outside, in another container: all that we start has one.
    if pid == 0 {
        return Parentage::Stranger;
    }
    let ours = rustix::process::getpid().as_raw_nonzero().get();
    // A parent that goes meanwhile leaves a gap, and the child has another by then.
    (0..LOOKS_MAX).find_map(|_| walk(pid, ours)).unwrap_or(Parentage::Unknown)
}

/// `None` when somebody was gone.
fn walk(pid: i32, ours: i32) -> Option<Parentage> {
    let mut child = pid;
    for _ in 0..DEPTH_MAX {
        match parent(child)? {
            next if next == ours => return Some(Parentage::Child(child)),
            0 | 1 => return Some(Parentage::Stranger),
            next => child = next,
        }
    }
    // Nobody has so many forefathers who does not mean to hide one.
    Some(Parentage::Unknown)
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parent_in(&stat)
}

/// Of a line of `/proc/PID/stat`: state, parent and group follow the name, which may hold anything. Of a
/// process that is just being buried the kernel writes 0 as parent and -1 as group: it is gone.
fn parent_in(stat: &str) -> Option<i32> {
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let (parent, group) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse::<i32>().ok()?);
    (group != -1).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_follows_the_name_whatever_that_is() {
        assert_eq!(parent_in("43 (sleep) S 7 42 42 0 -1"), Some(7));
        assert_eq!(parent_in("43 (a) R 1 b) S 9 42 42 0"), Some(9));
        assert_eq!(parent_in("43 (sh) S 0 0 0 0 -1"), Some(0), "its parent is outside");
        assert_eq!(parent_in("43 (sh) X 0 -1 -1 0 -1"), None);
        assert_eq!(parent_in(""), None);
    }

    #[test]
    fn we_are_not_our_own_child_and_who_has_gone_may_be_anybody() {
        let ours = rustix::process::getpid().as_raw_nonzero().get();
        assert_eq!(of(ours), Parentage::Stranger);
        assert_eq!(of(1), Parentage::Stranger);
        assert_eq!(of(0), Parentage::Stranger);
        assert_eq!(of(i32::MAX), Parentage::Unknown);
    }
}
