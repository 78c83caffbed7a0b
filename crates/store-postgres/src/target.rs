//! How to connect to the database: URL, password and certificates.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle time after which TCP keepalive probes start.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVES_MAX: u32 = 3;
/// A connection is closed if sent data is not acknowledged for this long.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(15);
/// The database ends a transaction that is idle for this long, so that a stalled process does not block
/// others. The process retries the transaction.
const IDLE_IN_TRANSACTION_MAX: Duration = Duration::from_secs(5);
/// How long to wait for a row lock. Longer than a stalled Midwatch process can hold it, so only a
/// transaction that another program left open causes an error.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

/// The database of a store, and how to connect to it.
#[derive(Clone)]
pub struct Target {
    config: Config,
    tls: MakeRustlsConnect,
}

/// A URL, password or certificate is invalid. The message contains no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTarget {
    pub message: String,
    pub hint: &'static str,
}

impl Target {
    /// `url` is `postgres://user@host/database`, without a password, because others may read the URL.
    /// Connections to other machines require TLS, and a password is sent to them by SCRAM only.
    pub fn new(
        url: &str,
        password: Option<&str>,
        ca_file: Option<&Path>,
    ) -> Result<Target, InvalidTarget> {
        let mut config = parse(url)?;
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
            // Only SCRAM binds to the channel, so a password is never sent in any other way.
            if password.is_some() {
                config.channel_binding(ChannelBinding::Require);
            }
        }
        config
            .application_name("midwatch")
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives_idle(KEEPALIVE_IDLE)
            .keepalives_interval(KEEPALIVE_INTERVAL)
            .keepalives_retries(KEEPALIVES_MAX)
            .tcp_user_timeout(UNACKNOWLEDGED_MAX);
        // Options in the URL come last and win.
        let options = format!(
            "-c default_transaction_isolation=read\\ committed \
             -c idle_in_transaction_session_timeout={} -c lock_timeout={} {}",
            IDLE_IN_TRANSACTION_MAX.as_millis(),
            LOCK_WAIT_MAX.as_millis(),
            config.get_options().unwrap_or_default()
        );
        config.options(options);
        let needs_roots = config.get_ssl_mode() == SslMode::Require;
        let tls = MakeRustlsConnect::new(tls(needs_roots, ca_file)?);
        Ok(Target { config, tls })
    }

    /// Checks the syntax of a URL, without reading certificates.
    pub fn check(url: &str) -> Result<(), InvalidTarget> {
        parse(url).map(drop)
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn tls(&self) -> &MakeRustlsConnect {
        &self.tls
    }
}

/// Prints the host and the database, never the password.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({:?} {:?})", self.config.get_hosts(), self.config.get_dbname())
    }
}

impl fmt::Display for InvalidTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for InvalidTarget {}

fn parse(url: &str) -> Result<Config, InvalidTarget> {
    const HINT: &str = "write it as `postgres://user@host:5432/database`";
    let invalid = |message: String| InvalidTarget { message, hint: HINT };
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(invalid("the store's URL must start with `postgres://`".into()));
    }
    let config = Config::from_str(url).map_err(|_| invalid("the store's URL is invalid".into()))?;
    if config.get_password().is_some() {
        return Err(InvalidTarget {
            message: "the store's URL must not contain a password".into(),
            hint: "give `store.password` as `env:NAME` or `file:/absolute/path`",
        });
    }
    if config.get_hosts().is_empty() || config.get_dbname().is_none() {
        return Err(invalid("the store's URL must name a host and a database".into()));
    }
    Ok(config)
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
        for certificate in
            CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?
        {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: Result<SslMode, &str>) {
        let found = Target::new(url, None, None).map(|target| target.config.get_ssl_mode());
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
        check("postgres://ada@localhost", Err("a host and a database"));
        check("postgres:///watch", Err("a host and a database"));
        check("postgres://ada@localhost:many/watch", Err("is invalid"));
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
