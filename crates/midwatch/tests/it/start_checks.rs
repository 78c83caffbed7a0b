//! What the daemon looks at before it starts: what each check refuses in each posture, that a refusal
//! names the check and how to mend it, and that `doctor` finds the same.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use api::{AgentAdd, ask};
use futures::future::{BoxFuture, FutureExt, pending};
use kernel::{Actor, Timestamp};
use runtime::{Clock, Settings, Standing, Engine};
use serde_json::Value;
use store_sqlite::Sqlite;

use crate::world::{Daemon, World};

const POSTURES: [&str; 3] = ["strict-prod", "staging", "debug"];

/// What becomes of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Refused,
    Warned,
    Fine,
}
use Expected::{Fine, Refused, Warned};

/// A world in which nothing is wrong in any posture: two people can approve.
fn sound() -> World {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    for name in ["olga", "otto"] {
        let create = ["token", "create", "--name", name, "--role", "operator"];
        world.ok(&[&create[..], &["--key", &key(&world, name)]].concat());
    }
    world
}

/// A key for somebody who signs.
fn key(world: &World, name: &str) -> String {
    let file = world.root().join(format!("{name}.key"));
    let made = world.json(&["approval", "key", name, "--out", file.to_str().unwrap()]);
    made["key"]["public"].as_str().unwrap().to_owned()
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// What the check says in each posture, with what `prepare` does to a sound world, and how to mend it.
fn check(name: &str, fix: &str, prepare: impl Fn(&mut World), expected: [Expected; 3]) {
    for (posture, expected) in POSTURES.into_iter().zip(expected) {
        let mut world = sound();
        prepare(&mut world);
        check_in(&world, posture, name, fix, expected);
    }
}

fn check_in(world: &World, posture: &str, name: &str, fix: &str, expected: Expected) {
    let line = format!("{posture}: {name}");
    let with = |arguments: &[&str]| {
        let mut command = world.command();
        command.args(arguments).env("MIDWATCH_POSTURE", posture);
        command
    };
    let output = with(&["--json", "doctor"]).output().unwrap();
    let doctor: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = doctor["checks"].as_array().unwrap();
    let found = checks.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{doctor}"));
    let result = match expected {
        Refused => "wrong",
        Warned => "warning",
        Fine => "ok",
    };
    assert_eq!(found["result"], result, "{line}: {doctor}");
    if expected != Fine {
        assert!(found["hint"].as_str().unwrap().contains(fix), "{line}: {found}");
    }
    if expected == Refused {
        let (code, said) = Daemon::fails(&mut with(&["up"]));
        assert_eq!(code, Some(4), "{line}: {said}");
        assert!(said.contains(&format!("the check `{name}` refuses: ")), "{line}: {said}");
        assert!(said.contains(fix), "{line}: {said}");
        let refused = with(&["--json", "up"]).output().unwrap();
        let refused: Value = serde_json::from_slice(&refused.stdout).unwrap();
        assert_eq!(refused["error"]["code"], "unsafe_setup", "{line}");
        return;
    }
    let daemon = Daemon::start(&mut with(&["up"]));
    let status = with(&["--json", "status"]).output().unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let warnings = status["watch"]["warnings"].as_array().cloned().unwrap_or_default();
    assert_eq!(warnings.contains(&name.into()), expected == Warned, "{line}: {status}");
    drop(daemon);
    let tail = world.json(&["ledger", "tail", "--limit", "1000"]);
    let started =
        tail["events"].as_array().unwrap().iter().rfind(|it| it["kind"] == "watch.started");
    // A damaged log is not written.
    if let Some(started) = started.filter(|_| name != "log") {
        let warnings = started["body"]["warnings"].as_array().cloned().unwrap_or_default();
        assert_eq!(warnings.contains(&name.into()), expected == Warned, "{line}: {started}");
    }
}

#[test]
fn a_sound_installation_starts_in_every_posture() {
    for name in ["files", "secrets", "core dumps", "orders", "schema", "signing key", "clock"] {
        check(name, "", |_| {}, [Fine; 3]);
    }
    check("shared secrets", "", |_| {}, [Fine; 3]);
}

#[test]
fn others_can_read_the_data_or_change_the_orders() {
    let database = |world: &mut World| set_mode(world.data().join("midwatch.db"), 0o640);
    check("files", "chmod 600", database, [Refused; 3]);
    for file in ["policy.toml", "midwatch.toml"] {
        let orders = |world: &mut World| {
            fs::write(world.data().join(file), "").unwrap();
            set_mode(world.data().join(file), 0o620);
        };
        check("files", "chmod go-w", orders, [Refused; 3]);
    }
    let directory = |world: &mut World| set_mode(world.data(), 0o777);
    check("files", "chmod go-w", directory, [Refused; 3]);
    let shown = |world: &mut World| set_mode(world.data(), 0o755);
    check("files", "", shown, [Fine; 3]);
    let readable = |world: &mut World| {
        fs::write(world.data().join("policy.toml"), "").unwrap();
        set_mode(world.data().join("policy.toml"), 0o644);
    };
    check("files", "", readable, [Fine; 3]);
}

/// Where the tests may give files away.
#[test]
fn what_belongs_to_others_is_theirs_whatever_its_mode() {
    const SOMEBODY: u32 = 65_534;
    let give = |path: &Path| std::os::unix::fs::chown(path, Some(SOMEBODY), None);
    if give(tempfile::tempdir().unwrap().path()).is_err() {
        return;
    }
    for (name, file) in [
        ("files", "midwatch.toml"),
        ("files", "policy.toml"),
        ("files", "midwatch.db"),
        ("files", ""),
        ("signing key", "signing.key"),
        ("signing key", "sealing.key"),
    ] {
        let theirs = |world: &mut World| {
            let path = world.data().join(file);
            if !path.exists() {
                fs::write(&path, "").unwrap();
                set_mode(&path, 0o600);
            }
            give(&path).unwrap();
        };
        check(name, "chown", theirs, [Refused; 3]);
    }
}

#[test]
fn others_can_read_the_key_that_opens_what_is_sealed() {
    let add = ["schedule", "add", "--name", "diary", "--daily", "03:00", "--tz", "UTC"];
    let what = ["--agent", "ada", "--prompt", "hello", "--sensitive"];
    let sealed = |mode: u32| {
        move |world: &mut World| {
            world.ok(&[&add[..], &what].concat());
            set_mode(world.data().join("sealing.key"), mode);
        }
    };
    check("signing key", "chmod 600", sealed(0o644), [Refused; 3]);
    check("signing key", "", sealed(0o600), [Fine; 3]);
}

#[test]
fn a_secret_is_where_agents_can_take_it() {
    const EXPECTED: [Expected; 3] = [Refused, Refused, Warned];
    let secret = format!("mwt_{}", "0a".repeat(32));
    let add = ["agent", "add", "eve", "--backend", "command"];
    let password = |world: &mut World| {
        world.set("MIDWATCH_NOTICE_URL", "https://127.0.0.1:9/x");
        world.set("MIDWATCH_NOTICE_TOKEN", "env:SECRET");
        world.set("SECRET", "hunter22");
        world.ok(&[&add[..], &["--env", "SECRET", "--", "true"]].concat());
    };
    check("secrets", "midwatch agent edit eve", password, EXPECTED);
    let arguments = |world: &mut World| {
        world.ok(&[&add[..], &["--", "true", &secret]].concat());
    };
    check("secrets", "revoke that token", arguments, EXPECTED);
    let notice = |world: &mut World| {
        let argv = format!("[\"true\", \"--token={secret}\"]");
        world.set("MIDWATCH_NOTICE_COMMAND", argv);
    };
    check("secrets", "revoke that token", notice, EXPECTED);
}

/// What is sent elsewhere must not open anything else.
#[test]
fn a_secret_serves_two_ends() {
    const EXPECTED: [Expected; 3] = [Refused, Refused, Warned];
    let add = |world: &World, name: &str, secret: &str| {
        let letta = ["--backend", "letta", "--remote-id", "agent-1", "--credential", secret];
        world.ok(&[&["agent", "add", name][..], &letta].concat());
    };
    let notice = |world: &mut World| {
        world.set("MIDWATCH_NOTICE_URL", "https://127.0.0.1:9/x");
        world.set("MIDWATCH_NOTICE_TOKEN", "env:NOTICE_SECRET");
        world.set("NOTICE_SECRET", "hunter22");
    };
    let token = |world: &World| {
        let create = ["token", "create", "--name", "ida", "--role", "operator"];
        world.json(&create)["token"]["secret"].as_str().unwrap().to_owned()
    };
    let sent_to_an_agent = |world: &mut World| {
        world.set("LETTA_KEY", token(world));
        add(world, "eve", "env:LETTA_KEY");
    };
    check("shared secrets", "midwatch token revoke", sent_to_an_agent, EXPECTED);
    let sent_with_notices = |world: &mut World| {
        notice(world);
        // A file is read to its last line, as when it is used.
        fs::write(world.data().join("secret"), token(world) + "\n").unwrap();
        let file = format!("file:{}", world.data().join("secret").display());
        world.set("MIDWATCH_NOTICE_TOKEN", file);
    };
    check("shared secrets", "midwatch token revoke", sent_with_notices, EXPECTED);
    let sent_to_both = |world: &mut World| {
        notice(world);
        world.set("LETTA_KEY", "hunter22");
        add(world, "eve", "env:LETTA_KEY");
    };
    check("shared secrets", "give each a secret of its own", sent_to_both, EXPECTED);
    let fine = |world: &mut World| {
        notice(world);
        world.set("LETTA_KEY", "hunter23");
        // A token that is revoked lets nobody in, and agents of one server have one key.
        world.set("OLD", token(world));
        let tokens = world.json(&["token", "list"])["tokens"].as_array().unwrap().clone();
        let ida = tokens.iter().find(|it| it["name"] == "ida").unwrap();
        world.ok(&["token", "revoke", ida["id"].as_str().unwrap()]);
        for (name, secret) in [
            ("eve", "env:LETTA_KEY"),
            ("fay", "env:LETTA_KEY"),
            ("gus", "env:OLD"),
            ("hal", "env:NONE"),
        ] {
            add(world, name, secret);
        }
    };
    check("shared secrets", "", fine, [Fine; 3]);
}

/// Without a daemon, whoever comes with a token that lets nobody in is not let in.
#[test]
fn a_daemon_is_given_nobodys_token() {
    for (posture, expected) in POSTURES.into_iter().zip([Some(4), Some(4), None]) {
        let world = sound();
        let create = ["token", "create", "--name", "ida", "--role", "operator"];
        let token = world.json(&create)["token"]["secret"].as_str().unwrap().to_owned();
        let mut command = world.command();
        command.arg("up").env("MIDWATCH_POSTURE", posture).env("MIDWATCH_TOKEN", token);
        match expected {
            Some(code) => {
                let (found, said) = Daemon::fails(&mut command);
                assert_eq!(found, Some(code), "{posture}: {said}");
                assert!(said.contains("env -u MIDWATCH_TOKEN midwatch up"), "{posture}: {said}");
            }
            None => drop(Daemon::start(&mut command)),
        }
    }
}

#[test]
fn too_few_people_can_approve() {
    let revoke = |count: usize| {
        move |world: &mut World| {
            let tokens = world.json(&["token", "list"])["tokens"].as_array().unwrap().clone();
            for token in tokens.iter().take(count) {
                world.ok(&["token", "revoke", token["id"].as_str().unwrap()]);
            }
        }
    };
    check("approvers", "midwatch token create", revoke(2), [Refused, Fine, Fine]);
    check("approvers", "midwatch token create", revoke(1), [Refused, Fine, Fine]);
    check("approvers", "", revoke(0), [Fine; 3]);
    // Another token of the same name is no other person.
    let same = |world: &mut World| {
        revoke(1)(world);
        let name = world.json(&["token", "list"])["tokens"][1]["name"].as_str().unwrap().to_owned();
        world.ok(&["token", "create", "--name", &name, "--role", "maintainer"]);
    };
    check("approvers", "midwatch token create", same, [Refused, Fine, Fine]);
    // Who has no key signs nothing.
    let keyless = |world: &mut World| {
        revoke(1)(world);
        world.ok(&["token", "create", "--name", "ida", "--role", "operator"]);
    };
    check("approvers", "--key KEY", keyless, [Refused, Fine, Fine]);
    let three = |world: &mut World| {
        let rule = "[[rule]]\nid = 'two'\nask = ['agent.prompt']\npersons = 2\n\
                    match = [{ capability = 'agent.prompt' }]\nnot_match = [{ capability = 'net.read' }]\n";
        fs::write(world.data().join("policy.toml"), rule).unwrap();
    };
    check("approvers", "midwatch token create", three, [Refused, Fine, Fine]);
    let nobody = |world: &mut World| {
        revoke(2)(world);
        world.set("MIDWATCH_FEATURE_FLAGS_LOCAL_APPROVALS", "false");
    };
    check("approvers", "midwatch token create", nobody, [Refused, Warned, Warned]);
}

#[derive(Debug)]
struct Later;

impl Clock for Later {
    fn now(&self) -> Timestamp {
        // In the year 2100.
        Timestamp::from_micros(4_102_444_800_000_000)
    }

    fn reaches(&self, _: Timestamp) -> BoxFuture<'static, ()> {
        pending().boxed()
    }

    fn steady(&self) -> Option<std::time::Duration> {
        None
    }
}

