//! `midwatch schedule next`, and the flags of `midwatch schedule add` that need no installation.

use runtime::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::support::transcript::Transcript;
use crate::support::world::World;

/// Exclusive: the first time printed is after it.
const FROM: [&str; 2] = ["--from", "2026-01-01T00:00:00Z"];

fn next<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [&["schedule", "next"], flags].concat()
}

/// The vectors of the calendar, each by its own process.
#[test]
fn schedule_next_agrees_with_the_calendar_vectors() {
    let text = include_str!("../../../../calendar/tests/cron-vectors.json");
    let vectors: Vec<Value> = serde_json::from_str(text).unwrap();
    assert_eq!(vectors.len(), 26);
    let world = World::new();
    for vector in &vectors {
        let [cron, tz, from] = ["expr", "tz", "from"]
            .map(|name| vector[name].as_str().unwrap_or_else(|| panic!("{vector}")));
        let count = vector["count"].to_string();
        let flags = ["--cron", cron, "--tz", tz, "--from", from, "--count", &count];
        if !vector["expect"].is_array() {
            world.refused(&next(&flags), "invalid_input", 2);
            continue;
        }
        let outcome = world.run(&[&next(&flags)[..], &["--json"]].concat());
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{vector}");
        let answer: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(answer["next"], vector["expect"], "{vector}: {answer}");
        let is_explained = answer["next"] != json!([]) || answer["warnings"] != json!([]);
        assert!(is_explained && answer["describe"].as_str() != Some(""), "{vector}: {answer}");
    }
    assert!(!world.data().exists());
}

#[test]
fn schedule_next_prints_every_kind_of_trigger() {
    let world = World::new();
    let mut transcript = Transcript::verbatim(&world);
    for flags in [
        &["--cron", "30 9 * * 1-5", "--tz", "Europe/Berlin"][..],
        &["--cron", "0 0 29 2 *", "--tz", "UTC", "--count", "2"],
        &["--cron", "0 0-23/2 */2 * MON", "--tz", "America/New_York", "--count", "2"],
        &["--cron", "0 0 31 2 *", "--tz", "UTC"],
        &["--cron", "0 0 9 * * * 2020", "--tz", "Asia/Kolkata"],
        &["--every", "10s", "--count", "3"],
        &["--every", "90m", "--anchor", "2026-01-01 00:10", "--tz", "Asia/Kolkata", "--count", "2"],
        &["--daily", "17:30,09:00", "--on", "mon,fri", "--tz", "Europe/Berlin", "--count", "3"],
        &["--at", "2026-07-01T09:00+02:00"],
        &["--at", "2026-07-01 09:00", "--tz", "Europe/Berlin"],
        &["--at", "2026-01-01T00:00:00Z"],
    ] {
        transcript.both(&next(&[flags, &FROM].concat()));
    }
    insta::assert_snapshot!("schedule_next", transcript.finish());
    assert!(!world.data().exists());
}

