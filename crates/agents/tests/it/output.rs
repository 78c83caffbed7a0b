//! Floods, and what is not text.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use agents::{FILE_BYTES_MAX, TEXT_BYTES_MAX, Work};

use kernel::backend::Settings;

use crate::world::{SECRET, World, command, said};

/// The most memory that this process has ever had, all tests together.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_flood_fills_neither_memory_nor_disk() {
    let world = World::new();
    let ended = world.sh("head -c 200000000 /dev/zero; exit 3").await;
    assert_eq!(said(&ended.outcome), "exit passing: the program ended with code 3");
    assert_eq!(ended.output.bytes, 200_000_000);
    assert_eq!(ended.output.text.len(), TEXT_BYTES_MAX);
    let kept = fs::metadata(ended.output.file.unwrap()).unwrap();
    assert_eq!(kept.len(), FILE_BYTES_MAX);
    assert!(peak_kib() < 150_000, "{} KiB", peak_kib());
}

#[tokio::test]
async fn bytes_that_are_no_text_are_kept_as_they_are() {
    let world = World::new();
    let ended = world.sh(r"printf 'a\377b'").await;
    assert_eq!(ended.output.text, "a\u{fffd}b");
    assert_eq!(fs::read(ended.output.file.unwrap()).unwrap(), b"a\xffb");
}

#[tokio::test]
async fn outputs_are_for_their_owner_only() {
    let world = World::new();
    let file = world.sh("head -c 20000 /dev/zero").await.output.file.unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
}

/// A program that says what it was given.
fn telling(script: &str) -> Work {
    let settings = Settings { env: vec!["SECRET".into(), "ALLOWED".into()], ..Settings::default() };
    command(settings, &["sh", "-c", script], "")
}

#[tokio::test]
async fn g4_a_variable_that_was_given_is_not_repeated() {
    let world = World::new();
    for (script, text) in [
        (r#"echo "a $SECRET b""#, "a [hidden] b\n"),
        // In two pieces, each written by a process of its own.
        (r#"echo "$SECRET" | head -c 6; echo "$SECRET" | tail -c +7"#, "[hidden]\n"),
        (r#"printf '%s' "$SECRET" >&2; exit 1"#, "[hidden]"),
        (r#"printf '\377%s\377' "$SECRET""#, "\u{fffd}[hidden]\u{fffd}"),
        // A short one is no secret.
        (r#"echo "$ALLOWED""#, "yes\n"),
    ] {
        let output = world.run(telling(script)).await.output;
        assert_eq!(output.text, text, "{script}");
        let kept = output.file.map(fs::read).transpose().unwrap().unwrap_or_default();
        assert!(!String::from_utf8_lossy(&kept).contains(SECRET), "{script}");
    }
}

/// Wherever a line that does not end is cut, no secret is cut with it.
#[tokio::test]
async fn g4_a_line_without_an_end_hides_what_others_do() {
    let world = World::new();
    let script = r#"printf 'ä'; i=0; while [ $i -lt 40000 ]; do printf '%s.....' "$SECRET"; i=$((i+1)); done"#;
    let output = world.run(telling(script)).await.output;
    let kept = fs::read_to_string(output.file.unwrap()).unwrap();
    assert_eq!(kept.strip_prefix('ä'), Some("[hidden].....".repeat(40_000).as_str()));
    assert_eq!(output.bytes, kept.len() as u64);
}
