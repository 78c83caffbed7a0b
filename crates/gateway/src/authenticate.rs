//! Who the caller of a request is, and whether it may have one more request open.

use std::fmt;
use std::sync::Arc;

use api::wire::Secret;
use api::{Code, Error, Handle};
use axum::Extension;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use tokio::sync::Semaphore;

use crate::byte_budget::ByteBudget;
use crate::concurrency_limit::ConcurrencyLimit;
use crate::connection::{ConnectionAddresses, RequestConnection};
use crate::origin::single;
use crate::rejection::Rejection;
use crate::request_permit::RequestPermit;

/// Requests that one principal may have open at once, streams included.
const REQUESTS_PER_PRINCIPAL_MAX: usize = 64;

/// Requests of all programs, so that some connections are always left for people.
const PROGRAM_REQUESTS_MAX: usize = 192;
/// Memory for the requests of all programs.
const BODIES_BYTES_MAX: usize = 32 << 20;
/// Memory for the requests of one program.
const PRINCIPAL_BODIES_BYTES_MAX: usize = 8 << 20;

/// Limits on open requests; tests use smaller ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLimits {
    pub(crate) per_principal: usize,
    pub(crate) of_programs: usize,
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits {
            per_principal: REQUESTS_PER_PRINCIPAL_MAX,
            of_programs: PROGRAM_REQUESTS_MAX,
        }
    }
}

/// Maps a token to its principal.
pub trait HttpAuthenticator: Send + Sync {
    /// Authenticates a program that acts for the token's owner, with the rights of an assistant.
    fn authenticate(&self, token: Secret) -> BoxFuture<'_, Result<Authenticated, Error>>;

    /// Authenticates the token's owner in person. A process that a run started is authenticated as that run,
    /// whichever token it sends.
    fn authenticate_person(
        &self,
        token: Secret,
        addresses: ConnectionAddresses,
    ) -> BoxFuture<'_, Result<Authenticated, Error>>;
}

/// An authenticated caller. Handlers of routes that need a token get it as an extension of the request.
#[derive(Clone)]
pub struct Authenticated {
    /// The principal, which is the same for all of its tokens.
    pub name: String,
    /// Makes requests as this principal.
    pub handle: Arc<dyn Handle>,
    /// The time of the authentication, in microseconds since 1970.
    pub now_us: i64,
}

impl fmt::Debug for Authenticated {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Authenticated({})", self.name)
    }
}

/// Authenticates callers, and limits the requests that each may have open.
pub(crate) struct CallerGate {
    pub(crate) authenticator: Arc<dyn HttpAuthenticator>,
    pub(crate) limit: ConcurrencyLimit,
    /// Requests that programs may have open at once.
    pub(crate) programs: Arc<Semaphore>,
    /// Memory for the requests of programs.
    pub(crate) bodies: ByteBudget,
}

impl CallerGate {
    pub(crate) fn new(
        authenticator: Arc<dyn HttpAuthenticator>,
        limits: RequestLimits,
    ) -> CallerGate {
        let RequestLimits { per_principal, of_programs } = limits;
        let bodies = ByteBudget::new(BODIES_BYTES_MAX, PRINCIPAL_BODIES_BYTES_MAX);
        let programs = Arc::new(Semaphore::new(of_programs));
        CallerGate { authenticator, limit: ConcurrencyLimit::new(per_principal), programs, bodies }
    }

    /// Lets `caller` have one more request open, on `connection`.
    pub(crate) fn admit(
        &self,
        caller: &Authenticated,
        connection: &RequestConnection,
    ) -> Result<RequestPermit, Rejection> {
        let permit = self.limit.try_acquire(caller.name.clone()).ok_or_else(too_many_requests)?;
        Ok(RequestPermit::new(permit, connection.busy.set()))
    }

    /// Lets a program have one more request open. All programs together leave some connections for people.
    pub(crate) fn admit_program(
        &self,
        caller: &Authenticated,
        connection: &RequestConnection,
    ) -> Result<RequestPermit, Rejection> {
        let of_programs = Arc::clone(&self.programs).try_acquire_owned();
        let of_programs = of_programs.map_err(|_| too_many_requests())?;
        Ok(self.admit(caller, connection)?.with(of_programs))
    }
}

/// Middleware that passes on only requests with a valid token, and holds a permit of the caller until the response has
/// been sent.
pub(crate) async fn require_token(
    State(gate): State<Arc<CallerGate>>,
    Extension(connection): Extension<RequestConnection>,
    mut request: Request,
    next: Next,
) -> Result<Response, Rejection> {
    let token = bearer_token(request.headers())?;
    let caller = gate.authenticator.authenticate(token).await.map_err(unauthorised)?;
    let permit = gate.admit_program(&caller, &connection)?;
    request.extensions_mut().insert(gate.bodies.clone());
    request.extensions_mut().insert(caller);
    Ok(permit.hold_during(next.run(request).await))
}

/// The bearer token of a request.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<Secret, Rejection> {
    let authorization = single(headers, &AUTHORIZATION)?;
    let token = authorization.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    token.filter(|token| !token.is_empty()).map(Secret).ok_or_else(|| {
        let error = Error::new(Code::TokenInvalid, "the request has no token");
        unauthorised(error.hint(
            "`midwatch token create --for mcp --name NAME` creates one for the clients of a person, \
             `--role runner` for the agent of that name; send it as `Authorization: Bearer TOKEN`",
        ))
    })
}

pub(crate) fn unauthorised(error: Error) -> Rejection {
    let status = match error.code {
        Code::TokenNotForMcp | Code::HumanNeeded | Code::RoleTooLow => StatusCode::FORBIDDEN,
        _ => StatusCode::UNAUTHORIZED,
    };
    Rejection { status, error }
}

fn too_many_requests() -> Rejection {
    let what = format!(
        "too many open requests; the limit is {REQUESTS_PER_PRINCIPAL_MAX}, and {PROGRAM_REQUESTS_MAX} of all programs"
    );
    let error = Error::new(Code::LimitReached, what);
    let error = error.hint("close a stream or wait for a response");
    Rejection { status: StatusCode::TOO_MANY_REQUESTS, error }
}
