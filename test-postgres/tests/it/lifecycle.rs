//! Starting, stopping and killing a server; removing it with its process.
#![expect(clippy::disallowed_methods, reason = "the test starts the real program")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use test_postgres::{Options, PostgresServer};

const DEADLINE: Duration = Duration::from_secs(60);

fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let started = Instant::now();
    while !happened() {
        assert!(started.elapsed() < DEADLINE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The process id in the lock file of the server in `directory`.
fn server_pid(directory: &Path) -> u32 {
    let lock = std::fs::read_to_string(directory.join("data/postmaster.pid")).unwrap();
    lock.lines().next().unwrap().trim().parse().unwrap()
}

fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn count_rows(postgres: &PostgresServer, url: &str) -> String {
    postgres.query(url, "SELECT count(*) FROM t").unwrap()
}

#[test]
fn concurrently_created_databases_are_empty_and_separate() {
    let postgres = PostgresServer::start().unwrap();
    let urls: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| postgres.create_database().unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for url in &urls {
        postgres.query(url, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").unwrap();
        assert_eq!(count_rows(&postgres, url), "1\n");
    }
    let error = postgres.query(&urls[0], "CREATE TABLE t (n int)").unwrap_err().to_string();
    assert!(error.contains("relation \"t\" already exists"), "{error}");
}

#[test]
fn dropping_one_server_leaves_another_running() {
    let (one, two) = (PostgresServer::start().unwrap(), PostgresServer::start().unwrap());
    let url = one.create_database().unwrap();
    assert_eq!(one.query(&url, "SELECT 1").unwrap(), "1\n");
    let error =
        two.query(&two.url_of_same_database(&url).unwrap(), "SELECT 1").unwrap_err().to_string();
    assert!(error.contains("does not exist"), "{error}");
    let (directory, pid) = (one.directory().to_owned(), server_pid(one.directory()));
    drop(one);
    assert!(!directory.exists() && !is_running(pid));
    assert!(two.create_database().is_ok());
}

#[test]
fn committed_rows_survive_a_stop_and_a_kill() {
    let postgres = PostgresServer::start_with(Options::default().durable()).unwrap();
    let url = postgres.create_database().unwrap();
    postgres.query(&url, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").unwrap();
    for stop in [PostgresServer::stop_immediately, PostgresServer::kill] {
        let pid_before = server_pid(postgres.directory());
        stop(&postgres).unwrap();
        assert!(!is_running(pid_before));
        assert!(postgres.query(&url, "SELECT 1").is_err());
        assert!(stop(&postgres).is_err(), "already stopped");
        postgres.start_again().unwrap();
        assert!(postgres.start_again().is_err(), "already running");
        assert_eq!(count_rows(&postgres, &url), "1\n");
    }
}

#[test]
fn server_uses_the_given_options() {
    let options = Options::default().tcp().setting("max_connections", "7");
    let (one, two) =
        (PostgresServer::start_with(options.clone()), PostgresServer::start_with(options));
    for postgres in [one.unwrap(), two.unwrap()] {
        let socket = postgres.create_database().unwrap();
        let tcp = postgres.tcp_url(&socket).unwrap();
        for (url, local) in [(socket, "t"), (tcp, "f")] {
            let sql = "SELECT current_setting('max_connections'), inet_server_addr() IS NULL";
            assert_eq!(postgres.query(&url, sql).unwrap(), format!("7|{local}\n"));
        }
    }
    let error = PostgresServer::start_with(Options::default().setting("no_such", "1")).unwrap_err();
    assert!(error.to_string().contains("unrecognized configuration parameter"), "{error}");
}

#[test]
fn dropping_a_killed_server_removes_directory_and_shared_memory() {
    let postgres = PostgresServer::start().unwrap();
    let directory = postgres.directory().to_owned();
    let segments = || std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let lock = std::fs::read_to_string(directory.join("data/postmaster.pid")).unwrap();
    let segment = lock.lines().nth(6).unwrap().split_whitespace().last().unwrap();
    let is_ours = |line: &str| line.split_whitespace().nth(1) == Some(segment);
    postgres.kill().unwrap();
    assert!(segments().lines().any(is_ours), "no shared memory segment of the server found");
    drop(postgres);
    assert!(!directory.exists());
    assert!(!segments().lines().any(is_ours));
}

/// Starts the program of this crate, which prints its database URL once the server accepts connections.
fn start_program() -> Child {
    Command::new(env!("CARGO_BIN_EXE_test-postgres"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn killing_the_process_removes_its_server() {
    let mut process = start_program();
    let mut url = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let host = url.split_once('@').unwrap().1.rsplit_once('/').unwrap().0;
    let directory = PathBuf::from(host.replace("%2F", "/"));
    let pid = server_pid(&directory);
    assert!(is_running(pid));
    process.kill().unwrap();
    process.wait().unwrap();
    wait_for("stopping the server", || !is_running(pid));
    wait_for("removing the directory", || !directory.exists());
}

/// The directory that an `initdb` process with this grandparent is filling.
fn initdb_directory_of(grandparent: u32) -> Option<PathBuf> {
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
fn killing_the_process_during_initdb_removes_the_directory() {
    let mut process = start_program();
    let mut directory = None;
    wait_for("starting `initdb`", || {
        directory = initdb_directory_of(process.id());
        directory.is_some()
    });
    process.kill().unwrap();
    process.wait().unwrap();
    let directory = directory.unwrap();
    assert!(directory.exists());
    wait_for("removing the directory", || !directory.exists());
}
