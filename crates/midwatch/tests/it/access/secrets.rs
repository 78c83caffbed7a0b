//! No file that the program writes and nothing that it prints contains a secret.

use std::fs;
use std::io::Read;
use std::path::Path;

use base64::Engine;
use flate2::read::GzDecoder;

use crate::support::world::{World, daily};

const CANARY: &str = "canary-4f1d0c";

/// A world with the canary wherever a secret may be: in a variable and a file that a credential refers to, and
/// in variables that the program does not use.
fn world() -> World {
    let mut world = World::new();
    world.set("ADA_KEY", CANARY);
    world.set("MIDWATCH_SECRET", CANARY);
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    fs::write(world.root().join("secret.txt"), CANARY).unwrap();
    world
}

/// Runs commands and collects their output.
struct Recorder<'w> {
    world: &'w World,
    output: String,
}

impl Recorder<'_> {
    fn run(&mut self, arguments: &[&str]) {
        for form in [&[][..], &["--json"]] {
            let outcome = self.world.run(&[form, arguments].concat());
            self.output.push_str(&format!("{arguments:?}\n{}{}", outcome.stdout, outcome.stderr));
        }
    }
}

/// The files below a folder that contain the needle, unpacked where needed, except the named ones.
pub(crate) fn files_with(folder: &Path, needle: &str, except: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = entry.file_name().into_string().unwrap();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && !except.contains(&name.as_str()) {
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

/// Runs commands that use a secret rightly and wrongly, and those that show or copy data. Returns their output.
fn run_commands(world: &World) -> String {
    let file = format!("file:{}", world.root().join("secret.txt").display());
    let url = format!("https://me:{CANARY}@example.org/hook");
    let token_only = format!("https://{CANARY}@example.org/hook");
    let unknown_flag = format!("--api-key={CANARY}");
    let mut recorder = Recorder { world, output: String::new() };
    for arguments in [
        // Right uses.
        &["agent", "add", "ada", "--backend", "builtin", "--credential", "env:ADA_KEY"][..],
        &["agent", "add", "bob", "--backend", "builtin", "--credential", &file],
        &["agent", "edit", "bob", "--credential", "env:ADA_KEY"],
        &["agent", "show", "ada"],
        &["agent", "list"],
        // Wrong uses.
        &["agent", "add", "eve", "--backend", "builtin", "--credential", CANARY],
        &["agent", "edit", "ada", "--credential", CANARY],
        &["agent", "add", "eve", "--backend", "builtin", &unknown_flag],
        &["agent", "add", "eve", "--backend", "webhook", "--url", &url],
        &["agent", "add", "eve", "--backend", "webhook", "--url", &token_only],
        &["agent", "add", "eve", "--backend", "letta", "--remote-id", "r", "--url", &url],
        &["agent", "edit", "ada", "--backend", "mcp", "--url", &url],
        // Commands that show or copy data.
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
        recorder.run(arguments);
    }
    recorder.output
}

#[test]
fn secret_is_in_no_file_and_no_output() {
    let world = world();
    let without_daemon = run_commands(&world);
    let daemon = world.up();
    world.checked();
    let with_daemon = run_commands(&world);
    let stderr = daemon.stop();
    for output in [&without_daemon, &with_daemon] {
        // The arguments of the commands contain the secret; only their output counts.
        let lines = output.lines().filter(|line| !line.starts_with('['));
        let leaks: Vec<&str> = lines.filter(|line| line.contains(CANARY)).collect();
        assert!(leaks.is_empty(), "{leaks:#?}");
        assert!(output.contains("env:ADA_KEY"), "the reference is missing");
    }
    assert!(!stderr.contains(CANARY), "{stderr}");
    assert_eq!(files_with(world.root(), CANARY, &["secret.txt"]), Vec::<String>::new());
    assert!(world.data().join("logs/midwatch.log").exists());
    assert!(fs::read_dir(world.data().join("exports")).unwrap().count() == 2);
    assert_eq!(world.agents(), ["ada", "bob"], "a refused command registered an agent");
    world.verified();
}

/// Checks the search itself.
#[test]
fn search_finds_a_leaked_secret_in_the_database_and_the_export() {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "letta", "--remote-id", CANARY]);
    world.ok(&["ledger", "export"]);
    let found = files_with(world.root(), CANARY, &[]);
    for ending in ["midwatch.db", ".ndjson.gz"] {
        assert!(found.iter().any(|path| path.ends_with(ending)), "{found:?}");
    }
}

/// A key that looks different in a url.
const KEY: &str = "canary-4f1d0c/+&x";

