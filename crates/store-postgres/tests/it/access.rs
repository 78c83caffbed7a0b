//! Who is let in, and what those are told who are not.

use std::path::Path;

use cluster::{Cluster, Options};
use store::{Error, Store};
use store_postgres::{Postgres, Target};

use crate::places::{Database, soon, stranger};
use crate::work::event;

/// Opens a store and uses it, or tells why not; at once, and not after many tries.
async fn access(url: &str, password: Option<&str>, ca_file: Option<&Path>) -> Result<(), Error> {
    let target = Target::new(url, password, ca_file).unwrap();
    let store = soon("an answer", Postgres::open(&target)).await?;
    soon("a commit", store.commit(event("a"))).await?;
    store.head().await.map(drop)
}

fn check(found: Result<(), Error>, expected: &str) {
    let error = found.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_known_by_its_authority() {
    let cluster = Cluster::start_with(Options::default().tls()).unwrap();
    let socket = cluster.database().unwrap();
    let url = cluster.over_tcp(&socket).unwrap();
    let authority = cluster.authority();
    // Another machine, for all that the url says: encrypted without being asked.
    access(&url, None, Some(&authority)).await.unwrap();
    access(&format!("{url}?sslmode=require"), None, Some(&authority)).await.unwrap();
    let sql = "SELECT count(*) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
               WHERE application_name = 'midwatch' AND ssl";
    let store = Postgres::open(&Target::new(&url, None, Some(&authority)).unwrap()).await.unwrap();
    let row = stranger(&socket).await.query_one(sql, &[]).await.unwrap();
    assert!(0 < row.get::<_, i64>(0), "nothing is encrypted");
    drop(store);

    let other = Cluster::start_with(Options::default().tls()).unwrap();
    check(access(&url, None, Some(&other.authority())).await, "certificate");
    check(access(&url, None, None).await, "certificate");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_asked_for_and_checked() {
    let cluster = Cluster::start_with(Options::default().tls()).unwrap();
    let socket = cluster.database().unwrap();
    let superuser = stranger(&socket).await;
    let rules = superuser.query_one("SHOW hba_file", &[]).await.unwrap().get::<_, String>(0);
    let database = socket.rsplit_once('/').unwrap().1;
    let sql = format!(
        "CREATE ROLE watch LOGIN PASSWORD 'hunter2';
         ALTER DATABASE {database} OWNER TO watch;
         ALTER SCHEMA public OWNER TO watch;
         COPY (VALUES ('local all midwatch trust'), ('host all watch all scram-sha-256'))
            TO '{rules}';
         SELECT pg_reload_conf()"
    );
    superuser.batch_execute(&sql).await.unwrap();
    let url = cluster.over_tcp(&socket).unwrap().replace("midwatch@", "watch@");
    let authority = cluster.authority();
    soon("the new rules", async {
        // Without a password it gets in until the server has read them.
        while access(&url, None, Some(&authority)).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    access(&url, Some("hunter2"), Some(&authority)).await.unwrap();
    let refused = "password authentication failed for user \"watch\"";
    check(access(&url, Some("hunter3"), Some(&authority)).await, refused);
    check(access(&url, None, Some(&authority)).await, "password");
    let unencrypted = format!("{url}?sslmode=disable");
    access(&unencrypted, Some("hunter2"), None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_is_refused_at_once() {
    let url = Database::new().url;
    let (start, _) = url.rsplit_once('/').unwrap();
    let nowhere = format!("{start}/no_such_database");
    check(access(&nowhere, None, None).await, "database \"no_such_database\" does not exist");
    let nobody = url.replace("midwatch@", "nobody@");
    check(access(&nobody, None, None).await, "role \"nobody\" does not exist");
    let away = "postgres://midwatch@%2Fno%2Fsuch%2Fdirectory/a";
    let refused = access(away, None, None).await.unwrap_err();
    assert!(matches!(refused, Error::Unreachable(_)), "{refused:?}");
}
