//! `schedule import` from other schedulers, and the automatic import of a promptyoself database.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{json_of, list, ok, refused, register, world};
use crate::support::world::World;

/// Creates a database of the original program, with its current and its older table.
pub(in crate::compat) fn create_database(path: &Path) {
    let database = Connection::open(path).unwrap();
    let tables = "
        CREATE TABLE unified_reminders (
            id INTEGER PRIMARY KEY, message TEXT, next_run DATETIME, status VARCHAR(50),
            created_at DATETIME, updated_at DATETIME, last_run DATETIME, active BOOLEAN,
            schedule_type VARCHAR(50), schedule_value VARCHAR(200), recurrence TEXT,
            event_count INTEGER, process_name TEXT, task_id TEXT, user_id TEXT,
            max_repetitions INTEGER, repetition_count INTEGER, agent_id VARCHAR(100));
        CREATE TABLE schedules (
            id INTEGER PRIMARY KEY, agent_id TEXT, prompt_text TEXT, schedule_type TEXT,
            schedule_value TEXT, next_run DATETIME, active BOOLEAN, created_at DATETIME,
            last_run DATETIME);
        INSERT INTO schedules VALUES
            (3, 'agent-2', 'older', 'interval', '45', '2035-01-01 00:00:00.000000', 1, NULL, NULL);";
    database.execute_batch(tables).unwrap();
    let next = "2035-01-01 00:00:00.000000";
    for (id, message, active, kind, value, max, count) in [
        (3, "once", 1, "once", "2035-01-01T00:00:00-05:00", None, 0),
        (7, "daily", 1, "cron", "0 9 * * *", Some(5), 3),
        (8, "cancelled", 0, "cron", "0 9 * * *", None, 0),
        (9, "odd", 1, "cron", "every day", None, 0),
    ] {
        let insert = "INSERT INTO unified_reminders (id, message, next_run, active, schedule_type,
            schedule_value, max_repetitions, repetition_count, agent_id)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'agent-1')";
        let values = rusqlite::params![id, message, next, active, kind, value, max, count];
        database.execute(insert, values).unwrap();
    }
}

