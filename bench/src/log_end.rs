//! The end of the log on PostgreSQL as a row that is held late, against a sealer that gives places to
//! committed entries: both as plain SQL by `pgbench`, in turns.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use cluster::Cluster;
use store_postgres::{Postgres, Target};

use crate::spread;

pub(crate) fn run(seconds: u64, rounds: usize) -> anyhow::Result<()> {
    let cluster = Cluster::start()?;
    println!("\nlog-end: transactions per second by pgbench, {seconds} s each, {rounds} rounds");
    println!(
        "{:>7} {:>8} {:>10} {:>7} {:>20}",
        "clients", "changes", "held late", "sealer", "ratio"
    );
    for clients in [1, 2, 4, 8] {
        // As many callers wait at all clients together, whatever their number: as in the store.
        for waiting in [8, 64] {
            let group = (waiting / clients).max(1);
            let bench = Bench { cluster: &cluster, clients, group, seconds };
            let (mut ratios, mut lates, mut sealers) = (vec![], vec![], vec![]);
            for _ in 0..rounds {
                let (late, sealer) = (bench.held_late()?, bench.sealer()?);
                ratios.push(late / sealer);
                lates.push(late);
                sealers.push(sealer);
            }
            let (ratio, least, most) = spread(ratios);
            let (late, sealer) = (spread(lates).0, spread(sealers).0);
            println!(
                "{clients:>7} {group:>8} {late:>10.0} {sealer:>7.0}   {ratio:.2} [{least:.2}–{most:.2}]"
            );
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Bench<'a> {
    cluster: &'a Cluster,
    clients: usize,
    group: usize,
    seconds: u64,
}

impl Bench<'_> {
    fn held_late(self) -> anyhow::Result<f64> {
        let url = self.database()?;
        rate(self.pgbench(&url, "held_late.sql", self.clients).spawn()?)
    }

    fn sealer(self) -> anyhow::Result<f64> {
        let url = self.database()?;
        self.cluster.query(&url, include_str!("../sql/sealer_tables.sql"))?;
        let mut sealing = self.pgbench(&url, "seal.sql", 1);
        let sealing = sealing.stdout(Stdio::null()).spawn()?;
        let committed = rate(self.pgbench(&url, "unsealed.sql", self.clients).spawn()?)?;
        ensure!(sealing.wait_with_output()?.status.success(), "the sealer failed");
        let sealed = self.cluster.query(&url, "SELECT count(*) FROM seal")?;
        let sealed: f64 = sealed.trim().parse()?;
        let made = committed * self.seconds as f64 * self.group as f64;
        ensure!(made * 0.7 < sealed, "the sealer is behind: {sealed} of {made}");
        Ok(committed)
    }

    fn database(self) -> anyhow::Result<String> {
        let url = self.cluster.database()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let target = Target::new(&url, None, None)?;
        runtime.block_on(async { Postgres::open(&target).await.map(drop) })?;
        let rows = format!(
            "INSERT INTO item SELECT 'agent', 'c' || c || '-' || n, 1, '' \
             FROM generate_series(0, {}) AS c, generate_series(1, {}) AS n; ANALYZE item",
            self.clients, self.group
        );
        self.cluster.query(&url, &rows)?;
        Ok(url)
    }

    fn pgbench(self, url: &str, script: &str, clients: usize) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql").join(script);
        let mut command = Command::new(self.cluster.program("pgbench"));
        command.args(["-n", "-M", "extended", "-j1"]).arg("-f").arg(script);
        command.args(["-c", &clients.to_string(), "-T", &self.seconds.to_string()]);
        command.args(["-D", &format!("group={}", self.group), url]);
        command.stdout(Stdio::piped());
        command
    }
}

/// The transactions per second that a `pgbench` has seen.
fn rate(running: Child) -> anyhow::Result<f64> {
    let output = running.wait_with_output()?;
    ensure!(output.status.success(), "pgbench failed");
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find_map(|line| line.strip_prefix("tps = "));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.context("pgbench has told no rate")?.parse().context("a rate that is no number")
}
