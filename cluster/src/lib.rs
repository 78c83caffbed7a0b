//! A real PostgreSQL that tests, simulations and benchmarks start by themselves.
//!
//! A [`Cluster`] is one server with a private directory in `/tmp`, reached by a Unix socket in it.
//! Nobody has to stop it: server and directory go when the value is dropped, and also when the
//! process is killed or holds it in a `static` (see `supervisor.rs`). All of it blocks.
//!
//! ```
//! let cluster = cluster::Cluster::start().unwrap();
//! let url = cluster.database().unwrap();
//! assert_eq!(cluster.query(&url, "SELECT 6 * 7").unwrap(), "42\n");
//! ```

mod binaries;
mod process;
mod standby;
mod supervisor;
mod tls;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};

use binaries::Binaries;
use process::State;
use supervisor::{Supervisor, quoted};

/// The superuser of every cluster; it has no password.
const USER: &str = "midwatch";

/// A server that many tests share and a small machine bears. Shared memory is a file in the
/// directory, because a server that is killed would leave it behind elsewhere.
const SETTINGS: &[(&str, &str)] = &[
    ("dynamic_shared_memory_type", "mmap"),
    ("fsync", "on"),
    ("max_connections", "100"),
    ("shared_buffers", "64MB"),
];

/// Not the usual port: another server may have that one on every address.
const TCP_PORT: u16 = 25_432;

/// What is different from a server that listens on its socket only.
#[derive(Clone, Debug, Default)]
pub struct Options {
    tcp: bool,
    tls: bool,
    settings: Vec<(String, String)>,
}

impl Options {
    /// Listens on a loopback address of its own as well; see [`Cluster::over_tcp`].
    pub fn tcp(mut self) -> Options {
        self.tcp = true;
        self
    }

    /// Listens as with [`Options::tcp`], and speaks TLS there to whoever asks for it; see
    /// [`Cluster::authority`].
    pub fn tls(mut self) -> Options {
        self.tls = true;
        self.tcp()
    }

