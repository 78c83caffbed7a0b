//! The first story: from the link that `up` prints to an approved effect, and through a crash.

use std::fs;

use super::dashboard::{log, signed_in, up, with_port};
use crate::support::wait::wait_until;
use crate::support::world::World;

#[test]
fn person_signs_in_watches_approves_and_loses_nothing_in_a_crash() {
    let mut world = World::new();
    let port = with_port(&mut world);
    let file = world.root().join("effects");
    // Appends a line per run, so that an effect that happens twice is seen.
    let script = format!("cat >> {0}; echo >> {0}", file.display());
    world.add_agent("ada");
    let agent = ["agent", "add", "eve", "--backend", "command", "--tier", "2", "--", "sh", "-c"];
    world.ok(&[&agent[..], &[&script]].concat());
    world.add_schedule(&["--name", "pulse", "--every", "2s", "--agent", "ada", "--prompt", "beat"]);
    let post = world.add_daily("post the report", "eve", "the report");
    let (mut terminal, link) = up(&world);
    assert!(link.starts_with(&format!("http://midwatch.localhost:{port}/enter#")), "{link}");

    let browser = signed_in(&link);
    assert_eq!(browser.url().unwrap(), format!("http://midwatch.localhost:{port}/"));
    assert!(browser.text().unwrap().contains("pulse"), "{}", browser.text().unwrap());
    browser.script("window.notReloaded = true", serde_json::json!([])).unwrap();
    // It fires, and the page shows it by itself.
    let runs = || world.json(&["run", "list", "--limit", "1000"])["runs"].as_array().unwrap().len();
    wait_until(|| 0 < runs());
    browser.wait_for_text("done").unwrap();

    let run = world.start_run(&post);
    let approval = world.wait_for_approval(&run);
    browser.wait_for_text("post the report").unwrap();
    let kept = browser.script("return window.notReloaded === true", serde_json::json!([])).unwrap();
    assert_eq!(kept, true, "the page was reloaded");
    browser.click(&format!("a.button[href='/approvals/{approval}']")).unwrap();
    browser.wait_for_text("May this run of post the report start?").unwrap();
    browser.wait_until(|| browser.is_shown("button.approve")).unwrap();
    browser.click("button.approve").unwrap();
    browser.wait_for_text("Decided").unwrap();
    world.wait_for_state(&run, "done");
    let effects = || fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(effects().matches("the report").count(), 1, "{}", effects());
    let decided = world.json(&["approval", "show", &approval])["approval"].clone();
    assert_eq!(decided["state"], "consumed", "{decided}");

    browser.goto(&format!("http://midwatch.localhost:{port}/")).unwrap();
    browser.reload().unwrap();
    browser.wait_for_text("Needs you").unwrap();
    assert_eq!(browser.console().unwrap(), Vec::<String>::new());
    browser.script("window.notReloaded = true", serde_json::json!([])).unwrap();
    terminal.kill_daemon(&world);
    drop(terminal);
    let second = world.up();
    let again = world.start_run(&post);
    world.wait_for_approval(&again);
    browser.wait_for_text("post the report").unwrap();
    browser.wait_for_text("live").unwrap();
    let kept = browser.script("return window.notReloaded === true", serde_json::json!([])).unwrap();
    assert_eq!(kept, true, "the page was reloaded");
    assert_eq!(effects().matches("the report").count(), 1, "{}", effects());
    let faults = browser.console().unwrap();
    let is_lost_stream = |fault: &&String| fault.contains("/live") && fault.contains("ERR_");
    let others: Vec<_> = faults.iter().filter(|fault| !is_lost_stream(fault)).collect();
    assert!(others.is_empty(), "{others:?}");
    let log = log(&world);
    assert!(!log.contains("content security policy"), "{log}");
    drop(second);
    world.verified();
}
