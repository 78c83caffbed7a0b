//! `midwatch schedule import --from crontab`.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::transcript::Transcript;
use crate::support::world::{Outcome, World};

/// Every form of line that crontabs have. In UTC, so that no offset changes with the season.
const CRONTAB: &str = r#"# the crontab of ada, by hand
SHELL=/bin/bash
PATH = "/usr/local/bin:/usr/bin:/bin"
MAILTO=""
API_KEY=hunter2
PATH=/opt/bin

# m h  dom mon dow   command
*/15 * * * * /usr/local/bin/poll-feeds --quiet >/dev/null 2>&1

# nightly backup of the database
0 3 * * * /usr/local/bin/backup --all && find /backup -mtime +7 -delete
30 9 * * mon-fri cd $HOME/notes && git commit -qam "$(date +\%F)"
0 17 * * 5 mail -s "It's Friday" ada%Dear Ada,%%50\% of the week is over.%
@daily /usr/local/bin/rotate
@reboot /usr/local/bin/start-agent
# days that are odd and Mondays
0 4 */2 * 1 echo odd
0~59 5 * * * echo random
0 22-2 * * * echo night
5/15 * * * * echo step
0 0 31 2 * echo never
*/7 * * * * echo uneven
0 12 * * * date '+%F'
0 0 12 * * * echo six
10 * * * *
#0 3 * * * /old/job
0 6 1 jan,jul * echo twice a year
CRON_TZ=Etc/UTC
0 9 * * 7 echo twice
0 9 * * 7 echo twice
CRON_TZ=Mars/Olympus
0 9 * * * echo on Mars
TZ=Asia/Tokyo
"#;

fn import<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [&["schedule", "import", "--from", "crontab"], flags].concat()
}

