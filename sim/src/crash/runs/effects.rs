//! Effects outside Midwatch: a file to which every program appends one line, and the programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tokio::time::{sleep, timeout};

use super::POLL_INTERVAL;
use crate::crash::daemon::TIMEOUT;

/// Sleeps, takes effect by one write, sleeps again. The prompt has the times; without a prompt, because the daemon was
/// killed, both are zero.
const SCRIPT: &str = r#"read -r before after; sleep "${before:-0}"
echo "$MIDWATCH_RUN_ID $MIDWATCH_ATTEMPT $MIDWATCH_SLOT" >> "$0"
sleep "${after:-0}""#;

#[derive(Debug)]
pub(super) struct Effects {
    /// Contains the directories of the daemon and its programs. No other process uses it.
    root: PathBuf,
    file: PathBuf,
}

/// How often each attempt of each run took effect.
#[derive(Debug, Default)]
pub(super) struct EffectCounts {
    pub(super) lines: u64,
    pub(super) runs: BTreeMap<String, BTreeMap<u32, u64>>,
    /// The slots that the programs of each run received, in microseconds.
    pub(super) slots: BTreeMap<String, BTreeSet<i64>>,
    /// Lines that no program can have written.
    pub(super) malformed: Vec<String>,
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

    /// Waits until no program is running.
    pub(super) async fn wait_for_programs(&self) -> Result<()> {
        let all_ended = async {
            while self.is_any_process_left()? {
                sleep(POLL_INTERVAL).await;
            }
            anyhow::Ok(())
        };
        timeout(TIMEOUT, all_ended).await.context("some programs never end")?
    }

    pub(super) fn read(&self) -> Result<EffectCounts> {
        match fs::read_to_string(&self.file) {
            Ok(text) => Ok(EffectCounts::of(&text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(EffectCounts::default()),
            Err(error) => Err(error).context("cannot read the effects"),
        }
    }

    /// Whether a process of the daemon is running. A child before `exec` has the daemon's environment; one during `exec` has
    /// its directory.
    fn is_any_process_left(&self) -> Result<bool> {
        let root = self.root.as_os_str().as_encoded_bytes();
        for process in fs::read_dir("/proc")? {
            let process = process?.path();
            // Empty for other entries, ended processes and those of other users.
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

impl EffectCounts {
    pub(super) fn of(text: &str) -> EffectCounts {
        let mut counted = EffectCounts::default();
        for line in text.lines() {
            counted.lines += 1;
            let Some((run, attempt, slot_us)) = parse_line(line) else {
                counted.malformed.push(line.to_owned());
                continue;
            };
            let attempts = counted.runs.entry(run.to_owned()).or_default();
            *attempts.entry(attempt).or_default() += 1;
            counted.slots.entry(run.to_owned()).or_default().insert(slot_us);
        }
        counted
    }
}

/// The run, attempt and slot of a line.
fn parse_line(line: &str) -> Option<(&str, u32, i64)> {
    let mut words = line.split(' ');
    let (run, attempt) = (words.next()?, words.next()?.parse().ok()?);
    let slot: jiff::Timestamp = words.next()?.parse().ok()?;
    words.next().is_none().then_some((run, attempt, slot.as_microsecond()))
}
