//! Strict-prod: approvals are signed, each signature is for one approval, and only a maintainer leaves it.

use std::fs;

use serde_json::{Value, json};

use super::setup::{
    add_person, add_tier_2_schedule, approve_signed, code, effects, json_by, request_approval, sign,
};
use crate::support::world::World;

/// Adds the maintainer and the operator that strict-prod requires. Returns the token of the one, and the token
/// and the key of the other.
fn add_people(world: &World) -> (String, String, String) {
    world.add_agent("echo");
    let (maintainer, _) = add_person(world, None, "max", "maintainer");
    let (operator, key) = add_person(world, Some(&maintainer), "ada", "operator");
    (maintainer, operator, key)
}

#[test]
fn strict_prod_starts_a_run_once_by_a_signature_made_elsewhere() {
    check_signed_approval(World::new());
}

#[test]
fn strict_prod_starts_a_run_by_a_signature_on_postgresql() {
    check_signed_approval(World::on_postgres());
}

fn check_signed_approval(mut world: World) {
    world.set("MIDWATCH_POSTURE", "strict-prod");
    let (maintainer, token, key) = add_people(&world);
    let daemon = world.up();
    let schedule = add_tier_2_schedule(&world, Some(&maintainer));
    let (run, approval) = request_approval(&world, &schedule);

    // Neither the user of the machine nor a token alone is enough, and the author may not approve at all.
    let plan = world.plan_hash(&approval);
    let approve = ["approval", "approve", &approval, "--plan", &plan];
    assert_eq!(code(&json_by(&world, None, &approve)), "signature_needed");
    assert_eq!(code(&json_by(&world, Some(&token), &approve)), "signature_needed");
    let own = sign(&world, &approval, &world.root().join("max.key").display().to_string());
    assert_eq!(code(&json_by(&world, None, &approve_signed(&approval, &own))), "role_too_low");
    let (_, unregistered) = create_key(&world, "ada");
    let unknown = sign(&world, &approval, &unregistered);
    for wrong in [unknown.as_str(), "mws_", "mws_00", "", &own[..40]] {
        assert_eq!(
            code(&json_by(&world, None, &approve_signed(&approval, wrong))),
            "signature_invalid"
        );
    }
    assert_eq!(effects(&world), 0);

    // Any caller may deliver the signature. The run starts once, through a crash.
    let hers = sign(&world, &approval, &key);
    let decided = json_by(&world, None, &approve_signed(&approval, &hers));
    assert_eq!(
        (&decided["changed"], &decided["approval"]["decided_by"]),
        (&json!(true), &json!("ada"))
    );
    daemon.kill();
    let daemon = world.up();
    world.wait_for_run(&run, |run| ["done", "unknown"].contains(&run["state"].as_str().unwrap()));
    assert!(effects(&world) <= 1);
    assert_eq!(json_by(&world, None, &approve_signed(&approval, &hers))["changed"], json!(false));

    // The signature is valid for no other approval.
    let (second, other) = request_approval(&world, &schedule);
    assert_eq!(code(&json_by(&world, None, &approve_signed(&other, &hers))), "signature_invalid");
    let plan = world.plan_hash(&other);
    world.refused(&["approval", "approve", &other, "--plan", &plan], "signature_needed", 4);
    assert_eq!(world.show_run(&second)["state"], "waiting_permission");
    let refused = world.events_of("watch.refused");
    let codes: Vec<&str> = refused.iter().filter_map(|it| it["body"]["code"].as_str()).collect();
    assert!(codes.contains(&"signature_needed"), "{codes:?}");
    daemon.stop();
    world.verified();
    let rebuilt = world.json_as(&maintainer, &["ledger", "rebuild"]);
    assert_eq!(rebuilt["rebuilt"]["differences"], 0);
}