/// Writes a crontab. Returns its path.
fn write_crontab(world: &World, text: impl AsRef<[u8]>) -> String {
    let path = world.root().join("crontab");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A world whose agent `cron` is a shell.
fn world() -> World {
    let world = World::new();
    world.ok(&["agent", "add", "cron", "--backend", "command", "--", "/bin/sh", "-s"]);
    world
}

/// The entries of a report with this outcome.
fn entries(report: &Value, outcome: &str) -> Vec<Value> {
    let entries = report["entries"].as_array().unwrap_or_else(|| panic!("{report}"));
    entries.iter().filter(|entry| entry["outcome"] == outcome).cloned().collect()
}

fn added(world: &World) -> usize {
    world.count_events("schedule.added")
}

/// The values of two keys in each item.
fn columns(items: &Value, keys: [&str; 2]) -> Value {
    let items = items.as_array().unwrap_or_else(|| panic!("not a list: {items}"));
    items.iter().map(|item| json!(keys.map(|key| &item[key]))).collect()
}

#[test]
fn crontab_dry_run_shows_every_line_and_changes_nothing() {
    let world = world();
    let file = write_crontab(&world, CRONTAB);
    let mut transcript = Transcript::new(&world);
    transcript.run(&import(&[&file, "--tz", "UTC", "--dry-run"]));
    insta::assert_snapshot!("import_dry_run", transcript.finish());

    let report = world.json(&import(&[&file, "--tz", "UTC", "--dry-run"]));
    assert_eq!(report["dry_run"], true);
    let added = entries(&report, "added");
    assert_eq!(added[0]["id"], json!(null));
    assert_eq!(added[0]["next"].as_array().unwrap().len(), 5);
    assert!(
        !report.to_string().contains("hunter2"),
        "the report contains the value of a variable: {report}"
    );
    assert_eq!(world.count_events("schedule.added"), 0);
}

#[test]
fn crontab_import_adds_what_the_dry_run_showed_and_adds_it_once() {
    let world = world();
    let file = write_crontab(&world, CRONTAB);
    let flags = import(&[&file, "--tz", "UTC"]);
    let preview = world.json(&[&flags[..], &["--dry-run"]].concat());
    assert_eq!(added(&world), 0);

    let first = world.json(&flags);
    let imported = entries(&first, "added");
    assert_eq!(added(&world), imported.len());
    let shown = world.json(&["schedule", "show", imported[0]["id"].as_str().unwrap()]);
    let schedule = &shown["schedule"];
    assert_eq!((&schedule["name"], &schedule["tz"]), (&imported[0]["name"], &json!("UTC")));
    assert_eq!(schedule["action"]["prompt"], imported[0]["prompt"]);
    let [attempts, pause_after] = ["attempts", "pause_after"].map(|term| &schedule["terms"][term]);
    assert_eq!((attempts, pause_after), (&json!(1), &json!(0)), "as with cron: {schedule}");
    assert_eq!(entries(&preview, "added").len(), imported.len());

    let again = world.json(&flags);
    let ids = |entries: &[Value]| columns(&json!(entries), ["line", "id"]);
    assert_eq!(ids(&entries(&again, "unchanged")), ids(&imported));
    assert_eq!(added(&world), imported.len());
    let output = world.ok(&flags);
    let summary = format!("0 added, {} unchanged, 14 left out", imported.len());
    assert_eq!(output.lines().last().unwrap(), summary, "{output}");

    let more = write_crontab(&world, "0 1 * * * one\n0 3 * * 0 two\n");
    let flags = import(&[&more, "--tz", "UTC"]);
    assert!(world.ok(&flags).ends_with("\n2 added, 0 unchanged, 0 left out\n"));
    fs::write(&more, "0 1 * * * one\n0 4 * * 0 two\n0 4 * * * three\n").unwrap();
    let output = world.ok(&flags);
    assert!(output.ends_with("\n2 added, 1 unchanged, 0 left out\n"), "{output}");
    assert!(output.contains("has the same name but differs"), "{output}");
}

/// The text after a `%` is the input of the whole command, unchanged.
#[test]
fn imported_line_runs_as_cron_runs_it() {
    let world = world();
    let file = write_crontab(
        &world,
        "CRON_TZ=UTC\n\
         # with input\n\
         0 0 1 1 * echo first; tr a-z A-Z | sed 's/^/> /'%one $HOME%50\\% \"off\"%\n\
         # without\n\
         0 0 1 1 * cat; echo \"it's $(date -d @0 -u +\\%Y)\"\n\
         # that fails\n\
         0 0 1 1 * exit 3\n",
    );
    let daemon = world.up();
    let report = world.json(&import(&[&file]));
    let run = |name: &str| {
        let added = entries(&report, "added");
        let schedule = added.iter().find(|it| it["name"] == name).unwrap();
        let fired = world.json(&["schedule", "fire", schedule["id"].as_str().unwrap()]);
        let has_ended =
            |run: &Value| !["queued", "running"].contains(&run["state"].as_str().unwrap());
        let run = world.wait_for_run(fired["run"]["id"].as_str().unwrap(), has_ended);
        (run["state"].clone(), run["attempt"].clone(), run["output"].clone())
    };
    let (state, _, output) = run("with input");
    assert_eq!(
        (state, &output["text"]),
        (json!("done"), &json!("first\n> ONE $HOME\n> 50% \"OFF\"\n"))
    );
    let (state, _, output) = run("without");
    assert_eq!((state, &output["text"]), (json!("done"), &json!("it's 1970\n")));
    let (state, attempt, _) = run("that fails");
    assert_eq!((state, attempt), (json!("failed"), json!(1)), "it was retried");
    drop(daemon);
}

#[test]
fn crontab_is_read_from_stdin() {
    let world = world();
    let piped = |text: &str| {
        let mut command = world.command();
        command.args(import(&["-", "--tz", "UTC", "--json"]));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Outcome::from(child.wait_with_output().unwrap())
    };
    let outcome = piped("0 3 * * * backup");
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(columns(&report["entries"], ["line", "name"]), json!([[1, "backup"]]));
    let outcome = piped("# nothing yet\n");
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&report["entries"], &report["dry_run"]), (&json!([]), &json!(false)));
    assert_eq!(outcome.code, Some(10), "nothing was imported");
}

#[test]
fn crontab_import_without_an_agent_hints_how_to_add_one() {
    let world = World::new();
    let file = write_crontab(&world, "0 3 * * * backup");
    let check = |flags: &[&str], agent: &str| {
        for dry_run in [&["--dry-run"][..], &[]] {
            let flags = [&import(&[&file, "--tz", "UTC"])[..], flags, dry_run].concat();
            let outcome = world.run(&[&["--json"], &flags[..]].concat());
            assert_eq!(outcome.code, Some(10), "{outcome:?}");
            let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
            let [left_out] = entries(&report, "left_out").try_into().unwrap();
            assert_eq!(left_out["reason"], format!("agent `{agent}` is not registered"));
            let command = format!("`midwatch agent add {agent} --backend command -- /bin/sh -s`");
            assert!(left_out["hint"].as_str().unwrap().contains(&command), "{left_out}");
        }
    };
    check(&[], "cron");
    assert!(!world.data().exists());
    world.add_agent("ada");
    check(&["--agent", "bob"], "bob");
    assert_eq!(added(&world), 0);
    let report = world.json(&import(&[&file, "--tz", "UTC", "--agent", "ada"]));
    assert_eq!(columns(&report["entries"], ["agent", "outcome"]), json!([["ada", "added"]]));
}

