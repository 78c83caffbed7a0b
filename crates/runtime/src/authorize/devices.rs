//! Devices: one-time links that sign a browser in, and who acts through a browser that is signed in.
//!
//! A link is in memory only, as the hash of its code, with the person who asked for it. Whoever presents the code first gets
//! the session secret of a new device; only its hash is stored. A device acts for its person as long as the token that opened
//! it is valid, and with at most the role that the person has now.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::wire::Secret;
use api::{Code, Error};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use kernel::device::{
    BrowserName, Command, Device, EndReason, IDLE_US, PageKey, check_person, decide,
};
use kernel::token::Token;
use kernel::{Actor, DeviceId, EventBody, Noun, Principal, Role, Timestamp};
use store::{Newest, Store};

use crate::authorize::audit::{Audit, AuditedCall};
use crate::authorize::authenticate::Authenticator;
use crate::authorize::tokens::token_hash;
use crate::clock::Time;
use crate::commit::codec::decode_item;
use crate::commit::rows::row_key;
use crate::commit::transaction::{Transaction, Transactions};
use crate::errors::{self, ToError, internal};

/// How long a link is valid.
const LINK_VALID_US: i64 = 600_000_000;
/// Links that may be open at once.
const LINKS_MAX: usize = 32;
const CODE_BYTES: usize = 16;
const SECRET_BYTES: usize = 32;
/// The characters of a secret in base64url.
const SECRET_CHARS: usize = 43;
/// Devices among which those whose time is over are searched.
const SEARCHED_MAX: usize = 2_000;
/// The name under which a refused sign-in is recorded.
const ENTER: &str = "device.enter";

#[derive(Debug)]
pub(crate) struct Devices {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) audit: Arc<Audit>,
    /// Open links by the hash of their code.
    pub(crate) links: Mutex<HashMap<String, Link>>,
    /// When each device was last used. After a restart it counts as used.
    pub(crate) used: Mutex<HashMap<DeviceId, Timestamp>>,
}

#[derive(Debug)]
pub(crate) struct Link {
    /// The person who asked for it, with the most that the device may do.
    actor: Actor,
    expires_at: Timestamp,
}

/// What a browser presents to sign in.
#[derive(Clone, Debug)]
pub struct SignIn {
    pub code: Secret,
    pub page_key: Option<PageKey>,
    pub browser: BrowserName,
}

/// Why a session is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceUse {
    /// A person loads a page or sends a form.
    ByPerson,
    /// An open page keeps itself up to date, which any forgotten browser does.
    ByItself,
}

/// A device that is signed in.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// Its person, with the role that it has now.
    pub actor: Actor,
    pub id: DeviceId,
    pub page_key: Option<PageKey>,
}

impl Devices {
    /// Creates a link for the caller. A link that was not asked for at a terminal opens a device that can only view.
    pub(crate) fn create_link(
        &self,
        actor: &Actor,
        at_terminal: bool,
    ) -> Result<(Secret, Timestamp), Error> {
        check_person(actor).map_err(errors::refused)?;
        if actor.device.is_some() {
            let what = "a device cannot sign in another one";
            return Err(Error::new(Code::Denied, what).hint("use `midwatch open` in a terminal"));
        }
        let code = random_text(CODE_BYTES)?;
        let now = self.time.monotonic_now().latest;
        let expires_at = now.after_us(LINK_VALID_US);
        let role = if at_terminal { actor.role } else { Role::Observer };
        let mut actor = actor.clone();
        actor.role = role;
        let link = Link { actor, expires_at };
        let mut links = self.links();
        links.retain(|_, link| now < link.expires_at);
        if LINKS_MAX <= links.len() {
            let what = format!("{LINKS_MAX} links are open; the limit is reached");
            return Err(Error::new(Code::LimitReached, what).hint("use one of them, or wait"));
        }
        links.insert(token_hash(&code), link);
        Ok((Secret(code), expires_at))
    }

    /// Signs a browser in by the code of a link, which works once. Returns its session secret.
    pub(crate) async fn sign_in(&self, sign_in: SignIn) -> Result<Secret, Error> {
        let SignIn { code: Secret(code), page_key, browser } = sign_in;
        let now = self.time.monotonic_now().latest;
        let link = self.links().remove(&token_hash(&code));
        let Some(Link { mut actor, .. }) = link.filter(|link| now < link.expires_at) else {
            let refusal = invalid_link();
            let by = Actor::unknown_client();
            let call = AuditedCall { by: &by, call: Some(ENTER), subject: None };
            self.audit.record_refusal(call, &refusal).await;
            return Err(refusal);
        };
        actor.role = actor.role.min(self.present_role(&actor).await?);
        self.end_devices_whose_time_is_over(now).await?;
        let secret = random_text(SECRET_BYTES)?;
        let hash = token_hash(&secret).parse().map_err(internal)?;
        let id = DeviceId::of(self.time.time_ordered(self.time.now()));
        let command = Command::Add { hash, page_key, browser };
        let rows = vec![row_key::<Device>(&id)];
        let token = actor.token.as_ref();
        let transaction = Transaction { rows, token, ..Transaction::by(&actor) };
        self.transactions
            .commit(transaction, |rows, now| {
                let event = decide(id.as_str(), rows.get(&id), &actor, command.clone(), now);
                let event = event.map_err(errors::refused)?;
                Ok(event.map(|event| EventBody::Device(id.clone(), event)).into_iter().collect())
            })
            .await?;
        self.used().insert(id, now);
        Ok(Secret(secret))
    }

