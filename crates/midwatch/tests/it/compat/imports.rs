//! `schedule import` from every source: a dry run says what the import does, and nothing is added twice.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::promptyoself::imports::{create_astra_schedules, create_database};
use crate::support::transcript::Transcript;
use crate::support::world::World;

/// The sources, and the agents that their entries need.
const SOURCES: [(&str, &[&str]); 8] = [
    ("crontab", &["cron"]),
    ("promptyoself", &[]),
    ("astra", &[]),
    ("agent-blob", &["ada"]),
    ("openclaw", &["main", "ops"]),
    ("hermes", &["hermes"]),
    ("letta-code", &["agent-1"]),
    ("systemd", &["cron"]),
];

/// A world without data whose home directory has the files of all sources.
fn world() -> World {
    let mut world = World::new();
    world.set("LETTA_BASE_URL", "http://127.0.0.1:9");
    world.set("TZ", "America/New_York");
    world.set("COLUMNS", "80");
    write(&world, "crontab", "CRON_TZ=UTC\n0 3 1 1 * backup\n@reboot start\n0 4 1 1 * rotate\n");
    create_database(&world.root().join("promptyoself.db"));
    create_astra_schedules(&world);
    create_agent_blob(&world);
    create_openclaw(&world);
    create_hermes(&world);
    create_letta_code(&world);
    create_timers(&world);
    world
}

fn write(world: &World, path: &str, text: impl AsRef<[u8]>) {
    let path = world.root().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn create_agent_blob(world: &World) {
    let prompt = json!({"kind": "prompt", "text": "Look at the news."});
    let records = json!([
        {"id": "sched_1", "title": "news", "enabled": true, "tz": null,
         "schedule": {"cron": "0 9 1 1 *"}, "payload": prompt},
        {"id": "sched_2", "title": "older", "cron": "0 9 1 1 *", "input": "hi", "tz": null},
        {"id": "sched_3", "title": "tool", "schedule": {"cron": "0 9 * * *"}, "payload": {"kind": "tool"}},
    ]);
    write(world, "blob/data/schedules.json", records.to_string());
    let configuration = json!({"scheduler": {"timezone": "Europe/Berlin"}});
    write(world, "blob/agent_blob.json", configuration.to_string());
}

fn create_openclaw(world: &World) {
    let job = |id: &str, name: &str, members: Value| {
        let mut job = json!({
            "id": id, "name": name, "enabled": true, "sessionTarget": "isolated",
            "schedule": {"kind": "cron", "expr": "0 7 1 1 *", "tz": "Europe/Berlin", "staggerMs": 0},
            "payload": {"kind": "agentTurn", "message": "Summarize overnight updates."},
        });
        for (name, value) in members.as_object().unwrap() {
            job[name] = value.clone();
        }
        job
    };
    let jobs = [
        job("b496cd33", "Morning brief", json!({"delivery": {"mode": "announce"}})),
        job(
            "c1",
            "Hourly",
            json!({"agentId": "ops", "enabled": false, "schedule":
            {"kind": "cron", "expr": "0 0 12 1 1 *", "staggerMs": 300_000}}),
        ),
        job(
            "a0",
            "Yearly",
            json!({"deleteAfterRun": true, "schedule":
            {"kind": "every", "everyMs": 31_536_000_000_i64, "anchorMs": 1_893_456_000_000_i64}}),
        ),
        job(
            "d2",
            "Make",
            json!({"payload": {"kind": "command", "argv": ["make", "all"], "cwd": "/srv"}}),
        ),
        job("e3", "Heartbeat", json!({"declarationKey": "heartbeat:main"})),
        job("f4", "Past", json!({"schedule": {"kind": "at", "at": "2020-01-01T00:00:00Z"}})),
    ];
    let path = world.root().join(".openclaw/state/openclaw.sqlite");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let database = Connection::open(&path).unwrap();
    database.pragma_update(None, "journal_mode", "wal").unwrap();
    let table = "CREATE TABLE cron_jobs (store_key TEXT, job_id TEXT, name TEXT, enabled INTEGER, job_json TEXT,
                 sort_order INTEGER, PRIMARY KEY (store_key, job_id))";
    database.execute(table, []).unwrap();
    for (index, job) in jobs.iter().enumerate() {
        let values = rusqlite::params![job["id"].as_str(), job.to_string(), index];
        let insert = "INSERT INTO cron_jobs VALUES ('jobs.json', ?1, '', 1, ?2, ?3)";
        database.execute(insert, values).unwrap();
    }
}

