//! Sessions of the earlier era: their owners, and a limit on their number.

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

/// Maximum number of concurrent sessions. Each holds some memory until it ends.
pub(crate) const SESSIONS_MAX: usize = 64;
/// Sessions that one principal may have at once, so that none keeps the others out.
pub(crate) const SESSIONS_PER_PRINCIPAL_MAX: usize = 16;
/// An unused session expires after this time; its client must start a new one.
const IDLE_MAX: Duration = Duration::from_secs(120);

/// Why a session could not be started or found.
#[derive(Debug)]
pub(crate) enum SessionError {
    Full,
    Failed(LocalSessionManagerError),
}

pub(crate) struct Sessions {
    inner: LocalSessionManager,
    /// Held from counting the sessions until the new one is added.
    opening: Mutex<()>,
    /// The principal that started each session.
    owners: Lock<HashMap<SessionId, String>>,
}

impl Default for Sessions {
    fn default() -> Sessions {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = Some(IDLE_MAX);
        Sessions { inner, opening: Mutex::default(), owners: Lock::default() }
    }
}

impl Sessions {
    pub(crate) async fn is_full(&self) -> bool {
        SESSIONS_MAX <= self.inner.sessions.read().await.len()
    }

    /// Whether this principal has more sessions than it may.
    pub(crate) async fn is_over_limit(&self, principal: &str) -> bool {
        let live = self.inner.sessions.read().await;
        let owners = self.owners();
        let owned =
            owners.iter().filter(|(id, owner)| *owner == principal && live.contains_key(*id));
        SESSIONS_PER_PRINCIPAL_MAX < owned.count()
    }

    /// Whether this session exists and was started by this principal.
    pub(crate) async fn is_owned_by(&self, id: &str, principal: &str) -> bool {
        let live = self.inner.sessions.read().await;
        live.contains_key(id) && self.owners().get(id).is_some_and(|owner| owner == principal)
    }

    /// Records the owner of a new session, and removes the owners of ended ones.
    pub(crate) async fn set_owner(&self, id: &str, principal: &str) {
        let live = self.inner.sessions.read().await;
        let mut owners = self.owners();
        owners.retain(|id, _| live.contains_key(id));
        owners.insert(id.into(), principal.to_owned());
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
        match self.is_full().await {
            true => Err(SessionError::Full),
            false => Ok(self.inner.create_session().await?),
        }
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        Ok(self.inner.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.inner.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        Ok(self.inner.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.inner.create_stream(id, message).await?)
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        Ok(self.inner.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.inner.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.inner.resume(id, last_event_id).await?)
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
            SessionError::Full => write!(out, "the limit of {SESSIONS_MAX} sessions is reached"),
            SessionError::Failed(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for SessionError {}
