//! Approvals by a file in the data directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::setup::{add_person, add_tier_2_schedule, effects, request_approval};
use crate::support::wait::wait_until;
use crate::support::world::World;

#[test]
fn token_file_approves_once_the_schedule_it_was_written_for() {
    let mut world = World::new();
    world.set("MIDWATCH_FEATURE_FLAGS_TOKEN_FILES", "true");
    let daemon = world.up();
    let schedule = add_tier_2_schedule(&world, None);
    let (run, _) = request_approval(&world, &schedule);
    let pending = world.data().join("approvals/pending");
    let file = pending.join(format!("{schedule}.token"));
    let now = world.json(&["approval", "list"])["approvals"][0]["asked_at"].clone();
    let good = json!({ "schedule_id": schedule, "approved_by": "ada", "approved_at": now });
    write_file(&file, &good, 0o600);
    world.wait_for_state(&run, "done");
    assert!(!file.exists() && effects(&world) == 1);
    let decided = world.json(&["approval", "list", "--all"])["approvals"][0].clone();
    assert_eq!(decided["note"], "token file of ada", "{decided}");

    // An invalid file is put aside, and nothing starts.
    let (run, _) = request_approval(&world, &schedule);
    let bad = [
        (json!({ "approved_by": "ada", "approved_at": "2020-01-01T00:00:00Z" }), 0o600),
        (json!({ "approved_by": "ada", "approved_at": "2120-01-01T00:00:00Z" }), 0o600),
        (json!({ "approved_by": "ada", "approved_at": now, "schedule_id": "sch_00000000" }), 0o600),
        (json!({ "approved_by": "ada" }), 0o600),
        (good.clone(), 0o644),
    ];
    for (text, mode) in bad {
        write_file(&file, &text, mode);
        wait_until(|| !file.exists());
        assert!(pending.join(format!("{schedule}.token.refused")).exists(), "{text}");
    }
    // The schedule was edited after the file was written.
    world.ok(&["run", "cancel", &run]);
    world.ok(&["schedule", "edit", &schedule, "--prompt", "tell them more"]);
    let (run, _) = request_approval(&world, &schedule);
    write_file(&file, &good, 0o600);
    wait_until(|| !file.exists());
    assert_eq!(world.show_run(&run)["state"], "waiting_permission");
    assert_eq!(effects(&world), 1);
    assert!(world.kinds().contains(&"watch.refused".to_owned()));
    daemon.stop();
    world.verified();
}

/// A file counts as the user of the machine, so it approves only where that user may.
#[test]
fn token_file_is_ignored_where_the_local_user_may_not_approve() {
    let mut world = World::new();
    world.set("MIDWATCH_FEATURE_FLAGS_TOKEN_FILES", "true");
    world.set("MIDWATCH_FEATURE_FLAGS_LOCAL_APPROVALS", "false");
    let daemon = world.up();
    let schedule = add_tier_2_schedule(&world, None);
    let (run, approval) = request_approval(&world, &schedule);
    let now = world.json(&["approval", "list"])["approvals"][0]["asked_at"].clone();
    let good = json!({ "schedule_id": schedule, "approved_by": "ada", "approved_at": now });
    let file = world.data().join(format!("approvals/pending/{schedule}.token"));
    write_file(&file, &good, 0o600);
    let why = world.json(&["status"])["capabilities"].clone();
    let why = why.as_array().unwrap().iter().find(|it| it["name"] == "token_files").unwrap();
    assert_eq!(why["enabled"], false, "{why}");
    // The daemon reads the directory when it starts.
    daemon.stop();
    let daemon = world.up();
    let (operator, _) = add_person(&world, None, "ada", "operator");
    let plan = world.plan_hash(&approval);
    let decided = world.json_as(&operator, &["approval", "approve", &approval, "--plan", &plan]);
    assert_eq!(decided["approval"]["decided_by"], "ada", "{decided}");
    world.wait_for_state(&run, "done");
    assert!(file.exists());
    daemon.stop();
}

/// Writes the file atomically, so that the daemon never reads half of it.
fn write_file(file: &Path, text: &Value, mode: u32) {
    let temporary = file.with_extension("new");
    fs::write(&temporary, text.to_string()).unwrap();
    fs::set_permissions(&temporary, fs::Permissions::from_mode(mode)).unwrap();
    fs::rename(&temporary, file).unwrap();
}
