//! A human is called once for what needs one, by a program and over HTTP, whatever happens to the daemon.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};

use serde_json::{Value, json};

use crate::world::{World, wait_for};

/// Appends what it is given to its first argument, if its second is there.
const HOOK: &str = r#"test -e "$1" || { echo "nobody listens"; exit 1; }; cat >> "$0""#;

#[test]
fn a_program_is_told_once_over_kills_and_restarts() {
    let mut world = World::new();
    let (file, listens) = (world.root().join("told"), world.root().join("listens"));
    let command = json!(["sh", "-c", HOOK, file, listens]).to_string();
    world.set("MIDWATCH_NOTICE_COMMAND", command);
    fs::write(&listens, "").unwrap();
    let daemon = world.up();
    let schedule = reaching_outside(&world);

    let first = ask(&world, &schedule);
    wait_for(|| (told(&file).len() == 1).then_some(()));
    let digest = &told(&file)[0];
    assert_eq!(digest["items"].as_array().unwrap().len(), 1, "{digest}");
    let item = &digest["items"][0];
    assert_eq!((&item["kind"], &item["id"]), (&"approval_asked".into(), &first.clone().into()));
    assert_eq!(item["command"], format!("midwatch approval show {first}"));
    assert!(!digest.to_string().contains("tell them"), "a prompt is nobody's business");
    settled(&world, "command");
    assert!(channel(&world)["last_success"].is_string());
    assert!(world.ok(&["status"]).contains("command: last told at"));
    daemon.kill();

    // What was told is not told again, and what cannot be told now is not lost.
    fs::remove_file(&listens).unwrap();
    let daemon = world.up();
    // The same question is not asked twice.
    world.ok(&["schedule", "edit", &schedule, "--prompt", "tell them again"]);
    let second = ask(&world, &schedule);
    let failure = wait_for(|| channel(&world)["last_failure"]["what"].as_str().map(str::to_owned));
    assert_eq!(failure, "the program ended with code 1");
    daemon.kill();
    assert_eq!(told(&file).len(), 1);

    fs::write(&listens, "").unwrap();
    let daemon = world.up();
    wait_for(|| (told(&file).len() == 2).then_some(()));
    settled(&world, "command");
    assert_eq!(daemon.stop().0, Some(0));
    let ids: Vec<Value> = told(&file)
        .iter()
        .flat_map(|digest| digest["items"].as_array().unwrap().clone())
        .map(|item| item["id"].clone())
        .collect();
    assert_eq!(ids, [first, second]);
    world.verified();
}

/// It is tried again after an error, under the same key, and a long answer does not matter.
#[test]
fn a_url_is_told_again_until_it_says_that_it_understood() {
    const TOKEN: &str = "canary-4f1d0c";
    let long =
        [b"HTTP/1.1 200 OK\r\ncontent-length: 10485760\r\n\r\n".to_vec(), vec![b'x'; 10 << 20]];
    let broken = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n".to_vec();
    let (url, requests) = serve(vec![broken, long.concat()]);
    let mut world = World::new();
    world.set("MIDWATCH_NOTICE_URL", format!("{url}/hook"));
    world.set("MIDWATCH_NOTICE_TOKEN", "env:HOOK_TOKEN");
    world.set("HOOK_TOKEN", TOKEN);
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    let daemon = world.up();
    let schedule = reaching_outside(&world);
    let approval = ask(&world, &schedule);
    wait_for(|| channel(&world)["last_success"].as_str().map(str::to_owned));
    assert_eq!(channel(&world)["last_failure"]["what"], "the answer was 500");
    let requests: Vec<(String, Value)> = requests.try_iter().collect();
    let [(head, first), (_, again)] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(first, again);
    assert_eq!(first["items"][0]["id"], approval);
    let key = format!("idempotency-key: {}", first["id"].as_str().unwrap());
    for line in ["post /hook http/1.1", "content-type: application/json", &key] {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert!(head.contains(&format!("authorization: bearer {TOKEN}")), "{head}");
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0));
    let log = fs::read_to_string(world.data().join("logs/midwatch.log")).unwrap();
    for text in [said, log, world.ok(&["config", "show"])] {
        assert!(!text.contains(TOKEN), "{text}");
    }
}

