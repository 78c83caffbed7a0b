//! Who says yes, and how: signatures made elsewhere, several people, and files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::world::{World, wait_for};

/// Notes that it took effect.
const PROGRAM: &str = r#"echo "$MIDWATCH_RUN_ID" >> "$0""#;
const TWO_PERSONS: &str = r#"
[[rule]]
id = "two"
ask = ["agent.prompt"]
tier = [2]
persons = 2
match = [{ capability = "agent.prompt", tier = 2 }]
not_match = [{ capability = "agent.prompt", tier = 1 }]
"#;

/// What a command says that is given as this person, or as the user of the machine.
fn told(world: &World, token: Option<&str>, arguments: &[&str]) -> Value {
    let mut command = world.command();
    command.arg("--json").args(arguments).envs(token.map(|token| ("MIDWATCH_TOKEN", token)));
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
}

/// A person with a token, and the file of their key.
fn person(world: &World, by: Option<&str>, name: &str, role: &str) -> (String, String) {
    let file = world.root().join(format!("{name}.key")).display().to_string();
    let made = world.json(&["approval", "key", name, "--out", &file]);
    let key = made["key"]["public"].as_str().unwrap();
    let create = ["token", "create", "--name", name, "--role", role, "--key", key];
    let created = told(world, by, &create);
    (created["token"]["secret"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned(), file)
}

/// A maintainer and an operator, without whom nothing starts where approvals are signed: the token of the
/// one, and the token and the key of the other.
fn two_people(world: &World) -> (String, String, String) {
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let (maintainer, _) = person(world, None, "max", "maintainer");
    let (operator, key) = person(world, Some(&maintainer), "ada", "operator");
    (maintainer, operator, key)
}

/// A program that reaches outside and notes its effect, and a schedule for it, written by this person.
fn outside(world: &World, by: Option<&str>) -> String {
    let effects = world.root().join("effects").display().to_string();
    let agent = ["agent", "add", "ada", "--backend", "command", "--tier", "2"];
    told(world, by, &[&agent[..], &["--", "/bin/sh", "-c", PROGRAM, &effects]].concat());
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "tell them"];
    let added = told(world, by, &[&["schedule", "add", "--name", "news"], &what[..]].concat());
    added["schedule"]["id"].as_str().unwrap_or_else(|| panic!("{added}")).to_owned()
}

/// A run that asks, and its question.
fn asked(world: &World, schedule: &str) -> (String, String) {
    let run = world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();
    let approval = wait_for(|| {
        let shown = world.json(&["run", "show", &run])["run"].clone();
        shown["approval_id"].as_str().map(str::to_owned)
    });
    (run, approval)
}

/// What somebody with this key signs who was shown that question.
fn signature(world: &World, approval: &str, key: &str) -> String {
    let shown = world.root().join("shown.json");
    fs::write(&shown, world.ok(&["--json", "approval", "show", approval])).unwrap();
    let signed = world.json(&["approval", "sign", shown.to_str().unwrap(), "--key", key]);
    signed["signature"].as_str().unwrap().to_owned()
}

fn approve<'a>(approval: &'a str, signature: &'a str) -> [&'a str; 5] {
    ["approval", "approve", approval, "--signature", signature]
}

fn effects(world: &World) -> usize {
    fs::read_to_string(world.root().join("effects")).unwrap_or_default().lines().count()
}

fn done(world: &World, run: &str) {
    wait_for(|| (world.json(&["run", "show", run])["run"]["state"] == "done").then_some(()));
}

fn code(said: &Value) -> &str {
    said["error"]["code"].as_str().unwrap_or("ok")
}

#[test]
fn in_strict_prod_a_signature_made_elsewhere_lets_a_run_begin_once() {
    strict_prod(World::new());
}

#[test]
fn in_strict_prod_a_signature_lets_a_run_begin_on_postgresql() {
    strict_prod(World::on_postgres());
}

