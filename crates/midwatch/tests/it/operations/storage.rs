//! Storing the data in SQLite or PostgreSQL, and copying it from one to the other.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;

use serde_json::Value;
use test_postgres::PostgresServer;

use crate::support::wait::wait_until;
use crate::support::world::{POSTGRES, World};

/// What an installation shows of its data.
fn contents(world: &World) -> [Value; 3] {
    [
        world.json(&["agent", "list"])["agents"].clone(),
        world.json(&["ledger", "tail", "--limit", "1000"])["events"].clone(),
        world.json(&["ledger", "verify"])["head"].clone(),
    ]
}

fn world_with_data() -> World {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "0s");
    let daemon = world.up();
    for number in 0..8 {
        world.add_agent(&format!("agent-{number}"));
    }
    world.ok(&["agent", "remove", "agent-3"]);
    daemon.stop();
    world
}

#[test]
fn installation_is_copied_to_postgresql_and_back() {
    let world = world_with_data();
    let before = contents(&world);
    let (data, url) =
        (world.data().to_str().unwrap().to_owned(), POSTGRES.create_database().unwrap());
    let copied = world.json(&["store", "copy", "--from", &data, "--to", &url]);
    assert_eq!(copied["copied"]["head"], before[2], "{copied}");

    // The same directory, with its key, continues in PostgreSQL.
    let mut there = world.copy();
    fs::remove_file(there.data().join("midwatch.db")).unwrap();
    there.set("MIDWATCH_STORE_URL", &url);
    assert_eq!(contents(&there), before);
    let daemon = there.up();
    there.add_agent("later");
    assert!(there.checked().starts_with("sound"), "{}", there.checked());
    daemon.stop();
    assert_eq!(there.rebuild_differences(), 0);
    there.ok(&["ledger", "export"]);
    let after = contents(&there);

    // And back into SQLite.
    let home = World::new();
    let data = home.data().to_str().unwrap();
    home.ok(&["store", "copy", "--from", &url, "--to", data]);
    fs::copy(there.data().join("signing.key"), home.data().join("signing.key")).unwrap();
    assert_eq!(contents(&home), after);
    home.add_agent("last");
    home.verified();

    let message = world.refused(&["store", "copy", "--from", data, "--to", &url], "exists", 4);
    assert!(message.contains("empty"), "{message}");
}

/// A run that another daemon on the same database owns is running, not left over.
#[test]
fn daemon_that_joins_a_shared_database_leaves_the_runs_of_others_alone() {
    let world = World::on_postgres();
    let [started, go] = ["started", "go"].map(|name| world.root().join(name).display().to_string());
    let script = format!("touch '{started}'; until [ -e '{go}' ]; do sleep 0.02; done");
    world.ok(&["agent", "add", "smith", "--backend", "command", "--", "/bin/sh", "-c", &script]);
    let flags = ["--name", "work", "--every", "30d", "--agent", "smith", "--prompt", "hello"];
    let schedule = world.add_schedule(&flags);
    // Copied before the directory has its node id on the database.
    let other = world.copy();
    let daemon = world.up();
    let run = world.start_run(&schedule);
    wait_until(|| fs::exists(&started).unwrap());

    let second = other.up();
    // The check of the ledger comes after the recovery of leftover runs.
    assert!(other.checked().starts_with("sound"), "{}", other.checked());
    assert_eq!(other.show_run(&run)["state"], "running");
    fs::write(&go, "").unwrap();
    assert_eq!(other.wait_for_run(&run, |run| run["state"] != "running")["state"], "done");
    drop((daemon, second));
    world.verified();
}

#[test]
fn postgresql_database_is_rebuilt_from_an_export() {
    let world = world_with_data();
    world.ok(&["ledger", "export"]);
    let exports = world.data().join("exports");
    let other = World::on_postgres();
    fs::create_dir_all(other.data()).unwrap();
    fs::copy(world.data().join("signing.key"), other.data().join("signing.key")).unwrap();
    other.ok(&["ledger", "rebuild", "--from-export", exports.to_str().unwrap()]);
    assert_eq!(other.json(&["agent", "list"]), world.json(&["agent", "list"]));
    other.verified();
}

/// Starting an empty ledger beside the one in the directory would be a surprise.
#[test]
fn directory_with_a_ledger_does_not_start_another_in_postgresql() {
    let mut world = world_with_data();
    world.set("MIDWATCH_STORE_URL", POSTGRES.create_database().unwrap());
    let message = world.refused(&["agent", "list"], "exists", 4);
    assert!(message.contains("store copy"), "{message}");
}

