//! The page of an approval: a human looks at the plan in a browser and decides, and nobody else does.

use std::fs;

use serde_json::Value;

use crate::mcp_web::{Place, Reply, token};
use crate::world::{World, wait_for};

const PROMPT: &str = "<script>alert(1)</script> pay \u{202e}txt.exe & \"go\"";

/// A daemon with a page, and the run of a schedule that waits for a human.
struct Asked {
    place: Place,
    run: String,
    approval: String,
}

fn asked(world: &mut World, person: &str) -> Asked {
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    let person = token(world, "operator", person);
    let place = Place::new(world, person);
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", PROMPT];
    let added = world.json(&[&["schedule", "add", "--name", "news"], &what[..]].concat());
    let schedule = added["schedule"]["id"].as_str().unwrap();
    let run = world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();
    let approval = wait_for(|| {
        let shown = world.json(&["run", "show", &run])["run"].clone();
        shown["approval_id"].as_str().map(str::to_owned)
    });
    Asked { place, run, approval }
}

impl Asked {
    /// Sends a form as a browser does that has this page open.
    fn form(&self, fields: &[(&str, &str)]) -> Reply {
        let origin = format!("http://{}", self.place.address);
        self.form_from(&[("Origin", &origin)], fields)
    }

    fn form_from(&self, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> Reply {
        let fields = fields.iter().map(|(name, value)| format!("{name}={value}"));
        let mut all = vec![
            ("Host", self.place.address.as_str()),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        all.extend_from_slice(headers);
        let path = format!("/approvals/{}", self.approval);
        self.place.request("POST", &path, &all, fields.collect::<Vec<_>>().join("&"))
    }

    fn state(&self, world: &World) -> String {
        let shown = world.json(&["approval", "show", &self.approval]);
        shown["approval"]["state"].as_str().unwrap().to_owned()
    }

    fn plan_hash(&self, world: &World) -> String {
        let shown = world.json(&["approval", "show", &self.approval]);
        shown["approval"]["plan_hash"].as_str().unwrap().to_owned()
    }
}

#[test]
fn p3_a_human_decides_in_a_browser_through_a_kill() {
    let mut world = World::new();
    let Asked { place, run, approval } = asked(&mut world, "otto");
    let link = |world: &World| {
        let shown = world.json(&["approval", "show", &approval]);
        shown["approval"]["link"].as_str().map(str::to_owned)
    };
    assert_eq!(link(&world), Some(format!("http://{}/approvals/{approval}", place.address)));
    let person = place.token.clone();
    place.kill();
    assert_eq!(link(&world), None, "nobody serves it");
    let place = Place::new(&mut world, person);
    let asked = Asked { place, run, approval: approval.clone() };

    // Who has not said who they are sees nothing of it.
    let host = [("Host", asked.place.address.as_str())];
    let path = link(&world).unwrap();
    let path = path.split_once("/approvals").unwrap().1;
    let empty = asked.place.request("GET", &format!("/approvals{path}"), &host, "");
    assert_eq!(empty.status, 200, "{empty:?}");
    assert!(empty.body.contains("name=\"token\"") && !empty.body.contains("ada"), "{empty:?}");
    assert_eq!(empty.header("cache-control"), Some("no-store"));
    assert!(empty.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert_eq!(empty.header("set-cookie"), None);
    let style = asked.place.request("GET", "/page.css", &host, "");
    assert_eq!(
        (style.status, style.header("content-type")),
        (200, Some("text/css; charset=utf-8"))
    );

    let person = asked.place.token.as_str();
    let plan = asked.form(&[("token", person)]);
    assert_eq!(plan.status, 200, "{plan:?}");
    let hash = asked.plan_hash(&world);
    for shown in [hash.as_str(), "prompt agent `ada`, tier 2", "&lt;script&gt;", "\\u{202e}txt"] {
        assert!(plan.body.contains(shown), "{shown}: {}", plan.body);
    }
    assert!(!plan.body.contains("<script") && !plan.body.contains('\u{202e}'), "{plan:?}");
    assert_eq!(asked.state(&world), "pending");

    let answer =
        [("token", person), ("plan_hash", &hash), ("decision", "approve"), ("reason", "fine")];
    let decided = asked.form(&answer);
    assert_eq!(decided.status, 200, "{decided:?}");
    assert!(decided.body.contains("which begins now"), "{decided:?}");
    wait_for(|| {
        let run = world.json(&["run", "show", &asked.run])["run"].clone();
        (run["state"] == "done").then_some(())
    });
    let shown = world.json(&["approval", "show", &approval])["approval"].clone();
    assert_eq!((&shown["decided_by"], &shown["note"]), (&"otto".into(), &"fine".into()));
    assert_eq!(shown.get("link"), None, "nobody is waited for");
    let again = asked.form(&answer);
    assert!(again.body.contains("was consumed already"), "{again:?}");
    world.verified();
}

#[test]
fn b02_b06_the_page_lets_nobody_decide_who_may_not() {
    let mut world = World::new();
    let asked = asked(&mut world, "otto");
    let hash = asked.plan_hash(&world);
    let person = asked.place.token.as_str();
    let answer = |token, hash| [("token", token), ("plan_hash", hash), ("decision", "approve")];
    let agent = token(&world, "runner", "ada");
    let observer = token(&world, "observer", "olga");
    for (who, expected) in [(agent.as_str(), 403), (&observer, 403), ("mwt_none", 401), ("", 401)] {
        let refused = asked.form(&answer(who, &hash));
        assert_eq!(refused.status, expected, "{refused:?}");
    }
    // An agent does not even see it, though it is its own.
    let refused = asked.form(&[("token", &agent)]);
    assert!(refused.status == 403 && refused.body.contains("is for people"), "{refused:?}");
    // Of another plan than the one that was shown, by another page, under another name.
    let another = "0".repeat(64);
    assert_eq!(asked.form(&answer(person, &another)).status, 409);
    assert_eq!(asked.form(&[("token", person), ("decision", "approve")]).status, 400);
    let good = answer(person, &hash);
    let port = asked.place.address.rsplit(':').next().unwrap();
    // What is on the same port of another address of this machine may be an agent's.
    let neighbour = format!("http://localhost:{port}");
    for origin in ["http://evil.example", "null", "", &neighbour] {
        assert_eq!(asked.form_from(&[("Origin", origin)], &good).status, 403, "{origin}");
    }
    assert_eq!(asked.form_from(&[], &good).status, 403, "no browser sends that");
    let text = [
        ("Origin", format!("http://{}", asked.place.address)),
        ("Host", asked.place.address.clone()),
    ];
    let text: Vec<_> = text.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let path = format!("/approvals/{}", asked.approval);
    assert_eq!(asked.place.request("POST", &path, &text, "token=x").status, 415);
    let long = "x".repeat(64 << 10);
    assert_eq!(asked.form(&[("token", person), ("reason", &long)]).status, 413);
    let host = [("Host", asked.place.address.as_str())];
    assert_eq!(asked.place.request("PUT", &path, &host, "").status, 405);
    let evil = [("Host", "evil.example")];
    assert_eq!(asked.place.request("GET", &path, &evil, "").status, 403);
    assert_eq!(asked.state(&world), "pending");
    let events = world.json(&["ledger", "tail", "--limit", "100"])["events"].clone();
    let refused = events.as_array().unwrap().iter().filter(|it| it["kind"] == "watch.refused");
    let refused: Vec<_> = refused.map(|it| (&it["body"]["by"], &it["body"]["code"])).collect();
    assert!(refused.contains(&(&"ada".into(), &"human_needed".into())), "{refused:?}");
    assert!(refused.contains(&(&"olga".into(), &"role_too_low".into())), "{refused:?}");
    assert!(refused.contains(&(&"http:stranger".into(), &"token_invalid".into())), "{refused:?}");
    world.verified();
}

/// It has found an operator's token, and a browser's words.
const ESCAPE: &str = r#"
exec 3<>"/dev/tcp/127.0.0.1/$1"
printf '%s' "$3" >&3
cat <&3 > "$2.part"
mv "$2.part" "$2"
"#;
const SMUGGLE: &str = include_str!("smuggle.c");

/// What a run of a program comes to that is given the port, a file for what it has read, and a browser's words with an
/// operator's token; and the run.
fn attacked(world: &World, asked: &Asked, program: &[&str]) -> (String, Value) {
    let hash = asked.plan_hash(world);
    let form = format!("token={}&plan_hash={hash}&decision=approve", asked.place.token);
    let (out, port) = (world.root().join("out"), asked.place.address.rsplit(':').next().unwrap());
    let request = format!(
        "POST /approvals/{} HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: http://localhost:{port}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{form}",
        asked.approval,
        form.len()
    );
    let argv = [program, &[port, out.to_str().unwrap(), &request]].concat();
    world.ok(&[&["agent", "add", "eve", "--backend", "command", "--"], &argv[..]].concat());
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "eve", "--prompt", "hello"];
    let added = world.json(&[&["schedule", "add", "--name", "escape"], &what[..]].concat());
    let run = world.json(&["run", "start", added["schedule"]["id"].as_str().unwrap()]);
    (wait_for(|| fs::read_to_string(&out).ok()), run["run"]["id"].clone())
}

#[test]
fn b04_a_process_of_a_run_does_not_decide_with_a_humans_token() {
    let mut world = World::new();
    let asked = asked(&mut world, "otto");
    let (said, run) = attacked(&world, &asked, &["bash", "-c", ESCAPE, "escape"]);
    assert!(said.starts_with("HTTP/1.1 403") && said.contains("is for people"), "{said}");
    assert_eq!(asked.state(&world), "pending");
    let events = world.json(&["ledger", "tail", "--limit", "100"])["events"].clone();
    let refused = events.as_array().unwrap().iter().find(|it| it["kind"] == "watch.refused");
    let refused = &refused.unwrap()["body"];
    assert_eq!(refused["by"].as_str(), Some(format!("run:{}", run.as_str().unwrap()).as_str()));
    assert_eq!(refused["call"], "approval.page", "{refused}");
    world.verified();
}

#[test]
fn b04_a_connection_that_nobody_has_hold_of_is_nobodys() {
    let mut world = World::new();
    let asked = asked(&mut world, "otto");
    let (source, program) = (world.root().join("smuggle.c"), world.root().join("smuggle"));
    fs::write(&source, SMUGGLE).unwrap();
    let compiled = world.wrapped("cc").arg("-o").arg(&program).arg(&source).status().unwrap();
    assert!(compiled.success(), "there is no C compiler");
    let (said, _) = attacked(&world, &asked, &[program.to_str().unwrap()]);
    assert_eq!(said.matches("HTTP/1.1 403").count(), 50, "{said}");
    assert_eq!(said.matches("is for people").count(), 50, "{said}");
    assert_eq!(asked.state(&world), "pending");
}