fn strict_prod(mut world: World) {
    world.set("MIDWATCH_POSTURE", "strict-prod");
    let (maintainer, token, key) = two_people(&world);
    let daemon = world.up();
    let schedule = outside(&world, Some(&maintainer));
    let (run, approval) = asked(&world, &schedule);

    // Neither the user of the machine nor a token alone is enough, and the author is not at all.
    let yes = ["approval", "approve", &approval];
    assert_eq!(code(&told(&world, None, &yes)), "signature_needed");
    assert_eq!(code(&told(&world, Some(&token), &yes)), "signature_needed");
    let own = signature(&world, &approval, &world.root().join("max.key").display().to_string());
    assert_eq!(code(&told(&world, None, &approve(&approval, &own))), "role_too_low");
    let (_, stranger) = stranger(&world, "ada");
    let unknown = signature(&world, &approval, &stranger);
    for wrong in [unknown.as_str(), "mws_", "mws_00", "", &own[..40]] {
        assert_eq!(code(&told(&world, None, &approve(&approval, wrong))), "signature_invalid");
    }
    assert_eq!(effects(&world), 0);

    // Whoever brings it: it is hers. The run begins, through a crash, once.
    let hers = signature(&world, &approval, &key);
    let decided = told(&world, None, &approve(&approval, &hers));
    assert_eq!(
        (&decided["changed"], &decided["approval"]["decided_by"]),
        (&json!(true), &json!("ada"))
    );
    daemon.kill();
    let daemon = world.up();
    wait_for(|| {
        let run = world.json(&["run", "show", &run])["run"].clone();
        ["done", "unknown"].contains(&run["state"].as_str().unwrap()).then_some(())
    });
    assert!(effects(&world) <= 1);
    assert_eq!(told(&world, None, &approve(&approval, &hers))["changed"], json!(false));

    // It is good for no other question, and not for a person who was sent away since.
    let (second, question) = asked(&world, &schedule);
    assert_eq!(code(&told(&world, None, &approve(&question, &hers))), "signature_invalid");
    world.refused(&["approval", "approve", &question], "signature_needed", 4);
    assert_eq!(world.json(&["run", "show", &second])["run"]["state"], "waiting_permission");
    let refused = world.json(&["ledger", "tail", "--limit", "100"])["events"].clone();
    let refused = refused.as_array().unwrap().iter().filter(|it| it["kind"] == "watch.refused");
    let codes: Vec<&str> = refused.filter_map(|it| it["body"]["code"].as_str()).collect();
    assert!(codes.contains(&"signature_needed"), "{codes:?}");
    assert_eq!(daemon.stop().0, Some(0));
    world.verified();
    assert_eq!(
        told(&world, Some(&maintainer), &["ledger", "rebuild"])["rebuilt"]["differences"],
        0
    );
}

/// Whoever gives the commands while no daemon runs brings their own configuration, and gets nothing by it.
#[test]
fn no_configuration_steps_down_from_strict_prod_without_a_maintainer() {
    let mut world = World::new();
    world.set("MIDWATCH_POSTURE", "strict-prod");
    let (maintainer, ..) = two_people(&world);
    let daemon = world.up();
    let schedule = outside(&world, Some(&maintainer));
    let (_, approval) = asked(&world, &schedule);
    daemon.kill();

    world.set("MIDWATCH_POSTURE", "debug");
    let (public, key) = stranger(&world, "eve");
    let create = ["token", "create", "--name", "eve", "--role", "operator", "--key", &public];
    assert!(world.refused(&create, "role_too_low", 4).contains("`maintainer`"));
    let hers = signature(&world, &approval, &key);
    assert_eq!(code(&told(&world, None, &approve(&approval, &hers))), "signature_invalid");
    assert_eq!(world.json(&["status"])["watch"]["posture"], "strict-prod");
    for posture in ["debug", "staging"] {
        world.set("MIDWATCH_POSTURE", posture);
        let refused = world.refused(&["up"], "unsafe_setup", 4);
        assert!(refused.contains("the check `posture` refuses"), "{refused}");
        assert!(refused.contains("midwatch token revoke"), "{refused}");
        world.refused(&create, "role_too_low", 4);
    }

    // A maintainer can: then nobody answers for the watch but the user of the machine.
    let tokens = told(&world, Some(&maintainer), &["token", "list"])["tokens"].clone();
    let own = tokens.as_array().unwrap().iter().find(|token| token["name"] == "max").unwrap();
    let revoke = ["token", "revoke", own["id"].as_str().unwrap()];
    assert_eq!(told(&world, Some(&maintainer), &revoke)["changed"], true);
    let daemon = world.up();
    assert_eq!(world.json(&["status"])["watch"]["posture"], "staging");
    assert_eq!(daemon.stop().0, Some(0));
    assert_eq!(told(&world, None, &create)["token"]["name"], "eve");
    let tail = world.json(&["ledger", "tail", "--limit", "1000"])["events"].clone();
    let started = tail.as_array().unwrap().iter().filter(|it| it["kind"] == "watch.started");
    let postures: Vec<&Value> = started.map(|it| &it["body"]["posture"]).collect();
    assert_eq!(postures, ["strict-prod", "staging"]);
    world.verified();
    assert_eq!(told(&world, None, &["ledger", "rebuild"])["rebuilt"]["differences"], 0);
}

