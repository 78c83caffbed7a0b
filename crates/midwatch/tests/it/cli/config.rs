//! `midwatch config …`

use std::fs;

use crate::support::transcript::Transcript;
use crate::support::world::World;

/// A command that starts a ledger where there is none, and signs it.
const ADD: [&str; 5] = ["agent", "add", "ada", "--backend", "builtin"];

#[test]
fn config_is_initialised_checked_and_shown() {
    let world = World::new();
    let mut transcript = Transcript::new(&world);
    transcript
        .both(&["config", "check"])
        .both(&["config", "show"])
        .run(&["config", "init"])
        .both(&["config", "init"])
        .both(&["config", "check"]);
    insta::assert_snapshot!("config", transcript.finish());
    let file = fs::read_to_string(world.data().join("midwatch.toml")).unwrap();
    insta::assert_snapshot!("config_file", file);

    let other = World::new();
    let mut transcript = Transcript::new(&other);
    transcript.run(&["--json", "config", "init"]);
    let elsewhere = other.root().join("elsewhere.toml").display().to_string();
    transcript.run(&["config", "init", "--config", &elsewhere]);
    transcript.run(&["config", "check", "--config", &elsewhere]);
    insta::assert_snapshot!("config_elsewhere", transcript.finish());
}

#[test]
fn config_show_names_the_origin_of_each_value() {
    let mut world = World::new();
    fs::create_dir(world.data()).unwrap();
    let file = "posture = \"unattended\"\n\n[log]\nlevel = \"debug\"\nfiles_max = 9\n";
    fs::write(world.data().join("midwatch.toml"), file).unwrap();
    world.set("MIDWATCH_LOG_LEVEL", "warn");
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "5m");
    world.set("MIDWATCH_LOG_LEVLE", "warn");
    world.set("MIDWATCH_TOKEN", "not shown");
    let mut transcript = Transcript::new(&world);
    transcript.both(&["config", "show"]).both(&["config", "check"]).run(&["status"]);
    insta::assert_snapshot!("config_origins", transcript.finish());
    assert!(!transcript.finish().contains("not shown"));
}

#[test]
fn config_errors_name_the_position_and_a_similar_key() {
    let world = World::new();
    fs::create_dir(world.data()).unwrap();
    let mut transcript = Transcript::new(&world);
    for file in [
        "[log]\nlevle = \"info\"\n",
        "[leger]\nheartbeat = \"60s\"\n",
        "postrue = \"staging\"\n",
        "posture = \"relaxed\"\n",
        "[log]\nfiles_max = \"many\"\n",
        "[log]\nfiles_max = 0\n",
        "[ledger]\nheartbeat = \"soon\"\n",
        "[ledger]\ncheckpoint_copy = \"relative.txt\"\n",
        "[feature_flags]\nnotices = 1\n",
        "posture = \"staging\"\nposture = \"debug\"\n",
        "posture = \n",
        "\u{0}",
    ] {
        fs::write(world.data().join("midwatch.toml"), file).unwrap();
        transcript.heading(&format!("{file:?}")).both(&["config", "check"]);
        world.refused(&["config", "check"], "config_invalid", 2);
        world.refused(&["config", "show"], "config_invalid", 2);
        world.refused(&["up"], "config_invalid", 2);
        world.refused(&ADD, "config_invalid", 2);
    }
    insta::assert_snapshot!("config_errors", transcript.finish());
    assert!(
        !world.data().join("midwatch.db").exists(),
        "an invalid configuration started a ledger"
    );
}

#[test]
fn invalid_variable_is_named() {
    let mut transcripts = String::new();
    for (name, value) in [
        ("MIDWATCH_POSTURE", "relaxed"),
        ("MIDWATCH_LOG_FILES_MAX", "0"),
        ("MIDWATCH_LEDGER_CHECKPOINT_COPY", "relative.txt"),
        ("MIDWATCH_FEATURE_FLAGS_NOTICES", "perhaps"),
    ] {
        let mut world = World::new();
        world.set(name, value);
        let mut transcript = Transcript::new(&world);
        transcript.both(&["config", "check"]);
        transcripts.push_str(&format!("--- {name}={value}\n{}", transcript.finish()));
        world.refused(&ADD, "config_invalid", 2);
    }
    insta::assert_snapshot!("config_variables", transcripts);
}

/// The ledger records the hash of the configuration at each start.
#[test]
fn ledger_records_a_changed_configuration_at_start() {
    let started = |world: &World| {
        let daemon = world.up();
        world.checked();
        drop(daemon);
        let tail = world.json(&["ledger", "tail", "--limit", "1"]);
        assert_eq!(tail["events"][0]["kind"], "watch.started", "{tail}");
        tail["events"][0]["body"].clone()
    };
    let mut world = World::new();
    let (first, second) = (started(&world), started(&world));
    assert_eq!(first["config_hash"], second["config_hash"]);
    world.set("MIDWATCH_POSTURE", "debug");
    let third = started(&world);
    assert_ne!(first["config_hash"], third["config_hash"]);
    assert_eq!((&first["posture"], &third["posture"]), (&"staging".into(), &"debug".into()));
}

/// The log level of a short-lived command comes from the environment only.
#[test]
fn command_logs_at_the_level_of_the_variable() {
    for (level, is_logged) in [(None, true), (Some("error"), false), (Some("warn"), true)] {
        let mut world = World::new();
        let nowhere = world.root().join("no-such-folder/copy.txt").display().to_string();
        world.set("MIDWATCH_LEDGER_CHECKPOINT_COPY", nowhere);
        if let Some(level) = level {
            world.set("MIDWATCH_LOG_LEVEL", level);
        }
        let outcome = world.run(&[&["--json"], &ADD[..]].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let found = outcome.stderr.contains("failed to copy a checkpoint");
        assert_eq!(found, is_logged, "{level:?}: {outcome:?}");
    }
}
