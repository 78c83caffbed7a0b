//! A program with all that it starts: one process group, which ends with this value at the latest.
//!
//! Whoever leaves the group (`setsid`) leaves our reach; only a sandbox can hold it. Should we be
//! killed ourselves, the group lives on: to be killed with its parent a process would have to ask
//! for it between fork and exec, which needs unsafe code.

use std::io;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin, Command};

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// `None` after the end, when the number may belong to somebody else.
    group: Option<Pid>,
}

impl Process {
    /// The command is dropped, and with it our copies of the pipes that the program writes to.
    pub(crate) fn start(mut command: Command) -> io::Result<Process> {
        let child = command.process_group(0).spawn()?;
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        Ok(Process { group: number.and_then(Pid::from_raw), child })
    }

    pub(crate) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Waits for the end of the program itself, and kills whoever it left in its group.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.signal(Signal::KILL);
        self.group = None;
        status
    }

    /// Signals every process of the group.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It fails only when nobody is there any more.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
