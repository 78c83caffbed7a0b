//! Authentication: every entry point yields a named caller with a role, and this file says which.
//!
//! | entry point | caller |
//! |---|---|
//! | a process that a run started, by its ancestry or by its own claim | that run, a runner, whatever else it presents |
//! | with a token | the person of the token, with its role |
//! | the local socket, or the data directory itself | the user: maintainer; in `strict-prod` operator, once a maintainer has a token |
//! | `/mcp` over HTTP, always with a token | the assistant of its person, a runner; an agent or observer as itself; never an operator |
//! | the page of an approval, always with a token | the person of the token, with its role; never an agent or a run |
//! | `/metrics` over HTTP, always with a token | the holder of the token; never an agent, an assistant or a run |
//! | `/api/v1` over HTTP, always with a token | the holder of the token; a person's own token counts only from a process that no run started |
//! | a page of the dashboard, with the session of a device | the person who signed in, with at most the role of the device |
//! | an MCP client on any of these | the assistant of that person or user, a runner |

use std::sync::Arc;
use std::time::Duration;

use api::wire::Secret;
use api::{Code, Error};
use kernel::run::Run;
use kernel::{Actor, Principal, Role, RunId};
use store::Store;
use tokio::time::timeout;

use crate::authorize::audit::{Audit, AuditedCall};
use crate::authorize::tokens::{Tokens, has_maintainer};
use crate::commit::rows::row_key;
use crate::commit::transaction::Transactions;
use crate::config::Config;

/// The name under which a refused visit of a page for people is recorded.
const PAGE: &str = "approval.page";
/// The name under which a refused reader of the metrics is recorded.
const METRICS: &str = "metrics";
/// The name under which a refused client of the HTTP API is recorded.
const API: &str = "http.api";
/// The name under which a refused MCP client is recorded.
const MCP: &str = "mcp";
/// How long the store may take to say who wants to stop something.
const STORE_ANSWERS_WITHIN: Duration = Duration::from_millis(500);

/// What an entry point knows of a caller.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
    /// The user of the machine.
    pub uid: u32,
    pub origin: ProcessOrigin<'a>,
    /// The run to which the process claims to belong.
    pub run: Option<&'a str>,
    pub token: Option<&'a Secret>,
    /// The caller acts for an agent, even if a person started it.
    pub assistant: bool,
}

/// The user id of a caller whose user is unknown.
pub const UNKNOWN_UID: u32 = u32::MAX;

impl Credentials<'_> {
    pub const fn unknown() -> Self {
        let origin = ProcessOrigin::External;
        Credentials { uid: UNKNOWN_UID, origin, run: None, token: None, assistant: false }
    }
}

/// Whether a process descends from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessOrigin<'a> {
    /// Midwatch did not start it.
    External,
    Run(&'a str),
    /// Midwatch started it for some run, or its origin cannot be determined.
    Unknown,
}

#[derive(Debug)]
pub(crate) struct Authenticator {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: Arc<Config>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) audit: Arc<Audit>,
}

impl Authenticator {
    pub(crate) async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Actor, Error> {
        match credentials.origin {
            ProcessOrigin::External => {}
            ProcessOrigin::Run(run) => {
                let id = run.parse::<RunId>();
                return Ok(id.map_or_else(|_| Actor::for_unknown_run(), |id| Actor::for_run(&id)));
            }
            ProcessOrigin::Unknown => return Ok(Actor::for_unknown_run()),
        }
        let run = credentials.run.and_then(|run| run.parse::<RunId>().ok());
        if let Some(id) = run
            && self.may_be_run(&id).await
        {
            return Ok(Actor::for_run(&id));
        }
        let person = self.find_person(credentials).await?;
        match (credentials.assistant, credentials.token) {
            (true, Some(_)) => self.assistant_by_token(person).await,
            (true, None) => Ok(person.into_assistant()),
            (false, _) => Ok(person),
        }
    }

