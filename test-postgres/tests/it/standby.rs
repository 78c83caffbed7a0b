//! A standby replicates its primary, and a failover can lose acknowledged commits.

use test_postgres::PostgresServer;

#[test]
fn promoted_standby_lacks_commits_made_while_it_was_stopped() {
    let primary = PostgresServer::start().unwrap();
    let url = primary.create_database().unwrap();
    primary.query(&url, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").unwrap();
    let standby = primary.standby().unwrap();
    let standby_url = standby.url_of_same_database(&url).unwrap();

    primary.query(&url, "INSERT INTO t VALUES (2)").unwrap();
    standby.catch_up_with(&primary).unwrap();
    assert_eq!(standby.query(&standby_url, "SELECT n FROM t").unwrap(), "1\n2\n");
    let error = standby.query(&standby_url, "INSERT INTO t VALUES (3)").unwrap_err().to_string();
    assert!(error.contains("read-only transaction"), "{error}");

    standby.stop_immediately().unwrap();
    primary.query(&url, "INSERT INTO t VALUES (4)").unwrap();
    primary.kill().unwrap();
    standby.start_again().unwrap();
    standby.promote().unwrap();
    standby.query(&standby_url, "INSERT INTO t VALUES (5)").unwrap();
    assert_eq!(standby.query(&standby_url, "SELECT n FROM t").unwrap(), "1\n2\n5\n");
    assert_ne!(standby.create_database().unwrap(), standby_url);
}
