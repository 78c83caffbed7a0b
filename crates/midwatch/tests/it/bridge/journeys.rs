//! What people do with the dashboard, each in a real browser.

use serde_json::json;
use test_browser::Browser;

use super::client::{code_of, link as new_link};
use super::dashboard::{signed_in, up, with_port};
use crate::support::world::World;

/// Types into a field that may have a text.
fn fill(browser: &Browser, selector: &str, text: &str) {
    let clear = "document.querySelector(arguments[0]).value = ''";
    browser.script(clear, json!([selector])).unwrap();
    browser.type_into(selector, text).unwrap();
}

#[test]
fn first_schedule_is_added_on_the_first_page_and_seen_to_fire() {
    let mut world = World::new();
    with_port(&mut world);
    let (terminal, link) = up(&world);
    let browser = signed_in(&link);
    browser.wait_for_text("Your first schedule, in a minute").unwrap();
    browser.click("form[action='/agents/add'] button").unwrap();
    browser.wait_for_text("Add a schedule").unwrap();
    browser.wait_until(|| browser.is_shown("[name=when]")).unwrap();
    fill(&browser, "[name=name]", "pulse");
    fill(&browser, "[name=when]", "1s");
    fill(&browser, "[name=prompt]", "Still here?");
    // The preview says when it fires and whether it asks.
    browser.wait_for_text("every second").unwrap();
    browser.wait_for_text("each run starts without approval").unwrap();
    browser.click(".editor button.primary").unwrap();
    browser.wait_for_text("schedule `pulse` added").unwrap();
    browser.wait_until(|| browser.is_shown("svg.strip a")).unwrap();
    // From a cell of the strip to why.
    browser.script("document.querySelector('svg.strip a').dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }))", json!([])).unwrap();
    browser.wait_for_text("A slot of pulse").unwrap();
    browser.wait_for_text("fired run").unwrap();

    // An edit, a pause and a removal.
    let id =
        world.json(&["schedule", "show", "pulse"])["schedule"]["id"].as_str().unwrap().to_owned();
    let base = browser.url().unwrap().split("/schedules").next().unwrap().to_owned();
    browser.goto(&format!("{base}/schedules/{id}/edit")).unwrap();
    fill(&browser, "[name=when]", "2h");
    browser.click(".editor button.primary").unwrap();
    browser.wait_for_text("every 2 hours").unwrap();
    browser.click(&format!("form[action='/schedules/{id}/pause'] button")).unwrap();
    browser.wait_for_text("Paused by").unwrap();
    browser.goto(&format!("{base}/schedules/{id}/remove")).unwrap();
    browser.click("button.danger").unwrap();
    browser.wait_for_text("No schedule yet").unwrap();
    assert_eq!(browser.console().unwrap(), Vec::<String>::new());
    drop(terminal);
}

#[test]
fn runs_are_denied_cancelled_and_settled_and_a_phone_freezes() {
    let mut world = World::new();
    let port = with_port(&mut world);
    let base = format!("http://midwatch.localhost:{port}");
    world.add_agent("ada");
    let sleeper = ["agent", "add", "eve", "--backend", "command", "--", "sleep", "600"];
    world.ok(&sleeper);
    let outside = ["agent", "add", "out", "--backend", "command", "--tier", "2", "--", "true"];
    world.ok(&outside);
    let deploy = world.add_daily("deploy", "out", "deploy it");
    let review = world.add_daily("review", "eve", "review it");
    let (mut terminal, link) = up(&world);
    let browser = signed_in(&link);

    let parked = world.start_run(&deploy);
    let approval = world.wait_for_approval(&parked);
    browser.goto(&format!("{base}/approvals/{approval}")).unwrap();
    browser.type_into("textarea[name=reason]", "not today").unwrap();
    browser.click("button.deny").unwrap();
    browser.wait_for_text("not today").unwrap();
    world.wait_for_state(&parked, "cancelled");

    let running = world.start_run(&review);
    world.wait_for_state(&running, "running");
    browser.goto(&format!("{base}/runs/{running}/cancel")).unwrap();
    browser.click("button.danger").unwrap();
    world.wait_for_state(&running, "cancelled");

    let interrupted = world.start_run(&review);
    world.wait_for_state(&interrupted, "running");
    terminal.kill_daemon(&world);
    drop(terminal);
    let daemon = world.up();
    world.wait_for_state(&interrupted, "unknown");
    browser.goto(&base).unwrap();
    browser.wait_for_text("interrupted, and may have taken effect").unwrap();
    browser.click(&format!("a[href='/runs/{interrupted}/settle']")).unwrap();
    browser.click("button[value=failed]").unwrap();
    browser.wait_for_text("settled as failed").unwrap();
    assert_eq!(world.show_run(&interrupted)["state"], "failed");

    // On a phone.
    browser.resize(390, 844).unwrap();
    browser.goto(&format!("{base}/more")).unwrap();
    browser.click("main a[href='/freeze']").unwrap();
    browser.wait_for_text("Nothing starts until somebody thaws it").unwrap();
    browser.click("button.danger").unwrap();
    browser.wait_for_text("Frozen").unwrap();
    assert!(world.json(&["status"])["authority"]["frozen"].is_object());
    browser.type_into("textarea[name=reason]", "all is well").unwrap();
    browser.click("button.primary").unwrap();
    browser.wait_for_text("thawed: runs start again").unwrap();
    assert!(world.json(&["status"])["authority"]["frozen"].is_null());
    drop(daemon);
}

#[test]
fn pages_work_by_keyboard_and_without_script() {
    let mut world = World::new();
    let port = with_port(&mut world);
    let base = format!("http://midwatch.localhost:{port}");
    world.add_agent("ada");
    world.add_daily("standup", "ada", "hello");
    let (terminal, link) = up(&world);
    let browser = signed_in(&link);
    let press = |key: &str| {
        let script = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], bubbles: true }))";
        browser.script(script, json!([key])).unwrap();
    };
    press("g");
    press("s");
    browser.wait_for_text("Add a schedule").unwrap();
    press("j");
    let focused = browser.script("return document.activeElement.textContent", json!([])).unwrap();
    assert_eq!(focused, "standup");
    press("/");
    browser.wait_until(|| browser.is_shown("#find-q")).unwrap();
    browser.type_into("#find-q", "sta").unwrap();
    let found = "#find-results a[href^='/schedules/sch_']";
    browser.wait_until(|| browser.is_shown(found)).unwrap();

    // Without script, the code of the link is typed, and a decision needs a token.
    let plain = Browser::start().unwrap();
    plain.goto(&format!("{base}/enter")).unwrap();
    plain.disable_scripts().unwrap();
    plain.reload().unwrap();
    plain.type_into("[name=code]", code_of(&new_link(&world))).unwrap();
    plain.click("button.primary").unwrap();
    plain.goto(&format!("{base}/schedules")).unwrap();
    plain.click("a.row-link").unwrap();
    let status = || world.json(&["schedule", "show", "standup"])["schedule"]["status"].clone();
    let pause = "form[action$='/pause']";
    let (_, token) = world.create_token("grace", "operator");
    plain.type_into(&format!("{pause} [name=token]"), &token).unwrap();
    assert_eq!(status(), "active");
    plain.click(&format!("{pause} button")).unwrap();
    plain.wait_for_text("Paused by grace").unwrap();
    assert_eq!(status(), "paused");
    drop(terminal);
}
