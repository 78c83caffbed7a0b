//! The checks before the daemon starts: what each refuses in each posture, that a refusal names the check and its
//! fix, and that `doctor` finds the same.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use super::wrong_clock::{EARLIER_VERSION, YEAR_2100, add_agent_at};
use crate::support::world::{Daemon, World, daily};

const POSTURES: [&str; 3] = ["strict-prod", "staging", "debug"];

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Refused,
    Warned,
    Fine,
}
use Expected::{Fine, Refused, Warned};

/// A world that passes every check in every posture: two people can approve.
fn sound() -> World {
    let world = World::new();
    world.add_agent("ada");
    for name in ["olga", "otto"] {
        let key = create_key(&world, name);
        world.create_token_with(&["--name", name, "--role", "operator", "--key", &key]);
    }
    world
}

/// Creates a signing key. Returns the public key.
fn create_key(world: &World, name: &str) -> String {
    let file = world.root().join(format!("{name}.key"));
    let made = world.json(&["approval", "key", name, "--out", file.to_str().unwrap()]);
    made["key"]["public"].as_str().unwrap().to_owned()
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Checks the result of one startup check in each posture, after `prepare` changed a sound world.
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
        let (code, stderr) = Daemon::fails(&mut with(&["up"]));
        assert_eq!(code, Some(4), "{line}: {stderr}");
        assert!(stderr.contains(&format!("the check `{name}` refuses: ")), "{line}: {stderr}");
        assert!(stderr.contains(fix), "{line}: {stderr}");
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
    let started = world.events_of("watch.started").pop();
    // Nothing is recorded in a damaged ledger. An earlier start may have prepared the world.
    let is_own =
        |started: &Value| name != "ledger" && started["body"]["version"] != EARLIER_VERSION;
    if let Some(started) = started.filter(is_own) {
        let warnings = started["body"]["warnings"].as_array().cloned().unwrap_or_default();
        assert_eq!(warnings.contains(&name.into()), expected == Warned, "{line}: {started}");
    }
}

#[test]
fn sound_installation_starts_in_every_posture() {
    for name in ["files", "secrets", "core dumps", "policy", "schema", "signing key", "clock"] {
        check(name, "", |_| {}, [Fine; 3]);
    }
    check("shared secrets", "", |_| {}, [Fine; 3]);
}

