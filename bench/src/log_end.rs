//! Two designs for appending to the ledger on PostgreSQL: locking the row with the end of the ledger late in each
//! transaction, and a sealer that numbers committed entries. Both are plain SQL, run by `pgbench` in turns.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use store_postgres::{Postgres, Target};
use test_postgres::{Options, PostgresServer};

use crate::spread;

pub(crate) fn run(seconds: u64, rounds: usize) -> anyhow::Result<()> {
    let postgres = PostgresServer::start_with(Options::default().durable())?;
    println!("\nlog-end: transactions per second by pgbench, {seconds} s each, {rounds} rounds");
    println!(
        "{:>7} {:>8} {:>10} {:>7} {:>20}",
        "clients", "changes", "lock late", "sealer", "ratio"
    );
    for clients in [1, 2, 4, 8] {
        // As in the store, the number of waiting callers does not depend on the number of clients.
        for waiting in [8, 64] {
            let group = (waiting / clients).max(1);
            let bench = Bench { postgres: &postgres, clients, group, seconds };
            let (mut ratios, mut lates, mut sealers) = (vec![], vec![], vec![]);
            for _ in 0..rounds {
                let (late, sealer) = (bench.lock_late()?, bench.sealer()?);
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
    postgres: &'a PostgresServer,
    clients: usize,
    group: usize,
    seconds: u64,
}

impl Bench<'_> {
    fn lock_late(self) -> anyhow::Result<f64> {
        let url = self.database()?;
        rate(self.pgbench(&url, "lock_late.sql", self.clients).spawn()?)
    }

    fn sealer(self) -> anyhow::Result<f64> {
        let url = self.database()?;
        self.postgres.query(&url, include_str!("../sql/sealer_tables.sql"))?;
        let mut sealing = self.pgbench(&url, "seal.sql", 1);
        let sealing = sealing.stdout(Stdio::null()).spawn()?;
        let committed = rate(self.pgbench(&url, "unsealed.sql", self.clients).spawn()?)?;
        ensure!(sealing.wait_with_output()?.status.success(), "the sealer failed");
        let sealed = self.postgres.query(&url, "SELECT count(*) FROM seal")?;
        let sealed: f64 = sealed.trim().parse()?;
        let expected = committed * self.seconds as f64 * self.group as f64;
        ensure!(expected * 0.7 < sealed, "the sealer is behind: {sealed} of {expected}");
        Ok(committed)
    }

    fn database(self) -> anyhow::Result<String> {
        let url = self.postgres.create_database()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let target = Target::new(&url, None, None)?;
        runtime.block_on(async { Postgres::open(&target).await.map(drop) })?;
        let rows = format!(
            "INSERT INTO item SELECT 'agent', 'c' || c || '-' || n, 1, '' \
             FROM generate_series(0, {}) AS c, generate_series(1, {}) AS n; ANALYZE item",
            self.clients, self.group
        );
        self.postgres.query(&url, &rows)?;
        Ok(url)
    }

    fn pgbench(self, url: &str, script: &str, clients: usize) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql").join(script);
        let mut command = Command::new(self.postgres.program("pgbench"));
        command.args(["-n", "-M", "extended", "-j1"]).arg("-f").arg(script);
        command.args(["-c", &clients.to_string(), "-T", &self.seconds.to_string()]);
        command.args(["-D", &format!("group={}", self.group), url]);
        command.stdout(Stdio::piped());
        command
    }
}

/// The transactions per second that a `pgbench` reports.
fn rate(running: Child) -> anyhow::Result<f64> {
    let output = running.wait_with_output()?;
    ensure!(output.status.success(), "pgbench failed");
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find_map(|line| line.strip_prefix("tps = "));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .context("pgbench printed no rate")?
        .parse()
        .context("the rate of pgbench is not a number")
}
