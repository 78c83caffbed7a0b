//! Certificates for a server that speaks TLS: an authority of its own, and what it signed.
//!
//! Two certificates, because clients refuse an authority that presents itself as a server.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};

use crate::supervisor::{Supervisor, quoted};

pub(crate) const AUTHORITY: &str = "ca.crt";
pub(crate) const CERTIFICATE: &str = "server.crt";
pub(crate) const KEY: &str = "server.key";

/// Makes the files in the directory of `supervisor`, readable for the server only.
pub(crate) fn make_certificates(supervisor: &Supervisor, address: Ipv4Addr) -> Result<()> {
    let directory = quoted(supervisor.directory());
    let new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    supervisor
        .run(&format!(
            "(cd {directory} && \
             openssl req -x509 {new_key} -keyout ca.key -out {AUTHORITY} -days 3650 \
             -subj '/CN=Authority of a test' && \
             openssl req {new_key} -keyout {KEY} -out server.csr -subj /CN=localhost \
             -addext subjectAltName=DNS:localhost,IP:{address} && \
             openssl x509 -req -in server.csr -out {CERTIFICATE} -days 3650 \
             -CA {AUTHORITY} -CAkey ca.key -CAcreateserial -copy_extensions copy)"
        ))
        .context("cannot make certificates with `openssl`; `cargo xtask test` as root installs it")
}