/// A key with the name of somebody, that nobody has made known.
fn stranger(world: &World, name: &str) -> (String, String) {
    let file = world.root().join("stranger.key").display().to_string();
    let made = world.json(&["approval", "key", name, "--out", &file]);
    (made["key"]["public"].as_str().unwrap().to_owned(), file)
}

#[test]
fn a03_a12_a_signature_is_for_one_question_of_one_watch() {
    let (mut here, mut there) = (World::new(), World::new());
    here.set("MIDWATCH_POSTURE", "strict-prod");
    there.set("MIDWATCH_POSTURE", "strict-prod");
    let (maintainer, _, key) = two_people(&here);
    let (other_maintainer, ..) = two_people(&there);
    let (_here, _there) = (here.up(), there.up());
    let public = fs::read_to_string(&key).unwrap();
    assert!(public.starts_with("PRIVATE+KEY+ada+"));
    let shown = told(&here, Some(&maintainer), &["token", "list"])["tokens"].clone();
    let known = shown.as_array().unwrap().iter().find(|token| token["name"] == "ada").unwrap();
    let create = ["token", "create", "--name", "ada", "--role", "operator", "--key"];
    told(
        &there,
        Some(&other_maintainer),
        &[&create[..], &[known["key"].as_str().unwrap()]].concat(),
    );

    let (schedule, elsewhere) =
        (outside(&here, Some(&maintainer)), outside(&there, Some(&other_maintainer)));
    let (_, question) = asked(&here, &schedule);
    let (_, other) = asked(&there, &elsewhere);
    let hers = signature(&here, &question, &key);
    assert_eq!(code(&told(&there, None, &approve(&other, &hers))), "signature_invalid");
    for (world, id) in [(&here, &question), (&there, &other)] {
        assert_eq!(world.json(&["approval", "show", id])["approval"]["state"], "pending");
        assert_eq!(effects(world), 0);
    }
    assert_eq!(told(&here, None, &approve(&question, &hers))["changed"], json!(true));

    // What was changed on the way is not signed.
    let shown = there.root().join("shown.json");
    let changed = there.ok(&["--json", "approval", "show", &other]).replace("tell them", "tell us");
    fs::write(&shown, changed).unwrap();
    let sign = ["approval", "sign", shown.to_str().unwrap(), "--key", &key];
    assert!(
        there.refused(&sign, "invalid_input", 2).contains("not the one that its hash belongs to")
    );
}

