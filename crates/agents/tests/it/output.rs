//! Large, binary and secret output.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use agents::{Attempt, FILE_BYTES_MAX, TEXT_BYTES_MAX};

use kernel::backend::Settings;

use crate::world::{SECRET, World, command, describe};

/// Peak memory of this process, all tests together.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn large_output_is_limited_in_memory_and_on_disk() {
    let world = World::new();
    let result = world.sh("head -c 200000000 /dev/zero; exit 3").await;
    assert_eq!(describe(&result.outcome), "exit transient: the program exited with code 3");
    assert_eq!(result.output.bytes, 200_000_000);
    assert_eq!(result.output.text.len(), TEXT_BYTES_MAX);
    let kept = fs::metadata(result.output.file.unwrap()).unwrap();
    assert_eq!(kept.len(), FILE_BYTES_MAX);
    assert!(peak_kib() < 150_000, "{} KiB", peak_kib());
}

#[tokio::test]
async fn invalid_utf8_is_kept_in_the_file() {
    let world = World::new();
    let result = world.sh(r"printf 'a\377b'").await;
    assert_eq!(result.output.text, "a\u{fffd}b");
    assert_eq!(fs::read(result.output.file.unwrap()).unwrap(), b"a\xffb");
}

#[tokio::test]
async fn output_files_are_readable_by_their_owner_only() {
    let world = World::new();
    let file = world.sh("head -c 20000 /dev/zero").await.output.file.unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
}

/// A program that gets a secret variable and a harmless one.
fn with_variables(script: &str) -> Attempt {
    let settings = Settings { env: vec!["SECRET".into(), "ALLOWED".into()], ..Settings::default() };
    command(settings, &["sh", "-c", script], "")
}

#[tokio::test]
async fn g4_values_of_passed_variables_are_redacted() {
    let world = World::new();
    for (script, text) in [
        (r#"echo "a $SECRET b""#, "a [hidden] b\n"),
        // In two pieces, written by two processes.
        (r#"echo "$SECRET" | head -c 6; echo "$SECRET" | tail -c +7"#, "[hidden]\n"),
        (r#"printf '%s' "$SECRET" >&2; exit 1"#, "[hidden]"),
        (r#"printf '\377%s\377' "$SECRET""#, "\u{fffd}[hidden]\u{fffd}"),
        // A short value is not a secret.
        (r#"echo "$ALLOWED""#, "yes\n"),
    ] {
        let output = world.run(with_variables(script)).await.output;
        assert_eq!(output.text, text, "{script}");
        let kept = output.file.map(fs::read).transpose().unwrap().unwrap_or_default();
        assert!(!String::from_utf8_lossy(&kept).contains(SECRET), "{script}");
    }
}

/// A line that is too long is split, but never within a secret.
#[tokio::test]
async fn g4_secrets_are_redacted_in_a_line_without_an_end() {
    let world = World::new();
    let script = r#"printf 'ä'; i=0; while [ $i -lt 40000 ]; do printf '%s.....' "$SECRET"; i=$((i+1)); done"#;
    let output = world.run(with_variables(script)).await.output;
    let kept = fs::read_to_string(output.file.unwrap()).unwrap();
    assert_eq!(kept.strip_prefix('ä'), Some("[hidden].....".repeat(40_000).as_str()));
    assert_eq!(output.bytes, kept.len() as u64);
}
