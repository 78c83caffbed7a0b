//! Setting up the logs of a process: once, for all of it, and so in a process of its own.

use midwatch::config::{Level, Log};
use midwatch::logs::{Error, init};

#[test]
fn the_logs_are_set_up_once_and_know_the_secrets() {
    let data = tempfile::tempdir().unwrap();
    let config = Log { level: Level::Info, file_bytes_max: 1 << 20, files_max: 1 };
    let logs = init(&config, Some(data.path())).unwrap();
    assert!(matches!(init(&config, None), Err(Error::Twice)));

    logs.redactor().add("canary-1");
    tracing::info!("canary-1 and token=canary-2");
    tracing::debug!("too much");
    logs.flush();
    let file = || std::fs::read_to_string(data.path().join("logs/midwatch.log")).unwrap();
    assert!(file().contains("\"[redacted] and token=[redacted]\""), "{}", file());
    assert_eq!(file().lines().count(), 1);

    tracing::info!("last");
    drop(logs);
    assert!(file().contains("\"last\""), "{}", file());
}