/// Flags, and text that the message and the hint must contain.
const REFUSALS: &[(&[&str], &str, &str)] = &[
    (&["--cron", "0 22-2 * * *", "--tz", "UTC"], "`22-2` runs backwards", "`22-23,0-2`"),
    (&["--cron", "5/15 * * * *", "--tz", "UTC"], "`5/15`", "`5-59/15`"),
    (&["--cron", "0 24 * * *", "--tz", "UTC"], "`24` is not within 0 to 23", "`0`"),
    (&["--cron", "99 * * * *", "--tz", "UTC"], "`99` is not within 0 to 59", "0 to 59"),
    (&["--cron", "-5 * * * *", "--tz", "UTC"], "`-5` is not valid", "minute"),
    (&["--cron", "0 9 * *", "--tz", "UTC"], "not 4", "`0 9 * * *`"),
    (&["--cron", "", "--tz", "UTC"], "not 0", "`30 9 * * MON-FRI`"),
    (&["--cron", "@every 5m", "--tz", "UTC"], "`@every`", "`--every 5m`"),
    (&["--cron", "@every", "--tz", "UTC"], "`@every`", "`--every 10m`"),
    (&["--cron", "@reboot", "--tz", "UTC"], "`@reboot`", "expression"),
    (&["--cron", "0 9 * * *"], "needs a time zone, and there is no default", "--tz Europe/Berlin"),
    (&["--daily", "09:00"], "needs a time zone, and there is no default", "--tz Europe/Berlin"),
    (&["--cron", "0 9 * * *", "--tz", "Europe/Berln"], "`Europe/Berln`", "`Europe/Berlin`"),
    (&["--cron", "0 9 * * *", "--tz", "+02:00"], "`+02:00`", "`Europe/Berlin`"),
    (&["--cron", "0 9 * * *", "--tz", ""], "unknown time zone", "`UTC`"),
    (&["--every", "10s", "--tz", "Mars"], "`Mars`", "IANA"),
    (&["--every", "ten"], "`ten` is not a duration", "`10s`"),
    (&["--every", "-5m"], "`-5m` is not a duration", "`5m`"),
    (&["--every", "0s"], "`0s` is out of range", "1s to 3660d"),
    (&["--every", "999ms"], "too short", "1s"),
    (&["--every", "10s", "--anchor", "noon"], "`noon` is not a timestamp", "Z"),
    (&["--every", "10s", "--anchor", "2026-01-01 09:00"], "no offset", "--tz Europe/Berlin"),
    (&["--daily", "9am", "--tz", "UTC"], "`9am` is not a time of day", "`09:00`"),
    (&["--daily", "09:00", "--on", "monday", "--tz", "UTC"], "`MONDAY`", "`mon,fri`"),
    (&["--daily", "09:00", "--on", "fri-mon", "--tz", "UTC"], "`FRI-MON`", "`FRI-SUN,MON`"),
    (&["--at", "tomorrow", "--tz", "UTC"], "`tomorrow` is not a timestamp", "2026-07-01T09:00:00Z"),
    (&["--at", "2026-07-01T09:00:00"], "has no offset", "--tz Europe/Berlin"),
    (&["--at", "2200-01-01T00:00:00Z"], "out of range", "2199"),
    (
        &["--at", "2026-03-08T02:30", "--tz", "America/New_York"],
        "the clock skips",
        "`2026-03-08T07:30:00Z`",
    ),
    (&["--every", "10s", "--from", "2026-01-01 09:00"], "no offset", "--tz Europe/Berlin"),
    (&["--every", "10s", "--from", "now"], "`now` is not a timestamp", "2026-07-01T09:00:00Z"),
    (&["--every", "10s", "--count", "0"], "from 1 to 1000, not 0", "five"),
    (&["--every", "10s", "--count", "1001"], "from 1 to 1000, not 1001", "five"),
];

#[test]
fn schedule_next_refusals_name_the_error_and_a_correction() {
    let world = World::new();
    let mut transcript = Transcript::verbatim(&world);
    for (flags, reason, hint) in REFUSALS {
        let message = world.refused(&next(flags), "invalid_input", 2);
        let (found, advice) = message.split_once('\n').unwrap();
        assert!(found.contains(reason) && advice.contains(hint), "{flags:?}: {message}");
        transcript.run(&next(flags));
    }
    insta::assert_snapshot!("schedule_next_refusals", transcript.finish());
    assert!(!world.data().exists());
}

#[test]
fn schedule_next_needs_one_trigger_with_its_own_flags() {
    let world = World::new();
    for flags in [
        &["--tz", "UTC"][..],
        &["--cron", "0 9 * * *", "--every", "5m", "--tz", "UTC"],
        &["--every", "5m", "--count", "many"],
        &["--every"],
    ] {
        world.refused(&next(flags), "bad_usage", 2);
    }
    for flags in [
        &["--every", "5m", "--on", "mon"][..],
        &["--daily", "09:00", "--anchor", "2026-01-01T00:00:00Z", "--tz", "UTC"],
        &["--every", "5m", "--dst-gap", "skip"],
        &["--at", "2026-07-01T09:00:00Z", "--dst-fold", "both"],
        &["--daily", "09:00", "--tz", "UTC", "--dst-gap", "jump"],
    ] {
        world.refused(&next(flags), "invalid_input", 2);
    }
}