    /// One more line of `postgresql.conf`; the last one of a name counts.
    pub fn setting(mut self, name: &str, value: &str) -> Options {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A running server, or one that was stopped and can be started again.
#[derive(Debug)]
pub struct Cluster {
    binaries: Binaries,
    options: Options,
    supervisor: Supervisor,
    databases: AtomicU32,
}

impl Cluster {
    /// A new server without databases of ours. An error says what is missing on this machine.
    pub fn start() -> Result<Cluster> {
        Cluster::start_with(Options::default())
    }

    pub fn start_with(options: Options) -> Result<Cluster> {
        let cluster = Cluster::prepare(Binaries::find()?, options)?;
        cluster.supervisor.run(&format!(
            "{} --pgdata={} --auth=trust --username={USER} --encoding=UTF8 --locale=C --no-sync",
            quoted(cluster.binaries.path("initdb")),
            quoted(cluster.data()),
        ))?;
        cluster.start_again()?;
        Ok(cluster)
    }

    /// Makes an empty database with a name of its own and returns its URL.
    pub fn database(&self) -> Result<String> {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let url = self.url(&format!("{}_{number}", self.name()?));
        // Nobody can be connected to `template0`, so several may copy it at once.
        let (_, database) = split(&url)?;
        self.client("createdb", &["--template=template0", database])?;
        Ok(url)
    }

    /// The database of the same name in this cluster, as on a standby.
    pub fn here(&self, url: &str) -> Result<String> {
        let (_, database) = split(url)?;
        Ok(self.url(database))
    }

    /// The same database over TCP, in a cluster with [`Options::tcp`].
    pub fn over_tcp(&self, url: &str) -> Result<String> {
        ensure!(self.options.tcp, "this cluster listens on its socket only");
        let (_, database) = split(url)?;
        Ok(format!("postgres://{USER}@{}:{TCP_PORT}/{database}", self.address()))
    }

    /// The certificate by which a client knows the server, in a cluster with [`Options::tls`].
    pub fn authority(&self) -> PathBuf {
        self.directory().join(tls::AUTHORITY)
    }

    /// What `psql` prints for SQL: lines of columns with `|` between them.
    pub fn query(&self, url: &str, sql: &str) -> Result<String> {
        let fixed = ["--no-psqlrc", "--quiet", "--no-align", "--tuples-only"];
        let given = ["--set=ON_ERROR_STOP=1", "--command", sql, url];
        process::output(self.binaries.path("psql"), &[&fixed[..], &given].concat())
    }

    /// Where a program of the server's version is, as `pgbench`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.binaries.path(name)
    }

    /// The directory of the server's files and its socket.
    pub fn directory(&self) -> &Path {
        self.supervisor.directory()
    }

    /// The end of the server's log.
    pub fn log(&self) -> String {
        self.supervisor.log()
    }

    /// Stops it as a crash of the server does: nothing is written any more, connections break.
    pub fn stop_immediately(&self) -> Result<()> {
        self.supervisor.run("kill -QUIT $pid && { wait $pid; pid=; }")
    }

    /// Kills the server and all its processes, whatever they are doing.
    pub fn kill(&self) -> Result<()> {
        let server = self.supervisor.server().context("the server does not run")?;
        // A stopped server starts no process that the list would lack, and frees no process id.
        self.supervisor.run("kill -STOP $pid")?;
        ensure!(process::comes_true(|| process::state(server) == State::Stopped), "cannot stop it");
        let children = process::children(server);
        let pids: Vec<String> = children.iter().map(u32::to_string).collect();
        self.supervisor.run(&format!("kill -KILL $pid {}; wait $pid; pid=", pids.join(" ")))?;
        let gone = || children.iter().all(|&pid| process::state(pid) == State::Gone);
        ensure!(process::comes_true(gone), "processes of the server survived SIGKILL");
        Ok(())
    }

    /// Starts a server that was stopped or killed, on the same data, and waits until it answers.
    pub fn start_again(&self) -> Result<()> {
        ensure!(self.supervisor.server().is_none(), "the server runs already");
        self.supervisor.run(&format!("{} & pid=$!", self.command_line()))?;
        let server = self.supervisor.server().context("the server was not started")?;
        let mut answers = false;
        process::comes_true(|| {
            answers = self.client("pg_isready", &["--dbname=postgres", "--timeout=1"]).is_ok();
            answers || process::state(server) == State::Gone
        });
        ensure!(answers, "the server does not accept connections; its log:\n{}", self.log());
        Ok(())
    }

    fn prepare(binaries: Binaries, options: Options) -> Result<Cluster> {
        let supervisor = Supervisor::start()?;
        let cluster = Cluster { binaries, options, supervisor, databases: AtomicU32::new(1) };
        if cluster.options.tls {
            tls::make_certificates(&cluster.supervisor, cluster.address())?;
        }
        Ok(cluster)
    }

    fn data(&self) -> PathBuf {
        self.directory().join("data")
    }

    /// A word that no other cluster of this machine has, and that is fit for a database.
    fn name(&self) -> Result<String> {
        let name = self.directory().file_name().context("the directory has a name")?;
        Ok(name.to_string_lossy().to_lowercase().replace('-', "_"))
    }

    fn url(&self, database: &str) -> String {
        let host = self.directory().to_string_lossy().replace('/', "%2F");
        let port = if self.options.tcp { format!(":{TCP_PORT}") } else { String::new() };
        format!("postgres://{USER}@{host}{port}/{database}")
    }

    /// It is part of the socket's name too, where a client expects the usual one.
    fn port(&self) -> u16 {
        if self.options.tcp { TCP_PORT } else { 5432 }
    }

    /// A process id belongs to one process, so an address made of it belongs to one cluster; a
    /// free port would have to be looked for, and could be taken before the server has it.
    fn address(&self) -> Ipv4Addr {
        let [high, middle_high, middle_low, low] = self.supervisor.pid().to_be_bytes();
        debug_assert_eq!(high, 0, "Linux has at most 2^22 process ids");
        Ipv4Addr::new(127, 64 + (middle_high & 0x3f), middle_low, low)
    }

    fn command_line(&self) -> String {
        let own = SETTINGS.iter().map(|&(name, value)| (name, value.to_owned()));
        let given = self.options.settings.iter().map(|(name, value)| (&**name, value.clone()));
        let addresses = if self.options.tcp { self.address().to_string() } else { String::new() };
        let place = [
            ("listen_addresses", addresses),
            ("port", self.port().to_string()),
            ("unix_socket_directories", self.directory().to_string_lossy().into_owned()),
            ("ssl", if self.options.tls { "on" } else { "off" }.to_owned()),
            ("ssl_cert_file", format!("../{}", tls::CERTIFICATE)),
            ("ssl_key_file", format!("../{}", tls::KEY)),
        ];
        let mut line =
            format!("{} -D {}", quoted(self.binaries.path("postgres")), quoted(self.data()));
        for (name, value) in own.chain(place).chain(given) {
            line += &format!(" -c {}", quoted(format!("{name}={value}")));
        }
        line
    }

    /// Runs one of PostgreSQL's programs that know `--host` and what comes with it.
    fn client(&self, program: &str, args: &[&str]) -> Result<String> {
        let host = format!("--host={}", self.directory().to_string_lossy());
        let port = format!("--port={}", self.port());
        let user = format!("--username={USER}");
        process::output(self.binaries.path(program), &[&[&*host, &port, &user], args].concat())
    }
}

/// What comes before the name of the database, and the name.
fn split(url: &str) -> Result<(&str, &str)> {
    url.rsplit_once('/').with_context(|| format!("`{url}` names no database"))
}
