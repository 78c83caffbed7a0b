//! Starts real PostgreSQL servers for tests, simulations and benchmarks.
//!
//! A [`PostgresServer`] has a private directory in `/tmp` and listens on a Unix socket in it. Dropping
//! the value stops the server and removes the directory. Both also happen when the process is killed
//! or keeps the value in a `static` (see `supervisor.rs`). Every call blocks.
//!
//! ```
//! let postgres = test_postgres::PostgresServer::start().unwrap();
//! let url = postgres.create_database().unwrap();
//! assert_eq!(postgres.query(&url, "SELECT 6 * 7").unwrap(), "42\n");
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
use supervisor::{Supervisor, shell_quoted};

/// The superuser of every server; it has no password.
const USER: &str = "midwatch";

/// Enough for many parallel tests on a small machine. Dynamic shared memory is a file in the data
/// directory; elsewhere a killed server would leave it behind. Without flushing, only a crash of the
/// machine loses commits.
const SETTINGS: &[(&str, &str)] = &[
    ("dynamic_shared_memory_type", "mmap"),
    ("fsync", "off"),
    ("max_connections", "100"),
    ("shared_buffers", "64MB"),
];

/// Not 5432: another server may listen there on every address.
const TCP_PORT: u16 = 25_432;

/// Lines of the server's lock file, counted from 0.
const LOCK_FILE_PID: usize = 0;
const LOCK_FILE_STATUS: usize = 7;

/// How a server differs from the default, which listens on its Unix socket only.
#[derive(Clone, Debug, Default)]
pub struct Options {
    tcp: bool,
    tls: bool,
    settings: Vec<(String, String)>,
}

impl Options {
    /// Also listens on a loopback address that no other test server uses; see
    /// [`PostgresServer::tcp_url`].
    pub fn tcp(mut self) -> Options {
        self.tcp = true;
        self
    }

    /// Listens as with [`Options::tcp`], and offers TLS there; see
    /// [`PostgresServer::ca_certificate`].
    pub fn tls(mut self) -> Options {
        self.tls = true;
        self.tcp()
    }

    /// Flushes every commit to the disk, for benchmarks and tests of durability.
    pub fn durable(self) -> Options {
        self.setting("fsync", "on")
    }

