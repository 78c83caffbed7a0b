//! A device: a browser in which a person has signed in.
//!
//! Only the hash of its session secret is stored. A device acts for the person who opened it, never with more than their
//! role, and only as long as the token that opened it is valid. It ends after a fixed time, when it is not used, or when it
//! is revoked. It looks with its session; to decide, it also signs with its page key.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Role};
use crate::counter::Counter;
use crate::event::kinds;
use crate::id::timed_id;
use crate::noun::{ChangedRow, NounEvent, NounState};
use crate::principal::Principal;
use crate::time::Timestamp;
use crate::token::TokenHash;
use crate::{EventBody, Noun, TokenId};

timed_id!(DeviceId "dev_" "device");

/// How long a device is valid.
pub const VALID_US: i64 = 7 * 86_400_000_000;
/// How long a device may be unused.
pub const IDLE_US: i64 = 12 * 3_600_000_000;
/// The characters of an uncompressed P-256 point in base64url without padding.
const PAGE_KEY_CHARS: usize = 87;
const BROWSER_CHARS_MAX: usize = 40;

/// The public key of a page in the browser. Invariant: 87 characters of base64url that begin with `B`, as an uncompressed
/// P-256 point does. Whether it is a point is known when a signature is verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PageKey(String);

/// The name of a browser, such as `Firefox on Linux`. Invariant: 1 to 40 ASCII letters, digits and blanks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct BrowserName(String);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The person who opened it.
    pub person: Principal,
    /// The most that it may do.
    pub role: Role,
    /// The hash of its session secret.
    pub hash: TokenHash,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_key: Option<PageKey>,
    pub browser: BrowserName,
    /// The token that opened it. Its revocation ends the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    pub added_at: Timestamp,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revoked>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Added(Added),
    Revoked(Revoked),
}

/// A person signed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Added {
    pub person: Principal,
    pub role: Role,
    pub hash: TokenHash,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_key: Option<PageKey>,
    pub browser: BrowserName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    pub expires_at: Timestamp,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revoked {
    pub by: Principal,
    pub why: EndReason,
    pub at: Timestamp,
}

/// Why a device ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// A person revoked it, or signed out.
    Revoked,
    /// Its time was over.
    Expired,
    /// It was not used for too long.
    Idle,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The actor signs in.
    Add {
        hash: TokenHash,
        page_key: Option<PageKey>,
        browser: BrowserName,
    },
    Revoke,
    /// Ends a device whose time is over.
    End(EndReason),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("device `{0}` does not exist")]
    Unknown(String),
    #[error("only people sign in, and `{0}` is none")]
    NotAPerson(String),
    #[error("only a maintainer revokes the device of another person")]
    NotYours,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid page key")]
pub struct InvalidPageKey;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid name of a browser")]
pub struct InvalidBrowserName;

/// Refuses everyone but people: the user of the machine and holders of tokens. Agents, runs and assistants are refused
/// whatever they may do otherwise.
pub fn check_person(actor: &Actor) -> Result<(), Refusal> {
    let is_person = match actor.principal() {
        Principal::User(_) | Principal::Person(_) => {
            matches!(actor.role, Role::Observer | Role::Operator | Role::Maintainer)
        }
        Principal::Agent(_)
        | Principal::Run(_)
        | Principal::UnknownRun
        | Principal::ToolCall(_)
        | Principal::Assistant(_)
        | Principal::Schedule(_)
        | Principal::UnknownClient
        | Principal::System
        | Principal::Unrecognized(_) => false,
    };
    if is_person { Ok(()) } else { Err(Refusal::NotAPerson(actor.name().to_owned())) }
}

/// Decides a command about the device `id`. A command that would change nothing returns `None`.
pub fn decide(
    id: &str,
    device: Option<&Device>,
    actor: &Actor,
    command: Command,
    now: Timestamp,
) -> Result<Option<Event>, Refusal> {
    match (command, device) {
        (Command::Add { hash, page_key, browser }, None) => {
            check_person(actor)?;
            Ok(Some(Event::Added(Added {
                person: actor.principal().clone(),
                role: actor.role,
                hash,
                page_key,
                browser,
                token: actor.token.clone(),
                expires_at: now.after_us(VALID_US),
                at: now,
            })))
        }
        (Command::Add { .. }, Some(_)) => Ok(None),
        (Command::Revoke, device) => {
            check_person(actor)?;
            let device = device.ok_or_else(|| Refusal::Unknown(id.to_owned()))?;
            if device.person != *actor.principal() && actor.role < Role::Maintainer {
                return Err(Refusal::NotYours);
            }
            Ok(end(device, actor, EndReason::Revoked, now))
        }
        (Command::End(why), Some(device)) => Ok(end(device, actor, why, now)),
        (Command::End(_), None) => Ok(None),
    }
}

