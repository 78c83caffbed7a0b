//! Where the database is and how to get in.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that is silent for this long is asked whether it is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_PAUSE: Duration = Duration::from_secs(5);
const KEEPALIVES_MAX: u32 = 3;
/// A connection is given up when what was sent stays without an echo for this long.
const UNHEARD_MAX: Duration = Duration::from_secs(15);
/// A transaction of ours that waits for us longer than this is ended, so that a process that stands
/// still holds nobody up. It only has to begin again.
const IDLE_IN_TRANSACTION_MAX: Duration = Duration::from_secs(5);
/// How long a row, or the end of the log, is waited for. Longer than a process of ours can hold it
/// while it stands still; a transaction that a stranger left open is reported instead of awaited.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub struct Target {
    config: Config,
    tls: MakeRustlsConnect,
}

/// A url, a password or a certificate that cannot be used. It never repeats a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTarget {
    pub message: String,
    pub hint: &'static str,
}

impl Target {
    /// `postgres://user@host/database`. The password is given apart, so that it need not stand where
    /// others can read it. Without `sslmode`, a database on another machine is reached encrypted only.
    pub fn new(
        url: &str,
        password: Option<&str>,
        ca_file: Option<&Path>,
    ) -> Result<Target, InvalidTarget> {
        let mut config = parse(url)?;
        if let Some(password) = password {
            config.password(password);
        }
        if !url.contains("sslmode=") && !is_local(&config) {
            config.ssl_mode(SslMode::Require);
        }
        config
            .application_name("midwatch")
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives_idle(KEEPALIVE_IDLE)
            .keepalives_interval(KEEPALIVE_PAUSE)
            .keepalives_retries(KEEPALIVES_MAX)
            .tcp_user_timeout(UNHEARD_MAX);
        // Those in the url come last, and win.
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

    /// Whether a url could be used, without anything that costs time.
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

/// Host and database, never the password.
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
        return Err(invalid("the url of a store begins with `postgres://`".into()));
    }
    let config = Config::from_str(url)
        .map_err(|_| invalid("the url of the store cannot be understood".into()))?;
    if config.get_password().is_some() {
        return Err(InvalidTarget {
            message: "the password does not belong into the url of the store".into(),
            hint: "give `store.password` as `env:NAME` or `file:/absolute/path`",
        });
    }
    if config.get_hosts().is_empty() || config.get_dbname().is_none() {
        return Err(invalid("the url of the store names no host or no database".into()));
    }
    Ok(config)
}

fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => ["localhost", "127.0.0.1", "::1"].contains(&name.as_str()),
        Host::Unix(_) => true,
    })
}

fn tls(needs_roots: bool, ca_file: Option<&Path>) -> Result<ClientConfig, InvalidTarget> {
    const HINT: &str = "`store.ca_file` names a file of certificates in PEM form";
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca_file {
        let unreadable = |what: &dyn fmt::Display| InvalidTarget {
            message: format!("the certificates in `{}` cannot be read: {what}", path.display()),
            hint: HINT,
        };
        for certificate in
            CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?
        {
            let certificate = certificate.map_err(|error| unreadable(&error))?;
            roots.add(certificate).map_err(|error| unreadable(&error))?;
        }
    } else if needs_roots {
        // Those that cannot be read are left out; a server that needs one of them is refused.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| InvalidTarget {
        message: format!("no encryption: {error}"),
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
    fn urls_are_checked_and_others_machines_are_reached_encrypted() {
        check("postgres://ada@db.example/watch", Ok(SslMode::Require));
        check("postgres://ada@db.example/watch?sslmode=disable", Ok(SslMode::Disable));
        check("postgresql://ada@localhost/watch", Ok(SslMode::Prefer));
        check("postgres://ada@%2Fvar%2Frun/watch", Ok(SslMode::Prefer));
        check("postgres://ada:hunter2@localhost/watch", Err("password does not belong"));
        check("postgres://ada@localhost", Err("no database"));
        check("postgres:///watch", Err("no host"));
        check("postgres://ada@localhost:many/watch", Err("cannot be understood"));
        check("mysql://localhost/watch", Err("begins with"));
        check("hunter2", Err("begins with"));
    }

    #[test]
    fn a_target_does_not_show_its_password() {
        let target = Target::new("postgres://ada@localhost/watch", Some("hunter2"), None).unwrap();
        assert_eq!(target.config.get_password(), Some(b"hunter2".as_slice()));
        assert!(!format!("{target:?}").contains("hunter2"));
    }
}