/// A log whose last entry is yet to come.
fn write_later(world: &World) {
    let settings = Settings {
        data: world.data().to_owned(),
        version: "test".into(),
        posture: kernel::ruling::Posture::Staging,
        checkpoint_copy: None,
        heartbeat: std::time::Duration::ZERO,
        drain: std::time::Duration::ZERO,
        secret_variables: Vec::new(),
    };
    let standing = Standing {
        policy: Vec::new(),
        keys: Vec::new(),
        config_hash: String::new(),
        lease: kernel::authority::Lease::default(),
        limits: kernel::budget::Limits::default(),
        flags: kernel::posture::Flags::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Arc::new(Sqlite::open(&world.data().join("midwatch.db")).unwrap());
        let watch = Engine::open(store, Arc::new(Later), settings, standing).await.unwrap();
        let eve = AgentAdd { name: "eve".into(), backend: "builtin".into(), ..AgentAdd::default() };
        ask(&watch.handle(Actor::local_user(0)), eve).await.unwrap();
    });
}

#[test]
fn the_clock_is_behind_the_log() {
    check("clock", "set the clock", |world| write_later(world), [Refused, Warned, Warned]);
}

#[test]
fn the_log_is_damaged() {
    let alter = |world: &mut World| {
        let database = world.database();
        let forbids = "SELECT name FROM sqlite_schema WHERE type = 'trigger'";
        let mut statement = database.prepare(forbids).unwrap();
        let names = statement.query_map((), |row| row.get::<_, String>(0)).unwrap();
        for name in names.collect::<Result<Vec<_>, _>>().unwrap() {
            database.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
        }
        let sql = "UPDATE entry SET actor = 'eve' WHERE seq = (SELECT max(seq) FROM entry)";
        database.execute_batch(sql).unwrap();
    };
    for (posture, refuses) in POSTURES.into_iter().zip([true, false, false]) {
        let mut world = sound();
        alter(&mut world);
        let mut command = world.command();
        command.arg("up").env("MIDWATCH_POSTURE", posture);
        match refuses {
            true => {
                let (code, said) = Daemon::fails(&mut command);
                assert_eq!(code, Some(4), "{said}");
                assert!(said.contains("the check `log` refuses"), "{said}");
            }
            false => {
                let _daemon = Daemon::start(&mut command);
                let status = world.json(&["status"]);
                assert_eq!(status["watch"]["warnings"][0], "log", "{posture}: {status}");
                assert!(status["log"]["stopped"].is_string(), "{posture}: {status}");
            }
        }
    }
}

/// Those that were refused before have codes of their own.
#[test]
fn faulty_orders_and_a_key_that_others_can_read_start_in_no_posture() {
    for posture in POSTURES {
        for (code, exit) in [("policy_invalid", 2), ("key_missing", 4)] {
            let mut world = sound();
            world.set("MIDWATCH_POSTURE", posture);
            match code {
                "policy_invalid" => {
                    fs::write(world.data().join("policy.toml"), "[[rule]]").unwrap()
                }
                _ => set_mode(world.data().join("signing.key"), 0o640),
            }
            world.refused(&["up"], code, exit);
            assert_eq!(world.run(&["doctor"]).code, Some(1), "{posture}: {code}");
        }
    }
}

#[test]
fn the_daemon_leaves_no_core_dumps() {
    let world = sound();
    let daemon = world.up();
    let limits = fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let words: Vec<&str> = core.split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{core}");
    // What nobody may look into belongs to root, whoever runs it.
    let environment = fs::metadata(format!("/proc/{}/environ", daemon.pid())).unwrap();
    assert_eq!(environment.uid(), 0);
}