fn end(device: &Device, actor: &Actor, why: EndReason, at: Timestamp) -> Option<Event> {
    let by = actor.principal().clone();
    device.revoked.is_none().then_some(Event::Revoked(Revoked { by, why, at }))
}

/// The device after an event.
pub fn apply(device: Option<Device>, event: &Event) -> Option<Device> {
    match event {
        Event::Added(Added { person, role, hash, page_key, browser, token, expires_at, at }) => {
            Some(Device {
                person: person.clone(),
                role: *role,
                hash: hash.clone(),
                page_key: page_key.clone(),
                browser: browser.clone(),
                token: token.clone(),
                added_at: *at,
                expires_at: *expires_at,
                revoked: None,
            })
        }
        Event::Revoked(revoked) => Some(Device { revoked: Some(revoked.clone()), ..device? }),
    }
}

impl Device {
    /// Whether it may be used now.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && now < self.expires_at
    }

    /// The actor behind it, when its person has this role at present.
    pub fn actor(&self, id: DeviceId, present_role: Role) -> Actor {
        let mut actor = Actor::new(self.person.clone(), self.role.min(present_role));
        actor.token.clone_from(&self.token);
        actor.device = Some(Box::new(id));
        actor
    }
}

impl NounState for Device {
    type Id = DeviceId;
    /// Devices that were not revoked. Those whose time is over are ended at the next sign-in.
    const OBJECTS_MAX: i64 = 1_000;

    fn apply(_: &str, device: Option<Device>, body: &EventBody) -> Option<Device> {
        match body {
            EventBody::Device(_, event) => apply(device, event),
            _ => device,
        }
    }

    /// The hash of its secret, unless it was revoked.
    fn index_key(&self) -> Option<String> {
        self.revoked.is_none().then(|| self.hash.as_str().to_owned())
    }
}

kinds! {
    Event:
    "device.added" 1 Added;
    "device.revoked" 1 Revoked;
}

impl NounEvent for Event {
    type State = Device;

    fn changed_rows(&self, id: &DeviceId) -> Vec<ChangedRow> {
        match self {
            Event::Added(_) => vec![ChangedRow::new::<Device>(id)],
            Event::Revoked(_) => vec![ChangedRow::existing::<Device>(id)],
        }
    }

    fn counter_deltas(&self) -> Vec<(Counter, i64)> {
        match self {
            Event::Added(_) => vec![(Counter::Objects(Noun::Device), 1)],
            Event::Revoked(_) => vec![(Counter::Objects(Noun::Device), -1)],
        }
    }
}

impl PageKey {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl BrowserName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BrowserName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for PageKey {
    type Err = InvalidPageKey;

    fn from_str(text: &str) -> Result<PageKey, InvalidPageKey> {
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let fits = text.len() == PAGE_KEY_CHARS && text.starts_with('B');
        match fits && text.bytes().all(is_base64) {
            true => Ok(PageKey(text.to_owned())),
            false => Err(InvalidPageKey),
        }
    }
}

impl FromStr for BrowserName {
    type Err = InvalidBrowserName;

    fn from_str(text: &str) -> Result<BrowserName, InvalidBrowserName> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b' ';
        match (1..=BROWSER_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_plain) {
            true => Ok(BrowserName(text.to_owned())),
            false => Err(InvalidBrowserName),
        }
    }
}

impl From<PageKey> for String {
    fn from(key: PageKey) -> String {
        key.0
    }
}

impl TryFrom<String> for PageKey {
    type Error = InvalidPageKey;

    fn try_from(text: String) -> Result<PageKey, InvalidPageKey> {
        text.parse()
    }
}

impl From<BrowserName> for String {
    fn from(name: BrowserName) -> String {
        name.0
    }
}

impl TryFrom<String> for BrowserName {
    type Error = InvalidBrowserName;

    fn try_from(text: String) -> Result<BrowserName, InvalidBrowserName> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunId;

