//! That a cluster works, that it keeps its data, and that it goes.
#![expect(clippy::disallowed_methods, reason = "the test starts the real program")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cluster::{Cluster, Options};

const DEADLINE: Duration = Duration::from_secs(60);

fn wait_for(what: &str, mut look: impl FnMut() -> bool) {
    let started = Instant::now();
    while !look() {
        assert!(started.elapsed() < DEADLINE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The process id in the lock file of the server in `directory`.
fn server(directory: &Path) -> u32 {
    let lock = std::fs::read_to_string(directory.join("data/postmaster.pid")).unwrap();
    lock.lines().next().unwrap().trim().parse().unwrap()
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn count(cluster: &Cluster, url: &str) -> String {
    cluster.query(url, "SELECT count(*) FROM t").unwrap()
}

#[test]
fn databases_are_empty_and_apart_and_made_at_the_same_time() {
    let cluster = Cluster::start().unwrap();
    let urls: Vec<String> = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..4).map(|_| scope.spawn(|| cluster.database().unwrap())).collect();
        makers.into_iter().map(|maker| maker.join().unwrap()).collect()
    });
    for url in &urls {
        cluster.query(url, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").unwrap();
        assert_eq!(count(&cluster, url), "1\n");
    }
    let error = cluster.query(&urls[0], "CREATE TABLE t (n int)").unwrap_err().to_string();
    assert!(error.contains("relation \"t\" already exists"), "{error}");
}

#[test]
fn two_clusters_know_nothing_of_each_other() {
    let (one, two) = (Cluster::start().unwrap(), Cluster::start().unwrap());
    let url = one.database().unwrap();
    assert_eq!(one.query(&url, "SELECT 1").unwrap(), "1\n");
    let error = two.query(&two.here(&url).unwrap(), "SELECT 1").unwrap_err().to_string();
    assert!(error.contains("does not exist"), "{error}");
    let (directory, pid) = (one.directory().to_owned(), server(one.directory()));
    drop(one);
    assert!(!directory.exists() && !runs(pid));
    assert!(two.database().is_ok());
}

#[test]
fn what_was_committed_survives_a_stop_and_a_kill() {
    let cluster = Cluster::start().unwrap();
    let url = cluster.database().unwrap();
    cluster.query(&url, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").unwrap();
    for stop in [Cluster::stop_immediately, Cluster::kill] {
        let before = server(cluster.directory());
        stop(&cluster).unwrap();
        assert!(!runs(before));
        assert!(cluster.query(&url, "SELECT 1").is_err());
        assert!(stop(&cluster).is_err(), "it is stopped already");
        cluster.start_again().unwrap();
        assert!(cluster.start_again().is_err(), "it runs already");
        assert_eq!(count(&cluster, &url), "1\n");
    }
}

#[test]
fn options_reach_the_server() {
    let options = Options::default().tcp().setting("max_connections", "7");
    let (one, two) = (Cluster::start_with(options.clone()), Cluster::start_with(options));
    for cluster in [one.unwrap(), two.unwrap()] {
        let socket = cluster.database().unwrap();
        let tcp = cluster.over_tcp(&socket).unwrap();
        for (url, local) in [(socket, "t"), (tcp, "f")] {
            let sql = "SELECT current_setting('max_connections'), inet_server_addr() IS NULL";
            assert_eq!(cluster.query(&url, sql).unwrap(), format!("7|{local}\n"));
        }
    }
    let error = Cluster::start_with(Options::default().setting("no_such", "1")).unwrap_err();
    assert!(error.to_string().contains("unrecognized configuration parameter"), "{error}");
}

#[test]
fn a_killed_cluster_is_dropped_without_a_trace() {
    let cluster = Cluster::start().unwrap();
    let directory = cluster.directory().to_owned();
    let segments = || std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let lock = std::fs::read_to_string(directory.join("data/postmaster.pid")).unwrap();
    let segment = lock.lines().nth(6).unwrap().split_whitespace().last().unwrap();
    let is_ours = |line: &str| line.split_whitespace().nth(1) == Some(segment);
    cluster.kill().unwrap();
    assert!(segments().lines().any(is_ours), "PostgreSQL keeps its lock elsewhere now");
    drop(cluster);
    assert!(!directory.exists());
    assert!(!segments().lines().any(is_ours));
}

/// The program of this crate, which prints the URL of its database when it has one.
fn another_process() -> Child {
    Command::new(env!("CARGO_BIN_EXE_cluster"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_cluster_goes_with_the_process_that_is_killed() {
    let mut process = another_process();
    let mut url = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let host = url.split_once('@').unwrap().1.rsplit_once('/').unwrap().0;
    let directory = PathBuf::from(host.replace("%2F", "/"));
    let pid = server(&directory);
    assert!(runs(pid));
    process.kill().unwrap();
    process.wait().unwrap();
    wait_for("the end of the server", || !runs(pid));
    wait_for("the end of the directory", || !directory.exists());
}

/// The directory that `initdb` fills for a grandparent.
fn being_made_for(grandparent: u32) -> Option<PathBuf> {
    let parent = |pid: u32| -> Option<u32> {
        let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        line.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut ours = pids.filter(|&pid| parent(pid).and_then(parent) == Some(grandparent));
    ours.find_map(|pid| {
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        let data = words.split('\0').find_map(|word| word.strip_prefix("--pgdata="))?;
        Path::new(data).parent().map(Path::to_owned)
    })
}

#[test]
fn half_a_cluster_goes_with_the_process_that_is_killed() {
    let mut process = another_process();
    let mut directory = None;
    wait_for("the start of `initdb`", || {
        directory = being_made_for(process.id());
        directory.is_some()
    });
    process.kill().unwrap();
    process.wait().unwrap();
    let directory = directory.unwrap();
    assert!(directory.exists());
    wait_for("the end of the directory", || !directory.exists());
}
