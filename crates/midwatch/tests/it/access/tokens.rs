//! Tokens: what each role may do, revocation, and what the token of an agent reaches.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::net::UnixStream;

use api::wire::{Hello, Secret};
use serde_json::Value;

use crate::support::world::{World, daily};

/// Creates a token for a person with a signing key.
fn create_token_with_key(world: &World, name: &str, role: &str) -> (String, String) {
    let file = world.root().join(format!("{name}.key"));
    let made = world.json(&["approval", "key", name, "--out", file.to_str().unwrap()]);
    let key = made["key"]["public"].as_str().unwrap();
    world.create_token_with(&["--name", name, "--role", role, "--key", key])
}

#[test]
fn token_has_exactly_the_rights_of_its_role() {
    let world = World::new();
    let daemon = world.up();
    let (_, observer) = world.create_token("olga", "observer");
    let (_, runner) = world.create_token("rita", "runner");
    let (operator_id, operator) = world.create_token("otto", "operator");
    let (_, maintainer) = world.create_token("ada", "maintainer");
    for (token, freeze, thaw, create) in [
        (&observer, "role_too_low", "role_too_low", "role_too_low"),
        (&runner, "role_too_low", "role_too_low", "role_too_low"),
        (&operator, "ok", "role_too_low", "role_too_low"),
        (&maintainer, "ok", "ok", "ok"),
    ] {
        assert_eq!(world.code_as(token, &["status"]), "ok");
        assert_eq!(world.code_as(token, &["freeze"]), freeze);
        assert_eq!(world.code_as(token, &["thaw"]), thaw);
        let another = ["token", "create", "--name", "eve", "--role", "observer"];
        assert_eq!(world.code_as(token, &another), create);
        assert_eq!(world.code_as(token, &["ledger", "rebuild"]), thaw);
        assert_eq!(world.code_as(token, &["ledger", "export"]), freeze);
        assert_eq!(world.code_as(token, &["ledger", "checkpoint"]), freeze);
    }
    world.ok(&["token", "revoke", &operator_id, "--reason", "lost"]);
    assert_eq!(world.code_as(&operator, &["freeze"]), "token_invalid");
    let listed = world.ok(&["token", "list"]);
    assert!(listed.contains("otto") && !listed.contains("mwt_"), "{listed}");

    // The ledger records each refusal, with its caller and code.
    let refused = world.events_of("watch.refused");
    let refused: Vec<(&Value, &Value)> =
        refused.iter().map(|it| (&it["body"]["by"], &it["body"]["code"])).collect();
    assert!(refused.contains(&(&"olga".into(), &"role_too_low".into())), "{refused:?}");
    assert!(refused.iter().any(|(_, code)| *code == "token_invalid"), "{refused:?}");
    drop(daemon);

    // The same without a daemon.
    assert_eq!(world.code_as(&observer, &["freeze"]), "role_too_low");
    assert_eq!(world.code_as(&operator, &["status"]), "token_invalid");
    assert_eq!(world.code_as(&maintainer, &["lease", "renew"]), "ok");
    world.verified();
}

/// Otherwise an agent could approve with one token what it requests with the other.
#[test]
fn one_name_cannot_have_a_runner_token_and_an_approver_token() {
    let world = World::new();
    world.add_agent("two");
    let create = |role: &'static str| ["token", "create", "--name", "two", "--role", role];
    for (first, second) in [("runner", "operator"), ("maintainer", "runner")] {
        let (id, _) = world.create_token("two", first);
        assert!(world.refused(&create(second), "exists", 4).contains(first));
        world.ok(&create("observer"));
        world.ok(&["token", "revoke", &id]);
    }
    world.ok(&create("runner"));
    world.verified();
}

#[test]
fn every_invalid_token_gets_the_same_response() {
    let world = World::new();
    let daemon = world.up();
    let (_, secret) = world.create_token("ada", "maintainer");
    let hostile = [
        secret[..secret.len() - 1].to_owned(),
        format!("{secret}0"),
        secret.to_uppercase(),
        secret.replace("mwt_", "mwa_"),
        format!("{secret}\0"),
        "mwt_".to_owned(),
        format!("mwt_{}", "0".repeat(64)),
        format!("{secret}{}", "0".repeat(40_000)),
    ];
    let responses = hostile.into_iter().map(|token| response_to(&world, token));
    let mut responses: Vec<String> = responses.collect();
    responses.dedup();
    assert_eq!(responses.len(), 1, "{responses:?}");
    let response = &responses[0];
    assert!(response.contains("token_invalid") && !response.contains(&secret), "{response}");
    // A hello is short: the connection of a long one is closed before all of it is read.
    let stream = UnixStream::connect(world.socket()).unwrap();
    let _ = (&stream).write_all(&[b'0'; 10 << 20]);
    let received = BufReader::new(stream).lines().skip(1).map_while(Result::ok).count();
    assert_eq!(received, 0);
    assert_eq!(world.code_as(&secret, &["status"]), "ok");
    drop(daemon);
}

/// The daemon's response to a client with this token.
fn response_to(world: &World, token: String) -> String {
    connect(world, token).next().unwrap().unwrap()
}

