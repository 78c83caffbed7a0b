//! Maps the database's errors to the store's.

use std::error::Error as _;

use deadpool_postgres::PoolError;
use store::Error;
use tokio_postgres::error::SqlState;

pub(crate) fn classify(error: tokio_postgres::Error) -> Error {
    let Some(reported) = error.as_db_error() else {
        let text =
            error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
        return match error.is_closed() || is_io(&error) {
            true => Error::Unreachable(text),
            // The library has no kind for it.
            false if text.contains("password missing") => {
                Error::AccessDenied("it requires a password, and none is configured".to_owned())
            }
            false => Error::Failed(text),
        };
    };
    let text = reported.message().to_owned();
    match reported.code() {
        &SqlState::DISK_FULL => Error::DiskFull,
        &SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly,
        &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            Error::AccessDenied(text)
        }
        &SqlState::INVALID_CATALOG_NAME => Error::NoDatabase(text),
        &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => Error::Damaged(text),
        &SqlState::ADMIN_SHUTDOWN
        | &SqlState::CRASH_SHUTDOWN
        | &SqlState::CANNOT_CONNECT_NOW
        | &SqlState::TOO_MANY_CONNECTIONS
        | &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Error::Unreachable(text),
        // A lock or a cancelled statement: may succeed if tried again.
        &SqlState::LOCK_NOT_AVAILABLE
        | &SqlState::T_R_DEADLOCK_DETECTED
        | &SqlState::T_R_SERIALIZATION_FAILURE
        | &SqlState::QUERY_CANCELED => Error::Unreachable(text),
        _ => Error::Failed(text),
    }
}

pub(crate) fn classify_pool(error: PoolError) -> Error {
    match error {
        PoolError::Backend(error) => classify(error),
        other => Error::Unreachable(other.to_string()),
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}
