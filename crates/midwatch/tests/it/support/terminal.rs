//! The real program in a terminal of its own, made by `script`.

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
    /// Starts a command, without `midwatch`.
    pub(crate) fn start(world: &World, command: &str) -> Terminal {
        let mut script = world.wrapped("script");
        script
            .args(["-qefc", &format!("exec {PROGRAM} {command}"), "/dev/null"])
            .env("TERM", "dumb");
        script.env("MIDWATCH_LOG_LEVEL", "error");
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
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

    /// Everything that was printed so far.
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

    /// Waits until the command has ended. Returns its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        wait_for(|| self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