#[test]
fn b05_two_people_are_asked_and_one_is_not_two() {
    let world = World::new();
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let (eve, _) = person(&world, None, "eve", "operator");
    fs::write(world.data().join("policy.toml"), TWO_PERSONS).unwrap();
    let daemon = world.up();
    let (ada, _) = person(&world, None, "ada", "operator");
    let (bob, _) = person(&world, None, "bob", "operator");
    let schedule = outside(&world, Some(&eve));
    let (run, approval) = asked(&world, &schedule);
    let yes = ["approval", "approve", &approval];
    assert_eq!(code(&told(&world, Some(&eve), &yes)), "role_too_low", "she wrote it");
    assert_eq!(code(&told(&world, None, &yes)), "role_too_low", "nobody knows who that is");
    let first = told(&world, Some(&ada), &yes);
    assert_eq!((&first["changed"], &first["approval"]["state"]), (&json!(true), &json!("pending")));
    let again = told(&world, Some(&ada), &yes);
    assert_eq!(
        (&again["changed"], &again["approval"]["assents"]),
        (&json!(false), &json!(["ada"]))
    );
    daemon.kill();
    let daemon = world.up();
    assert_eq!(
        (effects(&world), world.json(&["run", "show", &run])["run"]["state"].clone()),
        (0, json!("waiting_permission"))
    );
    let second = told(&world, Some(&bob), &yes);
    assert_eq!(
        (&second["changed"], &second["approval"]["state"]),
        (&json!(true), &json!("approved"))
    );
    done(&world, &run);
    assert_eq!(effects(&world), 1);
    let kinds = world.kinds();
    assert_eq!(kinds.iter().filter(|kind| *kind == "approval.assented").count(), 1);
    assert_eq!(daemon.stop().0, Some(0));
    world.verified();
}

#[test]
fn a_token_file_approves_once_what_was_there_when_it_was_written() {
    let world = World::new();
    let daemon = world.up();
    let schedule = outside(&world, None);
    let (run, _) = asked(&world, &schedule);
    let place = world.data().join("approvals/pending");
    let file = place.join(format!("{schedule}.token"));
    let now = world.json(&["approval", "list"])["approvals"][0]["asked_at"].clone();
    let good = json!({ "schedule_id": schedule, "approved_by": "ada", "approved_at": now });
    put(&file, &good, 0o600);
    done(&world, &run);
    assert!(!file.exists() && effects(&world) == 1);
    let decided = world.json(&["approval", "list", "--all"])["approvals"][0].clone();
    assert_eq!(decided["note"], "token file of ada", "{decided}");

    // What is no good is put aside, and nothing begins.
    let (run, _) = asked(&world, &schedule);
    let bad = [
        (json!({ "approved_by": "ada", "approved_at": "2020-01-01T00:00:00Z" }), 0o600),
        (json!({ "approved_by": "ada", "approved_at": "2120-01-01T00:00:00Z" }), 0o600),
        (json!({ "approved_by": "ada", "approved_at": now, "schedule_id": "sch_00000000" }), 0o600),
        (json!({ "approved_by": "ada" }), 0o600),
        (good.clone(), 0o644),
    ];
    for (text, mode) in bad {
        put(&file, &text, mode);
        wait_for(|| (!file.exists()).then_some(()));
        assert!(place.join(format!("{schedule}.token.refused")).exists(), "{text}");
    }
    // The schedule says something else by now than when it was approved.
    world.ok(&["run", "cancel", &run]);
    world.ok(&["schedule", "edit", &schedule, "--prompt", "tell them more"]);
    let (run, _) = asked(&world, &schedule);
    put(&file, &good, 0o600);
    wait_for(|| (!file.exists()).then_some(()));
    assert_eq!(world.json(&["run", "show", &run])["run"]["state"], "waiting_permission");
    assert_eq!(effects(&world), 1);
    assert!(world.kinds().contains(&"watch.refused".to_owned()));
    assert_eq!(daemon.stop().0, Some(0));
    world.verified();
}

