//! Who speaks: tokens and roles, and that whatever descends from a run is that run, whatever it shows.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use api::wire::{Hello, Secret};
use serde_json::Value;

use crate::world::{World, wait_for};

const ATTACK: &str = include_str!("attack.c");

/// The same for somebody who signs.
fn create_with_key(world: &World, name: &str, role: &str) -> (String, String) {
    let file = world.root().join(format!("{name}.key"));
    let made = world.json(&["approval", "key", name, "--out", file.to_str().unwrap()]);
    let key = made["key"]["public"].as_str().unwrap();
    given(world, &["--name", name, "--role", role, "--key", key])
}

/// A token as it is printed, once.
fn create(world: &World, name: &str, role: &str) -> (String, String) {
    given(world, &["--name", name, "--role", role])
}

fn given(world: &World, what: &[&str]) -> (String, String) {
    let token = world.json(&[&["token", "create"], what].concat())["token"].clone();
    let text = |key: &str| token[key].as_str().unwrap_or_else(|| panic!("{token}")).to_owned();
    (text("id"), text("secret"))
}

/// What a command comes to that is given with a token: the code of the refusal, or `ok`.
fn with(world: &World, token: &str, arguments: &[&str]) -> String {
    let mut command = world.command();
    let output = command.arg("--json").args(arguments).env("MIDWATCH_TOKEN", token).output();
    let said: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    said["error"]["code"].as_str().unwrap_or("ok").to_owned()
}

#[test]
fn b06_a_token_lets_in_with_its_role_and_no_more() {
    let world = World::new();
    let daemon = world.up();
    let (_, observer) = create(&world, "olga", "observer");
    let (_, runner) = create(&world, "rita", "runner");
    let (operator_id, operator) = create(&world, "otto", "operator");
    let (_, maintainer) = create(&world, "ada", "maintainer");
    for (token, freeze, thaw, give) in [
        (&observer, "role_too_low", "role_too_low", "role_too_low"),
        (&runner, "role_too_low", "role_too_low", "role_too_low"),
        (&operator, "ok", "role_too_low", "role_too_low"),
        (&maintainer, "ok", "ok", "ok"),
    ] {
        assert_eq!(with(&world, token, &["status"]), "ok");
        assert_eq!(with(&world, token, &["freeze"]), freeze);
        assert_eq!(with(&world, token, &["thaw"]), thaw);
        let another = ["token", "create", "--name", "eve", "--role", "observer"];
        assert_eq!(with(&world, token, &another), give);
        assert_eq!(with(&world, token, &["ledger", "rebuild"]), thaw);
        assert_eq!(with(&world, token, &["ledger", "export"]), freeze);
        assert_eq!(with(&world, token, &["ledger", "checkpoint"]), freeze);
    }
    world.ok(&["token", "revoke", &operator_id, "--reason", "lost"]);
    assert_eq!(with(&world, &operator, &["freeze"]), "token_invalid");
    let listed = world.ok(&["token", "list"]);
    assert!(listed.contains("otto") && !listed.contains("mwt_"), "{listed}");

    // What was refused is in the log, with who and what.
    let refused = world.json(&["ledger", "tail", "--limit", "100"])["events"].clone();
    let refused = refused.as_array().unwrap().iter().filter(|it| it["kind"] == "watch.refused");
    let refused: Vec<(&Value, &Value)> =
        refused.map(|it| (&it["body"]["by"], &it["body"]["code"])).collect();
    assert!(refused.contains(&(&"olga".into(), &"role_too_low".into())), "{refused:?}");
    assert!(refused.iter().any(|(_, code)| *code == "token_invalid"), "{refused:?}");
    drop(daemon);

    // Without a daemon the same holds.
    assert_eq!(with(&world, &observer, &["freeze"]), "role_too_low");
    assert_eq!(with(&world, &operator, &["status"]), "token_invalid");
    assert_eq!(with(&world, &maintainer, &["lease", "renew"]), "ok");
    world.verified();
}

/// Else an agent could approve, with the one token, what it has asked for with the other.
#[test]
fn no_name_has_an_agents_token_and_an_approvers() {
    let world = World::new();
    world.ok(&["agent", "add", "two", "--backend", "builtin"]);
    let give = |role: &'static str| ["token", "create", "--name", "two", "--role", role];
    for (first, second) in [("runner", "operator"), ("maintainer", "runner")] {
        let (id, _) = create(&world, "two", first);
        assert!(world.refused(&give(second), "exists", 4).contains(first));
        world.ok(&give("observer"));
        world.ok(&["token", "revoke", &id]);
    }
    world.ok(&give("runner"));
    world.verified();
}