#[test]
fn schedule_next_handles_skipped_and_repeated_wall_clock_times() {
    let world = World::new();
    let check = |flags: &[&str], from: &str, expected: &[&str]| {
        let zone = ["--daily", "02:30", "--tz", "Europe/Berlin", "--count", "2", "--from", from];
        let found = world.json(&next(&[&zone[..], flags].concat()));
        assert_eq!(found["next"], json!(expected), "{flags:?} {from}");
    };
    let spring = "2026-03-28T12:00:00Z";
    check(&[], spring, &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    let shift = &["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"];
    check(&["--dst-gap", "shift"], spring, shift);
    let skip = &["2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"];
    check(&["--dst-gap", "skip"], spring, skip);
    let autumn = "2026-10-24T12:00:00Z";
    check(&[], autumn, &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    let second = &["2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"];
    check(&["--dst-fold", "second"], autumn, second);
    check(&["--dst-fold", "both"], autumn, &["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]);
}

fn add<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [&["schedule", "add"], flags].concat()
}

#[test]
fn schedule_add_needs_a_name_a_trigger_and_one_action() {
    let world = World::new();
    let [name, every] = [["--name", "hourly"], ["--every", "1h"]];
    let prompt = ["--agent", "ada", "--prompt", "Hello."];
    let tool = ["--tool", "fs.list"];
    for flags in [
        &[&every[..], &prompt][..],
        &[&name, &prompt],
        &[&name, &every],
        &[&name, &every, &["--daily", "09:00", "--tz", "UTC"], &prompt],
        &[&name, &every, &["--prompt", "Hello."]],
        &[&name, &every, &["--payload", "{}"]],
        &[&name, &every, &["--agent", "ada"]],
        &[&name, &every, &prompt, &tool],
        &[&name, &["--file", "list.json"]],
        &[&every, &["--file", "list.json"]],
        &[&name, &every, &tool, &["--tier", "high"]],
        &[&name, &every, &tool, &["--per-day", "many"]],
        &[&name, &every, &tool, &["--per-day", "-1"]],
        &[&name, &every, &tool, &["--attempts", "1.5"]],
        &[&name, &every, &tool, &["--pause-after", ""]],
        &[&name, &every, &tool, &["--priority", "256"]],
        &[&name, &every, &tool, &["--max-fires", "18446744073709551616"]],
        &[&name, &every, &tool, &["surplus"]],
    ] {
        world.refused(&add(&flags.concat()), "bad_usage", 2);
    }
    assert!(!world.data().exists());

    world.add_agent("ada");
    let again = ["--again", "10m"];
    for flags in [
        &[&name[..], &every, &["--on", "mon"], &prompt][..],
        &[&name, &every, &prompt, &["--payload", "{}"]],
        &[&name, &every, &tool, &["--prompt", "Hello."]],
        &[&name, &every, &["--since", "start"], &prompt],
        &[&name, &again, &["--since", "noon"], &prompt],
        &[&name, &again, &["--anchor", "2026-01-01T00:00:00Z"], &prompt],
        &[&name, &["--again", "1ms"], &prompt],
        &[&name, &["--event", "Mail New"], &prompt],
    ] {
        world.refused(&add(&flags.concat()), "invalid_input", 2);
    }
    for upstream in ["sch_", "sch_00000000", "no such name"] {
        let followed = ["--after", upstream];
        world.refused(&add(&[&name[..], &followed, &prompt].concat()), "not_found", 3);
    }
}

/// The file is read before the installation is opened.
#[test]
fn schedule_add_refuses_an_unreadable_prompt_file() {
    let world = World::new();
    std::fs::write(world.root().join("bytes"), b"\xff").unwrap();
    let refused = |file: &str, code: &str, exit: i32| {
        let argument = format!("@{}", world.root().join(file).display());
        let flags = ["--name", "hourly", "--every", "1h", "--agent", "ada", "--prompt", &argument];
        let message = world.refused(&add(&flags), code, exit);
        assert!(message.contains("prompt"), "{message}");
    };
    refused("no-such-file", "not_found", 3);
    refused("", "failed", 1);
    refused("bytes", "invalid_input", 2);
}

#[test]
fn run_and_why_need_an_id() {
    let world = World::new();
    for arguments in [
        &["run", "show"][..],
        &["run", "settle", "run_1"],
        &["run", "settle", "--as", "done"],
        &["run", "list", "--limit", "many"],
        &["run", "list", "sch_00000000"],
        &["schedule", "pause"],
        &["schedule", "fire", "sch_00000000", "sch_11111111"],
        &["why"],
        &["why", "sch_00000000", "--at"],
    ] {
        world.refused(arguments, "bad_usage", 2);
    }
}

#[test]
fn schedule_next_starts_now_and_prints_count_times() {
    let world = World::new();
    let before = SystemClock.now().as_micros();
    let answer = world.json(&next(&["--every", "1s", "--count", "1000"]));
    let after = SystemClock.now().as_micros();
    let times = answer["next"].as_array().unwrap();
    assert_eq!(times.len(), 1000);
    let first = calendar::parse_instant(times[0].as_str().unwrap(), None).unwrap();
    assert!(before < first && first <= after + 1_000_000, "{before} {first} {after}");
    assert_eq!(world.json(&next(&["--every", "1s"]))["next"].as_array().unwrap().len(), 5);
}

/// Neither the time zone of the machine nor a broken installation has an effect on the times.
#[test]
fn schedule_next_ignores_environment_and_data_directory() {
    let flags = next(&["--daily", "09:00", "--tz", "Asia/Kolkata", FROM[0], FROM[1]]);
    let expected = World::new().json(&flags);
    let mut world = World::new().with_data("data/no/such");
    std::fs::write(world.root().join("data"), "a file, where a directory should be").unwrap();
    world.set("TZ", "America/New_York");
    world.set("TZDIR", world.root().display().to_string());
    world.set("MIDWATCH_CONFIG", "/no/such/file");
    world.set("MIDWATCH_STORE_URL", "nonsense");
    assert_eq!(world.json(&flags), expected);
}
