//! Secrets stay where they are: nothing that the program writes or says contains one.

use std::fs;
use std::io::Read;
use std::path::Path;

use base64::Engine;
use flate2::read::GzDecoder;

use crate::world::{Daemon, World, wait_for};

const CANARY: &str = "canary-4f1d0c";

/// A world in which the canary sits wherever a secret may: in a variable and in a file that a
/// credential refers to, and in variables that are nobody's business.
fn world() -> World {
    let mut world = World::new();
    world.set("ADA_KEY", CANARY);
    world.set("MIDWATCH_SECRET", CANARY);
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    fs::write(world.root().join("secret.txt"), CANARY).unwrap();
    world
}

/// Runs commands and collects all that they say.
struct Listener<'w> {
    world: &'w World,
    heard: String,
}

impl Listener<'_> {
    fn run(&mut self, arguments: &[&str]) {
        for form in [&[][..], &["--json"]] {
            let outcome = self.world.run(&[form, arguments].concat());
            self.heard.push_str(&format!("{arguments:?}\n{}{}", outcome.stdout, outcome.stderr));
        }
    }
}

/// Every file below a folder, with what is packed in it, except those that hold the secret rightly.
pub(crate) fn files_with(folder: &Path, needle: &str, rightly: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = entry.file_name().into_string().unwrap();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && !rightly.contains(&name.as_str()) {
                let mut bytes = fs::read(&path).unwrap();
                if name.ends_with(".gz") {
                    GzDecoder::new(&*bytes.clone()).read_to_end(&mut bytes).unwrap();
                }
                let has = bytes.windows(needle.len()).any(|part| part == needle.as_bytes());
                found.extend(has.then(|| path.display().to_string()));
            }
        }
    }
    found
}

/// What a user may do with a secret, right and wrong, while a daemon runs and without one.
fn live(world: &World) -> String {
    let file = format!("file:{}", world.root().join("secret.txt").display());
    let url = format!("https://me:{CANARY}@example.org/hook");
    let token_only = format!("https://{CANARY}@example.org/hook");
    let unknown_flag = format!("--api-key={CANARY}");
    let mut listener = Listener { world, heard: String::new() };
    for arguments in [
        // As it should be.
        &["agent", "add", "ada", "--backend", "builtin", "--credential", "env:ADA_KEY"][..],
        &["agent", "add", "bob", "--backend", "builtin", "--credential", &file],
        &["agent", "edit", "bob", "--credential", "env:ADA_KEY"],
        &["agent", "show", "ada"],
        &["agent", "list"],
        // As it should not be.
        &["agent", "add", "eve", "--backend", "builtin", "--credential", CANARY],
        &["agent", "edit", "ada", "--credential", CANARY],
        &["agent", "add", "eve", "--backend", "builtin", &unknown_flag],
        &["agent", "add", "eve", "--backend", "webhook", "--url", &url],
        &["agent", "add", "eve", "--backend", "webhook", "--url", &token_only],
        &["agent", "add", "eve", "--backend", "letta", "--remote-id", "r", "--url", &url],
        &["agent", "edit", "ada", "--backend", "mcp", "--url", &url],
        // And whatever shows or copies what there is.
        &["config", "check"],
        &["config", "show"],
        &["doctor"],
        &["status"],
        &["ledger", "tail"],
        &["ledger", "checkpoint"],
        &["ledger", "export"],
        &["ledger", "rebuild"],
        &["ledger", "verify"],
    ] {
        listener.run(arguments);
    }
    listener.heard
}

#[test]
fn a_secret_is_in_nothing_that_is_written_or_said() {
    let world = world();
    let alone = live(&world);
    let daemon = Daemon::start(world.command().arg("up"));
    world.checked();
    let kept = live(&world);
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    for heard in [&alone, &kept] {
        // The commands themselves were given the secret, and are not part of what they said.
        let lines = heard.lines().filter(|line| !line.starts_with('['));
        let told: Vec<&str> = lines.filter(|line| line.contains(CANARY)).collect();
        assert!(told.is_empty(), "{told:#?}");
        assert!(heard.contains("env:ADA_KEY"), "the reference is no secret");
    }
    assert!(!said.contains(CANARY), "{said}");
    assert_eq!(files_with(world.root(), CANARY, &["secret.txt"]), Vec::<String>::new());
    assert!(world.data().join("logs/midwatch.log").exists());
    assert!(fs::read_dir(world.data().join("exports")).unwrap().count() == 2);
    assert_eq!(world.agents(), ["ada", "bob"], "what was refused left nothing");
    world.verified();
}

/// The search itself finds what it looks for.
#[test]
fn a_secret_that_leaked_would_be_found() {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "letta", "--remote-id", CANARY]);
    world.ok(&["ledger", "export"]);
    let found = files_with(world.root(), CANARY, &[]);
    for ending in ["midwatch.db", ".ndjson.gz"] {
        assert!(found.iter().any(|path| path.ends_with(ending)), "{found:?}");
    }
}