    /// Authenticates a caller that stops something. If the store does not say who it is, the user of the machine may still
    /// do that, with the least role that may.
    pub(crate) async fn authenticate_to_stop(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Actor, Error> {
        let Credentials { uid, origin, run, assistant, .. } = credentials;
        let is_user = uid != UNKNOWN_UID && origin == ProcessOrigin::External;
        let user = (is_user && run.is_none() && !assistant)
            .then(|| Actor::new(Principal::User(uid), Role::Operator));
        match (timeout(STORE_ANSWERS_WITHIN, self.authenticate(credentials)).await, user) {
            (Ok(Ok(actor)), _) => Ok(actor),
            (Ok(Err(refused)), _) if refused.code == Code::TokenInvalid => Err(refused),
            (Ok(Err(_)) | Err(_), Some(user)) => Ok(user),
            (Ok(Err(failed)), None) => Err(failed),
            (Err(_), None) => Err(Error::new(Code::DatabaseAway, "the store does not answer")
                .hint("the user of the machine can stop runs without it")),
        }
    }

    /// Authenticates a visitor of a page for people. The credentials of an agent or a run are refused, whatever they allow
    /// elsewhere.
    pub(crate) async fn authenticate_person(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Actor, Error> {
        self.authenticate_no_runner(credentials, PAGE, |name| {
            let what = format!("this page is for people, and `{name}` is an agent or a run");
            Error::new(Code::HumanNeeded, what).hint(
                "use a token of your own; `midwatch approval list` shows the same in a terminal",
            )
        })
        .await
    }

    /// Authenticates a reader of the metrics, which are about all agents. An agent, an assistant or a process of a run is
    /// refused, whatever token it sends.
    pub(crate) async fn authenticate_metrics_reader(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Actor, Error> {
        self.authenticate_no_runner(credentials, METRICS, |name| {
            let what = format!("`{name}` may not read the metrics of the installation");
            Error::new(Code::RoleTooLow, what).hint(
                "use the token of an observer: `midwatch token create --role observer --name NAME`",
            )
        })
        .await
    }

    /// Authenticates a client of the HTTP API that sends the token of a person. A process of a run is refused: the token does
    /// not belong to it, whoever gave it one.
    pub(crate) async fn authenticate_api_client(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Actor, Error> {
        self.authenticate_no_runner(credentials, API, |name| {
            let what = format!("this token is a person's, and `{name}` sent it");
            Error::new(Code::HumanNeeded, what)
                .hint("an agent has a token of its own: `midwatch token create --role runner`")
        })
        .await
    }

    /// Refuses runners and records the refusal under the name of a call. `refusal` gets the name of the runner.
    async fn authenticate_no_runner(
        &self,
        credentials: Credentials<'_>,
        call: &'static str,
        refusal: impl FnOnce(&str) -> Error,
    ) -> Result<Actor, Error> {
        let actor = self.authenticate(credentials).await?;
        if actor.role != Role::Runner {
            return Ok(actor);
        }
        let refusal = refusal(actor.name());
        let call = AuditedCall { by: &actor, call: Some(call), subject: None };
        self.audit.record_refusal(call, &refusal).await;
        Err(refusal)
    }

    /// Authenticates an MCP client by its token alone.
    pub(crate) async fn authenticate_token(&self, token: &Secret) -> Result<Actor, Error> {
        let holder = self.find_token_holder(token, &Actor::unknown_client()).await?;
        self.assistant_by_token(holder).await
    }

    /// The holder of the token of an MCP client. A token that can approve is refused, because the model behind the client
    /// may be able to read it.
    async fn assistant_by_token(&self, holder: Actor) -> Result<Actor, Error> {
        if holder.role < Role::Operator {
            return Ok(holder);
        }
        let name = holder.name();
        let what = format!("this token of `{name}` can approve, and an agent could read it here");
        let refusal = Error::new(Code::TokenNotForMcp, what).hint(format!(
            "create one for the client: `midwatch token create --for mcp --name {name}`"
        ));
        let call = AuditedCall { by: &holder.into_assistant(), call: Some(MCP), subject: None };
        self.audit.record_refusal(call, &refusal).await;
        Err(refusal)
    }

    /// The holder of the token, or the user of the machine.
    async fn find_person(&self, credentials: Credentials<'_>) -> Result<Actor, Error> {
        let local = match credentials.uid {
            UNKNOWN_UID => Actor::unknown_client(),
            uid => Actor::new(Principal::User(uid), self.local_role().await?),
        };
        match credentials.token {
            None => Ok(local),
            Some(token) => self.find_token_holder(token, &local).await,
        }
    }

    /// Records an invalid token together with the caller who used it.
    async fn find_token_holder(
        &self,
        Secret(token): &Secret,
        caller: &Actor,
    ) -> Result<Actor, Error> {
        let holder = self.tokens.find_holder(token).await;
        if let Err(refused) = &holder
            && refused.code == Code::TokenInvalid
        {
            let call = AuditedCall { by: caller, call: None, subject: None };
            self.audit.record_refusal(call, refused).await;
        }
        holder
    }

    /// Whether the run exists. If that cannot be read, the caller gets no more rights than a run.
    async fn may_be_run(&self, id: &RunId) -> bool {
        let rows = self.transactions.load(&[row_key::<Run>(id)]).await;
        rows.is_err() || rows.is_ok_and(|rows| rows.get::<Run>(id).is_some())
    }

    /// The local user is maintainer until a maintainer has a token, because someone must create the first one.
    pub(crate) async fn local_role(&self) -> Result<Role, Error> {
        match self.config.active().trust.local_role {
            lower if lower < Role::Maintainer && has_maintainer(&*self.store).await? => Ok(lower),
            _ => Ok(Role::Maintainer),
        }
    }
}

/// A role of the request table as the kernel knows it.
pub(crate) fn kernel_role(role: api::Role) -> Role {
    match role {
        api::Role::Observer => Role::Observer,
        api::Role::Runner => Role::Runner,
        api::Role::Operator => Role::Operator,
        api::Role::Maintainer => Role::Maintainer,
    }
}
