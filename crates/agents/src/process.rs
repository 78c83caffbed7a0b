//! A program and the processes it starts: one process group, which is killed when this value is dropped.
//!
//! A process that leaves the group (`setsid`) can only be found as an orphan, if this process adopts orphans; only
//! a sandbox can contain it. If the daemon itself is killed, the group lives on: to die with its parent, a process
//! would have to request it between fork and exec, which needs unsafe code.
//!
//! Every program carries a mark that it and its descendants cannot remove: it can never gain privileges
//! (`no_new_privs`). By the mark a process of a run is recognised even when its parents, or the daemon, are gone.

use std::process::ExitStatus;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::{fs, io, thread};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use rustix::process::{kill_process, kill_process_group, test_kill_process_group};
use rustix::thread::{no_new_privs, set_no_new_privs};
use tokio::process::{Child, ChildStdin, Command};
use tokio::runtime::Handle;

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// `None` after the program has exited, when the id may belong to another process.
    group: Option<Pid>,
    pid: Option<Pid>,
}

/// Programs that this process started and waits for, each with its run if it has one.
fn started() -> MutexGuard<'static, Vec<(Pid, Option<String>)>> {
    static STARTED: Mutex<Vec<(Pid, Option<String>)>> = Mutex::new(Vec::new());
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The run that this process started the program `pid` for.
pub fn run_of_process(pid: i32) -> Option<String> {
    let pid = Pid::from_raw(pid)?;
    started().iter().find(|(started, _)| *started == pid).and_then(|(_, run)| run.clone())
}

/// Whether the process `pid` has the mark of a program that this or another Midwatch started. `None` if that cannot be
/// told, because this process has the same mark or there is no such process.
pub fn has_mark(pid: i32) -> Option<bool> {
    if no_new_privs().unwrap_or(true) {
        return None;
    }
    mark_of(pid)
}

/// Whether this process has the mark. One that the first process has too tells nothing: a container may set it for all.
pub fn is_marked() -> bool {
    no_new_privs().unwrap_or(false) && mark_of(1) != Some(true)
}

fn mark_of(pid: i32) -> Option<bool> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mark = status.lines().find_map(|line| line.strip_prefix("NoNewPrivs:"))?;
    Some(mark.trim() == "1")
}

/// Starts a program on the one thread that has the mark: a program inherits it from the thread that starts it.
fn start_marked(mut command: Command) -> io::Result<Child> {
    type Job = Box<dyn FnOnce() + Send>;
    static STARTER: OnceLock<Sender<Job>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, jobs) = channel::<Job>();
        thread::spawn(move || {
            // Every kernel since 3.5 has it.
            let _ = set_no_new_privs(true);
            jobs.into_iter().for_each(|job| job());
        });
        sender
    });
    let (runtime, (sender, result)) = (Handle::current(), channel());
    let job = move || {
        let _context = runtime.enter();
        // The receiver waits.
        let _ = sender.send(command.spawn());
    };
    let is_gone = || io::Error::other("the thread that starts programs has ended");
    starter.send(Box::new(job)).map_err(|_| is_gone())?;
    result.recv().map_err(|_| is_gone())?
}

/// Reaps children that have exited and were not started here, but adopted when their parents exited.
pub fn reap_orphans() {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    for_each_orphan(|pid| {
        if let Ok(Some(_)) = waitid(WaitId::Pid(pid), peek) {
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    });
}

/// Kills adopted orphans. Their children are adopted then, and found by the next call. Returns whether there were any.
pub fn kill_orphans() -> bool {
    let mut found = false;
    for_each_orphan(|pid| {
        found = true;
        // It fails only when the process has exited.
        let _ = kill_process(pid, Signal::KILL);
    });
    found
}

fn for_each_orphan(mut act: impl FnMut(Pid)) {
    let started = started();
    let is_orphan = |pid: &Pid| started.iter().all(|(own, _)| own != pid);
    children().into_iter().filter(is_orphan).for_each(&mut act);
}

/// The children of all threads of this process.
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
    /// Drops the command, and with it our copies of the pipes that the program writes to.
    pub(crate) fn start(mut command: Command, run: Option<&str>) -> io::Result<Process> {
        // Locked until the child is in the list, so that it is not mistaken for an orphan.
        let mut started = started();
        command.process_group(0);
        let child = start_marked(command)?;
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        let group = number.and_then(Pid::from_raw);
        started.extend(group.map(|pid| (pid, run.map(str::to_owned))));
        Ok(Process { group, pid: group, child })
    }

    pub(crate) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Waits until the program itself exits, and kills the processes it left in its group.
    pub(crate) async fn wait(&mut self) -> io::Result<(ExitStatus, Leftovers)> {
        let status = self.child.wait().await;
        let left = self.group.map_or(Leftovers::None, find_leftovers);
        self.signal(Signal::KILL);
        self.group = None;
        Ok((status?, left))
    }

    /// Signals every process of the group.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It fails only when the group is empty.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Whether a program left processes running in its group when it exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftovers {
    None,
    Killed,
}

/// Zombies do not count.
fn find_leftovers(group: Pid) -> Leftovers {
    // Usually the group is empty, and this is cheap.
    if test_kill_process_group(group).is_err() {
        return Leftovers::None;
    }
    let Ok(processes) = fs::read_dir("/proc") else { return Leftovers::None };
    let mut stats = processes.flatten().filter_map(|it| fs::read(it.path().join("stat")).ok());
    match stats.any(|stat| is_alive_in(group, &String::from_utf8_lossy(&stat))) {
        true => Leftovers::Killed,
        false => Leftovers::None,
    }
}

/// Parses a line of `/proc/PID/stat`: state and group follow the name, which may contain anything.
fn is_alive_in(group: Pid, stat: &str) -> bool {
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let (state, _parent, own) = (fields.next(), fields.next(), fields.next());
    let is_alive = state.is_some_and(|state| !matches!(state, "Z" | "X"));
    is_alive && own.and_then(|own| own.parse().ok()) == Some(group.as_raw_nonzero().get())
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(pid) = self.pid {
            started().retain(|(other, _)| *other != pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zombies_and_other_groups_do_not_count() {
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