    /// Adds a server setting. The last value of a name wins.
    pub fn setting(mut self, name: &str, value: &str) -> Options {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A PostgreSQL server that is running, or stopped and can be started again.
#[derive(Debug)]
pub struct PostgresServer {
    binaries: Binaries,
    options: Options,
    supervisor: Supervisor,
    databases: AtomicU32,
}

impl PostgresServer {
    /// Starts a new server with default options. An error names a missing program.
    pub fn start() -> Result<PostgresServer> {
        PostgresServer::start_with(Options::default())
    }

    pub fn start_with(options: Options) -> Result<PostgresServer> {
        let server = PostgresServer::prepare(Binaries::find()?, options)?;
        server.supervisor.run(&format!(
            "{} --pgdata={} --auth=trust --username={USER} --encoding=UTF8 --locale=C --no-sync",
            shell_quoted(server.binaries.path("initdb")),
            shell_quoted(server.data_directory()),
        ))?;
        server.start_again()?;
        Ok(server)
    }

    /// Creates an empty database with a unique name and returns its URL.
    pub fn create_database(&self) -> Result<String> {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let url = self.url(&format!("{}_{number}", self.unique_name()?));
        // `template0` accepts no connections, so several clients may copy it at once.
        let (_, database) = split_database(&url)?;
        self.run_client("createdb", &["--template=template0", database])?;
        Ok(url)
    }

    /// The URL of the database with the same name on this server, such as a standby.
    pub fn url_of_same_database(&self, url: &str) -> Result<String> {
        let (_, database) = split_database(url)?;
        Ok(self.url(database))
    }

    /// The URL of the same database over TCP. Requires [`Options::tcp`].
    pub fn tcp_url(&self, url: &str) -> Result<String> {
        ensure!(self.options.tcp, "this server listens on its Unix socket only");
        let (_, database) = split_database(url)?;
        Ok(format!("postgres://{USER}@{}:{TCP_PORT}/{database}", self.address()))
    }

    /// The path of the CA certificate that signed the server's. Requires [`Options::tls`].
    pub fn ca_certificate(&self) -> PathBuf {
        self.directory().join(tls::CA_CERTIFICATE)
    }

    /// Runs SQL with `psql` and returns its output: one line per row, columns separated by `|`.
    pub fn query(&self, url: &str, sql: &str) -> Result<String> {
        let fixed = ["--no-psqlrc", "--quiet", "--no-align", "--tuples-only"];
        let arguments = ["--set=ON_ERROR_STOP=1", "--command", sql, url];
        process::output(self.binaries.path("psql"), &[&fixed[..], &arguments].concat())
    }

    /// The path of a program of the server's version, such as `pgbench`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.binaries.path(name)
    }

    /// The directory of the server's files and its Unix socket.
    pub fn directory(&self) -> &Path {
        self.supervisor.directory()
    }

    /// The last lines of the server's log.
    pub fn log_tail(&self) -> String {
        self.supervisor.log_tail()
    }

    /// Stops the server as its own crash would: it writes nothing more, and connections break.
    pub fn stop_immediately(&self) -> Result<()> {
        self.supervisor.run("kill -QUIT $pid && { wait $pid; pid=; }")
    }

    /// Kills the server and all its processes with SIGKILL.
    pub fn kill(&self) -> Result<()> {
        let server = self.supervisor.server_pid().context("the server is not running")?;
        // A suspended server starts no process that the list would miss, and frees no process id.
        self.supervisor.run("kill -STOP $pid")?;
        ensure!(
            process::wait_until(|| process::state(server) == State::Stopped),
            "cannot suspend the server"
        );
        let children = process::children(server);
        let pids: Vec<String> = children.iter().map(u32::to_string).collect();
        self.supervisor.run(&format!("kill -KILL $pid {}; wait $pid; pid=", pids.join(" ")))?;
        let gone = || children.iter().all(|&pid| process::state(pid) == State::Gone);
        ensure!(process::wait_until(gone), "processes of the server survived SIGKILL");
        Ok(())
    }

    /// Starts a stopped or killed server on the same data, and waits until it accepts connections.
    pub fn start_again(&self) -> Result<()> {
        ensure!(self.supervisor.server_pid().is_none(), "the server is already running");
        self.supervisor.run(&format!("{} & pid=$!", self.command_line()))?;
        let server = self.supervisor.server_pid().context("the server was not started")?;
        process::wait_until(|| self.is_ready(server) || process::state(server) == State::Gone);
        ensure!(
            self.is_ready(server),
            "the server does not accept connections; its log:\n{}",
            self.log_tail()
        );
        Ok(())
    }

    fn prepare(binaries: Binaries, options: Options) -> Result<PostgresServer> {
        let supervisor = Supervisor::start()?;
        let server = PostgresServer { binaries, options, supervisor, databases: AtomicU32::new(1) };
        if server.options.tls {
            tls::create_certificates(&server.supervisor, server.address())?;
        }
        Ok(server)
    }

    /// Whether the server accepts connections, according to its lock file. A killed server leaves its
    /// own behind.
    fn is_ready(&self, server: u32) -> bool {
        let lock = self.data_directory().join("postmaster.pid");
        let lock = std::fs::read_to_string(lock).unwrap_or_default();
        let line = |number| lock.lines().nth(number).map(str::trim);
        line(LOCK_FILE_PID) == Some(&server.to_string()) && line(LOCK_FILE_STATUS) == Some("ready")
    }

    fn data_directory(&self) -> PathBuf {
        self.directory().join("data")
    }

    /// A name that no other test server on this machine has, usable in a database name.
    fn unique_name(&self) -> Result<String> {
        let name = self.directory().file_name().context("the directory has no name")?;
        Ok(name.to_string_lossy().to_lowercase().replace('-', "_"))
    }

    fn url(&self, database: &str) -> String {
        let host = self.directory().to_string_lossy().replace('/', "%2F");
        let port = if self.options.tcp { format!(":{TCP_PORT}") } else { String::new() };
        format!("postgres://{USER}@{host}{port}/{database}")
    }

    /// The port is also part of the Unix socket's name, where clients default to 5432.
    fn port(&self) -> u16 {
        if self.options.tcp { TCP_PORT } else { 5432 }
    }

    /// A loopback address derived from the supervisor's process id, so no other test server uses it.
    /// A free port would have to be found, and could be taken before the server binds it.
    fn address(&self) -> Ipv4Addr {
        let [high, middle_high, middle_low, low] = self.supervisor.pid().to_be_bytes();
        debug_assert_eq!(high, 0, "Linux has at most 2^22 process ids");
        Ipv4Addr::new(127, 64 + (middle_high & 0x3f), middle_low, low)
    }

    fn command_line(&self) -> String {
        let defaults = SETTINGS.iter().map(|&(name, value)| (name, value.to_owned()));
        let settings = self.options.settings.iter().map(|(name, value)| (&**name, value.clone()));
        let addresses = if self.options.tcp { self.address().to_string() } else { String::new() };
        let location = [
            ("listen_addresses", addresses),
            ("port", self.port().to_string()),
            ("unix_socket_directories", self.directory().to_string_lossy().into_owned()),
            ("ssl", if self.options.tls { "on" } else { "off" }.to_owned()),
            ("ssl_cert_file", format!("../{}", tls::CERTIFICATE)),
            ("ssl_key_file", format!("../{}", tls::KEY)),
        ];
        let mut line = format!(
            "{} -D {}",
            shell_quoted(self.binaries.path("postgres")),
            shell_quoted(self.data_directory())
        );
        for (name, value) in defaults.chain(location).chain(settings) {
            line += &format!(" -c {}", shell_quoted(format!("{name}={value}")));
        }
        line
    }

    /// Runs a PostgreSQL program that takes `--host`, `--port` and `--username`.
    fn run_client(&self, program: &str, args: &[&str]) -> Result<String> {
        let host = format!("--host={}", self.directory().to_string_lossy());
        let port = format!("--port={}", self.port());
        let user = format!("--username={USER}");
        process::output(self.binaries.path(program), &[&[&*host, &port, &user], args].concat())
    }
}

/// Splits a URL into what precedes the database name, and the name.
fn split_database(url: &str) -> Result<(&str, &str)> {
    url.rsplit_once('/').with_context(|| format!("`{url}` does not name a database"))
}
