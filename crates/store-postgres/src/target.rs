//! How to connect to the database: URL, password and certificates.

use std::fmt;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, Host, LoadBalanceHosts, SslMode, SslNegotiation};
use tokio_postgres_rustls::MakeRustlsConnect;

const DEFAULT_PORT: u16 = 5432;
/// Far above the length of a system's bundle.
const CA_FILE_BYTES_MAX: u64 = 4 << 20;
/// The database ends a transaction that is idle for this long, so that a stalled process does not block
/// others. The process retries the transaction.
const IDLE_IN_TRANSACTION_MAX: Duration = Duration::from_secs(5);
/// How long to wait for a row lock. Longer than a stalled Midwatch process can hold it, so only a
/// transaction that another program left open causes an error.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

/// The database of a store, and how to connect to it.
#[derive(Clone)]
pub struct Target {
    /// User, password and session; how to reach a server is in the other fields.
    config: Config,
    servers: Vec<Server>,
    ssl_mode: SslMode,
    tls: MakeRustlsConnect,
}

/// A server of the URL. All its servers have the same database.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) address: Address,
    /// The name that its certificate must have.
    pub(crate) name: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// The name or address of a host, and the port.
    Tcp(String, u16),
    /// The path of a socket.
    Unix(PathBuf),
}

/// A URL, password or certificate is invalid. The message contains no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTarget {
    pub message: String,
    pub hint: &'static str,
}

impl Target {
    /// `url` is `postgres://user@host/database`, without a password, because others may read the URL.
    /// Connections to other machines require TLS. A password is sent by SCRAM only, and to other
    /// machines bound to the TLS connection.
    pub fn new(
        url: &str,
        password: Option<&str>,
        ca_file: Option<&Path>,
    ) -> Result<Target, InvalidTarget> {
        let mut config = parse(url)?;
        let servers = servers(&config)?;
        if let Some(password) = password {
            config.password(password);
        }
        if !is_local(&config) {
            if url.contains("sslmode=") && config.get_ssl_mode() != SslMode::Require {
                return Err(InvalidTarget {
                    message: "the store is on another machine, so its URL must not turn TLS off"
                        .into(),
                    hint: "leave `sslmode` out, and set `store.ca_file` if the server has its own \
                           certificate authority",
                });
            }
            config.ssl_mode(SslMode::Require);
            // A server in the middle cannot pass the proof on to the real one.
            if password.is_some() {
                config.channel_binding(ChannelBinding::Require);
            }
        }
        config.application_name("midwatch");
        // Options in the URL come last and win.
        let options = format!(
            "-c default_transaction_isolation=read\\ committed \
             -c idle_in_transaction_session_timeout={} -c lock_timeout={} {}",
            IDLE_IN_TRANSACTION_MAX.as_millis(),
            LOCK_WAIT_MAX.as_millis(),
            config.get_options().unwrap_or_default()
        );
        config.options(options);
        let ssl_mode = config.get_ssl_mode();
        let tls = MakeRustlsConnect::new(tls(ssl_mode == SslMode::Require, ca_file)?);
        // TLS is negotiated before tokio-postgres gets the stream, which it must take as encrypted.
        config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
        Ok(Target { config, servers, ssl_mode, tls })
    }

    /// Checks the syntax of a URL, without reading certificates.
    pub fn check(url: &str) -> Result<(), InvalidTarget> {
        servers(&parse(url)?).map(drop)
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// In the order in which they are tried.
    pub(crate) fn servers(&self) -> &[Server] {
        &self.servers
    }

    pub(crate) fn ssl_mode(&self) -> SslMode {
        self.ssl_mode
    }

    pub(crate) fn tls(&self) -> &MakeRustlsConnect {
        &self.tls
    }
}

/// Prints the host and the database, never the password.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({:?} {:?})", self.servers, self.config.get_dbname())
    }
}

impl fmt::Display for InvalidTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for InvalidTarget {}

fn parse(url: &str) -> Result<Config, InvalidTarget> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(invalid("the store's URL must start with `postgres://`"));
    }
    let config = Config::from_str(url).map_err(|_| invalid("the store's URL is invalid"))?;
    // An encoded colon makes a password part of the user's name.
    if config.get_password().is_some() || config.get_user().is_some_and(|it| it.contains(':')) {
        return Err(InvalidTarget {
            message: "the store's URL must not contain a password".into(),
            hint: "give `store.password` as `env:NAME` or `file:/absolute/path`",
        });
    }
    if config.get_hosts().is_empty() || config.get_dbname().is_none() {
        return Err(invalid("the store's URL must name a host and a database"));
    }
    if config.get_load_balance_hosts() != LoadBalanceHosts::Disable {
        return Err(InvalidTarget {
            message: "the store's URL must not set `load_balance_hosts`".into(),
            hint: "the servers of the URL are tried in order; leave the parameter out",
        });
    }
    Ok(config)
}

fn invalid(message: &str) -> InvalidTarget {
    InvalidTarget {
        message: message.into(),
        hint: "write it as `postgres://user@host:5432/database`",
    }
}