/// Prints a key in many ways, in pieces and beyond the text that is kept, and its own command line.
const LEAKY: &str = r#"
    tr '\0' ' ' < /proc/$$/cmdline
    echo "key $DEPLOY_KEY" >&2
    echo "$DEPLOY_KEY" | head -c 5; echo "$DEPLOY_KEY" | tail -c +6
    printf '%s' "$DEPLOY_KEY" | od -An -tx1 | tr -d ' \n'; echo
    printf '%s' "$DEPLOY_KEY" | base64
    echo 'https://example.org/?key=canary-4f1d0c%2F%2B%26x'
    head -c 20000 /dev/zero | tr '\0' x
    echo "$DEPLOY_KEY $MIDWATCH_TOKEN"
    exit 7
"#;

/// The output of a program that has the key is redacted before it is stored.
#[test]
fn g4_key_printed_by_a_program_is_redacted() {
    let mut world = world();
    world.set("DEPLOY_KEY", KEY);
    world.add_agent("echo");
    let (_, token) = world.create_token("eve", "observer");
    // A token that the program found elsewhere.
    let program = LEAKY.replace("$MIDWATCH_TOKEN", &token);
    let script = world.root().join("leaky.sh");
    fs::write(&script, program).unwrap();
    let agent = ["agent", "add", "ada", "--backend", "command", "--env", "DEPLOY_KEY", "--"];
    world.ok(&[&agent[..], &["/bin/sh", script.to_str().unwrap()]].concat());
    let flags = [&daily("night", "ada", "deploy")[..], &["--attempts", "1"]].concat();
    let schedule = &world.add_schedule(&flags);
    let daemon = world.up();
    let run = world.start_run(schedule);
    let shown = world.wait_for_state(&run, "failed");
    let output = &shown["output"];
    assert!(output["text"].as_str().unwrap().contains("key [redacted]\n[redacted]\n"), "{output}");
    let whole = fs::read_to_string(output["file"].as_str().unwrap()).unwrap();
    assert!(whole.ends_with("x[redacted] mwt_[redacted]\n"), "{whole}");
    let mut recorder = Recorder { world: &world, output: String::new() };
    for arguments in [
        &["run", "show", &run][..],
        &["run", "watch", &run],
        &["run", "list"],
        &["why", schedule],
        &["ledger", "tail"],
        &["ledger", "export"],
        &["doctor"],
    ] {
        recorder.run(arguments);
    }
    let output =
        recorder.output + &fs::read_to_string(format!("/proc/{}/cmdline", daemon.pid())).unwrap();
    let stderr = daemon.stop();
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let base64 = base64::engine::general_purpose::STANDARD.encode(KEY);
    let except = ["secret.txt", "leaky.sh"];
    for secret in [KEY, "canary-4f1d0c%2F", &hex, base64.trim_end_matches('='), &token] {
        assert!(
            !output.contains(secret) && !stderr.contains(secret),
            "{secret}: {output}\n{stderr}"
        );
        assert_eq!(files_with(world.root(), secret, &except), Vec::<String>::new(), "{secret}");
    }
}

/// The configuration is the wrong place for a secret; the error must not repeat it.
#[test]
fn configuration_with_a_secret_is_refused_without_repeating_it() {
    for line in ["api_key", "token", "[log]\npassword"] {
        let world = World::new();
        fs::create_dir(world.data()).unwrap();
        let text = format!("{line} = \"{CANARY}\"\n");
        fs::write(world.data().join("midwatch.toml"), text).unwrap();
        for command in [&["config", "check"][..], &["config", "show"], &["doctor"], &["up"]] {
            for form in [&[][..], &["--json"]] {
                let outcome = world.run(&[form, command].concat());
                let output = format!("{}{}", outcome.stdout, outcome.stderr);
                assert!(output.contains("unknown key"), "{line} {command:?}: {output}");
                assert!(!output.contains(CANARY), "{line} {command:?}: {output}");
            }
        }
    }
}

/// The private key is in its own file only.
#[test]
fn signing_key_is_in_its_own_file_only() {
    let mut world = World::new();
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    let daemon = world.up();
    let output = run_commands(&world);
    let stderr = daemon.stop();
    let key = fs::read_to_string(world.data().join("signing.key")).unwrap();
    let secret = key.trim_end().splitn(5, '+').last().unwrap();
    assert_eq!(secret.len(), 44, "the algorithm and 32 bytes in base64");
    assert!(!output.contains(secret) && !stderr.contains(secret));
    assert_eq!(files_with(world.root(), secret, &["signing.key"]), Vec::<String>::new());
}
