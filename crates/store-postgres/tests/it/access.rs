//! Authentication and TLS, and the errors of refused connections.

use std::path::Path;

use store::{Error, Store};
use store_postgres::{Postgres, Target};
use test_postgres::{Options, PostgresServer};

use crate::databases::{Database, other_client, within_deadline};
use crate::workload::event;

/// Opens a store and uses it. Fails without retries.
async fn try_access(
    url: &str,
    password: Option<&str>,
    ca_file: Option<&Path>,
) -> Result<(), Error> {
    let target = Target::new(url, password, ca_file).unwrap();
    let store = within_deadline("opening", Postgres::open(&target)).await?;
    within_deadline("committing", store.commit(event("a"))).await?;
    store.head().await.map(drop)
}

fn check_error(found: Result<(), Error>, expected: &str) {
    let error = found.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_is_verified_by_ca_certificate() {
    let postgres = PostgresServer::start_with(Options::default().tls()).unwrap();
    let socket = postgres.create_database().unwrap();
    let url = postgres.tcp_url(&socket).unwrap();
    let ca_file = postgres.ca_certificate();
    // By its URL the server is on another machine, so TLS is the default.
    try_access(&url, None, Some(&ca_file)).await.unwrap();
    try_access(&format!("{url}?sslmode=require"), None, Some(&ca_file)).await.unwrap();
    let sql = "SELECT count(*) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
               WHERE application_name = 'midwatch' AND ssl";
    let store = Postgres::open(&Target::new(&url, None, Some(&ca_file)).unwrap()).await.unwrap();
    let row = other_client(&socket).await.query_one(sql, &[]).await.unwrap();
    assert!(0 < row.get::<_, i64>(0), "no connection uses TLS");
    drop(store);

    let other = PostgresServer::start_with(Options::default().tls()).unwrap();
    check_error(try_access(&url, None, Some(&other.ca_certificate())).await, "certificate");
    check_error(try_access(&url, None, None).await, "certificate");
}

#[tokio::test(flavor = "multi_thread")]
async fn password_is_required_and_checked() {
    let postgres = PostgresServer::start_with(Options::default().tls()).unwrap();
    let socket = postgres.create_database().unwrap();
    let superuser = other_client(&socket).await;
    let rules = superuser.query_one("SHOW hba_file", &[]).await.unwrap().get::<_, String>(0);
    let database = socket.rsplit_once('/').unwrap().1;
    let sql = format!(
        "CREATE ROLE watch LOGIN PASSWORD 'hunter2';
         ALTER DATABASE {database} OWNER TO watch;
         ALTER SCHEMA public OWNER TO watch;
         COPY (VALUES ('local all midwatch trust'), ('local all watch scram-sha-256'),
                      ('host all watch all scram-sha-256'))
            TO '{rules}';
         SELECT pg_reload_conf()"
    );
    superuser.batch_execute(&sql).await.unwrap();
    let url = postgres.tcp_url(&socket).unwrap().replace("midwatch@", "watch@");
    let ca_file = postgres.ca_certificate();
    within_deadline("loading the new rules", async {
        // Access without a password works until the server has loaded the rules.
        while try_access(&url, None, Some(&ca_file)).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    try_access(&url, Some("hunter2"), Some(&ca_file)).await.unwrap();
    let refused = "password authentication failed for user \"watch\"";
    check_error(try_access(&url, Some("hunter3"), Some(&ca_file)).await, refused);
    check_error(try_access(&url, None, Some(&ca_file)).await, "password");
    // The same on this machine, without TLS.
    let unix_url = socket.replace("midwatch@", "watch@");
    let (_, address) = url.split_once('@').unwrap();
    let (address, _) = address.split_once(':').unwrap();
    let loopback_url = url.replace(address, "localhost");
    let loopback_url = format!("{loopback_url}?hostaddr={address}&sslmode=disable");
    for local_url in [&unix_url, &loopback_url] {
        try_access(local_url, Some("hunter2"), None).await.unwrap();
        check_error(try_access(local_url, Some("hunter3"), None).await, refused);
    }
    // A server that asks for the password in another way does not get it.
    for (method, form) in [("password", "in clear text"), ("md5", "as an MD5 hash")] {
        let sql = format!(
            "COPY (VALUES ('local all midwatch trust'), ('local all watch {method}'),
                          ('host all watch all {method}'))
                TO '{rules}';
             ALTER ROLE watch PASSWORD 'hunter2';
             SELECT pg_reload_conf()"
        );
        superuser.batch_execute("SET password_encryption = 'md5'").await.unwrap();
        superuser.batch_execute(&sql).await.unwrap();
        within_deadline("refusing to send the password", async {
            loop {
                match try_access(&url, Some("hunter2"), Some(&ca_file)).await {
                    // The server has not loaded the rules yet.
                    Ok(()) => tokio::task::yield_now().await,
                    Err(error) if error.to_string().contains(refused) => {}
                    refused => return check_error(refused, form),
                }
            }
        })
        .await;
        for local_url in [&unix_url, &loopback_url] {
            check_error(try_access(local_url, Some("hunter2"), None).await, form);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_database_role_and_server_are_refused_without_retries() {
    let url = Database::new().url;
    let (start, _) = url.rsplit_once('/').unwrap();
    let missing_database = format!("{start}/no_such_database");
    check_error(
        try_access(&missing_database, None, None).await,
        "database \"no_such_database\" does not exist",
    );
    let missing_role = url.replace("midwatch@", "nobody@");
    check_error(try_access(&missing_role, None, None).await, "role \"nobody\" does not exist");
    let missing_server = "postgres://midwatch@%2Fno%2Fsuch%2Fdirectory/a";
    let refused = try_access(missing_server, None, None).await.unwrap_err();
    assert!(matches!(refused, Error::Unreachable(_)), "{refused:?}");
}