#[test]
fn unusable_store_url_and_password_are_refused() {
    let mut world = World::new();
    let add = ["agent", "add", "ada", "--backend", "builtin"];
    for (url, code, exit, hint) in [
        ("postgres://ada:hunter2@localhost/watch", "config_invalid", 2, "store.password"),
        ("mysql://localhost/watch", "config_invalid", 2, "postgres://"),
        ("postgres://ada@%2Fnowhere%2Fat-all/watch", "database_away", 1, "store.url"),
    ] {
        world.set("MIDWATCH_STORE_URL", url);
        let message = world.refused(&add, code, exit);
        assert!(message.contains(hint), "{url}: {message}");
        assert!(!message.contains("hunter2"), "{url}: {message}");
    }
    world.set("MIDWATCH_STORE_URL", POSTGRES.create_database().unwrap());
    for password in ["hunter2", "env:MISSING", "file:/nowhere/at/all"] {
        world.set("MIDWATCH_STORE_PASSWORD", password);
        let message = world.refused(&add, "config_invalid", 2);
        assert!(!message.contains("hunter2"), "{message}");
    }
}

/// The server answers every client with a request for its password in clear text.
#[test]
fn database_that_asks_for_the_password_in_clear_text_is_refused() {
    let mut world = World::new();
    let directory = world.root().join("server");
    fs::create_dir(&directory).unwrap();
    let listener = UnixListener::bind(directory.join(".s.PGSQL.5432")).unwrap();
    let server = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut head = [0; 4];
        client.read_exact(&mut head).unwrap();
        let mut parameters = vec![0; u32::from_be_bytes(head) as usize - head.len()];
        client.read_exact(&mut parameters).unwrap();
        client.write_all(b"R\0\0\0\x08\0\0\0\x03").unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        answer
    });
    let host = directory.to_str().unwrap().replace('/', "%2F");
    world.set("MIDWATCH_STORE_URL", format!("postgres://ada@{host}/watch?sslmode=disable"));
    world.set("MIDWATCH_STORE_PASSWORD", "env:WATCH_PASSWORD");
    world.set("WATCH_PASSWORD", "hunter2");
    let add = ["agent", "add", "ada", "--backend", "builtin"];
    let message = world.refused(&add, "password_not_sent", 4);
    assert!(message.contains("in clear text") && message.contains("pg_hba.conf"), "{message}");
    assert_eq!(server.join().unwrap(), b"", "the client answered");
}

/// Lets the user `ada` of a server in only with a password.
fn require_password(server: &PostgresServer, url: &str) {
    let query = |sql: &str| server.query(url, sql).unwrap();
    query("CREATE ROLE ada LOGIN PASSWORD 'right-password'");
    let file = query("SHOW hba_file").trim().to_owned();
    let rules = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("local all ada scram-sha-256\n{rules}")).unwrap();
    query("SELECT pg_reload_conf()");
}

#[test]
fn database_that_refuses_the_connection_says_why_and_what_to_do() {
    let server = PostgresServer::start().unwrap();
    let url = server.create_database().unwrap();
    require_password(&server, &url);
    let add = ["--json", "agent", "add", "ada", "--backend", "builtin"];
    let mut world = World::new();
    world.set("MIDWATCH_STORE_URL", url.replace("midwatch@", "ada@"));
    // The server reads its rules some time after it was told to.
    wait_until(|| world.run(&add).error().0 == "database_refused");
    let message = world.refused(&add[1..], "database_refused", 4);
    assert!(
        message.contains("requires a password") && message.contains("store.password"),
        "{message}"
    );

    world.set("MIDWATCH_STORE_PASSWORD", "env:DB_PASSWORD");
    world.set("DB_PASSWORD", "wrong-password");
    let message = world.refused(&add[1..], "database_refused", 4);
    assert!(message.contains("authentication failed") && !message.contains("wrong-"), "{message}");
    world.set("DB_PASSWORD", "right-password");
    world.set("MIDWATCH_STORE_URL", format!("{url}_missing"));
    let message = world.refused(&add[1..], "database_missing", 3);
    assert!(message.contains("_missing") && message.contains("createdb"), "{message}");
    drop(server);
    world.refused(&add[1..], "database_away", 1);
}

#[test]
fn status_and_doctor_name_the_store_and_a_file_that_is_not_used() {
    let world = World::with_agent("ada");
    assert!(world.ok(&["status", "--all"]).contains("SQLite (midwatch.db)"));
    let there = World::on_postgres();
    there.add_agent("ada");
    let store =
        |world: &World| world.json(&["status"])["watch"]["store"].as_str().unwrap().to_owned();
    assert!(store(&there).starts_with("PostgreSQL (postgres://midwatch@"), "{}", store(&there));
    fs::write(there.data().join("midwatch.db"), "").unwrap();
    assert!(store(&there).ends_with("`midwatch.db` beside it is not used"), "{}", store(&there));
    let doctor = there.run(&["doctor"]).stdout;
    assert!(doctor.contains("→ once you are sure, move"), "{doctor}");
}

/// The server remarks that each table exists already.
#[test]
fn remarks_of_the_database_are_not_logged() {
    let world = World::on_postgres();
    world.add_agent("ada");
    let stderr = world.up().stop();
    assert!(!stderr.contains("NOTICE") && !stderr.contains("tokio_postgres"), "{stderr}");
}
