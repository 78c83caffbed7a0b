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
    let world = World::new();
    let file = write_crontab(&world, CRONTAB);
    let mut transcript = Transcript::new(&world);
    transcript.run(&import(&[&file, "--tz", "UTC", "--dry-run"]));
    insta::assert_snapshot!("import_dry_run", transcript.finish());

    let report = world.json(&import(&[&file, "--tz", "UTC", "--dry-run"]));
    assert_eq!(report["dry_run"], true);
    let imported = &report["imported"];
    assert_eq!(columns(imported, ["id", "created"])[0], json!([null, null]));
    assert_eq!(imported[0]["next"].as_array().unwrap().len(), 5);
    assert!(
        !report.to_string().contains("hunter2"),
        "the report contains the value of a variable: {report}"
    );
    assert!(!world.data().exists());
}

#[test]
fn crontab_import_adds_what_the_dry_run_showed_and_adds_it_once() {
    let world = world();
    let file = write_crontab(&world, CRONTAB);
    let flags = import(&[&file, "--tz", "UTC"]);
    let preview = world.json(&[&flags[..], &["--dry-run"]].concat());
    assert_eq!(added(&world), 0);

    let first = world.json(&flags);
    assert_eq!(first["dry_run"], false);
    assert_eq!(first["left_out"], preview["left_out"]);
    for keys in [["line", "name"], ["describe", "tz"], ["agent", "prompt"]] {
        assert_eq!(columns(&first["imported"], keys), columns(&preview["imported"], keys));
    }
    let imported = first["imported"].as_array().unwrap();
    assert!(imported.iter().all(|it| it["created"] == true), "{first}");
    assert_eq!(added(&world), imported.len());
    let shown = world.json(&["schedule", "show", imported[0]["id"].as_str().unwrap()]);
    let schedule = &shown["schedule"];
    assert_eq!((&schedule["name"], &schedule["tz"]), (&imported[0]["name"], &json!("UTC")));
    assert_eq!(schedule["action"]["prompt"], imported[0]["prompt"]);
    let [attempts, pause_after] = ["attempts", "pause_after"].map(|term| &schedule["terms"][term]);
    assert_eq!((attempts, pause_after), (&json!(1), &json!(0)), "as with cron: {schedule}");

    let again = world.json(&flags);
    assert_eq!(
        columns(&again["imported"], ["line", "id"]),
        columns(&first["imported"], ["line", "id"])
    );
    assert!(again["imported"].as_array().unwrap().iter().all(|it| it["created"] == false));
    assert_eq!(added(&world), imported.len());
    let output = world.ok(&flags);
    let summary = format!("nothing new: {} schedules existed already; ", imported.len());
    assert!(output.lines().last().unwrap().starts_with(&summary), "{output}");

    let more = write_crontab(&world, "0 1 * * * one\n0 3 * * 0 two\n");
    let flags = import(&[&more, "--tz", "UTC"]);
    assert!(world.ok(&flags).ends_with("\n2 schedules added\n"));
    fs::write(&more, "0 1 * * * one\n0 3 * * 0 two\n0 4 * * * three\n").unwrap();
    assert!(world.ok(&flags).ends_with("\n1 schedule added, 2 existed already\n"));
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
        let imported = report["imported"].as_array().unwrap();
        let schedule = imported.iter().find(|it| it["name"] == name).unwrap();
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
    assert_eq!(columns(&report["imported"], ["line", "name"]), json!([[1, "backup"]]));
    let outcome = piped("# nothing yet\n");
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report, json!({"imported": [], "left_out": [], "dry_run": false}));
    assert_eq!(outcome.code, Some(10), "nothing was imported");
}

#[test]
fn crontab_import_without_an_agent_hints_how_to_add_one() {
    let world = World::new();
    let file = write_crontab(&world, "0 3 * * * backup");
    let refused = |flags: &[&str]| {
        let flags = [&import(&[&file, "--tz", "UTC"])[..], flags].concat();
        world.refused(&flags, "not_found", 3)
    };
    let command = "`midwatch agent add cron --backend command -- /bin/sh -s`";
    assert!(refused(&[]).contains(command), "{}", refused(&[]));
    assert!(!world.data().exists());
    world.add_agent("ada");
    let message = refused(&[]);
    assert!(
        message.starts_with("agent `cron` does not exist\n") && message.contains(command),
        "{message}"
    );
    let message = refused(&["--agent", "bob"]);
    assert_eq!(message, "agent `bob` does not exist\n`midwatch agent list` shows the agents");
    assert_eq!(added(&world), 0);
    let report = world.json(&import(&[&file, "--tz", "UTC", "--agent", "ada"]));
    assert_eq!(columns(&report["imported"], ["agent", "created"]), json!([["ada", true]]));
}

#[test]
fn system_crontab_import_takes_only_the_lines_of_the_user() {
    let world = world();
    let user = Outcome::from(world.wrapped("id").arg("-un").output().unwrap()).stdout;
    let user = user.trim();
    let text = format!("17 * * * * {user} cd / && run-parts\n@daily nobody-else rotate\n");
    let file = write_crontab(&world, text);
    let report = world.json(&import(&[&file, "--tz", "UTC", "--system"]));
    let imported = columns(&report["imported"], ["line", "prompt"]);
    assert_eq!(imported, json!([[1, "cd / && run-parts"]]), "{report}");
    let reason = format!("it belongs to user `nobody-else`, not to `{user}`");
    assert_eq!(columns(&report["left_out"], ["line", "reason"]), json!([[2, reason]]));
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
    world.refused(&import(&[&world.root().display().to_string()]), "failed", 1);
    world.refused(&import(&[]), "bad_usage", 2);
    world.refused(&["schedule", "import", &missing], "bad_usage", 2);
    world.refused(&["schedule", "import", "--from", "cron", &missing], "bad_usage", 2);
}

#[test]
fn crontab_import_is_limited_to_a_thousand_lines() {
    let world = world();
    let mut text: String = (1..=1000).map(|number| format!("0 3 * * * job {number}\n")).collect();
    let report = world.json(&import(&[&write_crontab(&world, &text), "--tz", "UTC"]));
    assert_eq!(report["imported"].as_array().unwrap().len(), 1000);
    let listed = world.json(&["schedule", "list", "--limit", "1000"]);
    assert_eq!(listed["schedules"].as_array().unwrap().len(), 1000);
    text.push_str("0 3 * * * job 1001\n");
    let message =
        world.refused(&import(&[&write_crontab(&world, &text), "--tz", "UTC"]), "invalid_input", 2);
    assert!(message.starts_with("more than 1000 schedules"), "{message}");
}