/// Combines the lists of hosts, addresses and ports.
fn servers(config: &Config) -> Result<Vec<Server>, InvalidTarget> {
    let (hosts, addresses, ports) =
        (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    if !addresses.is_empty() && addresses.len() != hosts.len() {
        return Err(invalid("the store's URL must have as many addresses as hosts"));
    }
    if 1 < ports.len() && ports.len() != hosts.len() {
        return Err(invalid("the store's URL must have one port, or as many as hosts"));
    }
    let servers = hosts.iter().enumerate().map(|(index, host)| {
        let port = ports.get(index).or(ports.first()).copied().unwrap_or(DEFAULT_PORT);
        let name = match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(_) => String::new(),
        };
        let address = match (addresses.get(index), host) {
            (Some(address), _) => Address::Tcp(address.to_string(), port),
            (None, Host::Tcp(name)) => Address::Tcp(name.clone(), port),
            (None, Host::Unix(directory)) => {
                Address::Unix(directory.join(format!(".s.PGSQL.{port}")))
            }
        };
        Server { address, name }
    });
    Ok(servers.collect())
}

fn is_local(config: &Config) -> bool {
    // An address wins over the name of the same host.
    let addresses = config.get_hostaddrs();
    let names = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => ["localhost", "127.0.0.1", "::1"].contains(&name.as_str()),
        Host::Unix(_) => true,
    });
    names && addresses.iter().all(IpAddr::is_loopback)
}

fn tls(needs_roots: bool, ca_file: Option<&Path>) -> Result<ClientConfig, InvalidTarget> {
    const HINT: &str = "set `store.ca_file` to a file of certificates in PEM format";
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca_file {
        let unreadable = |what: &dyn fmt::Display| InvalidTarget {
            message: format!("cannot read the certificates in `{}`: {what}", path.display()),
            hint: HINT,
        };
        let file = open_certificates(path).map_err(|error| unreadable(&error))?;
        for certificate in CertificateDer::pem_reader_iter(file) {
            let certificate = certificate.map_err(|error| unreadable(&error))?;
            roots.add(certificate).map_err(|error| unreadable(&error))?;
        }
    } else if needs_roots {
        // Unreadable certificates are skipped; a server that needs one of them is refused.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| InvalidTarget {
        message: format!("cannot set up TLS: {error}"),
        hint: HINT,
    })?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Opens a file of certificates, which may be a link. A pipe in its place would make every command wait, also one that stops
/// something.
fn open_certificates(path: &Path) -> io::Result<File> {
    let file = files::open_linked(path)?;
    match file.metadata()?.len() <= CA_FILE_BYTES_MAX {
        true => Ok(file),
        false => Err(io::Error::other(format!("it is longer than {CA_FILE_BYTES_MAX} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: Result<SslMode, &str>) {
        let found = Target::new(url, None, None).map(|target| target.ssl_mode);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{url}"),
            (Err(found), Err(expected)) => {
                assert!(found.message.contains(expected), "{url}: {found}");
                assert!(!found.message.contains("hunter2"), "{url}: {found}");
            }
            (found, expected) => panic!("{url}: {found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn urls_are_validated_and_other_machines_require_tls() {
        check("postgres://ada@db.example/watch", Ok(SslMode::Require));
        check("postgres://ada@db.example/watch?sslmode=require", Ok(SslMode::Require));
        check("postgres://ada@db.example/watch?sslmode=disable", Err("must not turn TLS off"));
        check("postgres://ada@db.example/watch?sslmode=prefer", Err("must not turn TLS off"));
        check("postgres://ada@localhost/watch?hostaddr=192.0.2.1", Ok(SslMode::Require));
        check("postgres://ada@localhost/watch?hostaddr=127.0.0.1", Ok(SslMode::Prefer));
        check("postgresql://ada@localhost/watch", Ok(SslMode::Prefer));
        check("postgres://ada@%2Fvar%2Frun/watch", Ok(SslMode::Prefer));
        check("postgres://ada:hunter2@localhost/watch", Err("must not contain a password"));
        check("postgres://ada:hun/ter2@localhost/watch", Err("must not contain a password"));
        check("postgres://ada%3Ahunter2@localhost/watch", Err("must not contain a password"));
        check("postgres://localhost/watch?password=hunter2", Err("must not contain a password"));
        check("postgres://ada@localhost", Err("a host and a database"));
        check("postgres:///watch", Err("a host and a database"));
        check("postgres://ada@localhost:many/watch", Err("is invalid"));
        check("postgres://ada@a,b/watch?hostaddr=127.0.0.1", Err("as many addresses as hosts"));
        check("postgres://ada@a:1,b:2/watch?port=3", Err("one port, or as many as hosts"));
        check("postgres://ada@a,b/watch?load_balance_hosts=random", Err("load_balance_hosts"));
        check("mysql://localhost/watch", Err("must start with"));
        check("hunter2", Err("must start with"));
    }

    #[test]
    fn debug_output_hides_the_password() {
        let target = Target::new("postgres://ada@localhost/watch", Some("hunter2"), None).unwrap();
        assert_eq!(target.config.get_password(), Some(b"hunter2".as_slice()));
        assert!(!format!("{target:?}").contains("hunter2"));
    }
}
