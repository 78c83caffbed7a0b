//! The log of a process: initialised once, and redacted.

use midwatch::config::{Level, Log};
use midwatch::logs::{Error, init};

#[test]
fn log_is_initialised_once_and_redacts_secrets() {
    let data = tempfile::tempdir().unwrap();
    let config = Log { level: Level::Info, file_bytes_max: 1 << 20, files_max: 1 };
    let logs = init(&config, true, data.path()).unwrap();
    assert!(matches!(init(&config, true, data.path()), Err(Error::Twice)));

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