/// A copy of everything has the approval too, and begins nothing with it.
#[test]
fn an_approval_is_used_once_though_the_data_directory_was_copied() {
    let world = World::new();
    let daemon = world.up();
    let schedule = outside(&world, None);
    let (run, approval) = asked(&world, &schedule);
    assert_eq!(daemon.stop().0, Some(0));
    world.ok(&["approval", "approve", &approval]);
    let copy = world.copy();
    let elsewhere = copy.up();
    let shown = || copy.json(&["run", "show", &run])["run"].clone();
    let ended = wait_for(|| (shown()["state"] == "cancelled").then(shown));
    assert_eq!(ended["reason"], "plan_changed", "{ended}");
    assert!(ended["message"].as_str().unwrap().contains("data directory"), "{ended}");
    assert_eq!(effects(&world), 0);
    // It asks again, and the directory that was asked goes on with its answer.
    copy.ok(&["run", "retry", &run]);
    wait_for(|| shown()["approval_id"].as_str().filter(|it| *it != approval).map(str::to_owned));
    assert_eq!(elsewhere.stop().0, Some(0));
    let daemon = world.up();
    done(&world, &run);
    assert_eq!(effects(&world), 1);
    assert_eq!(daemon.stop().0, Some(0));
    world.verified();
    copy.verified();
}

/// Whoever writes a file is the user of the machine, and so it approves where they do.
#[test]
fn no_file_approves_where_the_user_of_the_machine_does_not() {
    let mut world = World::new();
    world.set("MIDWATCH_FEATURE_FLAGS_LOCAL_APPROVALS", "false");
    let daemon = world.up();
    let schedule = outside(&world, None);
    let (run, approval) = asked(&world, &schedule);
    let now = world.json(&["approval", "list"])["approvals"][0]["asked_at"].clone();
    let good = json!({ "schedule_id": schedule, "approved_by": "ada", "approved_at": now });
    let file = world.data().join(format!("approvals/pending/{schedule}.token"));
    put(&file, &good, 0o600);
    let why = world.json(&["status"])["capabilities"].clone();
    let why = why.as_array().unwrap().iter().find(|it| it["name"] == "token_files").unwrap();
    assert_eq!(why["enabled"], false, "{why}");
    // A start looks at what is there.
    assert_eq!(daemon.stop().0, Some(0));
    let daemon = world.up();
    let (operator, _) = person(&world, None, "ada", "operator");
    let decided = told(&world, Some(&operator), &["approval", "approve", &approval]);
    assert_eq!(decided["approval"]["decided_by"], "ada", "{decided}");
    done(&world, &run);
    assert!(file.exists() && daemon.stop().0 == Some(0));
}

/// In its place all at once, as nobody reads half of it.
fn put(file: &Path, text: &Value, mode: u32) {
    let aside = file.with_extension("new");
    fs::write(&aside, text.to_string()).unwrap();
    fs::set_permissions(&aside, fs::Permissions::from_mode(mode)).unwrap();
    fs::rename(&aside, file).unwrap();
}

#[test]
fn an_agent_does_not_wear_people_out() {
    let mut world = World::new();
    world.set("MIDWATCH_APPROVAL_PENDING_PER_AGENT", "2");
    world.set("MIDWATCH_APPROVAL_ASKS_PER_AGENT", "3");
    let _daemon = world.up();
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    let schedules: Vec<String> = (0..4)
        .map(|number| {
            let name = format!("news {number}");
            let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "hello"];
            let added = world.json(&[&["schedule", "add", "--name", &name], &what[..]].concat());
            added["schedule"]["id"].as_str().unwrap().to_owned()
        })
        .collect();
    let run_of = |number: usize| {
        let started = world.json(&["run", "start", &schedules[number]]);
        let run = started["run"]["id"].as_str().unwrap().to_owned();
        wait_for(|| {
            let shown = world.json(&["run", "show", &run])["run"].clone();
            (shown["state"] != "queued").then_some(shown)
        })
    };
    let (first, second, third) = (run_of(0), run_of(1), run_of(2));
    assert_eq!(
        (&first["state"], &second["state"]),
        (&json!("waiting_permission"), &json!("waiting_permission"))
    );
    let quiet = (&json!("cancelled"), &json!("asked_too_much"));
    assert_eq!((&third["state"], &third["reason"]), quiet, "{third}");
    world.ok(&["approval", "deny", first["approval_id"].as_str().unwrap()]);
    assert_eq!(run_of(2)["state"], "waiting_permission");
    world.ok(&["approval", "deny", second["approval_id"].as_str().unwrap()]);
    let fourth = run_of(3);
    assert_eq!((&fourth["state"], &fourth["reason"]), quiet, "{fourth}");
}
