//! Echo, scripts, and the backends that are not there yet.

use std::fs;
use std::time::Duration;

use agents::{SCRIPT_BYTES_MAX, TEXT_BYTES_MAX, Work, supports};
use kernel::backend::{Backend, BackendKind, Settings};
use tokio_util::sync::CancellationToken;

use crate::world::{World, said, text_of, work};

const SCRIPT: &str = r#"
[[answer]]
prompt = "weather"
attempts = 2
text = "rate limited"
then = "fail"

[[answer]]
prompt = "weather"
text = "sunny"
delay_ms = 60000

[[answer]]
prompt = "impossible"
then = "fail_for_good"

[[answer]]
prompt = "stuck"
text = "let me think"
then = "hang"
"#;

fn scripted(world: &World, script: &str, prompt: &str) -> Work {
    let path = world.root().join("answers.toml");
    fs::write(&path, script).unwrap();
    let settings = Settings { script: path.to_str().map(str::to_owned), ..Settings::default() };
    let backend = Backend::parse(BackendKind::Builtin, settings).unwrap();
    // Reached without waiting, because the time of these tests is virtual.
    Work { time_max: Duration::from_secs(90), ..work(backend, prompt) }
}

#[tokio::test]
async fn an_echo_says_its_prompt_again() {
    let world = World::new();
    let echo = |prompt: &str| work(Backend::Builtin { script: None }, prompt);
    let ended = world.run(echo("hello")).await;
    assert_eq!((said(&ended.outcome).as_str(), ended.output.text.as_str()), ("done", "hello"));
    assert_eq!((ended.output.bytes, ended.output.file), (5, None));

    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    let ended = world.run(echo(&long)).await;
    assert_eq!(ended.output.text, long[1..]);
    let file = world.root().join("outputs/run-7-1.txt");
    assert_eq!(text_of(&file), long);
    assert_eq!(ended.output.file, Some(file));
}

#[tokio::test(start_paused = true)]
async fn a_script_answers_by_prompt_and_attempt() {
    let world = World::new();
    let failed = "script passing: the script says that it failed";
    for (prompt, attempt, outcome, text) in [
        ("the weather, please", 1, failed, "rate limited"),
        ("the weather, please", 2, failed, "rate limited"),
        ("the weather, please", 3, "done", "sunny"),
        ("impossible", 1, "script permanent: the script says that it failed", ""),
        ("stuck", 1, "timeout passing: it took longer than 90s", "let me think"),
    ] {
        let ended = world.run(Work { attempt, ..scripted(&world, SCRIPT, prompt) }).await;
        let found = (said(&ended.outcome), ended.output.text);
        assert_eq!(found, (outcome.to_owned(), text.to_owned()), "{prompt} {attempt}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_hangs_can_be_stopped() {
    let world = World::new();
    let stop = CancellationToken::new();
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        stop.cancel();
    };
    let work = scripted(&world, SCRIPT, "stuck");
    let (ended, ()) = tokio::join!(world.run_until(work, stop.clone()), stopping);
    assert_eq!(said(&ended.outcome), "cancelled");
    assert_eq!(ended.output.text, "let me think");
}

#[tokio::test]
async fn an_unusable_script_fails_for_good_and_says_why() {
    let world = World::new();
    let long = "#".repeat(SCRIPT_BYTES_MAX + 1);
    for (script, expected) in [
        (SCRIPT, "has no answer for this prompt and attempt"),
        ("[[answer]]\ntxt = 1", "is malformed in line 2: unknown field `txt`"),
        ("[[answer]]\nthen = \"explode\"", "is malformed in line 2: unknown variant `explode`"),
        ("", "is malformed in line 1: missing field `answer`"),
        (&long, "is longer than 1048576 bytes"),
    ] {
        let ended = world.run(scripted(&world, script, "something else")).await;
        let path = world.root().join("answers.toml");
        let expected = format!("not_started permanent: the script `{}` {expected}", path.display());
        let found = said(&ended.outcome);
        assert!(found.starts_with(&expected), "{found}");
    }
    let work = scripted(&world, SCRIPT, "weather");
    fs::remove_file(world.root().join("answers.toml")).unwrap();
    let found = said(&world.run(work).await.outcome);
    assert!(found.contains("cannot be read: No such file"), "{found}");
    let at_limit = format!("[[answer]]\n{}", "#".repeat(SCRIPT_BYTES_MAX - 11));
    let ended = world.run(scripted(&world, &at_limit, "")).await;
    assert_eq!(said(&ended.outcome), "done");
}

#[tokio::test]
async fn other_backends_are_said_to_be_missing() {
    let world = World::new();
    for kind in BackendKind::ALL {
        let settings = match kind {
            BackendKind::Builtin | BackendKind::Command => {
                assert!(supports(kind), "{kind}");
                continue;
            }
            BackendKind::Letta | BackendKind::Webhook => {
                assert!(supports(kind), "{kind}");
                continue;
            }
            BackendKind::Openai | BackendKind::Anthropic => {
                Settings { model: Some("m".into()), ..Settings::default() }
            }
            BackendKind::Mcp => Settings { url: Some("http://x".into()), ..Settings::default() },
        };
        let ended = world.run(work(Backend::parse(kind, settings).unwrap(), "")).await;
        let expected = format!(
            "backend_missing permanent: \
             this version cannot prompt an agent with backend `{kind}` yet"
        );
        assert_eq!(said(&ended.outcome), expected);
        assert!(!supports(kind), "{kind}");
    }
}