fn create_hermes(world: &World) {
    let jobs = json!({"updated_at": "2026-11-17T22:32:58+00:00", "jobs": [
        {"id": "baae716c52bd", "name": "news", "prompt": "Summarise the news",
         "schedule": {"kind": "cron", "expr": "0 9 1 1 * 30"}, "repeat": {"times": null, "completed": 0},
         "enabled": true, "state": "scheduled", "deliver": "local"},
        {"id": "cc", "name": "limited", "prompt": "Count", "schedule": {"kind": "cron", "expr": "0 8 1 1 *"},
         "repeat": {"times": 10, "completed": 3}, "enabled": true, "state": "paused", "skills": ["web"]},
        {"id": "ee", "name": "yearly", "prompt": "Plan", "next_run_at": "2030-01-01T00:00:00.428153+00:00",
         "schedule": {"kind": "interval", "minutes": 525_600}},
        {"id": "ff", "name": "once", "prompt": "Party", "repeat": {"times": 1, "completed": 0},
         "schedule": {"kind": "once", "run_at": "2030-01-01T09:00:00"}},
        {"id": "dd", "name": "script", "prompt": "", "no_agent": true, "script": "check.py",
         "schedule": {"kind": "interval", "minutes": 5}},
    ]});
    write(world, ".hermes/cron/jobs.json", format!("\u{feff}{jobs}"));
    write(world, ".hermes/config.yaml", "model: x\ntimezone: \"Asia/Tokyo\"  # home\n");
}

fn create_letta_code(world: &World) {
    let tasks = json!({"version": 1, "scheduler_owners": {}, "tasks": [
        {"id": "1a2b3c4d", "agent_id": "agent-1", "conversation_id": "new", "name": "standup",
         "cron": "0 9 1 1 *", "timezone": "Europe/Berlin", "recurring": true, "prompt": "What is next?",
         "status": "active", "jitter_offset_ms": 90_000},
        {"id": "4d", "agent_id": "agent-1", "name": "once", "cron": "0 9 1 1 *", "timezone": "Europe/Berlin",
         "recurring": false, "scheduled_for": "2030-01-01T08:00:00.000Z", "prompt": "Party",
         "status": "paused", "expires_at": "2031-01-01T00:00:00.000Z"},
        {"id": "2b", "agent_id": "agent-2", "name": "elsewhere", "cron": "0 9 1 1 *", "timezone": "UTC",
         "recurring": true, "prompt": "hi", "status": "active"},
        {"id": "3c", "agent_id": "agent-1", "name": "done", "cron": "0 9 1 1 *", "timezone": "UTC",
         "recurring": false, "scheduled_for": "2030-01-01T09:00:00Z", "prompt": "hi", "status": "fired"},
    ]});
    write(world, ".letta/crons.json", tasks.to_string());
}

fn create_timers(world: &World) {
    let units = [
        (
            "backup.timer",
            "[Unit]\nDescription=Nightly backup\n[Timer]\nOnCalendar=*-01-01 03:00\n\
                          OnBootSec=15min\nPersistent=true\nRandomizedDelaySec=10min\n",
        ),
        (
            "backup.service",
            "[Service]\nType=oneshot\nWorkingDirectory=%h/data\nNice=10\n\
                            ExecStart=/usr/bin/backup --all\n",
        ),
        ("root.timer", "[Timer]\nOnCalendar=Mon *-01~07/1 05:00 UTC\n"),
        ("root.service", "[Service]\nUser=somebody-else\nExecStart=/usr/bin/true\n"),
    ];
    for (name, text) in units {
        write(world, &format!("units/{name}"), text.replace("%h/data", "/srv"));
    }
    write(world, "units/backup.timer.d/often.conf", "[Timer]\nOnCalendar=*-07-01 03:00\n");
}

