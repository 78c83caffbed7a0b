//! The world outside: a file to which every program adds one line, and the programs themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::time::{sleep, timeout};

use super::PAUSE;
use crate::crash::daemon::PATIENCE;

/// Takes a while, takes effect by one write, takes a while. Its prompt says how long. A prompt that
/// did not come, as its daemon was killed, makes it quick.
const SCRIPT: &str = r#"read -r before after; sleep "${before:-0}"
echo "$MIDWATCH_RUN_ID $MIDWATCH_ATTEMPT $MIDWATCH_SLOT" >> "$0"
sleep "${after:-0}""#;

#[derive(Debug)]
pub(super) struct Effects {
    /// Where the program works and everything that it starts: no other process has to do with it.
    root: PathBuf,
    file: PathBuf,
}

/// How often each attempt of each run took effect.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) lines: u64,
    pub(super) runs: BTreeMap<String, BTreeMap<u32, u64>>,
    /// The slots that each run was told to be for, in microseconds.
    pub(super) slots: BTreeMap<String, BTreeSet<i64>>,
    /// Lines that no program can have written.
    pub(super) strange: Vec<String>,
}

impl Effects {
    pub(super) fn new(root: &Path) -> Effects {
        Effects { root: root.to_owned(), file: root.join("effects") }
    }

    /// The command line of the program.
    pub(super) fn argv(&self) -> Vec<String> {
        let file = self.file.display().to_string();
        ["/bin/sh", "-c", SCRIPT, &file].map(str::to_owned).to_vec()
    }

    /// Waits until no program is left.
    pub(super) async fn settle(&self) -> Result<()> {
        let gone = async {
            while self.is_anyone_left()? {
                sleep(PAUSE).await;
            }
            anyhow::Ok(())
        };
        timeout(PATIENCE, gone).await.context("some programs never end")?
    }

    pub(super) fn read(&self) -> Result<Counted> {
        match fs::read_to_string(&self.file) {
            Ok(text) => Ok(Counted::of(&text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Counted::default()),
            Err(error) => Err(error).context("the effects cannot be read"),
        }
    }

    /// Whether there is a process that the daemon has started. A child that is not yet a program of
    /// its own has the environment of the daemon; one that is just becoming it has its directory.
    fn is_anyone_left(&self) -> Result<bool> {
        let root = self.root.as_os_str().as_encoded_bytes();
        for process in fs::read_dir("/proc")? {
            let process = process?.path();
            // What is no process, is gone by now or belongs to another user has nothing to tell.
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            let directory = fs::read_link(process.join("cwd")).unwrap_or_default();
            let is_named = environment.windows(root.len()).any(|part| part == root);
            if is_named || directory.starts_with(&self.root) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Counted {
    pub(super) fn of(text: &str) -> Counted {
        let mut counted = Counted::default();
        for line in text.lines() {
            counted.lines += 1;
            let Some((run, attempt, slot_us)) = words(line) else {
                counted.strange.push(line.to_owned());
                continue;
            };
            let attempts = counted.runs.entry(run.to_owned()).or_default();
            *attempts.entry(attempt).or_default() += 1;
            counted.slots.entry(run.to_owned()).or_default().insert(slot_us);
        }
        counted
    }
}

/// The run of a line, its attempt and its slot.
fn words(line: &str) -> Option<(&str, u32, i64)> {
    let mut words = line.split(' ');
    let (run, attempt) = (words.next()?, words.next()?.parse().ok()?);
    let slot: jiff::Timestamp = words.next()?.parse().ok()?;
    words.next().is_none().then_some((run, attempt, slot.as_microsecond()))
}
