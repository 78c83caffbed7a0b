//! Echo, scripts, and unsupported backends.

use std::fs;
use std::time::Duration;

use agents::{Attempt, SCRIPT_BYTES_MAX, TEXT_BYTES_MAX, supports};
use kernel::backend::{Backend, BackendKind, Settings};
use tokio_util::sync::CancellationToken;

use crate::world::{World, attempt, describe, text_of};

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

fn scripted(world: &World, script: &str, prompt: &str) -> Attempt {
    let path = world.root().join("answers.toml");
    fs::write(&path, script).unwrap();
    let settings = Settings { script: path.to_str().map(str::to_owned), ..Settings::default() };
    let backend = Backend::parse(BackendKind::Builtin, settings).unwrap();
    // Reached without waiting, because the time of these tests is virtual.
    Attempt { time_max: Duration::from_secs(90), ..attempt(backend, prompt) }
}

#[tokio::test]
async fn echo_outputs_its_prompt() {
    let world = World::new();
    let echo = |prompt: &str| attempt(Backend::Builtin { script: None }, prompt);
    let result = world.run(echo("hello")).await;
    assert_eq!(
        (describe(&result.outcome).as_str(), result.output.text.as_str()),
        ("done", "hello")
    );
    assert_eq!((result.output.bytes, result.output.file), (5, None));

    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    let result = world.run(echo(&long)).await;
    assert_eq!(result.output.text, long[1..]);
    let file = world.root().join("outputs/run-7-1.txt");
    assert_eq!(text_of(&file), long);
    assert_eq!(result.output.file, Some(file));
}

#[tokio::test(start_paused = true)]
async fn script_answer_is_chosen_by_prompt_and_attempt() {
    let world = World::new();
    let failed = "script transient: the script's answer is a failure";
    for (prompt, number, outcome, text) in [
        ("the weather, please", 1, failed, "rate limited"),
        ("the weather, please", 2, failed, "rate limited"),
        ("the weather, please", 3, "done", "sunny"),
        ("impossible", 1, "script permanent: the script's answer is a failure", ""),
        ("stuck", 1, "timeout transient: timed out after 90s", "let me think"),
    ] {
        let result = world.run(Attempt { number, ..scripted(&world, SCRIPT, prompt) }).await;
        let found = (describe(&result.outcome), result.output.text);
        assert_eq!(found, (outcome.to_owned(), text.to_owned()), "{prompt} {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_script_can_be_stopped() {
    let world = World::new();
    let stop = CancellationToken::new();
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        stop.cancel();
    };
    let attempt = scripted(&world, SCRIPT, "stuck");
    let (result, ()) = tokio::join!(world.run_until(attempt, stop.clone()), stopping);
    assert_eq!(describe(&result.outcome), "cancelled");
    assert_eq!(result.output.text, "let me think");
}

#[tokio::test]
async fn unusable_script_fails_permanently() {
    let world = World::new();
    let long = "#".repeat(SCRIPT_BYTES_MAX + 1);
    for (script, expected) in [
        (SCRIPT, "has no answer for this prompt and attempt"),
        ("[[answer]]\ntxt = 1", "is malformed in line 2: unknown field `txt`"),
        ("[[answer]]\nthen = \"explode\"", "is malformed in line 2: unknown variant `explode`"),
        ("", "is malformed in line 1: missing field `answer`"),
        (&long, "cannot be read: it is longer than 1048576 bytes"),
    ] {
        let result = world.run(scripted(&world, script, "something else")).await;
        let path = world.root().join("answers.toml");
        let expected = format!("not_started permanent: the script `{}` {expected}", path.display());
        let found = describe(&result.outcome);
        assert!(found.starts_with(&expected), "{found}");
    }
    let attempt = scripted(&world, SCRIPT, "weather");
    fs::remove_file(world.root().join("answers.toml")).unwrap();
    let found = describe(&world.run(attempt).await.outcome);
    assert!(found.contains("cannot be read: No such file"), "{found}");
    let at_limit = format!("[[answer]]\n{}", "#".repeat(SCRIPT_BYTES_MAX - 11));
    let result = world.run(scripted(&world, &at_limit, "")).await;
    assert_eq!(describe(&result.outcome), "done");
}

#[tokio::test]
async fn other_backends_are_unsupported() {
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
        let result = world.run(attempt(Backend::parse(kind, settings).unwrap(), "")).await;
        let expected = format!(
            "backend_missing permanent: \
             this version cannot prompt an agent with backend `{kind}`"
        );
        assert_eq!(describe(&result.outcome), expected);
        assert!(!supports(kind), "{kind}");
    }
}