/// The command line that imports a source.
fn import(world: &World, source: &str) -> Vec<String> {
    let path = |name: &str| world.root().join(name).display().to_string();
    let flags = match source {
        "crontab" => vec![path("crontab")],
        "promptyoself" => vec![path("promptyoself.db")],
        "astra" => vec![path("astra")],
        "agent-blob" => vec![path("blob"), "--agent".to_owned(), "ada".to_owned()],
        "systemd" => vec![path("units")],
        _ => Vec::new(),
    };
    let import = ["schedule", "import", "--from", source].map(str::to_owned).to_vec();
    [import, flags].concat()
}

fn with<'a>(import: &'a [String], flags: &[&'a str]) -> Vec<&'a str> {
    import.iter().map(String::as_str).chain(flags.iter().copied()).collect()
}

/// What an import prints, as a dry run would print it.
fn as_dry_run(text: &str) -> String {
    let (entries, summary) = text.trim_end().rsplit_once("\n\n").unwrap_or(("", text.trim_end()));
    let entries = format!("\n{entries}").replace("\nadded:", "\nwould be added:");
    let entries = entries.replace(" registered at", " would be registered at");
    let summary = summary.replacen(" added", " would be added", 1);
    format!("{}\n\n{summary} (dry run: nothing was changed)\n", &entries[1..])
}

/// A report of an import, as a dry run would report it.
fn without_new_ids(mut report: Value) -> Value {
    report["dry_run"] = json!(true);
    for entry in report["entries"].as_array_mut().unwrap() {
        if entry["outcome"] == "added" {
            assert!(entry["id"].is_string(), "{entry}");
            entry["id"] = json!(null);
        }
    }
    report
}

/// Runs a dry run and the import, and checks that they say the same. Returns the report of the import.
fn check(world: &World, source: &str, is_json: bool) -> Value {
    let import = import(world, source);
    let dry_run = with(&import, &["--dry-run"]);
    match is_json {
        true => {
            let dry = world.json(&dry_run);
            let real = world.json(&with(&import, &[]));
            assert_eq!(dry, without_new_ids(real.clone()), "{source}");
            real
        }
        false => {
            let dry = world.run(&dry_run);
            let longest = dry.stdout.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(80), "{source}: {}", dry.stdout);
            let real = world.run(&with(&import, &[]));
            assert_eq!(dry.stdout, as_dry_run(&real.stdout), "{source}");
            world.json(&dry_run)
        }
    }
}

fn counts(report: &Value) -> [u64; 3] {
    ["added", "unchanged", "left_out"].map(|name| report[name].as_u64().unwrap())
}

#[test]
fn import_does_what_its_dry_run_says() {
    for is_json in [true, false] {
        for (source, agents) in SOURCES {
            // Without data: nothing is created by a dry run, and what needs no agent is imported.
            let world = world();
            let import = import(&world, source);
            world.run(&with(&import, &["--dry-run"]));
            assert!(!world.data().exists(), "{source}: a dry run created the data directory");
            if agents.is_empty() {
                check(&world, source, is_json);
            } else {
                let report = check(&world, source, is_json);
                assert_eq!(counts(&report)[..2], [0, 0], "{source}: {report}");
            }
            agents.iter().for_each(|agent| world.add_agent(agent));
            check(&world, source, is_json);
            let all = world.json(&with(&import, &["--dry-run"]));
            let [added, unchanged, left_out] = counts(&all);
            assert_eq!((added, 1 <= unchanged), (0, true), "{source}: imported twice: {all}");

            // Partly imported.
            let entries = all["entries"].as_array().unwrap();
            let first = entries.iter().find(|it| it["outcome"] == "unchanged").unwrap();
            world.ok(&["schedule", "remove", first["id"].as_str().unwrap()]);
            let before = world.json(&with(&import, &["--dry-run"]));
            assert_eq!(counts(&before), [1, unchanged - 1, left_out], "{source}: {before}");
            check(&world, source, is_json);
            let after = world.json(&with(&import, &[]));
            assert_eq!(counts(&after), [0, unchanged, left_out], "{source}: {after}");
            world.verified();
        }
    }
}

#[test]
fn import_reports_every_entry_of_each_source() {
    let world = world();
    for agent in ["ada", "cron", "hermes", "main", "ops"] {
        world.add_agent(agent);
    }
    let mut transcript = Transcript::new(&world);
    for source in ["openclaw", "letta-code", "agent-blob"] {
        transcript.run(&with(&import(&world, source), &[]));
    }
    insta::assert_snapshot!("import_sources", transcript.finish());
}