/// A document that two readers could read differently, or that was changed on the way, is not signed.
#[test]
fn sign_refuses_duplicate_keys_and_a_changed_plan() {
    let mut world = World::new();
    world.set("MIDWATCH_POSTURE", "strict-prod");
    let (maintainer, _, key) = add_people(&world);
    let daemon = world.up();
    let schedule = add_tier_2_schedule(&world, Some(&maintainer));
    let (_, approval) = request_approval(&world, &schedule);
    let shown = world.ok(&["--json", "approval", "show", &approval]);
    let file = world.root().join("changed.json");
    for (from, to, expected) in [
        ("\"plan_hash\":", "\"plan_hash\": \"00\", \"plan_hash\":", "occurs twice"),
        ("\"prompt\":", "\"prompt\": \"x\", \"pro\\u006dpt\":", "occurs twice"),
        ("tell them", "tell her", "does not match its hash"),
        ("\"attempt\": 1", "\"attempt\": 2", "does not match its hash"),
    ] {
        assert!(shown.contains(from), "{from}: {shown}");
        fs::write(&file, shown.replacen(from, to, 1)).unwrap();
        let sign = ["approval", "sign", file.to_str().unwrap(), "--key", &key];
        let refused = world.refused(&sign, "invalid_input", 2);
        assert!(refused.contains(expected), "{from}: {refused}");
    }
    drop(daemon);
}

/// Max wrote the schedule and ada set up its agent, so neither of them may approve.
#[test]
fn strict_prod_counts_who_changed_the_agent_as_an_author() {
    let mut world = World::new();
    world.set("MIDWATCH_POSTURE", "strict-prod");
    let (maintainer, ada, ada_key) = add_people(&world);
    let (_, bob_key) = add_person(&world, Some(&maintainer), "bob", "operator");
    let daemon = world.up();
    let schedule = add_tier_2_schedule(&world, Some(&maintainer));
    let changed = world.json_as(&ada, &["agent", "edit", "ada", "--time-limit", "50s"]);
    assert_eq!(changed["changed"], true, "{changed}");
    let (_, approval) = request_approval(&world, &schedule);
    let shown = world.json(&["approval", "show", &approval]);
    let authors = (&shown["approval"]["authors"], &shown["approval"]["agent_authors"]);
    assert_eq!(authors, (&json!(["max"]), &json!(["max", "ada"])));

    let hers = sign(&world, &approval, &ada_key);
    let refused = json_by(&world, None, &approve_signed(&approval, &hers));
    assert_eq!(code(&refused), "role_too_low");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("`ada` registered or changed the agent"), "{message}");
    let his = sign(&world, &approval, &bob_key);
    let decided = json_by(&world, None, &approve_signed(&approval, &his));
    assert_eq!(decided["approval"]["decided_by"], "bob", "{decided}");
    daemon.stop();
    let rebuilt = world.json_as(&maintainer, &["ledger", "rebuild"]);
    assert_eq!(rebuilt["rebuilt"]["differences"], 0);
}

/// A command without a daemon uses its own configuration, which must not lower the posture.
#[test]
fn strict_prod_cannot_be_left_without_a_maintainer() {
    let mut world = World::new();
    world.set("MIDWATCH_POSTURE", "strict-prod");
    let (maintainer, ..) = add_people(&world);
    let daemon = world.up();
    let schedule = add_tier_2_schedule(&world, Some(&maintainer));
    let (_, approval) = request_approval(&world, &schedule);
    daemon.kill();

    world.set("MIDWATCH_POSTURE", "debug");
    let (public, key) = create_key(&world, "eve");
    let create = ["token", "create", "--name", "eve", "--role", "operator", "--key", &public];
    assert!(world.refused(&create, "role_too_low", 4).contains("`maintainer`"));
    let hers = sign(&world, &approval, &key);
    assert_eq!(
        code(&json_by(&world, None, &approve_signed(&approval, &hers))),
        "signature_invalid"
    );
    assert_eq!(world.json(&["status"])["watch"]["posture"], "strict-prod");
    for posture in ["debug", "staging"] {
        world.set("MIDWATCH_POSTURE", posture);
        let refused = world.refused(&["up"], "unsafe_setup", 4);
        assert!(refused.contains("the check `posture` refuses"), "{refused}");
        assert!(refused.contains("midwatch token revoke"), "{refused}");
        world.refused(&create, "role_too_low", 4);
    }

    // A maintainer leaves strict-prod by revoking the last maintainer token.
    let tokens = world.json_as(&maintainer, &["token", "list"])["tokens"].clone();
    let own = tokens.as_array().unwrap().iter().find(|token| token["name"] == "max").unwrap();
    let revoke = ["token", "revoke", own["id"].as_str().unwrap()];
    assert_eq!(world.json_as(&maintainer, &revoke)["changed"], true);
    let daemon = world.up();
    assert_eq!(world.json(&["status"])["watch"]["posture"], "staging");
    daemon.stop();
    assert_eq!(json_by(&world, None, &create)["token"]["name"], "eve");
    let started = world.events_of("watch.started");
    let postures: Vec<&Value> = started.iter().map(|it| &it["body"]["posture"]).collect();
    assert_eq!(postures, ["strict-prod", "staging"]);
    world.verified();
    assert_eq!(json_by(&world, None, &["ledger", "rebuild"])["rebuilt"]["differences"], 0);
}

