//! How a program is started: arguments, prompt, environment and directory; and what its exit code means.

use std::fs;

use agents::Attempt;
use kernel::backend::Settings;

use crate::world::{World, command, describe, sh};

fn by_argument() -> Settings {
    Settings { prompt_as: Some("argument".into()), ..Settings::default() }
}

#[tokio::test]
async fn exit_code_decides_the_outcome() {
    let world = World::new();
    let unstarted = |code: u8| {
        format!(
            "not_started permanent: \
             the program exited with code {code}: a command could not be started"
        )
    };
    for (script, expected) in [
        ("exit 0", "done".to_owned()),
        ("exit 1", "exit transient: the program exited with code 1".to_owned()),
        ("exit 75", "exit transient: the program exited with code 75".to_owned()),
        ("exit 126", unstarted(126)),
        ("exit 127", unstarted(127)),
        ("kill -9 $$", "signal transient: the program was killed by signal 9".to_owned()),
        ("kill -15 $$", "signal transient: the program was killed by signal 15".to_owned()),
    ] {
        assert_eq!(describe(&world.sh(script).await.outcome), expected, "{script}");
    }
}

#[tokio::test]
async fn program_that_cannot_be_started_fails_permanently() {
    let world = World::new();
    fs::write(world.root().join("text"), "no program").unwrap();
    let elsewhere = Settings { cwd: Some("/nowhere/at/all".into()), ..Settings::default() };
    let missing = "the daemon (pid 7) finds no program `no-such-program` in its PATH \
                   (/usr/local/bin:/usr/bin:/bin)";
    let forbidden = format!("`{}` is not executable", world.root().join("./text").display());
    let long = "x".repeat(1 << 20);
    for (attempt, expected) in [
        (command(Settings::default(), &["no-such-program"], ""), missing),
        (command(Settings::default(), &["./text"], ""), forbidden.as_str()),
        (command(elsewhere, &["true"], ""), "the directory `/nowhere/at/all` does not exist"),
        (
            command(by_argument(), &["true"], &long),
            "`true` cannot be started: Argument list too long (os error 7)",
        ),
        (
            command(by_argument(), &["true"], "a\0b"),
            "`true` cannot be started: nul byte found in provided data",
        ),
    ] {
        let expected = format!("not_started permanent: {expected}");
        assert_eq!(describe(&world.run(attempt).await.outcome), expected);
    }
}

#[tokio::test]
async fn prompt_is_passed_on_stdin_or_as_an_argument() {
    let world = World::new();
    let prompt = "it's $(touch made); `touch made`\n--help";
    for (settings, argv) in [
        (Settings::default(), &["cat"][..]),
        (by_argument(), &["printf", "%s"]),
        (by_argument(), &["printf", "%s%s", "{prompt}", ""]),
    ] {
        let result = world.run(command(settings, argv, prompt)).await;
        assert_eq!(describe(&result.outcome), "done", "{argv:?}");
        assert_eq!(result.output.text, prompt, "{argv:?}");
    }
    assert!(!world.root().join("made").exists(), "a shell executed the prompt");
    let result = world.run(command(by_argument(), &["cat", "-", "{prompt}"], "/dev/null")).await;
    assert_eq!((describe(&result.outcome).as_str(), result.output.bytes), ("done", 0));
}

/// Writing the prompt and reading the output never wait for each other for ever.
#[tokio::test]
async fn long_prompt_may_be_read_slowly_or_not_at_all() {
    let world = World::new();
    let prompt = "x".repeat(4 << 20);
    let result = world.run(command(Settings::default(), &["cat"], &prompt)).await;
    assert_eq!((describe(&result.outcome).as_str(), result.output.bytes), ("done", 4 << 20));
    let result = world.run(command(Settings::default(), &["true"], &prompt)).await;
    assert_eq!((describe(&result.outcome).as_str(), result.output.bytes), ("done", 0));
}

#[tokio::test]
async fn program_gets_only_allowed_variables() {
    let world = World::new();
    let env = vec!["ALLOWED".into(), "NOT_SET".into()];
    let settings = Settings { env, ..Settings::default() };
    let attempt = Attempt {
        schedule: Some("nightly".into()),
        slot: Some("2026-11-16T00:00:00Z".into()),
        number: 3,
        epoch: 3,
        ..command(settings, &["env"], "")
    };
    let home = format!("HOME={}", world.root().display());
    let usual = [&home, "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "TZ=UTC"];
    let lines = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let found = lines(world.run(attempt).await.output.text);
    let ours = [
        "MIDWATCH_ATTEMPT=3",
        "MIDWATCH_RUN_ID=run-7",
        "MIDWATCH_SCHEDULE_ID=nightly",
        "MIDWATCH_SLOT=2026-11-16T00:00:00Z",
    ];
    let expected = [&["ALLOWED=yes", usual[0], usual[1]][..], &ours, &usual[2..]].concat();
    assert_eq!(found, expected);

    let found = lines(world.run(command(Settings::default(), &["env"], "")).await.output.text);
    let ours = ["MIDWATCH_ATTEMPT=1", "MIDWATCH_RUN_ID=run-7"];
    assert_eq!(found, [&usual[..2], &ours, &usual[2..]].concat());
}

#[tokio::test]
async fn program_starts_in_its_directory_or_at_home() {
    let world = World::new();
    let below = world.root().join("below");
    fs::create_dir(&below).unwrap();
    let cwd = below.to_str().map(str::to_owned);
    let there = Settings { cwd, ..Settings::default() };
    for (settings, expected) in [(there, below), (Settings::default(), world.root())] {
        let result = world.run(command(settings, &["pwd"], "")).await;
        assert_eq!(result.output.text, format!("{}\n", expected.display()));
    }
}

#[tokio::test]
async fn stdout_and_stderr_keep_their_order() {
    let world = World::new();
    let result = world.run(sh("echo one; echo two >&2; echo three; echo four >&2")).await;
    assert_eq!(result.output.text, "one\ntwo\nthree\nfour\n");
}