/// The gateway of OpenClaw may have the database open.
#[test]
fn openclaw_database_is_read_while_it_is_written() {
    let world = world();
    world.add_agent("main");
    let path = world.root().join(".openclaw/state/openclaw.sqlite");
    let database = Connection::open(&path).unwrap();
    database.execute_batch("BEGIN IMMEDIATE; DELETE FROM cron_jobs WHERE job_id = 'd2';").unwrap();
    let report = world.json(&["schedule", "import", "--from", "openclaw"]);
    assert_eq!(report["entries"].as_array().unwrap().len(), 6);
    // Older versions, and the output of its list command, have the same jobs as JSON.
    let older = json!({"version": 1, "jobs": [
        {"jobId": "x1", "name": "older", "schedule": {"cron": "0 7 1 1 *"}, "message": "hi"},
    ]});
    write(&world, "old/cron/jobs.json", older.to_string());
    let old = world.root().join("old").display().to_string();
    let report = world
        .json_with(&[("OPENCLAW_STATE_DIR", &old)], &["schedule", "import", "--from", "openclaw"]);
    let [entry] = report["entries"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!((&entry["name"], &entry["tz"]), (&json!("older"), &json!("America/New_York")));
    let missing = world.refused(
        &["schedule", "import", "--from", "openclaw", "/no/such/file"],
        "not_found",
        3,
    );
    assert!(missing.contains("/no/such/file"), "{missing}");
}

/// `--tz` overrides the zone of Agent Blob's configuration, which overrides that of the machine.
#[test]
fn agent_blob_zone_is_that_of_its_configuration() {
    let world = world();
    world.add_agent("ada");
    let zone = |flags: &[&str]| {
        let import = import(&world, "agent-blob");
        let report = world.json(&with(&import, &[&["--dry-run"], flags].concat()));
        report["entries"][0]["tz"].clone()
    };
    assert_eq!(zone(&[]), "Europe/Berlin");
    assert_eq!(zone(&["--tz", "UTC"]), "UTC");
    fs::remove_file(world.root().join("blob/agent_blob.json")).unwrap();
    assert_eq!(zone(&[]), "America/New_York");
}

/// Units of the user are found by name. Midwatch runs their commands through a shell.
#[test]
fn systemd_timer_is_found_by_name_and_its_command_runs() {
    let world = World::new();
    world.ok(&["agent", "add", "cron", "--backend", "command", "--", "/bin/sh", "-s"]);
    let units = ".config/systemd/user";
    let unit = |name: &str, text: &str| write(&world, &format!("{units}/{name}"), text);
    unit(
        "hello@.service",
        "[Service]\nWorkingDirectory=/\nExecStart=/bin/echo 'it works' %i $HOME\n",
    );
    unit("hello@you.timer", "[Timer]\nOnCalendar=yearly\n");
    let import = ["schedule", "import", "--from", "systemd", "hello@you", "--tz", "UTC"];
    let report = world.json(&import);
    let entry = &report["entries"][0];
    assert_eq!((&entry["outcome"], &entry["paused"]), (&json!("added"), &json!(true)), "{report}");
    // An enabled timer is not paused.
    let wants = world.root().join(units).join("timers.target.wants");
    fs::create_dir(&wants).unwrap();
    link(Path::new("../hello@you.timer"), &wants.join("hello@you.timer"));
    world.ok(&["schedule", "remove", entry["id"].as_str().unwrap()]);
    let report = world.json(&["schedule", "import", "--from", "systemd", "--tz", "UTC"]);
    let entry =
        report["entries"].as_array().unwrap().iter().find(|it| it["entry"] == "hello@you.timer");
    let entry = entry.unwrap_or_else(|| panic!("{report}"));
    assert_eq!(entry["paused"], false, "{report}");
    let _daemon = world.up();
    let fired = world.json(&["schedule", "fire", entry["id"].as_str().unwrap()]);
    let run = world.wait_for_run(fired["run"]["id"].as_str().unwrap(), |run| {
        !["queued", "running"].contains(&run["state"].as_str().unwrap())
    });
    let expected = format!("it works you {}\n", world.root().display());
    assert_eq!(run["output"]["text"], expected, "{run}");
}

fn link(target: &Path, path: &Path) {
    std::os::unix::fs::symlink(target, path).unwrap();
}