/// Connects, exchanges hellos and asks for the status. Returns the lines that follow.
fn connect(world: &World, token: String) -> Lines<BufReader<UnixStream>> {
    let stream = UnixStream::connect(world.socket()).unwrap();
    let hello = Hello { token: Some(Secret(token)), ..Hello::new("test") };
    let hello = serde_json::to_string(&hello).unwrap();
    let status = r#"{"request":{"call":"status","with":{}}}"#;
    (&stream).write_all(format!("{hello}\n{status}\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines();
    lines.next().unwrap().unwrap();
    lines
}

#[test]
fn revoked_token_is_refused_on_an_open_connection() {
    let world = World::new();
    let daemon = world.up();
    let (id, secret) = world.create_token("ada", "maintainer");
    let stream = UnixStream::connect(world.socket()).unwrap();
    let hello = Hello { token: Some(Secret(secret)), ..Hello::new("test") };
    let send = |frame: &str| (&stream).write_all(format!("{frame}\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(&stream).lines();
    send(&serde_json::to_string(&hello).unwrap());
    lines.next().unwrap().unwrap();
    let status = r#"{"request":{"call":"status","with":{}}}"#;
    send(status);
    assert!(lines.next().unwrap().unwrap().contains("authority"));
    world.ok(&["token", "revoke", &id]);
    send(status);
    assert!(lines.next().unwrap().unwrap().contains("token_invalid"));
    drop(daemon);
}

/// In strict-prod the user of the machine may not do what needs a named person.
#[test]
fn strict_prod_requires_the_token_of_a_maintainer() {
    let mut world = World::new();
    world.set("MIDWATCH_POSTURE", "strict-prod");
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    // The local user creates tokens until there is a maintainer; an observer does not count.
    world.create_token("olga", "observer");
    create_token_with_key(&world, "otto", "operator");
    let (_, maintainer) = create_token_with_key(&world, "ada", "maintainer");
    let listed = world.json(&["token", "list"])["tokens"].as_array().unwrap().len();
    let shown = world.ok(&["token", "list"]);
    assert_eq!((listed, shown.matches(" yes ").count()), (3, 2), "{shown}");
    let daemon = world.up();
    world.refused(&["token", "create", "--name", "eve", "--role", "maintainer"], "role_too_low", 4);
    world.ok(&["freeze"]);
    world.refused(&["thaw"], "role_too_low", 4);
    assert_eq!(world.code_as(&maintainer, &["thaw"]), "ok");

    let schedule = world.add_daily("news", "ada", "hello");
    let run = world.start_run(&schedule);
    let approval = world.wait_for_approval(&run);
    let plan = world.plan_hash(&approval);
    let approve = ["approval", "approve", &approval, "--plan", &plan];
    world.refused(&approve, "signature_needed", 4);
    assert_eq!(world.code_as(&maintainer, &approve), "signature_needed");
    world.ok(&["approval", "deny", &approval]);
    drop(daemon);
}

/// The secret is printed once and stored nowhere.
#[test]
fn token_secret_is_not_stored() {
    let mut world = World::new();
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    let daemon = world.up();
    let (_, secret) = world.create_token("ada", "maintainer");
    assert_eq!(world.code_as(&secret, &["status"]), "ok");
    assert_eq!(world.code_as(&format!("{secret}0"), &["status"]), "token_invalid");
    world.ok(&["ledger", "export"]);
    daemon.stop();
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
    assert!(3 < files, "only {files} files were searched");
}

/// A token with the name of an agent belongs to that agent, and shows it only what is its own.
#[test]
fn agent_token_reaches_only_its_own_schedules() {
    let world = World::new();
    for name in ["ada", "bob"] {
        world.add_agent(name);
    }
    let daemon = world.up();
    let (_, ada) = world.create_token("ada", "runner");
    let add = |agent: &'static str, name: &'static str| {
        [&["schedule", "add"], &daily(name, agent, "hello")[..]].concat()
    };
    let bobs = world.add_daily("of bob", "bob", "hello");
    let hers = world.add_daily("of ada", "ada", "hello");
    let run = world.start_run(&bobs);

    // It may add schedules for its own agent only.
    assert_eq!(world.code_as(&ada, &add("ada", "of herself")), "ok");
    assert_eq!(world.code_as(&ada, &add("bob", "for bob")), "role_too_low");
    let listed = |arguments: &[&str], key: &str| {
        let document = world.json_as(&ada, arguments);
        document[key].as_array().unwrap_or_else(|| panic!("{document}")).len()
    };
    assert_eq!(listed(&["schedule", "list"], "schedules"), 2);
    assert_eq!(listed(&["schedule", "list", "--agent", "bob"], "schedules"), 2);
    assert_eq!(listed(&["run", "list"], "runs"), 0);
    assert_eq!(listed(&["agent", "list"], "agents"), 1);
    // The status shows it nothing of other agents.
    assert!(world.json(&["status"])["next"].is_object());
    let status = world.json_as(&ada, &["status"]);
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
        assert_eq!(world.code_as(&ada, &arguments), code, "{arguments:?}");
    }
    daemon.stop();

    // A rule of the operator lets it see more.
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
    assert_eq!(world.code_as(&ada, &["schedule", "show", &bobs]), "ok");
    assert_eq!(world.code_as(&ada, &["schedule", "remove", &bobs]), "not_found");
}

/// Policy also applies to what an agent does for itself, and its refusals are recorded.
#[test]
fn policy_applies_to_an_agents_own_schedules() {
    let world = World::new();
    for name in ["ada", "bank"] {
        world.add_agent(name);
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
        [&["schedule", "add"], &daily(name, agent, "hello")[..]].concat()
    };
    for (agent, change) in [("ada", "ok"), ("bank", "human_needed")] {
        let (_, token) = world.create_token(agent, "runner");
        let id = world.add_daily(agent, agent, "hello");
        assert_eq!(world.code_as(&token, &add(agent, "another")), "denied", "{agent}");
        for arguments in [["run", "start", &id], ["schedule", "pause", &id]] {
            assert_eq!(world.code_as(&token, &arguments), change, "{agent} {arguments:?}");
        }
    }
    let refused = world.events_of("watch.refused");
    let refused: Vec<&Value> = refused.iter().map(|event| &event["body"]["code"]).collect();
    assert!(refused.contains(&&"denied".into()) && refused.contains(&&"human_needed".into()));
}
