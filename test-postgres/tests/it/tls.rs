//! A client verifies the server by its CA certificate only.

use std::path::Path;

use test_postgres::{Options, PostgresServer};

#[test]
fn client_verifies_server_by_ca_certificate_only() {
    let postgres = PostgresServer::start_with(Options::default().tls()).unwrap();
    let url = postgres.tcp_url(&postgres.create_database().unwrap()).unwrap();
    let check = |ca: &Path| {
        let url = format!("{url}?sslmode=verify-full&sslrootcert={}", ca.display());
        postgres.query(&url, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    };
    assert_eq!(check(&postgres.ca_certificate()).unwrap(), "t\n");
    let server_certificate = postgres.ca_certificate().with_file_name("server.crt");
    let error = check(&server_certificate).unwrap_err().to_string();
    assert!(error.contains("certificate verify failed"), "{error}");
}
