//! The page of an approval: a person reads the plan in a browser and decides; programs cannot.

use std::fs;

use crate::support::mcp_http::{HttpDaemon, Reply};
use crate::support::wait::wait_for;
use crate::support::world::{Outcome, World};

const PROMPT: &str = "<script>alert(1)</script> pay \u{202e}txt.exe & \"go\"";

/// A daemon that serves the page, and a run that waits for approval.
struct Pending {
    daemon: HttpDaemon,
    run: String,
    approval: String,
}

fn request_approval(world: &mut World) -> Pending {
    request_approval_of(world, &["--backend", "builtin"])
}

fn request_approval_of(world: &mut World, agent: &[&str]) -> Pending {
    world.ok(&[&["agent", "add", "ada", "--tier", "2"], agent].concat());
    let (_, token) = world.create_token("otto", "operator");
    let daemon = HttpDaemon::new(world, token);
    let schedule = world.add_daily("news", "ada", PROMPT);
    let run = world.start_run(&schedule);
    let approval = world.wait_for_approval(&run);
    Pending { daemon, run, approval }
}

impl Pending {
    /// Submits the form as a browser does.
    fn form(&self, fields: &[(&str, &str)]) -> Reply {
        let origin = format!("http://{}", self.daemon.address);
        self.form_from(&[("Origin", &origin)], fields)
    }

