//! What the dashboard needs to know of devices, and who supplies it.

use std::fmt;

use api::wire::Secret;
use api::{Error, Role};
use futures::future::BoxFuture;

use crate::authenticate::Authenticated;
use crate::connection::ConnectionAddresses;
use crate::peer::PeerProcess;

/// Signs browsers in, and maps the secret of a session to its person.
pub trait DeviceAuthenticator: Send + Sync {
    /// Fails if the process at the other end of a connection belongs to a run.
    fn check_peer(&self, peer: PeerProcess) -> BoxFuture<'_, Result<(), Error>>;

    /// Signs a browser in by the code of a link, which works once. Returns the secret of its session. `page_key` is a P-256
    /// point in base64url, `browser` the name of the browser.
    fn sign_in(
        &self,
        code: Secret,
        page_key: Option<String>,
        browser: String,
        addresses: ConnectionAddresses,
    ) -> BoxFuture<'_, Result<Secret, Error>>;

    /// Returns the person behind a session, with their present role. Fails once the device has ended.
    fn authenticate_device(
        &self,
        session: Secret,
        usage: SessionUse,
    ) -> BoxFuture<'_, Result<Session, Error>>;

    /// When this authenticator was started, in microseconds since 1970.
    fn started_us(&self) -> i64;
}

/// Why a session is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionUse {
    /// A person loads a page.
    Look,
    /// A person sends a form.
    Form,
    /// An open page keeps itself up to date.
    ByItself,
}

/// The session of a browser that is signed in.
#[derive(Clone)]
pub struct Session {
    /// The person. The handle makes requests as this person, changes included.
    pub caller: Authenticated,
    pub role: Role,
    /// The id of the device.
    pub device: String,
    /// A P-256 point in base64url.
    pub page_key: Option<String>,
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Session({} of {})", self.device, self.caller.name)
    }
}