/// Creates a signing key with this name, and registers it nowhere. Returns the public key and the file.
fn create_key(world: &World, name: &str) -> (String, String) {
    let file = world.root().join("unregistered.key").display().to_string();
    let made = world.json(&["approval", "key", name, "--out", &file]);
    (made["key"]["public"].as_str().unwrap().to_owned(), file)
}

#[test]
fn a12_signature_is_valid_for_one_approval_of_one_installation() {
    let (mut here, mut there) = (World::new(), World::new());
    here.set("MIDWATCH_POSTURE", "strict-prod");
    there.set("MIDWATCH_POSTURE", "strict-prod");
    let (maintainer, _, key) = add_people(&here);
    let (other_maintainer, ..) = add_people(&there);
    let (_here, _there) = (here.up(), there.up());
    let public = fs::read_to_string(&key).unwrap();
    assert!(public.starts_with("PRIVATE+KEY+ada+"));
    let shown = json_by(&here, Some(&maintainer), &["token", "list"])["tokens"].clone();
    let known = shown.as_array().unwrap().iter().find(|token| token["name"] == "ada").unwrap();
    let create = ["token", "create", "--name", "ada", "--role", "operator", "--key"];
    let create = [&create[..], &[known["key"].as_str().unwrap()]].concat();
    there.json_as(&other_maintainer, &create);

    let (schedule, elsewhere) = (
        add_tier_2_schedule(&here, Some(&maintainer)),
        add_tier_2_schedule(&there, Some(&other_maintainer)),
    );
    let (_, approval) = request_approval(&here, &schedule);
    let (_, other) = request_approval(&there, &elsewhere);
    let hers = sign(&here, &approval, &key);
    assert_eq!(code(&json_by(&there, None, &approve_signed(&other, &hers))), "signature_invalid");
    for (world, id) in [(&here, &approval), (&there, &other)] {
        assert_eq!(world.json(&["approval", "show", id])["approval"]["state"], "pending");
        assert_eq!(effects(world), 0);
    }
    assert_eq!(json_by(&here, None, &approve_signed(&approval, &hers))["changed"], json!(true));

    // `approval sign` refuses a document that was changed.
    let shown = there.root().join("shown.json");
    let changed = there.ok(&["--json", "approval", "show", &other]).replace("tell them", "tell us");
    fs::write(&shown, changed).unwrap();
    let sign = ["approval", "sign", shown.to_str().unwrap(), "--key", &key];
    assert!(there.refused(&sign, "invalid_input", 2).contains("the plan does not match its hash"));
}

/// A copy of the data directory contains the approval, too, and must not start the run with it.
#[test]
fn approval_is_used_once_after_the_data_directory_was_copied() {
    let world = World::new();
    let daemon = world.up();
    let schedule = add_tier_2_schedule(&world, None);
    let (run, approval) = request_approval(&world, &schedule);
    daemon.stop();
    world.approve(&approval);
    let copy = world.copy();
    let elsewhere = copy.up();
    let ended = copy.wait_for_state(&run, "cancelled");
    assert_eq!(ended["reason"], "plan_changed", "{ended}");
    assert!(ended["message"].as_str().unwrap().contains("data directory"), "{ended}");
    assert_eq!(effects(&world), 0);
    // The copy needs another approval; the original directory uses the one it has.
    copy.ok(&["run", "retry", &run]);
    let has_another = |run: &Value| run["approval_id"].as_str().is_some_and(|it| it != approval);
    copy.wait_for_run(&run, has_another);
    elsewhere.stop();
    let daemon = world.up();
    world.wait_for_state(&run, "done");
    assert_eq!(effects(&world), 1);
    daemon.stop();
    world.verified();
    copy.verified();
}