#[test]
fn a_url_that_leads_elsewhere_or_nowhere_is_a_failure() {
    let moved = |url: &str| {
        format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {url}\r\ncontent-length: 0\r\n\r\n")
    };
    let (elsewhere, never) = serve(Vec::new());
    let (redirecting, asked) = serve(vec![moved(&elsewhere).into_bytes()]);
    let (silent, heard) = serve(Vec::new());
    for (url, requests, expected) in
        [(redirecting, asked, "the answer was 307"), (silent, heard, "timed out")]
    {
        let mut world = World::new();
        world.set("MIDWATCH_NOTICE_URL", format!("{url}/secret-topic"));
        let _daemon = world.up();
        let schedule = reaching_outside(&world);
        ask(&world, &schedule);
        let what = wait_for(|| channel(&world)["last_failure"]["what"].as_str().map(str::to_owned));
        assert!(what.contains(expected) && !what.contains("secret-topic"), "{what}");
        assert!(requests.try_recv().is_ok());
    }
    assert!(never.try_recv().is_err(), "nobody followed");
}

/// Without the secret that is named nothing starts, and a command needs it not.
#[test]
fn a_token_that_is_not_there_is_found_out_at_the_start() {
    let mut world = World::new();
    world.set("MIDWATCH_NOTICE_URL", "http://127.0.0.1:9/hook");
    world.set("MIDWATCH_NOTICE_TOKEN", "env:NOT_SET");
    let (code, said) = crate::world::Daemon::fails(world.command().arg("up"));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("env:NOT_SET") && said.contains("notice.token"), "{said}");
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
}

/// A schedule of an agent that may not begin without a human.
fn reaching_outside(world: &World) -> String {
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "tell them"];
    let terms = ["--overlap", "allow"];
    let arguments = [&["schedule", "add", "--name", "news"], &what[..], &terms[..]].concat();
    world.json(&arguments)["schedule"]["id"].as_str().unwrap().to_owned()
}

/// Starts a run, and gives the question about it.
fn ask(world: &World, schedule: &str) -> String {
    let started = world.json(&["run", "start", schedule]);
    let run = started["run"]["id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    wait_for(|| {
        let shown = world.json(&["run", "show", &run]);
        shown["run"]["approval_id"].as_str().map(str::to_owned)
    })
}

/// The only channel, as `status` shows it.
fn channel(world: &World) -> Value {
    world.json(&["status"])["notices"][0].clone()
}

/// Returns when the daemon has noted that nothing is under way.
fn settled(world: &World, channel: &str) {
    let path = world.data().join("notices").join(channel);
    wait_for(|| {
        let text = fs::read_to_string(&path).ok()?;
        let (done, through) = text.trim_end().split_once(' ')?;
        (done == through).then_some(())
    });
}

/// What the program was given, one document after the other.
fn told(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A server that gives these answers in turn, and none to whoever comes after. Gives its url, and what
/// it is asked: head and document.
fn serve(answers: Vec<Vec<u8>>) -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        let mut answers = answers.into_iter();
        // Whoever gets no answer is kept waiting.
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = sender.send(request(&mut stream));
            // Whoever has heard enough may be gone.
            answers.next().into_iter().for_each(|it| drop(stream.write_all(&it)));
            open.push(stream);
        }
    });
    (url, requests)
}

fn request(stream: &mut TcpStream) -> (String, Value) {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut chunk).unwrap();
        assert!(0 < count, "it was cut off");
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        if let Ok(document) = serde_json::from_str(body) {
            return (head.to_ascii_lowercase(), document);
        }
    }
}
