//! A program with all that it starts: one process group, which ends with this value at the latest.
//!
//! Whoever leaves the group (`setsid`) is only found again as an orphan, if this process adopts those;
//! only a sandbox can hold it. Should we be killed ourselves, the group lives on: to be killed with its parent a process would have to ask
//! for it between fork and exec, which needs unsafe code.

use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use rustix::process::{kill_process, kill_process_group, test_kill_process_group};
use tokio::process::{Child, ChildStdin, Command};

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// `None` after the end, when the number may belong to somebody else.
    group: Option<Pid>,
    number: Option<Pid>,
}

/// Programs that were started here and are waited for, each with its run if it has one.
fn started() -> MutexGuard<'static, Vec<(Pid, Option<String>)>> {
    static STARTED: Mutex<Vec<(Pid, Option<String>)>> = Mutex::new(Vec::new());
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The run whose program this process is, if it was started here for one.
pub fn run_of(pid: i32) -> Option<String> {
    let pid = Pid::from_raw(pid)?;
    started().iter().find(|(own, _)| *own == pid).and_then(|(_, run)| run.clone())
}

/// Buries children that have ended and that nobody here has started: they were adopted when their
/// parents went.
pub fn bury_orphans() {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    for_each_orphan(|pid| {
        if let Ok(Some(_)) = waitid(WaitId::Pid(pid), peek) {
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    });
}

/// Kills those that were adopted. Their own children are adopted then, and found the next time.
pub(crate) fn kill_orphans() {
    for_each_orphan(|pid| {
        // It fails only when nobody is there any more.
        let _ = kill_process(pid, Signal::KILL);
    });
}

fn for_each_orphan(mut act: impl FnMut(Pid)) {
    let started = started();
    let is_orphan = |pid: &Pid| started.iter().all(|(own, _)| own != pid);
    children().into_iter().filter(is_orphan).for_each(&mut act);
}

/// The children of this process, of all its threads.
fn children() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|it| fs::read_to_string(it.path().join("children")).ok());
    let numbers = |list: String| {
        let numbers =
            list.split_whitespace().filter_map(|it| it.parse().ok().and_then(Pid::from_raw));
        numbers.collect::<Vec<Pid>>()
    };
    lists.flat_map(numbers).collect()
}

impl Process {
    /// The command is dropped, and with it our copies of the pipes that the program writes to.
    pub(crate) fn start(mut command: Command, run: Option<&str>) -> io::Result<Process> {
        // Held until it is known, so that it is not taken for an orphan.
        let mut started = started();
        let child = command.process_group(0).spawn()?;
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        let group = number.and_then(Pid::from_raw);
        started.extend(group.map(|pid| (pid, run.map(str::to_owned))));
        Ok(Process { group, number: group, child })
    }

    pub(crate) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Waits for the end of the program itself, and kills whoever it left in its group. Says whether
    /// anybody was.
    pub(crate) async fn ended(&mut self) -> io::Result<(ExitStatus, LeftBehind)> {
        let status = self.child.wait().await;
        let left = self.group.map_or(LeftBehind::Nobody, left_behind);
        self.signal(Signal::KILL);
        self.group = None;
        Ok((status?, left))
    }

    /// Signals every process of the group.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It fails only when nobody is there any more.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Whether a program has left others behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftBehind {
    Nobody,
    Somebody,
}

/// Those that have ended and only wait to be buried do not count.
fn left_behind(group: Pid) -> LeftBehind {
    // Mostly nobody is there, and that is all there is to ask.
    if test_kill_process_group(group).is_err() {
        return LeftBehind::Nobody;
    }
    let Ok(processes) = fs::read_dir("/proc") else { return LeftBehind::Nobody };
    let mut stats = processes.flatten().filter_map(|it| fs::read(it.path().join("stat")).ok());
    match stats.any(|stat| is_alive_in(group, &String::from_utf8_lossy(&stat))) {
        true => LeftBehind::Somebody,
        false => LeftBehind::Nobody,
    }
}

/// Of a line of `/proc/PID/stat`: state and group follow the name, which may hold anything.
fn is_alive_in(group: Pid, stat: &str) -> bool {
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let (state, _parent, own) = (fields.next(), fields.next(), fields.next());
    let is_alive = state.is_some_and(|state| !matches!(state, "Z" | "X"));
    is_alive && own.and_then(|own| own.parse().ok()) == Some(group.as_raw_nonzero().get())
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(number) = self.number {
            started().retain(|(other, _)| *other != number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dead_do_not_count() {
        let group = Pid::from_raw(42).unwrap();
        for (stat, expected) in [
            ("43 (sleep) S 1 42 42 0 -1", true),
            ("43 (a) Z 7 b) R 1 42 42 0", true),
            ("43 (sleep) Z 1 42 42 0 -1", false),
            ("43 (sleep) X 1 42 42 0 -1", false),
            ("43 (sleep) S 1 7 42 0 -1", false),
            ("", false),
        ] {
            assert_eq!(is_alive_in(group, stat), expected, "{stat}");
        }
    }
}
