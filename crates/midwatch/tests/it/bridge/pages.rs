//! Every page of the dashboard, in both themes, on a desktop and on a phone: it loads without an error, fits the window, and
//! says what its controls are. `cargo xtask browser` also looks for violations of WCAG with axe.

use std::path::{Path, PathBuf};
use std::{env, fs};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use test_browser::Browser;

use super::dashboard::{signed_in, up, with_port};
use crate::support::world::World;

/// Where `cargo xtask browser` has axe. Without it the pages are checked by our own script alone.
const AXE: &str = "MIDWATCH_AXE";

/// Width and height of a window.
const WINDOWS: [(u32, u32); 2] = [(1280, 900), (390, 844)];

/// What is wrong with the page itself, as sentences.
const CHECK: &str = r"
const wrong = [];
const name = (it) => it.getAttribute('aria-label') || it.textContent.trim() || it.title || it.labels?.[0]?.textContent.trim();
for (const it of document.querySelectorAll('a, button, input:not([type=hidden]), select, textarea'))
  if (it.checkVisibility() && !name(it)) wrong.push('no name: ' + it.outerHTML.slice(0, 120));
const ids = [...document.querySelectorAll('[id]')].map((it) => it.id);
for (const id of new Set(ids)) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push('id twice: ' + id);
if (document.querySelectorAll('h1').length !== 1) wrong.push('it has not one h1');
if (!document.documentElement.lang || !document.title) wrong.push('no language or title');
const over = document.documentElement.scrollWidth - innerWidth;
if (0 < over) wrong.push(`it is ${over} px too wide`);
return wrong;
";

const RUN_AXE: &str = "
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
const found = await axe.run(document, { runOnly: tags });
return found.violations.map((it) => `${it.id}: ${it.nodes[0].html.slice(0, 160)}`);
";

#[test]
fn every_page_works_in_both_themes_and_on_a_phone() {
    let mut world = World::new();
    let port = with_port(&mut world);
    let pages = furnish(&world);
    let (terminal, link) = up(&world);
    let base = format!("http://midwatch.localhost:{port}");
    let browser = signed_in(&link);
    let pictures = artefacts();
    let axe = axe();
    let run = world.start_run("echo at nine");
    world.wait_for_state(&run, "done");
    let mut wrong = Vec::new();
    for (width, height) in WINDOWS {
        browser.resize(width, height).unwrap();
        for theme in ["light", "dark"] {
            browser
                .script(&format!("document.cookie = 'theme={theme}; path=/'"), json!([]))
                .unwrap();
            for page in pages.iter().map(|page| page.replace("RUN", &run)) {
                browser.goto(&format!("{base}{page}")).unwrap();
                let mut found = texts(browser.script(CHECK, json!([])).unwrap());
                if let Some(axe) = &axe {
                    browser.script(axe, json!([])).unwrap();
                    found.extend(texts(browser.script_async(RUN_AXE).unwrap()));
                }
                found.extend(browser.console().unwrap());
                let title = browser.script("return document.title", json!([])).unwrap();
                if title.as_str().is_some_and(|title| title.starts_with("Not possible")) {
                    found.push(browser.text().unwrap());
                }
                save(&browser, &pictures, &format!("{page}-{width}-{theme}"));
                wrong.extend(found.into_iter().map(|it| format!("{page} {width} {theme}: {it}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    drop(terminal);
}

/// Adds what the pages show, and returns their addresses. `RUN` stands for the id of a run.
fn furnish(world: &World) -> Vec<String> {
    world.add_agent("ada");
    let schedule = world.add_daily("echo at nine", "ada", "one\ntwo\n<b>three</b>");
    let slot = "2026-11-18T09:00:00Z";
    let of_schedule = ["", "/edit", "/remove", &format!("/slots/{}", slot.replace(':', "%3A"))];
    let of_schedule = of_schedule.map(|rest| format!("/schedules/{schedule}{rest}"));
    let of_run = ["/runs/RUN", "/runs/RUN/settle", "/runs/RUN/cancel", "/policy/explain?run=RUN"];
    let others = [
        "/",
        "/timeline",
        "/approvals",
        "/approvals?all=1",
        "/schedules",
        "/schedules/new",
        "/schedules/preview?kind=cron&when=0+3+*+*+*&agent=ada&prompt=x",
        "/runs",
        "/runs?state=failed",
        "/agents",
        "/agents/ada",
        "/ledger",
        "/ledger/1",
        "/policy",
        "/budgets",
        "/settings",
        "/settings/devices",
        "/settings/tokens",
        "/settings/notices",
        "/settings/config",
        "/settings/doctor",
        "/find?q=ec",
        "/freeze",
        "/lease",
        "/more",
    ];
    let pages = others.into_iter().chain(of_run).map(str::to_owned);
    pages.chain(of_schedule).collect()
}

fn texts(value: Value) -> Vec<String> {
    let texts = value.as_array().unwrap_or_else(|| panic!("{value}"));
    texts.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
}

#[expect(clippy::disallowed_methods, reason = "the environment says where the tool is")]
fn axe() -> Option<String> {
    env::var_os(AXE).map(|path| fs::read_to_string(path).unwrap())
}

/// The folder for pictures of the pages, which people look at.
fn artefacts() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn save(browser: &Browser, folder: &Path, name: &str) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let picture = BASE64_STANDARD.decode(browser.screenshot().unwrap()).unwrap();
    fs::write(folder.join(format!("{name}.png")), picture).unwrap();
}
