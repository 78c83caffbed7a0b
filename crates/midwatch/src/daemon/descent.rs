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

/// Generations that are looked back.
const DEPTH_MAX: usize = 256;
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

/// Whether a process descends from this one.
pub(super) fn is_ours(pid: i32) -> bool {
    let ours = rustix::process::getpid().as_raw_nonzero().get();
    let mut next = Some(pid);
    for _ in 0..DEPTH_MAX {
        next = next.filter(|pid| 1 < *pid).and_then(parent);
        match next {
            Some(parent) if parent == ours => return true,
            Some(_) => {}
            None => return false,
        }
    }
    // Nobody has so many forefathers who does not mean to hide one.
    true
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parent_in(&stat)
}

/// Of a line of `/proc/PID/stat`: state and parent follow the name, which may hold anything.
fn parent_in(stat: &str) -> Option<i32> {
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    fields.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_follows_the_name_whatever_that_is() {
        assert_eq!(parent_in("43 (sleep) S 7 42 42 0 -1"), Some(7));
        assert_eq!(parent_in("43 (a) R 1 b) S 9 42 42 0"), Some(9));
        assert_eq!(parent_in(""), None);
    }

    #[test]
    fn we_are_not_our_own_child_and_our_parent_is_not_either() {
        assert!(!is_ours(rustix::process::getpid().as_raw_nonzero().get()));
        assert!(!is_ours(1));
        assert!(!is_ours(i32::MAX));
    }
}
