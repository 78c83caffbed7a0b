//! Sessions of the earlier era, whose they are, and how many there may be.

use std::collections::HashMap;
use std::sync::{Mutex as Lock, MutexGuard, PoisonError};
use std::time::Duration;

use futures::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionTransport,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::sync::Mutex;

/// Most sessions at once. Each holds some memory until it ends.
pub(crate) const SESSIONS_MAX: usize = 64;
/// A session that nobody uses for so long is over; its client begins anew.
const IDLE_MAX: Duration = Duration::from_secs(120);

/// Why there is no session, or none such.
#[derive(Debug)]
pub(crate) enum SessionError {
    Full,
    Failed(LocalSessionManagerError),
}

pub(crate) struct Sessions {
    kept: LocalSessionManager,
    /// Held from the count to the session that makes it one more.
    opening: Mutex<()>,
    /// Who has begun each.
    owners: Lock<HashMap<SessionId, String>>,
}

impl Default for Sessions {
    fn default() -> Sessions {
        let mut kept = LocalSessionManager::default();
        kept.session_config.keep_alive = Some(IDLE_MAX);
        Sessions { kept, opening: Mutex::default(), owners: Lock::default() }
    }
}

impl Sessions {
    pub(crate) async fn are_full(&self) -> bool {
        SESSIONS_MAX <= self.kept.sessions.read().await.len()
    }

    /// Whether there is such a session, and this is who has begun it.
    pub(crate) async fn is_of(&self, id: &str, name: &str) -> bool {
        let kept = self.kept.sessions.read().await;
        kept.contains_key(id) && self.owners().get(id).is_some_and(|owner| owner == name)
    }

    /// Says who has begun a session. Those that are over are nobody's.
    pub(crate) async fn give(&self, id: &str, name: &str) {
        let kept = self.kept.sessions.read().await;
        let mut owners = self.owners();
        owners.retain(|id, _| kept.contains_key(id));
        owners.insert(id.into(), name.to_owned());
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<SessionId, String>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, SessionTransport), SessionError> {
        let _opening = self.opening.lock().await;
        match self.are_full().await {
            true => Err(SessionError::Full),
            false => Ok(self.kept.create_session().await?),
        }
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        Ok(self.kept.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.kept.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        Ok(self.kept.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.kept.create_stream(id, message).await?)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        Ok(self.kept.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.kept.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.kept.resume(id, last_event_id).await?)
    }
}

impl From<LocalSessionManagerError> for SessionError {
    fn from(error: LocalSessionManagerError) -> SessionError {
        SessionError::Failed(error)
    }
}

impl std::fmt::Display for SessionError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SessionError::Full => write!(out, "there are {SESSIONS_MAX} sessions already"),
            SessionError::Failed(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for SessionError {}