    fn at(us: i64) -> Timestamp {
        Timestamp::from_micros(us)
    }

    fn add() -> Command {
        Command::Add {
            hash: "ab".repeat(32).parse().unwrap(),
            page_key: Some(format!("B{}", "a".repeat(86)).parse().unwrap()),
            browser: "Firefox on Linux".parse().unwrap(),
        }
    }

    fn device_of(actor: &Actor) -> Device {
        let event = decide("dev_1", None, actor, add(), at(5)).unwrap().unwrap();
        apply(None, &event).unwrap()
    }

    fn person(name: &str, role: Role) -> Actor {
        Actor::token_holder(name.parse().unwrap(), role)
    }

    #[test]
    fn only_people_sign_in() {
        let run: RunId = "run_0000000000000000000000000000002a".parse().unwrap();
        let people =
            [Actor::local_user(1000), person("ada", Role::Observer), person("ada", Role::Operator)];
        for actor in people {
            assert!(decide("dev_1", None, &actor, add(), at(0)).unwrap().is_some(), "{actor:?}");
        }
        let others = [
            person("ada", Role::Runner),
            Actor::local_user(1000).into_assistant(),
            Actor::for_run(&run),
            Actor::for_unknown_run(),
            Actor::for_tool_call(&run),
            Actor::unknown_client(),
            Actor::system(),
        ];
        for actor in others {
            let refused = decide("dev_1", None, &actor, add(), at(0));
            assert_eq!(refused, Err(Refusal::NotAPerson(actor.name().to_owned())));
        }
    }

    #[test]
    fn device_is_valid_until_its_time_is_over_or_it_is_revoked() {
        let ada = person("ada", Role::Operator);
        let device = device_of(&ada);
        assert!(device.is_valid(at(5)) && device.is_valid(at(4 + VALID_US)));
        assert!(!device.is_valid(at(5 + VALID_US)));
        assert!(device.index_key().is_some());
        let revoked = decide("dev_1", Some(&device), &ada, Command::Revoke, at(6)).unwrap();
        let revoked = apply(Some(device), &revoked.unwrap()).unwrap();
        assert!(!revoked.is_valid(at(6)));
        assert_eq!(revoked.index_key(), None);
        for command in [Command::Revoke, Command::End(EndReason::Idle)] {
            assert_eq!(decide("dev_1", Some(&revoked), &ada, command, at(7)), Ok(None));
        }
    }

    #[test]
    fn people_revoke_their_own_devices_and_maintainers_all() {
        let device = device_of(&person("ada", Role::Operator));
        let revoke =
            |actor: &Actor| decide("dev_1", Some(&device), actor, Command::Revoke, at(6)).is_ok();
        assert!(revoke(&person("ada", Role::Observer)));
        assert!(revoke(&person("mia", Role::Maintainer)));
        assert!(!revoke(&person("ben", Role::Operator)));
        assert!(!revoke(&person("ada", Role::Operator).into_assistant()));
        let nothing = decide("dev_1", None, &person("ada", Role::Operator), Command::Revoke, at(6));
        assert_eq!(nothing, Err(Refusal::Unknown("dev_1".to_owned())));
    }

    #[test]
    fn device_never_has_more_rights_than_its_person_has_now() {
        let id = || DeviceId::of(1);
        let device = device_of(&person("ada", Role::Operator));
        for (present, expected) in [
            (Role::Observer, Role::Observer),
            (Role::Operator, Role::Operator),
            (Role::Maintainer, Role::Operator),
        ] {
            let actor = device.actor(id(), present);
            assert_eq!((actor.role, actor.name()), (expected, "ada"));
            assert_eq!(actor.device.as_deref(), Some(&id()));
        }
    }

    #[test]
    fn texts_of_another_form_are_refused() {
        let key = format!("B{}", "a".repeat(86));
        assert!(key.parse::<PageKey>().is_ok());
        let long = format!("{key}a");
        for text in ["", &key[1..], &long, &format!("A{}", &key[1..]), &format!("{}+", &key[..86])]
        {
            assert!(text.parse::<PageKey>().is_err(), "{text}");
        }
        assert!("Chrome on macOS".parse::<BrowserName>().is_ok());
        for text in ["", "a\u{202e}b", "<b>", &"a".repeat(41)] {
            assert!(text.parse::<BrowserName>().is_err(), "{text}");
        }
    }
}
