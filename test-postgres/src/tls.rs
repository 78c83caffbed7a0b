//! Certificates for a server with TLS: a certificate authority, and a server certificate that it
//! signed. Clients refuse a CA certificate as a server's, so one certificate is not enough.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};

use crate::supervisor::{Supervisor, shell_quoted};

pub(crate) const CA_CERTIFICATE: &str = "ca.crt";
pub(crate) const CERTIFICATE: &str = "server.crt";
pub(crate) const KEY: &str = "server.key";

/// Creates the files in the directory of `supervisor`, readable by the server's user only.
pub(crate) fn create_certificates(supervisor: &Supervisor, address: Ipv4Addr) -> Result<()> {
    let directory = shell_quoted(supervisor.directory());
    let new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    supervisor
        .run(&format!(
            "(cd {directory} && \
             openssl req -x509 {new_key} -keyout ca.key -out {CA_CERTIFICATE} -days 3650 \
             -subj '/CN=Test CA' && \
             openssl req {new_key} -keyout {KEY} -out server.csr -subj /CN=localhost \
             -addext subjectAltName=DNS:localhost,IP:{address} && \
             openssl x509 -req -in server.csr -out {CERTIFICATE} -days 3650 \
             -CA {CA_CERTIFICATE} -CAkey ca.key -CAcreateserial -copy_extensions copy)"
        ))
        .context(
            "cannot create certificates with `openssl`; `cargo xtask test` as root installs it",
        )
}
