//! That a client can know the server by its authority, and by nothing else.

use std::path::Path;

use cluster::{Cluster, Options};

#[test]
fn the_server_is_known_by_its_authority() {
    let cluster = Cluster::start_with(Options::default().tls()).unwrap();
    let url = cluster.over_tcp(&cluster.database().unwrap()).unwrap();
    let check = |authority: &Path| {
        let url = format!("{url}?sslmode=verify-full&sslrootcert={}", authority.display());
        cluster.query(&url, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    };
    assert_eq!(check(&cluster.authority()).unwrap(), "t\n");
    let no_authority = cluster.authority().with_file_name("server.crt");
    let error = check(&no_authority).unwrap_err().to_string();
    assert!(error.contains("certificate verify failed"), "{error}");
}
