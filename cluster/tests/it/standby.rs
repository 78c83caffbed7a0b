//! That a standby follows, and that a failover can lose what was acknowledged.

use cluster::Cluster;

#[test]
fn a_promoted_standby_lacks_what_was_committed_without_it() {
    let primary = Cluster::start().unwrap();
    let url = primary.database().unwrap();
    primary.query(&url, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").unwrap();
    let standby = primary.standby().unwrap();
    let there = standby.here(&url).unwrap();

    primary.query(&url, "INSERT INTO t VALUES (2)").unwrap();
    standby.catch_up_with(&primary).unwrap();
    assert_eq!(standby.query(&there, "SELECT n FROM t").unwrap(), "1\n2\n");
    let error = standby.query(&there, "INSERT INTO t VALUES (3)").unwrap_err().to_string();
    assert!(error.contains("read-only transaction"), "{error}");

    standby.stop_immediately().unwrap();
    primary.query(&url, "INSERT INTO t VALUES (4)").unwrap();
    primary.kill().unwrap();
    standby.start_again().unwrap();
    standby.promote().unwrap();
    standby.query(&there, "INSERT INTO t VALUES (5)").unwrap();
    assert_eq!(standby.query(&there, "SELECT n FROM t").unwrap(), "1\n2\n5\n");
    assert_ne!(standby.database().unwrap(), there);
}