    fn form_from(&self, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> Reply {
        let fields = fields.iter().map(|(name, value)| format!("{name}={value}"));
        let mut all = vec![
            ("Host", self.daemon.address.as_str()),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        all.extend_from_slice(headers);
        let path = format!("/approvals/{}", self.approval);
        self.daemon.request("POST", &path, &all, fields.collect::<Vec<_>>().join("&"))
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
fn p3_person_approves_in_a_browser_after_a_daemon_crash() {
    let mut world = World::new();
    let Pending { daemon, run, approval } = request_approval(&mut world);
    let link = |world: &World| {
        let shown = world.json(&["approval", "show", &approval]);
        shown["approval"]["link"].as_str().map(str::to_owned)
    };
    assert_eq!(link(&world), Some(format!("http://{}/approvals/{approval}", daemon.address)));
    let token = daemon.token.clone();
    daemon.kill();
    assert_eq!(link(&world), None, "a link without a daemon");
    let daemon = HttpDaemon::new(&mut world, token);
    let pending = Pending { daemon, run, approval: approval.clone() };

    // Without a token the page shows nothing of the approval.
    let host = [("Host", pending.daemon.address.as_str())];
    let path = link(&world).unwrap();
    let path = path.split_once("/approvals").unwrap().1;
    let empty = pending.daemon.request("GET", &format!("/approvals{path}"), &host, "");
    assert_eq!(empty.status, 200, "{empty:?}");
    assert!(empty.body.contains("name=\"token\"") && !empty.body.contains("ada"), "{empty:?}");
    assert_eq!(empty.header("cache-control"), Some("no-store"));
    assert!(empty.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert_eq!(empty.header("set-cookie"), None);
    let style = pending.daemon.request("GET", "/page.css", &host, "");
    assert_eq!(
        (style.status, style.header("content-type")),
        (200, Some("text/css; charset=utf-8"))
    );

    // A person enters a token, and sets no variable.
    let unknown = pending.form(&[("token", "mwt_unknown")]);
    assert!(unknown.body.contains("`midwatch token create` creates a new one"), "{unknown:?}");
    assert!(!unknown.body.contains("MIDWATCH_TOKEN"), "{unknown:?}");

    let token = pending.daemon.token.as_str();
    let plan = pending.form(&[("token", token)]);
    assert_eq!(plan.status, 200, "{plan:?}");
    let hash = pending.plan_hash(&world);
    for shown in [hash.as_str(), "prompt agent `ada`, tier 2", "<li>&lt;script&gt;", "\\u{202e}txt"]
    {
        assert!(plan.body.contains(shown), "{shown}: {}", plan.body);
    }
    assert!(!plan.body.contains("<script") && !plan.body.contains('\u{202e}'), "{plan:?}");
    assert_eq!(pending.state(&world), "pending");

    let fields =
        [("token", token), ("plan_hash", &hash), ("decision", "approve"), ("reason", "fine")];
    let decided = pending.form(&fields);
    assert_eq!(decided.status, 200, "{decided:?}");
    assert!(decided.body.contains("approved news: its run starts now"), "{decided:?}");
    world.wait_for_state(&pending.run, "done");
    let shown = world.json(&["approval", "show", &approval])["approval"].clone();
    assert_eq!((&shown["decided_by"], &shown["note"]), (&"otto".into(), &"fine".into()));
    assert_eq!(shown.get("link"), None, "a link to a decided approval");
    let again = pending.form(&fields);
    assert!(again.body.contains("was already consumed"), "{again:?}");
    world.verified();
}

/// Sends the form after it has given up new privileges, as the sandbox of a browser does; with `fork` in a child.
const BROWSER: &str = r#"
import ctypes, http.client, os, sys
address, path, token, how = sys.argv[1:]
child = os.fork() if how == "fork" else 0
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0
connection = http.client.HTTPConnection(address)
form = {"Origin": "http://" + address, "Content-Type": "application/x-www-form-urlencoded"}
connection.request("POST", path, "token=" + token, form)
print(connection.getresponse().status)
"#;

/// Programs of runs cannot gain privileges from their start on; a process of a browser has a parent of the same program that
/// can.
#[test]
fn browser_with_a_sandbox_of_its_own_is_not_taken_for_a_run() {
    let mut world = World::new();
    let pending = request_approval(&mut world);
    let (address, token) = (&pending.daemon.address, &pending.daemon.token);
    let path = format!("/approvals/{}", pending.approval);
    for (how, status) in [("fork", "200"), ("alone", "403")] {
        let mut browser = world.wrapped("python3");
        let browser = browser.args(["-c", BROWSER, address, &path, token, how]);
        let outcome = Outcome::from(browser.output().unwrap());
        assert_eq!(outcome.stdout.trim(), status, "{how}: {outcome:?}");
    }
}

#[test]
fn agent_that_is_not_contained_is_labelled_wherever_it_is_shown() {
    let mut world = World::new();
    let pending = request_approval_of(&mut world, &["--backend", "command", "--", "cat"]);
    let Pending { daemon, run, approval } = &pending;
    let label = "advisory (runs as the daemon's user)";
    for command in [
        &["agent", "show", "ada"][..],
        &["approval", "show", approval],
        &["run", "show", run],
        &["policy", "explain", "--run", run],
        &["status", "--capabilities"],
    ] {
        let shown = world.ok(command);
        assert!(shown.contains(label), "{command:?}: {shown}");
        let line = shown.lines().find(|line| line.contains(label)).unwrap();
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(world.ok(&["agent", "list"]).contains("advisory"));
    let page = pending.form(&[("token", &daemon.token)]).body;
    assert!(page.contains(label), "{page}");
    assert_eq!(world.json(&["agent", "show", "ada"])["agent"]["containment"], "advisory");
    assert_eq!(world.json(&["run", "show", run])["run"]["containment"], "advisory");
    let shown = world.json(&["approval", "show", approval]);
    assert_eq!(shown["approval"]["containment"], "advisory");
    assert_eq!(world.json(&["policy", "explain", "--run", run])["containment"], "advisory");
}

#[test]
fn b06_page_refuses_every_caller_that_may_not_decide() {
    let mut world = World::new();
    let pending = request_approval(&mut world);
    let hash = pending.plan_hash(&world);
    let token = pending.daemon.token.as_str();
    let fields = |token, hash| [("token", token), ("plan_hash", hash), ("decision", "approve")];
    let (_, agent) = world.create_token("ada", "runner");
    let (_, observer) = world.create_token("olga", "observer");
    for (who, expected) in [(agent.as_str(), 403), (&observer, 403), ("mwt_none", 401), ("", 401)] {
        let refused = pending.form(&fields(who, &hash));
        assert_eq!(refused.status, expected, "{refused:?}");
    }
    // An agent may not even see the approval of its own run.
    let refused = pending.form(&[("token", &agent)]);
    assert!(refused.status == 403 && refused.body.contains("is for people"), "{refused:?}");
    // Another plan than the one shown; no plan; a form from another origin.
    let another = "0".repeat(64);
    assert_eq!(pending.form(&fields(token, &another)).status, 409);
    assert_eq!(pending.form(&[("token", token), ("decision", "approve")]).status, 400);
    // Of two decisions, neither is taken.
    let two =
        [("token", token), ("plan_hash", &hash), ("decision", "deny"), ("decision", "approve")];
    assert_eq!(pending.form(&two).status, 400);
    let good = fields(token, &hash);
    let port = pending.daemon.address.rsplit(':').next().unwrap();
    // An agent may listen on the same port of another address of this machine.
    let neighbour = format!("http://localhost:{port}");
    for origin in ["http://evil.example", "null", "", &neighbour] {
        assert_eq!(pending.form_from(&[("Origin", origin)], &good).status, 403, "{origin}");
    }
    assert_eq!(pending.form_from(&[], &good).status, 403, "no `Origin` header");
    let text = [
        ("Origin", format!("http://{}", pending.daemon.address)),
        ("Host", pending.daemon.address.clone()),
    ];
    let text: Vec<_> = text.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let path = format!("/approvals/{}", pending.approval);
    assert_eq!(pending.daemon.request("POST", &path, &text, "token=x").status, 415);
    let long = "x".repeat(64 << 10);
    assert_eq!(pending.form(&[("token", token), ("reason", &long)]).status, 413);
    let host = [("Host", pending.daemon.address.as_str())];
    assert_eq!(pending.daemon.request("PUT", &path, &host, "").status, 405);
    let evil = [("Host", "evil.example")];
    assert_eq!(pending.daemon.request("GET", &path, &evil, "").status, 403);
    assert_eq!(pending.state(&world), "pending");
    let refused = world.events_of("watch.refused");
    let refused: Vec<_> =
        refused.iter().map(|it| (&it["body"]["by"], &it["body"]["code"])).collect();
    assert!(refused.contains(&(&"ada".into(), &"human_needed".into())), "{refused:?}");
    assert!(refused.contains(&(&"olga".into(), &"role_too_low".into())), "{refused:?}");
    assert!(refused.contains(&(&"http:stranger".into(), &"token_invalid".into())), "{refused:?}");
    world.verified();
}

/// A program of a run that submits the form with an operator's token.
const ESCAPE: &str = r#"
exec 3<>"/dev/tcp/127.0.0.1/$1"
printf '%s' "$3" >&3
cat <&3 > "$2.part"
mv "$2.part" "$2"
"#;
const DETACHED_CONNECTION: &str = include_str!("../support/detached_connection.c");

/// Runs a program with the port, a file for what it reads, and the request of a browser with an operator's token.
/// Returns what the program read, and the id of its run.
fn run_attack(world: &World, pending: &Pending, program: &[&str]) -> (String, String) {
    let hash = pending.plan_hash(world);
    let form = format!("token={}&plan_hash={hash}&decision=approve", pending.daemon.token);
    let (out, port) =
        (world.root().join("out"), pending.daemon.address.rsplit(':').next().unwrap());
    let request = format!(
        "POST /approvals/{} HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: http://localhost:{port}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{form}",
        pending.approval,
        form.len()
    );
    let argv = [program, &[port, out.to_str().unwrap(), &request]].concat();
    world.ok(&[&["agent", "add", "eve", "--backend", "command", "--"], &argv[..]].concat());
    let run = world.start_run(&world.add_daily("escape", "eve", "hello"));
    (wait_for(|| fs::read_to_string(&out).ok()), run)
}

#[test]
fn process_of_a_run_cannot_decide_with_the_token_of_a_person() {
    let mut world = World::new();
    let pending = request_approval(&mut world);
    let (response, run) = run_attack(&world, &pending, &["bash", "-c", ESCAPE, "escape"]);
    let is_refused = response.starts_with("HTTP/1.1 403") && response.contains("is for people");
    assert!(is_refused, "{response}");
    assert_eq!(pending.state(&world), "pending");
    let refused = &world.events_of("watch.refused")[0]["body"];
    assert_eq!(refused["by"], format!("run:{run}"));
    assert_eq!(refused["call"], "approval.page", "{refused}");
    world.verified();
}

#[test]
fn connection_without_an_owning_process_cannot_decide() {
    let mut world = World::new();
    let pending = request_approval(&mut world);
    let program = world.compile_c("detached_connection", DETACHED_CONNECTION);
    let (responses, _) = run_attack(&world, &pending, &[&program]);
    assert_eq!(responses.matches("HTTP/1.1 403").count(), 50, "{responses}");
    assert_eq!(responses.matches("is for people").count(), 50, "{responses}");
    assert_eq!(pending.state(&world), "pending");
}
