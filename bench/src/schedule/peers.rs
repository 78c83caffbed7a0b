//! The peers: npm packages in a directory below `target/`, each driven by a script in `bench/peers`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

/// Versions for Node 20; newer versions of the two queues need a newer Node.
const PACKAGES: &[&str] = &[
    "@restatedev/restate-server@1.7.12",
    "@restatedev/restate-sdk@1.17.2",
    "graphile-worker@0.17.3",
    "pg-boss@10.4.2",
    "pg@8",
];
/// How long a peer may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct Peers {
    dir: PathBuf,
}

/// The numbers that a script printed, by name.
#[derive(Debug, Default)]
pub(crate) struct Figures(BTreeMap<String, f64>);

impl Peers {
    /// Installs missing packages without running their install scripts.
    pub(crate) fn install() -> anyhow::Result<Peers> {
        let program = std::env::current_exe()?;
        let target = program.ancestors().nth(2).context("the program is not below `target/`")?;
        let dir = target.join("peers");
        std::fs::create_dir_all(&dir)?;
        // Without a manifest here, npm would use one of a parent directory.
        let manifest = dir.join("package.json");
        if !manifest.exists() {
            std::fs::write(&manifest, "{\"private\":true}\n")?;
        }
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
        let done = npm.args(PACKAGES).current_dir(&dir).stdout(Stdio::null()).status();
        ensure!(done.context("cannot run npm")?.success(), "npm failed to install the peers");
        println!("peers    {}", PACKAGES.join(", "));
        Ok(Peers { dir })
    }

    /// Runs a script of `bench/peers`.
    pub(crate) fn run(
        &self,
        script: &str,
        args: &[String],
        timeout: Duration,
    ) -> anyhow::Result<Figures> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(script);
        let mut node = Command::new("node");
        node.arg(&script).args(args).current_dir(&self.dir);
        let mut running = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let ended = ends_within(&mut running, timeout)?;
        if !ended {
            // At the end of its input, a script stops its children and itself.
            drop(running.stdin.take());
            if !ends_within(&mut running, STOP_TIMEOUT)? {
                running.kill()?;
            }
        }
        ensure!(running.wait()?.success() && ended, "{} failed", script.display());
        let mut text = String::new();
        running.stdout.take().context("no output")?.read_to_string(&mut text)?;
        Figures::of(&text)
    }
}

impl Figures {
    fn of(text: &str) -> anyhow::Result<Figures> {
        let mut figures = BTreeMap::new();
        for word in text.lines().last().unwrap_or_default().split_whitespace() {
            let (name, value) =
                word.split_once('=').context("the peer printed a figure without a name")?;
            figures.insert(name.to_owned(), value.parse()?);
        }
        Ok(Figures(figures))
    }

    pub(crate) fn get(&self, name: &str) -> anyhow::Result<f64> {
        match self.0.get(name) {
            Some(value) => Ok(*value),
            None => bail!("the peer did not print `{name}`"),
        }
    }
}

fn ends_within(running: &mut Child, timeout: Duration) -> anyhow::Result<bool> {
    let started = Instant::now();
    while started.elapsed() < timeout {
        if running.try_wait()?.is_some() {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(false)
}

/// Printed if a phase is measured without peers.
pub(crate) fn print_not_measured() {
    println!("  peer     not measured: give `--peers`");
}