/// Says a key in many ways, in pieces and past what fits into a text, and how it was started itself.
const LEAKY: &str = r#"
    tr '\0' ' ' < /proc/$$/cmdline
    echo "key $DEPLOY_KEY" >&2
    echo "$DEPLOY_KEY" | head -c 5; echo "$DEPLOY_KEY" | tail -c +6
    printf '%s' "$DEPLOY_KEY" | od -An -tx1 | tr -d ' \n'; echo
    printf '%s' "$DEPLOY_KEY" | base64
    head -c 20000 /dev/zero | tr '\0' x
    echo "$DEPLOY_KEY $MIDWATCH_TOKEN"
    exit 7
"#;

/// Also not by a program that was given it, nor in what is kept of that for long.
#[test]
fn g4_a_program_that_repeats_its_key_is_not_written_down() {
    let mut world = world();
    world.set("DEPLOY_KEY", CANARY);
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let create = ["token", "create", "--name", "eve", "--role", "observer"];
    let token = world.json(&create)["token"]["secret"].as_str().unwrap().to_owned();
    // As a token that the program found elsewhere: nobody gave it one.
    let program = LEAKY.replace("$MIDWATCH_TOKEN", &token);
    let script = world.root().join("leaky.sh");
    fs::write(&script, program).unwrap();
    let agent = ["agent", "add", "ada", "--backend", "command", "--env", "DEPLOY_KEY", "--"];
    world.ok(&[&agent[..], &["/bin/sh", script.to_str().unwrap()]].concat());
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "deploy"];
    let terms = ["schedule", "add", "--name", "night", "--attempts", "1"];
    let added = world.json(&[&terms[..], &what].concat());
    let schedule = added["schedule"]["id"].as_str().unwrap();
    let daemon = world.up();
    let run = world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();
    let shown = wait_for(|| {
        let shown = world.json(&["run", "show", &run])["run"].clone();
        (shown["state"] == "failed").then_some(shown)
    });
    let output = &shown["output"];
    assert!(output["text"].as_str().unwrap().contains("key [redacted]\n[redacted]\n"), "{output}");
    let whole = fs::read_to_string(output["file"].as_str().unwrap()).unwrap();
    assert!(whole.ends_with("x[redacted] mwt_[redacted]\n"), "the end is kept, and what it hides");
    let mut listener = Listener { world: &world, heard: String::new() };
    for arguments in [
        &["run", "show", &run][..],
        &["run", "watch", &run],
        &["run", "list"],
        &["why", schedule],
        &["ledger", "tail"],
        &["ledger", "export"],
        &["doctor"],
    ] {
        listener.run(arguments);
    }
    let heard =
        listener.heard + &fs::read_to_string(format!("/proc/{}/cmdline", daemon.pid())).unwrap();
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    let hex: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let base64 = base64::engine::general_purpose::STANDARD.encode(CANARY);
    let rightly = ["secret.txt", "leaky.sh"];
    for secret in [CANARY, &hex, base64.trim_end_matches('='), &token] {
        assert!(!heard.contains(secret) && !said.contains(secret), "{secret}: {heard}\n{said}");
        assert_eq!(files_with(world.root(), secret, &rightly), Vec::<String>::new(), "{secret}");
    }
}

/// A secret in the configuration is in the wrong place; the refusal must not spread it.
#[test]
fn a_configuration_with_a_secret_is_refused_without_repeating_it() {
    for line in ["api_key", "token", "[log]\npassword"] {
        let world = World::new();
        fs::create_dir(world.data()).unwrap();
        let text = format!("{line} = \"{CANARY}\"\n");
        fs::write(world.data().join("midwatch.toml"), text).unwrap();
        for command in [&["config", "check"][..], &["config", "show"], &["doctor"], &["up"]] {
            for form in [&[][..], &["--json"]] {
                let outcome = world.run(&[form, command].concat());
                let said = format!("{}{}", outcome.stdout, outcome.stderr);
                assert!(said.contains("unknown key"), "{line} {command:?}: {said}");
                assert!(!said.contains(CANARY), "{line} {command:?}: {said}");
            }
        }
    }
}

/// The private key is in its own file and nowhere else.
#[test]
fn the_signing_key_is_in_one_place() {
    let mut world = World::new();
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    let daemon = world.up();
    let heard = live(&world);
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    let key = fs::read_to_string(world.data().join("signing.key")).unwrap();
    let secret = key.trim_end().splitn(5, '+').last().unwrap();
    assert_eq!(secret.len(), 44, "the algorithm and 32 bytes in base64");
    assert!(!heard.contains(secret) && !said.contains(secret));
    assert_eq!(files_with(world.root(), secret, &["signing.key"]), Vec::<String>::new());
}
