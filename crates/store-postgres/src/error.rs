//! Maps the database's errors to the store's.

use std::error::Error as _;
use std::io;

use deadpool::managed::PoolError;
use store::Error;
use tokio_postgres::error::SqlState;

use crate::scram_only::PasswordRefused;

pub(crate) fn classify(error: tokio_postgres::Error) -> Error {
    let Some(reported) = error.as_db_error() else {
        if let Some(refused) = find_io(&error).and_then(refused_password) {
            return Error::PasswordNotSent { form: refused.form };
        }
        let text =
            error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
        return match error.is_closed() || find_io(&error).is_some() {
            true => Error::Unreachable(text),
            false => Error::Failed(text),
        };
    };
    let text = reported.message().to_owned();
    match reported.code() {
        &SqlState::DISK_FULL => Error::DiskFull,
        &SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly,
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

pub(crate) fn classify_pool(error: PoolError<Error>) -> Error {
    match error {
        PoolError::Backend(error) => error,
        other => Error::Unreachable(other.to_string()),
    }
}

fn find_io(error: &tokio_postgres::Error) -> Option<&io::Error> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref() {
            return Some(io);
        }
        source = cause.source();
    }
    None
}

fn refused_password(error: &io::Error) -> Option<&PasswordRefused> {
    error.get_ref()?.downcast_ref()
}