#[test]
fn a16_a_token_that_is_not_one_gets_one_answer_whatever_it_is() {
    let world = World::new();
    let daemon = world.up();
    let (_, secret) = create(&world, "ada", "maintainer");
    let long = format!("{secret}{}", "0".repeat(10 << 20));
    let hostile = [
        secret[..secret.len() - 1].to_owned(),
        format!("{secret}0"),
        secret.to_uppercase(),
        secret.replace("mwt_", "mwa_"),
        format!("{secret}\0"),
        "mwt_".to_owned(),
        format!("mwt_{}", "0".repeat(64)),
        long,
    ];
    let mut answers: Vec<String> = hostile.into_iter().map(|it| answer(&world, it)).collect();
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(answers[0].contains("token_invalid") && !answers[0].contains(&secret), "{answers:?}");
    assert_eq!(with(&world, &secret, &["status"]), "ok");
    drop(daemon);
}

/// What the daemon says to somebody who comes with this token.
fn answer(world: &World, token: String) -> String {
    greeted(world, token).next().unwrap().unwrap()
}

/// A connection whose hellos are exchanged.
fn greeted(world: &World, token: String) -> Lines<BufReader<UnixStream>> {
    let stream = UnixStream::connect(world.data().join("midwatch.sock")).unwrap();
    let hello = Hello { token: Some(Secret(token)), ..Hello::new("test") };
    let mut frame = serde_json::to_vec(&hello).unwrap();
    frame.push(b'\n');
    (&stream).write_all(&frame).unwrap();
    let mut lines = BufReader::new(stream).lines();
    lines.next().unwrap().unwrap();
    lines
}

#[test]
fn a_token_that_is_revoked_ends_what_it_has_opened() {
    let world = World::new();
    let daemon = world.up();
    let (id, secret) = create(&world, "ada", "maintainer");
    let stream = UnixStream::connect(world.data().join("midwatch.sock")).unwrap();
    let hello = Hello { token: Some(Secret(secret)), ..Hello::new("test") };
    let say = |frame: &str| (&stream).write_all(format!("{frame}\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(&stream).lines();
    say(&serde_json::to_string(&hello).unwrap());
    lines.next().unwrap().unwrap();
    let status = r#"{"request":{"call":"status","with":{}}}"#;
    say(status);
    assert!(lines.next().unwrap().unwrap().contains("authority"));
    world.ok(&["token", "revoke", &id]);
    say(status);
    assert!(lines.next().unwrap().unwrap().contains("token_invalid"));
    drop(daemon);
}

/// Leaves its group and its parent, forgets its run, and takes what it has found: a maintainer's token.
const ESCAPE: &str = r#"
out=$1; program=$2; data=$3; token=$4
if [ "$5" = inner ]; then
  : > "$out.away"
  while [ -d "/proc/$6" ]; do :; done
  env -i MIDWATCH_DATA="$data" MIDWATCH_TOKEN="$token" "$program" --json freeze > "$out.part" 2>&1
  env -i MIDWATCH_DATA="$data" MIDWATCH_TOKEN="$token" "$program" --json \
    token create --name eve --role maintainer >> "$out.part" 2>&1
  mv "$out.part" "$out"
  exit 0
fi
setsid sh "$0" "$out" "$program" "$data" "$token" inner $$ < /dev/null > /dev/null 2>&1 &
while [ ! -e "$out.away" ]; do :; done
exit 0
"#;

#[test]
fn b04_whatever_descends_from_a_run_has_no_more_rights_than_a_run() {
    let world = World::new();
    let daemon = world.up();
    let (_, maintainer) = create(&world, "ada", "maintainer");
    let (script, out) = (world.root().join("escape.sh"), world.root().join("out"));
    fs::write(&script, ESCAPE).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let [script, file, data] = [&script, &out, world.data()].map(|path| path.to_str().unwrap());
    let program = env!("CARGO_BIN_EXE_midwatch");
    let argv = ["--", "sh", script, file, program, data, &maintainer];
    world.ok(&[&["agent", "add", "eve", "--backend", "command"], &argv[..]].concat());
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "eve", "--prompt", "hello"];
    let added = world.json(&[&["schedule", "add", "--name", "escape"], &what[..]].concat());
    world.ok(&["run", "start", added["schedule"]["id"].as_str().unwrap()]);
    let said = wait_for(|| fs::read_to_string(&out).ok());
    let said = serde_json::Deserializer::from_str(&said).into_iter::<Value>();
    let codes: Vec<Value> = said.map(|it| it.unwrap()["error"]["code"].clone()).collect();
    assert_eq!(codes, ["role_too_low", "role_too_low"]);
    let status = world.json(&["status"]);
    assert_eq!(status["authority"]["frozen"], Value::Null, "{status}");
    // Those that were adopted are buried.
    wait_for(|| {
        let children = format!("/proc/{0}/task/{0}/children", daemon.pid());
        fs::read_to_string(children).unwrap().trim().is_empty().then_some(())
    });
    drop(daemon);
}

/// A world with an agent whose program is [`ATTACK`] with these arguments after the socket and the file
/// that it says its end in; and a run of it.
fn attacked(world: &World, manner: &str, arguments: &[&str]) -> PathBuf {
    let (source, program) = (world.root().join("attack.c"), world.root().join("attack"));
    fs::write(&source, ATTACK).unwrap();
    let compiled = world.wrapped("cc").arg("-o").arg(&program).arg(&source).status().unwrap();
    assert!(compiled.success(), "there is no C compiler");
    let (socket, out) = (world.data().join("midwatch.sock"), world.root().join("out"));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let argv = [text(&program), manner.to_owned(), text(&socket), text(&out)];
    let argv: Vec<&str> =
        argv.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
    world.ok(&[&["agent", "add", "eve", "--backend", "command", "--"], &argv[..]].concat());
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "eve", "--prompt", "hello"];
    let added = world.json(&[&["schedule", "add", "--name", "attack"], &what[..]].concat());
    world.ok(&["run", "start", added["schedule"]["id"].as_str().unwrap()]);
    out
}

