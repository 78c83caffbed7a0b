//! A command in a terminal of its own, made by `script`, as a person runs it.

use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::support::wait::{wait_for, wait_until};
use crate::support::world::{PROGRAM, World};

#[derive(Debug)]
pub(crate) struct Terminal {
    child: Child,
    printed: Receiver<String>,
    text: String,
}

impl Terminal {
    /// Starts `midwatch` with these arguments.
    pub(crate) fn start(world: &World, arguments: &[&str]) -> Terminal {
        let mut command = world.wrapped("script");
        command.args(["-qefc", &command_line(arguments), "/dev/null"]).env("TERM", "dumb");
        command.env("MIDWATCH_LOG_LEVEL", "error");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (sender, printed) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut bytes) {
                let _ = sender.send(String::from_utf8_lossy(&bytes[..count]).into_owned());
            }
        });
        Terminal { child, printed, text: String::new() }
    }

    /// Runs a command to its end, which must be a success. Returns what it has shown.
    pub(crate) fn run(world: &World, arguments: &[&str]) -> String {
        let mut terminal = Terminal::start(world, arguments);
        let code = terminal.wait();
        assert_eq!(code, Some(0), "{arguments:?}: {}", terminal.text());
        std::mem::take(&mut terminal.text)
    }

    /// Everything that was shown so far.
    pub(crate) fn text(&mut self) -> &str {
        self.text.extend(self.printed.try_iter());
        &self.text
    }

    pub(crate) fn wait_for(&mut self, expected: &str) {
        wait_until(|| self.text().contains(expected));
    }

    /// Presses keys; `\x03` is ctrl-c.
    pub(crate) fn press(&mut self, keys: &str) {
        self.child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Kills the daemon of a world that runs here with SIGKILL, as its lock names it.
    pub(crate) fn kill_daemon(&mut self, world: &World) {
        let lock = std::fs::read_to_string(world.data().join("lock")).unwrap();
        let pid = rustix::process::Pid::from_raw(lock.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        self.wait();
    }

    /// Waits until the command has ended and all that it has shown was read. Returns its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let status = wait_for(|| self.child.try_wait().unwrap());
        self.text.extend(self.printed.iter());
        status.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program and its arguments, for a shell.
fn command_line(arguments: &[&str]) -> String {
    let quoted = |word: &&str| format!("'{}'", word.replace('\'', r"'\''"));
    let words: Vec<String> = [&[PROGRAM], arguments].concat().iter().map(quoted).collect();
    format!("exec {}", words.join(" "))
}