#[test]
fn data_readable_or_policy_writable_by_other_users_is_refused() {
    let database = |world: &mut World| set_mode(world.data().join("midwatch.db"), 0o640);
    check("files", "chmod 600", database, [Refused; 3]);
    for file in ["policy.toml", "midwatch.toml"] {
        let writable = |world: &mut World| {
            fs::write(world.data().join(file), "").unwrap();
            set_mode(world.data().join(file), 0o620);
        };
        check("files", "chmod go-w", writable, [Refused; 3]);
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

/// Runs only where the user of the tests may change the owner of a file.
#[test]
fn files_owned_by_another_user_are_refused_whatever_their_mode() {
    const OTHER_USER: u32 = 65_534;
    let give = |path: &Path| std::os::unix::fs::chown(path, Some(OTHER_USER), None);
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
fn sealing_key_readable_by_other_users_is_refused() {
    let sealed = |mode: u32| {
        move |world: &mut World| {
            world.add_schedule(&[&daily("diary", "ada", "hello")[..], &["--sensitive"]].concat());
            set_mode(world.data().join("sealing.key"), mode);
        }
    };
    check("signing key", "chmod 600", sealed(0o644), [Refused; 3]);
    check("signing key", "", sealed(0o600), [Fine; 3]);
}

#[test]
fn secret_that_agents_can_read_is_refused_or_warned_of() {
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
    check("secrets", "revoke this one", notice, EXPECTED);
}

/// A secret that is sent to one server must not be valid anywhere else.
#[test]
fn secret_with_two_uses_is_refused_or_warned_of() {
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
    let token = |world: &World| world.create_token("ida", "operator").1;
    let sent_to_an_agent = |world: &mut World| {
        world.set("LETTA_KEY", token(world));
        add(world, "eve", "env:LETTA_KEY");
    };
    check("shared secrets", "midwatch token revoke", sent_to_an_agent, EXPECTED);
    let sent_with_notices = |world: &mut World| {
        notice(world);
        // The line break at the end of the file is ignored.
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
        // A revoked token is worthless, and agents of one server may share a key.
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

#[test]
fn daemon_started_with_a_token_in_its_environment_is_refused() {
    for (posture, expected) in POSTURES.into_iter().zip([Some(4), Some(4), None]) {
        let world = sound();
        let (_, token) = world.create_token("ida", "operator");
        let mut command = world.command();
        command.arg("up").env("MIDWATCH_POSTURE", posture).env("MIDWATCH_TOKEN", token);
        match expected {
            Some(code) => {
                let (found, stderr) = Daemon::fails(&mut command);
                assert_eq!(found, Some(code), "{posture}: {stderr}");
                assert!(
                    stderr.contains("env -u MIDWATCH_TOKEN midwatch up"),
                    "{posture}: {stderr}"
                );
            }
            None => drop(Daemon::start(&mut command)),
        }
    }
}

#[test]
fn too_few_approvers_are_refused_or_warned_of() {
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
    // Another token of the same name is not another person.
    let same = |world: &mut World| {
        revoke(1)(world);
        let name = world.json(&["token", "list"])["tokens"][1]["name"].as_str().unwrap().to_owned();
        world.ok(&["token", "create", "--name", &name, "--role", "maintainer"]);
    };
    check("approvers", "midwatch token create", same, [Refused, Fine, Fine]);
    // A person without a key cannot sign.
    let keyless = |world: &mut World| {
        revoke(1)(world);
        world.ok(&["token", "create", "--name", "ida", "--role", "operator"]);
    };
    check("approvers", "--key KEY", keyless, [Refused, Fine, Fine]);
    let two_besides_the_author = |world: &mut World| {
        let rule = "[[rule]]\nid = 'two'\nask = ['agent.prompt']\npersons = 2\n\
                    match = [{ capability = 'agent.prompt' }]\nnot_match = [{ capability = 'net.read' }]\n";
        fs::write(world.data().join("policy.toml"), rule).unwrap();
    };
    check("approvers", "midwatch token create", two_besides_the_author, [Refused, Fine, Fine]);
    let no_approver = |world: &mut World| {
        revoke(2)(world);
        world.set("MIDWATCH_FEATURE_FLAGS_LOCAL_APPROVALS", "false");
    };
    check("approvers", "midwatch token create", no_approver, [Refused, Warned, Warned]);
}

#[test]
fn schedule_that_too_few_people_can_approve_is_warned_of() {
    /// `author` adds a schedule of this tier for an agent that `registrar` registered.
    fn schedule_of(world: &World, registrar: &str, author: &str, tier: &str) {
        let (_, token) = world.create_token(registrar, "operator");
        let agent = ["agent", "add", "bob", "--backend", "builtin"];
        assert_eq!(world.code_as(&token, &agent), "ok");
        let (_, token) = world.create_token(author, "operator");
        let add = [&["schedule", "add"][..], &daily("standup", "bob", "x"), &["--tier", tier]];
        assert_eq!(world.code_as(&token, &add.concat()), "ok");
    }
    let name = "schedule approvers";
    let two_authors = |world: &mut World| schedule_of(world, "otto", "olga", "2");
    check(name, "midwatch token create", two_authors, [Warned, Fine, Fine]);
    check(name, "", |world| schedule_of(world, "olga", "olga", "2"), [Fine; 3]);
    check(name, "", |world| schedule_of(world, "otto", "olga", "0"), [Fine; 3]);
    let third_person = |world: &mut World| {
        two_authors(world);
        let key = create_key(world, "ida");
        world.create_token_with(&["--name", "ida", "--role", "operator", "--key", &key]);
    };
    check(name, "", third_person, [Fine; 3]);
    let paused = |world: &mut World| {
        two_authors(world);
        let listed = world.json(&["schedule", "list"]);
        world.ok(&["schedule", "pause", listed["schedules"][0]["id"].as_str().unwrap()]);
    };
    check(name, "", paused, [Fine; 3]);

    let mut world = sound();
    two_authors(&mut world);
    let doctor = world.json_with(&[("MIDWATCH_POSTURE", "strict-prod")], &["doctor"]);
    let found = doctor["checks"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
    let expected =
        "schedule `standup` needs 1 approver besides its authors `olga` and `otto`; 0 are set up";
    assert_eq!(found["detail"], expected);
}

#[test]
fn clock_behind_the_ledger_is_refused_or_warned_of() {
    check(
        "clock",
        "set the clock",
        |world| add_agent_at(world, "eve", YEAR_2100),
        [Refused, Warned, Warned],
    );
}

#[test]
fn damaged_ledger_is_refused_or_warned_of() {
    let alter = |world: &World| {
        let sql = "UPDATE entry SET actor = 'eve' WHERE seq = (SELECT max(seq) FROM entry)";
        world.alter_database(sql);
    };
    for (posture, refuses) in POSTURES.into_iter().zip([true, false, false]) {
        let world = sound();
        alter(&world);
        let mut command = world.command();
        command.arg("up").env("MIDWATCH_POSTURE", posture);
        match refuses {
            true => {
                let (code, stderr) = Daemon::fails(&mut command);
                assert_eq!(code, Some(4), "{stderr}");
                assert!(stderr.contains("the check `ledger` refuses"), "{stderr}");
            }
            false => {
                let _daemon = Daemon::start(&mut command);
                let status = world.json(&["status"]);
                assert_eq!(status["watch"]["warnings"][0], "ledger", "{posture}: {status}");
                assert!(status["log"]["stopped"].is_string(), "{posture}: {status}");
            }
        }
    }
}

/// Errors that are found before the checks have their own codes.
#[test]
fn invalid_policy_and_a_readable_signing_key_start_in_no_posture() {
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
fn daemon_writes_no_core_dumps() {
    let world = sound();
    let daemon = world.up();
    check_no_core_dumps(daemon.pid());
}

/// A client may have the token of a person.
#[test]
fn client_writes_no_core_dumps() {
    let world = sound();
    let _daemon = world.up();
    let mut command = world.command();
    command.args(["ledger", "tail", "--follow", "--cursor", "0"]).stdout(Stdio::piped());
    let mut client = command.spawn().unwrap();
    // It has printed something, so it has started.
    client.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    check_no_core_dumps(client.id());
    client.kill().unwrap();
    client.wait().unwrap();
}

fn check_no_core_dumps(process: u32) {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let words: Vec<&str> = core.split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{core}");
    // The kernel gives the `/proc` files of a process that may not be dumped to root.
    let environment = fs::metadata(format!("/proc/{process}/environ")).unwrap();
    assert_eq!(environment.uid(), 0);
}

/// The daemon goes on without enough approvers, so the commands that lead there say what its next start does.
#[test]
fn token_revoke_and_reload_say_that_the_next_start_is_refused() {
    let mut world = World::with_agent("ada");
    world.set("MIDWATCH_POSTURE", "strict-prod");
    // The second maintainer is added by the first.
    let mut people: Vec<(String, String)> = Vec::new();
    for name in ["ida", "olga"] {
        let file = world.root().join(name).display().to_string();
        let made = world.json(&["approval", "key", name, "--out", &file]);
        let key = made["key"]["public"].as_str().unwrap();
        let by = people.first().map_or("", |(_, secret)| secret);
        let create = ["token", "create", "--name", name, "--role", "maintainer", "--key", key];
        let token = world.json_as(by, &create)["token"].clone();
        people.push(["id", "secret"].map(|it| token[it].as_str().unwrap().to_owned()).into());
    }
    let daemon = world.up();
    let [(_, ida), (olga, _)] = &people[..] else { panic!("{people:?}") };
    let revoke = ["token", "revoke", olga];
    let revoked = world.json_as(ida, &revoke);
    assert_eq!(revoked["warnings"][0]["refuses"], true, "{revoked}");
    let text = world.command().args(revoke).env("MIDWATCH_TOKEN", ida).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("warning: the next start will be refused: 1 of 2 required"), "{text}");
    let reload = world.command().args(["config", "reload"]).env("MIDWATCH_TOKEN", ida).output();
    let text = String::from_utf8(reload.unwrap().stdout).unwrap();
    assert!(text.contains("warning: the next start will be refused: 1 of 2 required"), "{text}");
    daemon.stop();
    let (code, stderr) = Daemon::fails(world.command().arg("up"));
    assert_eq!(code, Some(4), "{stderr}");
}

#[test]
fn agent_that_cannot_write_to_its_working_directory_is_found() {
    let world = World::new();
    // Not even root can write into a file as a directory.
    let file = world.root().join("file");
    fs::write(&file, "").unwrap();
    let add = ["agent", "add", "smith", "--backend", "command", "--cwd", file.to_str().unwrap()];
    world.ok(&[&add[..], &["--", "/bin/true"]].concat());
    let doctor = world.run(&["doctor"]).stdout;
    assert!(doctor.contains("agent `smith` cannot write to its working directory"), "{doctor}");
    assert!(doctor.contains("ProtectHome="), "{doctor}");
    world.ok(&["agent", "edit", "smith", "--cwd", world.root().to_str().unwrap()]);
    let doctor = world.run(&["doctor"]).stdout;
    assert!(doctor.contains("agents can write to their working directories"), "{doctor}");
}
