//! A process started by a run has the rights of that run, whatever token it presents and however it connects.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use api::wire::Hello;
use serde_json::Value;

use crate::support::wait::{wait_for, wait_until};
use crate::support::world::{PROGRAM, World};

const ATTACK: &str = include_str!("../support/socket_attack.c");

/// Leaves its process group and its parent, clears its environment, and uses the token of a maintainer.
const ESCAPE: &str = r#"
out=$1; program=$2; data=$3; token=$4
if [ "$5" = inner ]; then
  : > "$out.away"
  while [ -d "/proc/$6" ]; do :; done
  env -i MIDWATCH_DATA="$data" MIDWATCH_TOKEN="$token" "$program" --json freeze > "$out.part" 2>&1
  env -i MIDWATCH_DATA="$data" MIDWATCH_TOKEN="$token" "$program" --json \
    token create --name eve --role maintainer >> "$out.part" 2>&1
  mv "$out.part" "$out"
  exit 0
fi
setsid sh "$0" "$out" "$program" "$data" "$token" inner $$ < /dev/null > /dev/null 2>&1 &
while [ ! -e "$out.away" ]; do :; done
exit 0
"#;

/// Registers `eve`, whose program is [`ESCAPE`]. Returns the file that it writes when done.
fn add_escaping_agent(world: &World) -> PathBuf {
    let (_, maintainer) = world.create_token("ada", "maintainer");
    let (script, out) = (world.root().join("escape.sh"), world.root().join("out"));
    fs::write(&script, ESCAPE).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let [script, file, data] = [&script, &out, world.data()].map(|path| path.to_str().unwrap());
    let argv = ["--", "sh", script, file, PROGRAM, data, &maintainer];
    world.ok(&[&["agent", "add", "eve", "--backend", "command"], &argv[..]].concat());
    out
}

/// The program has escaped, and none of its requests was allowed.
fn check_escaped_without_rights(out: &Path) {
    let output = wait_for(|| fs::read_to_string(out).ok());
    let documents = serde_json::Deserializer::from_str(&output).into_iter::<Value>();
    let codes: Vec<Value> = documents.map(|it| it.unwrap()["error"]["code"].clone()).collect();
    assert_eq!(codes, ["role_too_low", "role_too_low"], "{output}");
}

#[test]
fn process_that_a_test_of_an_agent_left_behind_has_no_rights_of_a_person() {
    for has_daemon in [true, false] {
        let world = World::with_agent("ada");
        let daemon = has_daemon.then(|| world.up());
        let out = add_escaping_agent(&world);
        world.run(&["agent", "test", "eve"]);
        check_escaped_without_rights(&out);
        assert_eq!(world.json(&["status"])["authority"]["frozen"], Value::Null);
        drop(daemon);
    }
}

#[test]
fn descendant_of_a_run_has_only_the_rights_of_the_run() {
    let world = World::new();
    let daemon = world.up();
    let out = add_escaping_agent(&world);
    world.start_run(&world.add_daily("escape", "eve", "hello"));
    check_escaped_without_rights(&out);
    let status = world.json(&["status"]);
    assert_eq!(status["authority"]["frozen"], Value::Null, "{status}");
    // The daemon reaps the processes that it adopted.
    let children = format!("/proc/{0}/task/{0}/children", daemon.pid());
    wait_until(|| fs::read_to_string(&children).unwrap().trim().is_empty());
    drop(daemon);
}

/// Starts a run of [`ATTACK`] in this mode, with these arguments. Returns the file that it writes when done.
fn start_attack(world: &World, mode: &str, arguments: &[&str]) -> PathBuf {
    let program = world.compile_c("socket_attack", ATTACK);
    let (socket, out) = (world.socket(), world.root().join("out"));
    let argv = [&program, mode, socket.to_str().unwrap(), out.to_str().unwrap()];
    let add = ["agent", "add", "eve", "--backend", "command", "--"];
    world.ok(&[&add[..], &argv, arguments].concat());
    world.start_run(&world.add_daily("attack", "eve", "hello"));
    out
}

/// The process that connected has exited when the daemon looks it up, so its user is not known.
#[test]
fn connection_whose_creator_exited_has_no_rights_of_a_person() {
    let world = World::new();
    let daemon = world.up();
    let hello = serde_json::to_string(&Hello::new("test")).unwrap();
    let with = format!(r#"{{"name":"eve","role":"maintainer","hash":"{}"}}"#, "ab".repeat(32));
    let request = format!(r#"{{"request":{{"call":"token.create","with":{with}}}}}"#);
    let out = start_attack(&world, "orphan", &[&hello, &request]);
    let output = wait_for(|| fs::read_to_string(&out).ok());
    assert!(output.contains("role_too_low"), "{output}");
    assert_eq!(world.json(&["token", "list"])["tokens"].as_array().unwrap().len(), 0);
    drop(daemon);
}

/// However many connections a run holds, one is left for the operator.
#[test]
fn freeze_works_while_a_run_holds_all_its_connections() {
    let world = World::new();
    let daemon = world.up();
    let hello = serde_json::to_string(&Hello::new("test")).unwrap();
    let out = start_attack(&world, "hold", &[&hello]);
    wait_until(|| fs::exists(&out).unwrap());
    assert_eq!(world.json(&["freeze"])["changed"], true);
    // The stop ends the run and its program.
    daemon.stop();
}

/// The same for connections of an assistant (an MCP client that a person uses).
#[test]
fn freeze_works_while_an_assistant_holds_all_its_connections() {
    let world = World::new();
    let daemon = world.up();
    let hello = Hello { assistant: true, ..Hello::new("test") };
    let hello = serde_json::to_string(&hello).unwrap();
    let status = r#"{"request":{"call":"status","with":{}}}"#;
    let mut held = Vec::new();
    let refused = (0..256).find_map(|_| {
        let stream = UnixStream::connect(world.socket()).unwrap();
        (&stream).write_all(format!("{hello}\n{status}\n").as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines();
        lines.next().unwrap().unwrap();
        let response = lines.next().unwrap().unwrap();
        held.push(lines);
        (!response.contains("authority")).then_some(response)
    });
    assert!(refused.is_some_and(|it| it.contains("limit_reached")), "no connection was refused");
    assert_eq!(world.json(&["freeze"])["changed"], true);
    drop(held);
    daemon.stop();
}
