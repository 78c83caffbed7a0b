//! Floods, and what is not text.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use agents::{FILE_BYTES_MAX, TEXT_BYTES_MAX};

use crate::world::{World, said};

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
