//! The time from starting the program to its `ready` line on a long ledger, its memory at rest, and `--version`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::spread;
use crate::verify::write_ledger;

/// How long the daemon is idle before its memory is read.
const REST: Duration = Duration::from_secs(5);

pub(crate) fn run(entries: u64, rounds: usize) -> anyhow::Result<()> {
    let program = program()?;
    let data = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(write_ledger(data.path(), entries))?;

    let version = (0..rounds).map(|_| {
        let started = Instant::now();
        let done = Command::new(&program).arg("--version").stdout(Stdio::null()).status();
        done.map(|_| started.elapsed().as_secs_f64() * 1e3)
    });
    let (ms, least, most) = spread(version.collect::<Result<_, _>>()?);
    println!("\n--version: {ms:.1} ms [{least:.1}–{most:.1}]");

    let mut spans = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        let mut daemon = start(&program, data.path())?;
        spans.push(started.elapsed().as_secs_f64() * 1e3);
        daemon.kill()?;
        daemon.wait()?;
    }
    let (ms, least, most) = spread(spans);
    println!("ready after kill -9, {entries} entries: {ms:.0} ms [{least:.0}–{most:.0}]");

    let mut daemon = start(&program, data.path())?;
    std::thread::sleep(REST);
    println!("resident at rest, {entries} entries: {}", resident(daemon.id())?);
    daemon.kill()?;
    daemon.wait()?;

    let empty = tempfile::tempdir()?;
    let mut daemon = start(&program, empty.path())?;
    std::thread::sleep(REST);
    println!("resident at rest, new ledger: {}", resident(daemon.id())?);
    daemon.kill()?;
    daemon.wait()?;
    Ok(())
}

/// Starts the daemon and waits for its `ready` line.
pub(crate) fn start(program: &Path, data: &Path) -> anyhow::Result<Child> {
    let mut command = Command::new(program);
    command.args(["up", "--data"]).arg(data).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut daemon = command.spawn()?;
    let mut line = String::new();
    BufReader::new(daemon.stdout.take().context("no output")?).read_line(&mut line)?;
    anyhow::ensure!(line.starts_with("ready"), "the daemon is not ready: {line}");
    Ok(daemon)
}

fn resident(pid: u32) -> anyhow::Result<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    Ok(line.context("no VmRSS")?.trim().to_owned())
}

/// The release build of `midwatch`, in the folder of this program.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("midwatch");
    anyhow::ensure!(path.exists(), "build it first: cargo build --release -p midwatch");
    Ok(path)
}