    /// The person behind a session secret. A device whose time is over is ended.
    pub(crate) async fn authenticate(
        &self,
        Secret(secret): &Secret,
        usage: DeviceUse,
    ) -> Result<SignedIn, Error> {
        let (id, device) = self.find(secret).await?.ok_or_else(not_signed_in)?;
        let now = self.time.monotonic_now().latest;
        if let Some(why) = self.end_of(&id, &device, now) {
            self.end(&id, why).await?;
            return Err(not_signed_in());
        }
        let role = self.present_role(&device.actor(id.clone(), device.role)).await?;
        if usage == DeviceUse::ByPerson {
            self.used().insert(id.clone(), now);
        }
        let actor = device.actor(id.clone(), role);
        Ok(SignedIn { actor, id, page_key: device.page_key })
    }

    /// When a device was last used, since the daemon started.
    pub(crate) fn used_at(&self, id: &DeviceId) -> Option<Timestamp> {
        self.used().get(id).copied()
    }

    async fn find(&self, secret: &str) -> Result<Option<(DeviceId, Device)>, Error> {
        if secret.len() != SECRET_CHARS {
            return Ok(None);
        }
        let hash = token_hash(secret);
        let newest =
            Newest { noun: Noun::Device.name(), index_key: Some(&hash), before: "", limit: 1 };
        let found = self.store.list_newest(newest).await.map_err(errors::store)?;
        let Some(item) = found.first() else { return Ok(None) };
        let id: DeviceId = item.id.parse().map_err(internal)?;
        let device = decode_item::<Device>(item)?.filter(|device| device.hash.as_str() == hash);
        Ok(device.map(|device| (id, device)))
    }

    /// The role that the person has now. The token must still be valid, and a person without a token is a user of the
    /// machine.
    async fn present_role(&self, opener: &Actor) -> Result<Role, Error> {
        match (&opener.token, opener.principal()) {
            (Some(token), _) => {
                let rows = self.transactions.load(&[row_key::<Token>(token)]).await?;
                let holder = rows.get::<Token>(token).and_then(Token::actor);
                let holder = holder.filter(|holder| holder.principal() == opener.principal());
                holder.map(|holder| holder.role).ok_or_else(not_signed_in)
            }
            (None, Principal::User(_)) => self.authenticator.local_role().await,
            (None, _) => Err(not_signed_in()),
        }
    }

    /// Why the time of a device is over, if it is. A device that was not used since the start counts as used now.
    fn end_of(&self, id: &DeviceId, device: &Device, now: Timestamp) -> Option<EndReason> {
        if !device.is_valid(now) {
            return Some(EndReason::Expired);
        }
        let used = *self.used().entry(id.clone()).or_insert(now);
        (used.after_us(IDLE_US) <= now).then_some(EndReason::Idle)
    }

    async fn end(&self, id: &DeviceId, why: EndReason) -> Result<(), Error> {
        let rows = vec![row_key::<Device>(id)];
        let decided = self.transactions.commit_own(rows, Vec::new(), |rows, now| {
            let device = rows.get::<Device>(id);
            let event = decide(id.as_str(), device, &Actor::system(), Command::End(why), now);
            let event = event.map_err(errors::refused)?;
            Ok(event.map(|event| EventBody::Device(id.clone(), event)).into_iter().collect())
        });
        decided.await?;
        self.used().remove(id);
        Ok(())
    }

    /// So that those that no one uses any more do not count towards the limit.
    async fn end_devices_whose_time_is_over(&self, now: Timestamp) -> Result<(), Error> {
        let newest =
            Newest { noun: Noun::Device.name(), index_key: None, before: "", limit: SEARCHED_MAX };
        for item in self.store.list_newest(newest).await.map_err(errors::store)? {
            let id: DeviceId = item.id.parse().map_err(internal)?;
            let device = decode_item::<Device>(&item)?.filter(|device| device.revoked.is_none());
            if let Some(why) = device.and_then(|device| self.end_of(&id, &device, now)) {
                self.end(&id, why).await?;
            }
        }
        Ok(())
    }

    fn links(&self) -> MutexGuard<'_, HashMap<String, Link>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used(&self) -> MutexGuard<'_, HashMap<DeviceId, Timestamp>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn random_text(bytes: usize) -> Result<String, Error> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(internal)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(random))
}

fn invalid_link() -> Error {
    Error::new(Code::TokenInvalid, "this link was used before, is too old, or is none of ours")
        .hint("`midwatch open` in a terminal makes a new one")
}

/// The same error for every reason.
fn not_signed_in() -> Error {
    Error::new(Code::TokenInvalid, "this browser is not signed in")
        .hint("`midwatch open` in a terminal makes a link that signs it in")
}

impl ToError for kernel::device::Refusal {
    fn to_error(&self) -> Error {
        use kernel::device::Refusal;
        match self {
            Refusal::Unknown(_) => {
                Error::new(Code::NotFound, self).hint("`midwatch device list` shows the devices")
            }
            Refusal::NotAPerson(_) => Error::new(Code::HumanNeeded, self)
                .hint("a person opens the dashboard with `midwatch open` in a terminal"),
            Refusal::NotYours => Error::new(Code::RoleTooLow, self)
                .hint("ask a maintainer, or the person whose device it is"),
        }
    }
}
