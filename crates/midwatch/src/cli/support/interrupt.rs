//! Ctrl-c at a command that only waits for something else: it says what goes on, and ends.

use std::future::Future;

/// The exit code after ctrl-c, as shells report it.
pub(in crate::cli) const INTERRUPTED: u8 = 130;

/// The result of a future, or `None` if ctrl-c came first.
pub(in crate::cli) async fn until_interrupted<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        result = future => Some(result),
        Ok(()) = tokio::signal::ctrl_c() => None,
    }
}
