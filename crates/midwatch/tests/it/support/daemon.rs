//! A running daemon.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

use rustix::process::{Pid, Signal, kill_process};

use super::wait::TIMEOUT;

const DRAIN: &str = "MIDWATCH_RUNS_DRAIN";

/// A daemon that has printed its first line. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    /// The first line on stdout.
    pub(crate) ready: String,
    /// Everything on stderr, sent once the daemon has closed it.
    stderr: Receiver<String>,
}

impl Daemon {
    /// Starts the daemon and waits until it serves.
    pub(crate) fn start(command: &mut Command) -> Daemon {
        let mut daemon = Daemon::spawn(command);
        let is_ready = ["ready", "{\"ready\""].iter().any(|it| daemon.ready.starts_with(it));
        assert!(is_ready, "not ready: {:?}", daemon.wait());
        daemon
    }

    /// Starts the daemon and waits for its first line on stdout, or for its exit.
    pub(crate) fn spawn(command: &mut Command) -> Daemon {
        // A test that leaves a run running does not wait minutes for it.
        if command.get_envs().all(|(name, _)| name != DRAIN) {
            command.env(DRAIN, "5s");
        }
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut pipe = child.stderr.take().unwrap();
        let (sender, stderr) = mpsc::channel();
        // Read all along, so that the daemon never blocks on a full pipe.
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            sender.send(String::from_utf8_lossy(&bytes).into_owned())
        });
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        Daemon { child, ready, stderr }
    }

    /// Starts a daemon that must fail to start. Returns its exit code and stderr.
    pub(crate) fn fails(command: &mut Command) -> (Option<i32>, String) {
        let mut daemon = Daemon::spawn(command);
        assert_eq!(daemon.ready, "", "the daemon started");
        daemon.wait()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the daemon with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the daemon with SIGTERM; it must exit with 0. Returns its stderr.
    pub(crate) fn stop(self) -> String {
        self.stop_by(Signal::TERM)
    }

    pub(crate) fn stop_by(mut self, signal: Signal) -> String {
        self.signal(signal);
        let (code, stderr) = self.wait();
        assert_eq!(code, Some(0), "{signal:?}: {stderr}");
        stderr
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until the daemon exits by itself. Returns its exit code and stderr.
    pub(crate) fn wait(&mut self) -> (Option<i32>, String) {
        let stderr = self.stderr.recv_timeout(TIMEOUT).expect("the daemon exits in time");
        (self.child.wait().unwrap().code(), stderr)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