/// The names of the imported entries, and the reasons of those left out.
fn imported(document: &Value) -> (Vec<String>, Vec<String>) {
    let entries = document["entries"].as_array().unwrap_or_else(|| panic!("{document}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line =
        |entry: &Value, key: &str| format!("{}: {}", text(&entry["entry"]), text(&entry[key]));
    let (left_out, imported): (Vec<&Value>, Vec<&Value>) =
        entries.iter().partition(|entry| entry["outcome"] == "left_out");
    (
        imported.into_iter().map(|entry| line(entry, "name")).collect(),
        left_out.into_iter().map(|entry| line(entry, "reason")).collect(),
    )
}

/// How many entries were added, exist already and were left out.
fn counts(document: &Value) -> [u64; 3] {
    ["added", "unchanged", "left_out"].map(|name| document[name].as_u64().unwrap())
}

#[test]
fn promptyoself_import_keeps_the_numbers() {
    let world = world();
    let path = world.root().join("promptyoself.db");
    create_database(&path);
    let import = ["schedule", "import", "--from", "promptyoself", path.to_str().unwrap()];
    let dry = world.json(&[&import[..], &["--dry-run"]].concat());
    assert!(!world.data().exists(), "a dry run created the data directory");
    let names = [
        "3: promptyoself 3: 2035-01-01T00:00:00-05:00",
        "7: promptyoself 7 (after 3): 0 9 * * *",
        "3: promptyoself 4294967299: 45",
    ];
    let reasons = ["8: it is cancelled or completed", "9: its expression `every day` is invalid"];
    let expected = (names.map(str::to_owned).to_vec(), reasons.map(str::to_owned).to_vec());
    assert_eq!(imported(&dry), expected);
    let real = world.json(&import);
    assert_eq!(imported(&real), expected);
    assert_eq!(counts(&real), [3, 0, 2]);

    let listed = list(&world, &[]);
    const OLDER: u64 = (1 << 32) + 3;
    let found = |id: u64| listed.iter().find(|item| item["id"] == id).unwrap();
    assert_eq!(found(3)["next_run"], "2035-01-01T05:00:00Z");
    assert_eq!(
        (&found(7)["max_repetitions"], &found(7)["repetition_count"], &found(7)["agent_id"]),
        (&json!(5), &json!(3), &json!("agent-1")),
        "3 of 5 were sent"
    );
    assert_eq!(
        (&found(OLDER)["agent_id"], &found(OLDER)["schedule_value"]),
        (&json!("agent-2"), &json!("45"))
    );

    // Importing again adds nothing, not even what was cancelled or edited since.
    ok(&world, &["cancel", "--id", "7"]);
    let again = world.json(&import);
    assert_eq!(counts(&again), [0, 3, 2]);
    assert_eq!(list(&world, &["--all"]).len(), 3);
    assert_eq!(list(&world, &[]).len(), 2);
    let id = again["entries"][0]["id"].as_str().unwrap().to_owned();
    world.ok(&["schedule", "edit", &id, "--prompt", "another"]);
    let (_, left_out) = imported(&world.json(&import));
    assert!(left_out.contains(&format!("3: number 3 is taken by schedule {id}")));
    assert_eq!(list(&world, &["--all"]).len(), 3);
    world.verified();
}

/// An agent may remember the number of an entry that was left out.
#[test]
fn number_of_an_entry_that_was_left_out_is_not_given_out_again() {
    let world = world();
    let path = world.root().join("promptyoself.db");
    create_database(&path);
    let import = ["schedule", "import", "--from", "promptyoself", path.to_str().unwrap()];
    // Numbers 1 to 3 were given out before the import.
    for number in 1..=3 {
        assert_eq!(register(&world, "agent-9", "p", &["--every", "1h"])["id"], number);
    }
    let dry = world.json(&[&import[..], &["--dry-run"]].concat());
    let real = world.json(&import);
    assert_eq!((counts(&dry), counts(&real)), ([2, 0, 3], [2, 0, 3]), "{dry}");
    let (_, left_out) = imported(&real);
    assert!(left_out[0].starts_with("3: number 3 is taken by schedule sch_"), "{left_out:?}");
    assert_eq!((&dry["reserved_numbers"], &real["reserved_numbers"]), (&json!(9), &json!(9)));
    assert_eq!(register(&world, "agent-9", "p", &["--every", "1h"])["id"], 10);
    assert_eq!(
        refused(&world, &["cancel", "--id", "9"]),
        "Schedule 9 not found or already cancelled"
    );
    // Nothing else is reserved by another import.
    let again = world.json(&import);
    assert_eq!((counts(&again), again.get("reserved_numbers")), ([0, 2, 3], None), "{again}");
}

/// Numbers of the older table do not depend on other rows, so nothing is imported twice.
#[test]
fn second_promptyoself_import_adds_only_new_rows() {
    let world = world();
    let path = world.root().join("promptyoself.db");
    create_database(&path);
    let import = ["schedule", "import", "--from", "promptyoself", path.to_str().unwrap()];
    assert_eq!(counts(&world.json(&import)), [3, 0, 2]);
    let grow = "
        INSERT INTO unified_reminders (id, message, active, schedule_type, schedule_value, agent_id)
            VALUES (10, 'new', 1, 'cron', '0 7 * * * 30', 'agent-1');
        INSERT INTO schedules (id, agent_id, prompt_text, schedule_type, schedule_value, active)
            VALUES (1, 'agent-2', 'older still', 'interval', '60', 1);";
    Connection::open(&path).unwrap().execute_batch(grow).unwrap();
    let again = world.json(&import);
    let entries = again["entries"].as_array().unwrap().iter();
    let names = entries.filter(|it| it["outcome"] == "added").map(|it| it["name"].clone());
    let names: Vec<_> = names.collect();
    assert_eq!(names, ["promptyoself 10: 0 7 * * * 30", "promptyoself 4294967297: 60"], "{again}");
    // Its sixth field is the seconds.
    let schedules = world.json(&["schedule", "list"])["schedules"].as_array().unwrap().clone();
    let tenth = schedules.iter().find(|it| it["name"] == "promptyoself 10: 0 7 * * * 30").unwrap();
    assert_eq!(tenth["describe"], "at 07:00:30 every day", "{tenth}");
    assert_eq!(list(&world, &["--all"]).len(), 5);
}

/// Different ids are different agents, and a row that is not text does not stop the others.
#[test]
fn promptyoself_import_reports_each_row_it_leaves_out() {
    let world = world();
    let path = world.root().join("promptyoself.db");
    create_database(&path);
    let more = "
        INSERT INTO unified_reminders (id, message, active, schedule_type, schedule_value, agent_id)
            VALUES (20, 'AGENT-1', 1, 'cron', '0 7 * * *', 'AGENT-1'),
                (21, CAST(X'68FF' AS TEXT), 1, 'cron', '0 7 * * *', 'agent-1'),
                (22, 'gone', 'False', 'cron', '0 7 * * *', 'agent-1');";
    Connection::open(&path).unwrap().execute_batch(more).unwrap();
    let import = ["schedule", "import", "--from", "promptyoself", path.to_str().unwrap()];
    let real = world.json(&import);
    let (_, left_out) = imported(&real);
    assert!(left_out.contains(&"21: its `message` is not UTF-8 text".to_owned()), "{real}");
    assert!(left_out.contains(&"22: it is cancelled or completed".to_owned()), "{real}");
    let listed = list(&world, &[]);
    let agent = |id: u64| &listed.iter().find(|item| item["id"] == id).unwrap()["agent_id"];
    assert_eq!((agent(20), agent(7)), (&json!("AGENT-1"), &json!("agent-1")));
    assert_eq!(counts(&world.json(&import)), [0, 4, 4]);
}

#[test]
fn import_of_a_file_that_is_no_promptyoself_database_is_refused() {
    let world = world();
    let import = |path: &Path| {
        let arguments = ["schedule", "import", "--from", "promptyoself", path.to_str().unwrap()];
        world.run(&[&["--json"], &arguments[..]].concat()).error().0
    };
    let path = world.root().join("x.db");
    assert_eq!(import(&path), "not_found");
    assert!(!path.exists());
    fs::write(&path, "this is text, and long enough to be looked at as a header").unwrap();
    assert_eq!(import(&path), "invalid_input");
    fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute("CREATE TABLE t (a)", []).unwrap();
    assert_eq!(import(&path), "invalid_input");
}

/// `PROMPTYOSELF_DB` selects a data directory beside the database, which is imported into it once.
#[test]
fn promptyoself_database_of_the_environment_is_imported_once() {
    let world = world();
    let path = world.root().join("promptyoself.db");
    create_database(&path);
    let run_with_database = |arguments: &[&str]| {
        let mut command = world.command();
        command.env_remove("MIDWATCH_DATA").env("PROMPTYOSELF_DB_PATH", "/nowhere.db");
        command.env("PROMPTYOSELF_DB", &path).arg("promptyoself").args(arguments);
        json_of(&mut command).1
    };
    assert_eq!(run_with_database(&["list"])["count"], 3);
    let data = world.root().join("promptyoself.midwatch");
    assert!(data.join("midwatch.db").exists());
    let world_beside = World::new().with_data(&data);
    let schedules = world_beside.json(&["schedule", "list"])["schedules"].clone();
    for schedule in schedules.as_array().unwrap() {
        world_beside.ok(&["schedule", "remove", schedule["id"].as_str().unwrap()]);
    }
    assert_eq!(
        run_with_database(&["list", "--all"])["count"],
        0,
        "a removed schedule was imported again"
    );
    // A data directory that is named takes precedence.
    let mut command = world.command();
    command.env("PROMPTYOSELF_DB", &path).args(["promptyoself", "list"]);
    assert_eq!(json_of(&mut command).1["count"], 0);
}

/// Creates the schedules of Astra: an index, and the chain of events.
pub(in crate::compat) fn create_astra_schedules(world: &World) -> PathBuf {
    let directory = world.root().join("astra/var/schedules");
    fs::create_dir_all(&directory).unwrap();
    let record = |name: &str, cron: &str, status: &str| {
        let tool = if name == "elsewhere" { "execute_goal" } else { "run_list" };
        json!({
            "id": format!("sch_{name}"), "name": name, "cron": cron, "target_tool": tool,
            "payload": {"limit": 5}, "status": status, "safety_tier": 1,
            "run_budget": {"per_day": 6, "consumed": 2, "last_reset": "2025-11-10"},
        })
    };
    let records = [
        record("coding", "0 */6 * * *", "active"),
        record("seconds", "0 9 * * 1 30", "paused"),
        record("never", "0 0 31 2 *", "active"),
        record("elsewhere", "0 9 * * *", "active"),
    ];
    let index: serde_json::Map<String, Value> =
        records.iter().map(|it| (it["id"].as_str().unwrap().to_owned(), it.clone())).collect();
    fs::write(directory.join("index.json"), Value::Object(index).to_string()).unwrap();
    // One gzip member per event, as Astra appends them.
    let mut chain = File::create(directory.join("2025-11.ndjson.gz")).unwrap();
    for record in &records {
        let event = json!({"event": "schedule_created", "_timestamp": "t", "schedule": record});
        let mut member = GzEncoder::new(&mut chain, Compression::default());
        writeln!(member, "{event}").unwrap();
        member.finish().unwrap();
    }
    world.root().join("astra")
}

#[test]
fn astra_schedules_are_imported_from_the_index_or_the_chain() {
    let import = |damage: &dyn Fn(&Path)| {
        let world = world();
        let directory = create_astra_schedules(&world);
        damage(&directory.join("var/schedules/index.json"));
        let arguments = ["schedule", "import", "--from", "astra", directory.to_str().unwrap()];
        let dry = world.json(&[&arguments[..], &["--dry-run"]].concat());
        let real = world.json(&arguments);
        assert_eq!(imported(&dry), imported(&real));
        assert_eq!(counts(&real)[..2], [2, 0], "{real}");
        assert_eq!(counts(&world.json(&arguments))[..2], [0, 2]);
        let schedules = world.json(&["schedule", "list"])["schedules"].as_array().unwrap().clone();
        assert_eq!(schedules.len(), 2);
        let mut shown: Vec<String> = schedules
            .iter()
            .map(|it| {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let (name, describe, status) =
                    (text(&it["name"]), text(&it["describe"]), text(&it["status"]));
                assert_eq!((&it["tier"], &it["terms"]["per_day"]), (&json!(1), &json!(6)));
                assert_eq!(it["action"]["tool"], "run_list");
                format!("{name}: {describe}, {status}")
            })
            .collect();
        shown.sort();
        (shown, imported(&real).1)
    };
    let expected = import(&|_| {});
    let shown = [
        "coding (sch_coding): at 00:00, 06:00, 12:00 and 18:00 every day, active",
        "seconds (sch_seconds): at 09:00:30 on Monday, paused",
    ];
    assert_eq!(expected.0, shown);
    assert_eq!(expected.1[0], "sch_elsewhere: there is no tool `execute_goal`");
    assert!(expected.1[1].starts_with("sch_never: "), "{expected:?}");
    assert_eq!(import(&|index| fs::remove_file(index).unwrap()), expected);
    assert_eq!(import(&|index| fs::write(index, "{\"sch_").unwrap()), expected);
    // An empty index is ignored.
    assert_eq!(import(&|index| fs::write(index, "{}").unwrap()), expected);
    // The last gzip member is truncated.
    let (shown, left_out) = import(&|index| {
        fs::remove_file(index).unwrap();
        let path = index.with_file_name("2025-11.ndjson.gz");
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 30]).unwrap();
    });
    assert_eq!(shown, expected.0);
    let reason = "2025-11.ndjson.gz: only a part of it can be read: ";
    assert!(left_out.iter().any(|why| why.starts_with(reason)), "{left_out:?}");
    // A schedule that cannot be added does not stop the others, and the dry run reports it.
    let (shown, left_out) = import(&|index| {
        let records = fs::read_to_string(index).unwrap();
        let mut records: Value = serde_json::from_str(&records).unwrap();
        for (name, value) in [("safety_tier", json!(9)), ("target_tool", json!("no tool"))] {
            let mut odd = records["sch_coding"].clone();
            odd[name] = value;
            records[format!("sch_{name}")] = odd;
        }
        fs::write(index, records.to_string()).unwrap();
    });
    assert_eq!(shown, expected.0);
    assert_eq!(left_out.len(), expected.1.len() + 2, "{left_out:?}");
}