/// The process that connects has gone by the time it is looked at; whoever speaks then is not its user.
#[test]
fn b04_a_connection_whose_maker_has_gone_has_no_rights_of_a_human() {
    let world = World::new();
    let daemon = world.up();
    let hello = serde_json::to_string(&Hello::new("test")).unwrap();
    let with = format!(r#"{{"name":"eve","role":"maintainer","hash":"{}"}}"#, "ab".repeat(32));
    let request = format!(r#"{{"request":{{"call":"token.create","with":{with}}}}}"#);
    let out = attacked(&world, "ghost", &[&hello, &request]);
    let said = wait_for(|| fs::read_to_string(&out).ok());
    assert!(said.contains("role_too_low"), "{said}");
    assert_eq!(world.json(&["token", "list"])["tokens"].as_array().unwrap().len(), 0);
    drop(daemon);
}

/// However many connections a run holds, there is one left to stop it by.
#[test]
fn a_run_that_holds_connections_does_not_keep_the_kill_switch_out() {
    let world = World::new();
    let daemon = world.up();
    let hello = serde_json::to_string(&Hello::new("test")).unwrap();
    let out = attacked(&world, "hog", &[&hello]);
    wait_for(|| fs::exists(&out).unwrap().then_some(()));
    assert_eq!(world.json(&["freeze"])["changed"], true);
    // It ends the run and its program.
    assert_eq!(daemon.stop().0, Some(0));
}

/// Nor do those that the assistant of a human holds, on purpose or not.
#[test]
fn an_assistant_that_holds_connections_does_not_keep_the_kill_switch_out() {
    let world = World::new();
    let daemon = world.up();
    let hello = Hello { assistant: true, ..Hello::new("test") };
    let hello = serde_json::to_string(&hello).unwrap();
    let status = r#"{"request":{"call":"status","with":{}}}"#;
    let mut held = Vec::new();
    let refused = (0..256).find_map(|_| {
        let stream = UnixStream::connect(world.data().join("midwatch.sock")).unwrap();
        (&stream).write_all(format!("{hello}\n{status}\n").as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines();
        lines.next().unwrap().unwrap();
        let said = lines.next().unwrap().unwrap();
        held.push(lines);
        (!said.contains("authority")).then_some(said)
    });
    assert!(refused.is_some_and(|said| said.contains("limit_reached")), "there is no end to it");
    assert_eq!(world.json(&["freeze"])["changed"], true);
    drop(held);
    assert_eq!(daemon.stop().0, Some(0));
}

/// In strict-prod the user of the machine decides nothing for which somebody must answer.
#[test]
fn in_strict_prod_a_maintainer_comes_with_a_token() {
    let mut world = World::new();
    world.set("MIDWATCH_POSTURE", "strict-prod");
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    // Somebody must give out the first, and an observer's is not enough to be locked out.
    create(&world, "olga", "observer");
    create_with_key(&world, "otto", "operator");
    let (_, maintainer) = create_with_key(&world, "ada", "maintainer");
    let listed = world.json(&["token", "list"])["tokens"].as_array().unwrap().len();
    let shown = world.ok(&["token", "list"]);
    assert_eq!((listed, shown.matches(" yes ").count()), (3, 2), "{shown}");
    let daemon = world.up();
    world.refused(&["token", "create", "--name", "eve", "--role", "maintainer"], "role_too_low", 4);
    world.ok(&["freeze"]);
    world.refused(&["thaw"], "role_too_low", 4);
    assert_eq!(with(&world, &maintainer, &["thaw"]), "ok");

    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "hello"];
    let added = world.json(&[&["schedule", "add", "--name", "news"], &what[..]].concat());
    let schedule = added["schedule"]["id"].as_str().unwrap();
    let run = world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();
    let approval = wait_for(|| {
        let shown = world.json(&["run", "show", &run])["run"].clone();
        shown["approval_id"].as_str().map(str::to_owned)
    });
    world.refused(&["approval", "approve", &approval], "signature_needed", 4);
    assert_eq!(with(&world, &maintainer, &["approval", "approve", &approval]), "signature_needed");
    world.ok(&["approval", "deny", &approval]);
    drop(daemon);
}

/// A secret is shown once, and is nowhere to be found after.
#[test]
fn b03_the_secret_of_a_token_is_kept_nowhere() {
    let mut world = World::new();
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    let daemon = world.up();
    let (_, secret) = create(&world, "ada", "maintainer");
    assert_eq!(with(&world, &secret, &["status"]), "ok");
    assert_eq!(with(&world, &format!("{secret}0"), &["status"]), "token_invalid");
    world.ok(&["ledger", "export"]);
    assert_eq!(daemon.stop().0, Some(0));
    let digits = secret.strip_prefix("mwt_").unwrap().as_bytes();
    let mut folders = vec![world.data().to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let has_it = bytes.windows(digits.len()).any(|part| part == digits);
            assert!(!has_it, "{}", path.display());
            files += 1;
        }
    }
    assert!(3 < files, "there is nothing to look at");
}

/// A token of an agent's name is the agent's: with it, it reaches what is its own, and learns of nothing
/// else.
#[test]
fn an_agents_token_reaches_its_own_schedules_only() {
    let world = World::new();
    for name in ["ada", "bob"] {
        world.ok(&["agent", "add", name, "--backend", "builtin"]);
    }
    let daemon = world.up();
    let (_, ada) = create(&world, "ada", "runner");
    let add = |agent: &'static str, name: &'static str| {
        let when = ["--daily", "03:00", "--tz", "UTC", "--agent", agent, "--prompt", "hello"];
        [&["schedule", "add", "--name", name], &when[..]].concat()
    };
    let bobs = world.json(&add("bob", "of bob"))["schedule"]["id"].as_str().unwrap().to_owned();
    let hers = world.json(&add("ada", "of ada"))["schedule"]["id"].as_str().unwrap().to_owned();
    let run = world.json(&["run", "start", &bobs])["run"]["id"].as_str().unwrap().to_owned();

    // Two of the same name, and none of another.
    assert_eq!(with(&world, &ada, &add("ada", "of herself")), "ok");
    assert_eq!(with(&world, &ada, &add("bob", "for bob")), "role_too_low");
    let listed = |arguments: &[&str], key: &str| {
        let mut command = world.command();
        let output = command.arg("--json").args(arguments).env("MIDWATCH_TOKEN", &ada).output();
        let said: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        said[key].as_array().unwrap_or_else(|| panic!("{said}")).len()
    };
    assert_eq!(listed(&["schedule", "list"], "schedules"), 2);
    assert_eq!(listed(&["schedule", "list", "--agent", "bob"], "schedules"), 2);
    assert_eq!(listed(&["run", "list"], "runs"), 0);
    assert_eq!(listed(&["agent", "list"], "agents"), 1);
    // Nor does it learn from how things stand what there is of others.
    assert!(world.json(&["status"])["next"].is_object());
    let status = world.command().args(["--json", "status"]).env("MIDWATCH_TOKEN", &ada).output();
    let status: Value = serde_json::from_slice(&status.unwrap().stdout).unwrap();
    assert!(status["next"].is_null() && status["watch"]["kept"] == true, "{status}");
    for (arguments, code) in [
        (vec!["schedule", "show", &hers], "ok"),
        (vec!["schedule", "show", &bobs], "not_found"),
        (vec!["schedule", "show", "sch_00000000"], "not_found"),
        (vec!["run", "show", &run], "not_found"),
        (vec!["agent", "show", "ada"], "ok"),
        (vec!["agent", "show", "bob"], "not_found"),
        (vec!["why", &bobs], "not_found"),
        (vec!["schedule", "remove", &bobs], "not_found"),
        (vec!["schedule", "pause", &bobs], "not_found"),
        (vec!["run", "start", &bobs], "not_found"),
        (vec!["run", "start", &hers], "ok"),
        (vec!["schedule", "pause", &hers], "ok"),
        (vec!["schedule", "resume", &hers], "role_too_low"),
        (vec!["run", "start", &hers], "role_too_low"),
        (vec!["ledger", "tail"], "role_too_low"),
        (vec!["policy", "replay"], "role_too_low"),
        (vec!["schedule", "remove", &hers], "ok"),
    ] {
        assert_eq!(with(&world, &ada, &arguments), code, "{arguments:?}");
    }
    assert_eq!(daemon.stop().0, Some(0));

    // A rule of the operator's own lets it see more.
    let rule = r#"
        [[rule]]
        id = "ada-looks-around"
        allow = ["schedule.read"]
        principal = ["ada"]
        match = [{ capability = "schedule.read", principal = "ada" }]
        not_match = [{ capability = "schedule.read", principal = "bob" }]
    "#;
    fs::write(world.data().join("policy.toml"), rule).unwrap();
    let _daemon = world.up();
    assert_eq!(listed(&["schedule", "list"], "schedules"), 2);
    assert_eq!(with(&world, &ada, &["schedule", "show", &bobs]), "ok");
    assert_eq!(with(&world, &ada, &["schedule", "remove", &bobs]), "not_found");
}

/// The rules bind an agent in what it does for itself too, and say so in the log.
#[test]
fn the_standing_orders_hold_for_an_agents_own_schedules() {
    let world = World::new();
    for name in ["ada", "bank"] {
        world.ok(&["agent", "add", name, "--backend", "builtin"]);
    }
    let rules = r#"
        [[rule]]
        id = "no-more-by-agents"
        deny = ["schedule.create"]
        role = ["runner"]
        match = [{ capability = "schedule.create", role = "runner" }]
        not_match = [{ capability = "schedule.change", role = "runner" }]

        [[rule]]
        id = "not-at-the-bank"
        ask = ["schedule.change", "run.start"]
        agent = ["bank"]
        match = [{ capability = "run.start", agent = "bank" }]
        not_match = [{ capability = "run.start", agent = "ada" }]
    "#;
    fs::write(world.data().join("policy.toml"), rules).unwrap();
    let _daemon = world.up();
    let add = |agent: &'static str, name: &'static str| {
        let when = ["--daily", "03:00", "--tz", "UTC", "--agent", agent, "--prompt", "hello"];
        [&["schedule", "add", "--name", name], &when[..]].concat()
    };
    for (agent, change) in [("ada", "ok"), ("bank", "human_needed")] {
        let (_, token) = create(&world, agent, "runner");
        let id = world.json(&add(agent, agent))["schedule"]["id"].as_str().unwrap().to_owned();
        assert_eq!(with(&world, &token, &add(agent, "another")), "denied", "{agent}");
        for arguments in [["run", "start", &id], ["schedule", "pause", &id]] {
            assert_eq!(with(&world, &token, &arguments), change, "{agent} {arguments:?}");
        }
    }
    let events = world.json(&["ledger", "tail", "--limit", "1000"]);
    let refused: Vec<&Value> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["kind"] == "watch.refused")
        .map(|event| &event["body"]["code"])
        .collect();
    assert!(refused.contains(&&"denied".into()) && refused.contains(&&"human_needed".into()));
}