/// `/etc/crontab` and the files of `/etc/cron.d` have a user column, which follows from their path.
#[test]
fn crontabs_of_the_system_are_imported_for_the_user_of_the_daemon() {
    let world = world();
    let user = Outcome::from(world.wrapped("id").arg("-un").output().unwrap()).stdout;
    let user = user.trim();
    let directory = world.root().join("cron.d");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("php"), format!("17 * * * * {user} cd / && run-parts\n")).unwrap();
    fs::write(directory.join("web"), "@daily www-data rotate\n@reboot www-data warm\n").unwrap();
    fs::write(directory.join("web.dpkg-old"), "@daily www-data old\n").unwrap();
    let path = directory.to_str().unwrap();
    let report = world.json(&import(&[path, "--tz", "UTC"]));
    let imported = columns(&json!(entries(&report, "added")), ["line", "prompt"]);
    assert_eq!(imported, json!([[1, "cd / && run-parts"]]), "{report}");
    let left_out = entries(&report, "left_out");
    let file = directory.join("web").display().to_string();
    let reason = format!("it belongs to user `www-data`, and Midwatch runs as `{user}`");
    assert_eq!(columns(&json!(left_out), ["file", "reason"])[0], json!([file, reason]));
    let hint = "run Midwatch as `www-data` and import it there";
    assert!(left_out[0]["hint"].as_str().unwrap().starts_with(hint), "{left_out:?}");

    // With an agent that becomes that user, the lines are imported.
    world.add_agent("cron-www-data");
    let flags = ["--user", "www-data", "--agent", "cron-www-data"];
    let report = world.json(&import(&[&[path, "--tz", "UTC"], &flags[..]].concat()));
    let imported = columns(&json!(entries(&report, "added")), ["agent", "prompt"]);
    assert_eq!(imported, json!([["cron-www-data", "rotate"]]), "{report}");
    let reasons = columns(&json!(entries(&report, "left_out")), ["line", "reason"]);
    let ours = format!("it belongs to user `{user}`, not to `www-data`");
    assert_eq!(reasons, json!([[1, ours], [2, "`@reboot` is not supported"]]));

    let message = world.refused(&import(&["--user", "nobody-here", "--tz", "UTC"]), "not_found", 3);
    assert!(message.contains("sudo crontab -l -u nobody-here"), "{message}");
}

#[test]
fn unreadable_crontab_is_refused_as_a_whole() {
    let world = world();
    let check = |bytes: &[u8], flags: &[&str], reason: &str, hint: &str| {
        let file = write_crontab(&world, bytes);
        let message =
            world.refused(&import(&[&[file.as_str()], flags].concat()), "invalid_input", 2);
        let (found, advice) = message.split_once('\n').unwrap();
        assert!(found.contains(reason) && advice.contains(hint), "{message}");
    };
    check(b"0 3 * * * backup", &[], "does not name its time zone", "`--tz Europe/Berlin`");
    check(
        b"0 3 * * * backup",
        &["--tz", "Berlin"],
        "unknown time zone `Berlin`",
        "`Europe/Berlin`",
    );
    check(b"0 3 * * * \xff", &["--tz", "UTC"], "is not UTF-8 text", "UTF-8");
    check(&vec![b'#'; (1 << 20) + 1], &["--tz", "UTC"], "longer than 1 MiB", "several files");
    check(b"@daily x", &["--tz", "UTC", "--agent", "no name"], "no name", "");
    let missing = world.root().join("no-such-file").display().to_string();
    world.refused(&import(&[&missing]), "not_found", 3);
    let empty = world.root().join("empty");
    fs::create_dir(&empty).unwrap();
    world.refused(&import(&[empty.to_str().unwrap()]), "not_found", 3);
    world.refused(&import(&[]), "bad_usage", 2);
    world.refused(&["schedule", "import", &missing], "bad_usage", 2);
    world.refused(&["schedule", "import", "--from", "cron", &missing], "bad_usage", 2);
}

#[test]
fn crontab_import_is_limited_to_a_thousand_lines() {
    let world = world();
    let mut text: String = (1..=1000).map(|number| format!("0 3 * * * job {number}\n")).collect();
    let report = world.json(&import(&[&write_crontab(&world, &text), "--tz", "UTC"]));
    assert_eq!(report["added"], 1000);
    let listed = world.json(&["schedule", "list", "--limit", "1000"]);
    assert_eq!(listed["schedules"].as_array().unwrap().len(), 1000);
    text.push_str("0 3 * * * job 1001\n");
    let message =
        world.refused(&import(&[&write_crontab(&world, &text), "--tz", "UTC"]), "invalid_input", 2);
    assert!(message.starts_with("more than 1000 schedules"), "{message}");
}