#[test]
fn agent_blob_schedules_are_imported_and_skip_missed_runs() {
    let world = world();
    world.add_agent("ada");
    let directory = world.root().join("blob/data");
    fs::create_dir_all(&directory).unwrap();
    let prompt = json!({"kind": "prompt", "text": "Look at the news."});
    let write = |next: f64| {
        let records = json!([
            {"id": "sched_1", "type": "interval", "title": "news", "enabled": true,
             "created_at": 1770000000.0, "next_run_at": next, "schedule": {"interval_s": 600},
             "payload": prompt, "tz": "Europe/Berlin"},
            {"id": "sched_2", "type": "cron", "title": "news", "enabled": false,
             "schedule": {"cron": "0 9 1 * 1"}, "payload": prompt, "tz": "Europe/Berlin"},
            {"id": "sched_3", "type": "cron", "title": "tool", "enabled": true,
             "schedule": {"cron": "0 9 * * *"}, "payload": {"kind": "tool"}},
        ]);
        fs::write(directory.join("schedules.json"), records.to_string()).unwrap();
    };
    write(1.0);
    let path = world.root().join("blob");
    let import = ["schedule", "import", "--from", "agent-blob", path.to_str().unwrap()];
    let import = [&import[..], &["--agent", "ada"]].concat();
    let real = world.json(&import);
    let names = ["sched_1: news", "sched_2: news (sched_2)"].map(str::to_owned).to_vec();
    let reasons = vec!["sched_3: its payload is `tool`, not a prompt".to_owned()];
    assert_eq!(imported(&real), (names, reasons));
    let schedules = world.json(&["schedule", "list"])["schedules"].as_array().unwrap().clone();
    let cron = schedules.iter().find(|it| it["name"] == "news (sched_2)").unwrap();
    assert_eq!((&cron["status"], &cron["tz"]), (&json!("paused"), &json!("Europe/Berlin")));
    assert!(schedules.iter().all(|it| it["terms"]["missed"] == "skip"), "{schedules:?}");
    // It has run in the other scheduler since.
    write(2.0);
    assert_eq!(counts(&world.json(&import)), [0, 2, 1]);
    assert_eq!(world.json(&["schedule", "list"])["schedules"].as_array().unwrap().len(), 2);
}
