//! `midwatch schedule import`: a crontab becomes schedules.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::Transcript;
use crate::world::{Outcome, World, wait_for};

/// All that crontabs are known to hold. In UTC, so that no offset changes with the season.
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

/// The path of a new file with this text.
fn file(world: &World, text: impl AsRef<[u8]>) -> String {
    let path = world.root().join("crontab");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A world with a shell for an agent.
fn world() -> World {
    let world = World::new();
    world.ok(&["agent", "add", "cron", "--backend", "command", "--", "/bin/sh", "-s"]);
    world
}

fn added(world: &World) -> usize {
    world.kinds().iter().filter(|kind| *kind == "schedule.added").count()
}

/// Of each item, what is under these keys.
fn column(items: &Value, keys: [&str; 2]) -> Value {
    let items = items.as_array().unwrap_or_else(|| panic!("not a list: {items}"));
    items.iter().map(|item| json!(keys.map(|key| &item[key]))).collect()
}

#[test]
fn a_dry_run_shows_all_and_changes_nothing() {
    let world = World::new();
    let file = file(&world, CRONTAB);
    let mut transcript = Transcript::new(&world);
    transcript.run(&import(&[&file, "--tz", "UTC", "--dry-run"]));
    insta::assert_snapshot!("import_dry_run", transcript.finish());

    let report = world.json(&import(&[&file, "--tz", "UTC", "--dry-run"]));
    assert_eq!(report["dry_run"], true);
    let imported = &report["imported"];
    assert_eq!(column(imported, ["id", "created"])[0], json!([null, null]));
    assert_eq!(imported[0]["next"].as_array().unwrap().len(), 5);
    assert!(!report.to_string().contains("hunter2"), "values may be secret: {report}");
    assert!(!world.data().exists());
}

#[test]
fn an_import_adds_what_the_dry_run_showed_and_adds_it_once() {
    let world = world();
    let file = file(&world, CRONTAB);
    let flags = import(&[&file, "--tz", "UTC"]);
    let would = world.json(&[&flags[..], &["--dry-run"]].concat());
    assert_eq!(added(&world), 0);

    let first = world.json(&flags);
    assert_eq!(first["dry_run"], false);
    assert_eq!(first["left_out"], would["left_out"]);
    for keys in [["line", "name"], ["describe", "tz"], ["agent", "prompt"]] {
        assert_eq!(column(&first["imported"], keys), column(&would["imported"], keys));
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
        column(&again["imported"], ["line", "id"]),
        column(&first["imported"], ["line", "id"])
    );
    assert!(again["imported"].as_array().unwrap().iter().all(|it| it["created"] == false));
    assert_eq!(added(&world), imported.len());
    let said = world.ok(&flags);
    let summary = format!("nothing new: {} schedules there already; ", imported.len());
    assert!(said.lines().last().unwrap().starts_with(&summary), "{said}");

    let more = self::file(&world, "0 1 * * * one\n0 3 * * 0 two\n");
    let flags = import(&[&more, "--tz", "UTC"]);
    assert!(world.ok(&flags).ends_with("\n2 schedules added\n"));
    fs::write(&more, "0 1 * * * one\n0 3 * * 0 two\n0 4 * * * three\n").unwrap();
    assert!(world.ok(&flags).ends_with("\n1 schedule added, 2 there already\n"));
}

/// The input after a `%` goes to the whole command, as it is written, and nothing else does.
#[test]
fn a_shell_runs_a_line_as_cron_did() {
    let world = world();
    let file = file(
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
    let ended = |name: &str| {
        let imported = report["imported"].as_array().unwrap();
        let schedule = imported.iter().find(|it| it["name"] == name).unwrap();
        let fired = world.json(&["schedule", "fire", schedule["id"].as_str().unwrap()]);
        let run = fired["run"]["id"].as_str().unwrap().to_owned();
        wait_for(|| {
            let run = world.json(&["run", "show", &run])["run"].clone();
            let is_over = !["queued", "running"].contains(&run["state"].as_str().unwrap());
            is_over.then_some((run["state"].clone(), run["attempt"].clone(), run["output"].clone()))
        })
    };
    let (state, _, output) = ended("with input");
    assert_eq!(
        (state, &output["text"]),
        (json!("done"), &json!("first\n> ONE $HOME\n> 50% \"OFF\"\n"))
    );
    let (state, _, output) = ended("without");
    assert_eq!((state, &output["text"]), (json!("done"), &json!("it's 1970\n")));
    let (state, attempt, _) = ended("that fails");
    assert_eq!((state, attempt), (json!("failed"), json!(1)), "it is not tried again");
    drop(daemon);
}

#[test]
fn a_crontab_comes_from_stdin_too() {
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
    assert_eq!(column(&report["imported"], ["line", "name"]), json!([[1, "backup"]]));
    let outcome = piped("# nothing yet\n");
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report, json!({"imported": [], "left_out": [], "dry_run": false}));
    assert_eq!(outcome.code, Some(10), "there was nothing to do");
}

#[test]
fn without_an_agent_the_hint_says_how_to_register_it() {
    let world = World::new();
    let file = file(&world, "0 3 * * * backup");
    let refused = |flags: &[&str]| {
        let flags = [&import(&[&file, "--tz", "UTC"])[..], flags].concat();
        world.refused(&flags, "not_found", 3)
    };
    let command = "`midwatch agent add cron --backend command -- /bin/sh -s`";
    assert!(refused(&[]).contains(command), "{}", refused(&[]));
    assert!(!world.data().exists());
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let said = refused(&[]);
    assert!(said.starts_with("there is no agent `cron`\n") && said.contains(command), "{said}");
    let said = refused(&["--agent", "bob"]);
    assert_eq!(said, "there is no agent `bob`\n`midwatch agent list` shows the agents");
    assert_eq!(added(&world), 0);
    let report = world.json(&import(&[&file, "--tz", "UTC", "--agent", "ada"]));
    assert_eq!(column(&report["imported"], ["agent", "created"]), json!([["ada", true]]));
}

#[test]
fn of_the_system_the_lines_of_the_user_are_imported() {
    let world = world();
    let user = Outcome::from(world.wrapped("id").arg("-un").output().unwrap()).stdout;
    let user = user.trim();
    let text = format!("17 * * * * {user} cd / && run-parts\n@daily nobody-else rotate\n");
    let file = file(&world, text);
    let report = world.json(&import(&[&file, "--tz", "UTC", "--system"]));
    let imported = column(&report["imported"], ["line", "prompt"]);
    assert_eq!(imported, json!([[1, "cd / && run-parts"]]), "{report}");
    let reason = format!("it is a line of user `nobody-else`, and this is a watch of `{user}`");
    assert_eq!(column(&report["left_out"], ["line", "reason"]), json!([[2, reason]]));
}

#[test]
fn what_cannot_be_read_is_refused_as_a_whole() {
    let world = world();
    let check = |bytes: &[u8], flags: &[&str], message: &str, hint: &str| {
        let file = file(&world, bytes);
        let said = world.refused(&import(&[&[file.as_str()], flags].concat()), "invalid_input", 2);
        let (found, advice) = said.split_once('\n').unwrap();
        assert!(found.contains(message) && advice.contains(hint), "{said}");
    };
    check(b"0 3 * * * backup", &[], "does not name its time zone", "`--tz Europe/Berlin`");
    check(b"0 3 * * * backup", &["--tz", "Berlin"], "no time zone `Berlin`", "`Europe/Berlin`");
    check(b"0 3 * * * \xff", &["--tz", "UTC"], "is not text", "UTF-8");
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
fn a_thousand_are_imported_at_once_and_one_more_is_not() {
    let world = world();
    let mut text: String = (1..=1000).map(|number| format!("0 3 * * * job {number}\n")).collect();
    let report = world.json(&import(&[&file(&world, &text), "--tz", "UTC"]));
    assert_eq!(report["imported"].as_array().unwrap().len(), 1000);
    let listed = world.json(&["schedule", "list", "--limit", "1000"]);
    assert_eq!(listed["schedules"].as_array().unwrap().len(), 1000);
    text.push_str("0 3 * * * job 1001\n");
    let said = world.refused(&import(&[&file(&world, &text), "--tz", "UTC"]), "invalid_input", 2);
    assert!(said.starts_with("at most 1000 schedules are imported at once"), "{said}");
}
