//! An access token: it authenticates its holder, with a role.
//!
//! Only its hash is stored. Its name is that of the holder, and two tokens with one name belong to one person.
//! No name belongs to both an agent and an approver.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Role};
use crate::counter::Counter;
use crate::event::kinds;
use crate::id::timed_id;
use crate::noun::{ChangedRow, NounEvent, NounState};
use crate::principal::{Human, Principal, SYSTEM_NAME};
use crate::private_fields::{PrivateField, note};
use crate::schedule::check_note;
use crate::time::Timestamp;
use crate::{EventBody, Noun};

timed_id!(TokenId "tok_" "token");

pub const NAME_BYTES_MAX: usize = 64;
/// The prefix of a token's secret, by which scanners find leaked ones.
pub const TOKEN_PREFIX: &str = "mwt_";
/// Hexadecimal digits after the prefix: 256 bits.
pub const TOKEN_DIGITS: usize = 64;
const HASH_DIGITS: usize = 64;
const KEY_BYTES_MAX: usize = 256;

/// Invariant: 1 to 64 ASCII letters, digits, `-`, `_`, `.` and `@`, and not the name of Midwatch itself, so
/// that it is never the text of another kind of [`Principal`](crate::Principal).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PersonName(String);

/// Invariant: 64 hexadecimal digits, a SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TokenHash(String);

/// Invariant: 1 to 256 printable ASCII characters without blanks. The kernel does not interpret them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PublicKey(String);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    pub name: PersonName,
    pub role: Role,
    pub hash: TokenHash,
    /// Verifies the signatures of the holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PublicKey>,
    /// The kind of program that uses it for the person, if it is not for the person or agent itself.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub client: Option<TokenClient>,
    pub created_by: String,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revoked>,
}

/// A kind of program that acts for a person with a token of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenClient {
    /// An MCP client, which a model controls.
    Mcp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Created(Created),
    Revoked(Revoked),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Created {
    pub name: PersonName,
    pub role: Role,
    pub hash: TokenHash,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PublicKey>,
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub client: Option<TokenClient>,
    pub by: String,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revoked {
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Create {
        name: PersonName,
        role: Role,
        hash: TokenHash,
        key: Option<PublicKey>,
        client: Option<TokenClient>,
        /// The roles of the valid tokens that have this name.
        existing_roles: Vec<Role>,
    },
    Revoke {
        note: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("token `{0}` does not exist")]
    Unknown(String),
    #[error("this needs the role `{}`, but `{}` has the role `{}`", needed.name(), actor.name(), actor.role.name())]
    RoleTooLow { actor: Actor, needed: Role },
    #[error("a token cannot have the role `{}`", .0.name())]
    RoleNotAllowed(Role),
    #[error("a token for MCP clients has the role `runner`, not `{}`", .0.name())]
    RoleNotForClient(Role),
    #[error("a token with the role `{}` cannot have a key: its holder cannot approve", .0.name())]
    KeyNotAllowed(Role),
    #[error("`{name}` has a token with the role `{}`; one name cannot be both an agent and an approver", has.name())]
    AgentAndApprover { name: PersonName, has: Role },
    #[error(transparent)]
    Note(#[from] crate::schedule::Refusal),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid name of a person")]
pub struct InvalidName(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid token hash")]
pub struct InvalidHash;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid public key")]
pub struct InvalidKey;

/// Decides a command about the token `id`. A command that would change nothing returns `None`.
pub fn decide(
    id: &str,
    token: Option<&Token>,
    actor: &Actor,
    command: Command,
    now: Timestamp,
) -> Result<Option<Event>, Refusal> {
    let needed = Role::Maintainer;
    if actor.role < needed {
        return Err(Refusal::RoleTooLow { actor: actor.clone(), needed });
    }
    let by = actor.name().to_owned();
    match (command, token) {
        (Command::Create { role: role @ Role::System, .. }, _) => {
            Err(Refusal::RoleNotAllowed(role))
        }
        // A key signs approvals, and these roles cannot approve.
        (Command::Create { role, key: Some(_), .. }, None) if role < Role::Operator => {
            Err(Refusal::KeyNotAllowed(role))
        }
        (Command::Create { role, client: Some(_), .. }, None) if role != Role::Runner => {
            Err(Refusal::RoleNotForClient(role))
        }
        (Command::Create { name, role, hash, key, client, existing_roles }, None) => {
            // A client's token has the name of the person it acts for.
            let holder = if client.is_some() { Role::Operator } else { role };
            match existing_roles.into_iter().find(|has| is_agent_and_approver(holder, *has)) {
                Some(has) => Err(Refusal::AgentAndApprover { name, has }),
                None => {
                    let created = Created { name, role, hash, key, client, by, at: now };
                    Ok(Some(Event::Created(created)))
                }
            }
        }
        (Command::Create { .. }, Some(_)) => Ok(None),
        (Command::Revoke { .. }, None) => Err(Refusal::Unknown(id.to_owned())),
        (Command::Revoke { note }, Some(Token { revoked: None, .. })) => {
            check_note(note.as_deref())?;
            Ok(Some(Event::Revoked(Revoked { by, note, at: now })))
        }
        (Command::Revoke { .. }, Some(_)) => Ok(None),
    }
}

/// Whether one of two roles is an agent's and the other an approver's.
fn is_agent_and_approver(one: Role, other: Role) -> bool {
    let (low, high) = (one.min(other), one.max(other));
    low == Role::Runner && Role::Operator <= high
}

/// Whether a text contains the secret of a token.
pub fn contains_secret(text: &str) -> bool {
    text.match_indices(TOKEN_PREFIX).any(|(at, prefix)| {
        let rest = text.bytes().skip(at + prefix.len());
        TOKEN_DIGITS <= rest.take_while(u8::is_ascii_hexdigit).count()
    })
}

/// The token after an event.
pub fn apply(token: Option<Token>, event: &Event) -> Option<Token> {
    match event {
        Event::Created(Created { name, role, hash, key, client, by, at }) => Some(Token {
            name: name.clone(),
            role: *role,
            hash: hash.clone(),
            key: key.clone(),
            client: *client,
            created_by: by.clone(),
            created_at: *at,
            revoked: None,
        }),
        Event::Revoked(revoked) => Some(Token { revoked: Some(revoked.clone()), ..token? }),
    }
}

impl Token {
    /// The actor that it authenticates, unless it was revoked.
    pub fn actor(&self) -> Option<Actor> {
        let actor = match self.client {
            None => Actor::token_holder(self.name.clone(), self.role),
            Some(TokenClient::Mcp) => {
                let person = Human::Person(self.name.clone());
                Actor::new(Principal::Assistant(person), Role::Runner)
            }
        };
        self.revoked.is_none().then_some(actor)
    }
}

impl NounState for Token {
    type Id = TokenId;
    /// Valid tokens.
    const OBJECTS_MAX: i64 = 1_000;

    fn apply(_: &str, token: Option<Token>, body: &EventBody) -> Option<Token> {
        match body {
            EventBody::Token(_, event) => apply(token, event),
            _ => token,
        }
    }

    /// Its hash, unless it was revoked.
    fn index_key(&self) -> Option<String> {
        self.revoked.is_none().then(|| self.hash.0.clone())
    }
}

kinds! {
    Event:
    "token.created" 1 Created;
    "token.revoked" 1 Revoked;
}

impl NounEvent for Event {
    type State = Token;

    fn changed_rows(&self, id: &TokenId) -> Vec<ChangedRow> {
        match self {
            Event::Created(_) => vec![ChangedRow::new::<Token>(id)],
            Event::Revoked(_) => vec![ChangedRow::existing::<Token>(id)],
        }
    }

    fn counter_deltas(&self) -> Vec<(Counter, i64)> {
        match self {
            Event::Created(_) => vec![(Counter::Objects(Noun::Token), 1)],
            Event::Revoked(_) => vec![(Counter::Objects(Noun::Token), -1)],
        }
    }

    fn private_fields_mut(&mut self) -> Vec<PrivateField<'_>> {
        match self {
            Event::Created(_) => Vec::new(),
            Event::Revoked(revoked) => note(&mut revoked.note),
        }
    }
}

impl PersonName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PersonName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<PersonName, InvalidName> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
        let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(plain);
        match fits && text != SYSTEM_NAME {
            true => Ok(PersonName(text.to_owned())),
            false => Err(InvalidName(text.chars().take(80).collect())),
        }
    }
}

impl FromStr for TokenHash {
    type Err = InvalidHash;

    fn from_str(text: &str) -> Result<TokenHash, InvalidHash> {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match text.len() == HASH_DIGITS && text.bytes().all(is_hex) {
            true => Ok(TokenHash(text.to_owned())),
            false => Err(InvalidHash),
        }
    }
}

impl fmt::Display for PersonName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for PublicKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<PublicKey, InvalidKey> {
        let fits = (1..=KEY_BYTES_MAX).contains(&text.len());
        match fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(PublicKey(text.to_owned())),
            false => Err(InvalidKey),
        }
    }
}

impl PublicKey {
    /// Whether two keys are equal apart from their names.
    pub fn is_same_key(&self, other: &PublicKey) -> bool {
        let key = |it: &PublicKey| it.0.splitn(3, '+').nth(2).map(str::to_owned);
        key(self).is_some() && key(self) == key(other)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> String {
        key.0
    }
}

impl TryFrom<String> for PublicKey {
    type Error = InvalidKey;

    fn try_from(text: String) -> Result<PublicKey, InvalidKey> {
        text.parse()
    }
}

impl TokenHash {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<PersonName> for String {
    fn from(name: PersonName) -> String {
        name.0
    }
}

impl TryFrom<String> for PersonName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<PersonName, InvalidName> {
        text.parse()
    }
}

impl From<TokenHash> for String {
    fn from(hash: TokenHash) -> String {
        hash.0
    }
}

impl TryFrom<String> for TokenHash {
    type Error = InvalidHash;

    fn try_from(text: String) -> Result<TokenHash, InvalidHash> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: i64) -> Timestamp {
        Timestamp::from_micros(us)
    }

    fn create(role: Role) -> Command {
        let hash = "ab".repeat(32).parse().unwrap();
        Command::Create {
            name: "ada".parse().unwrap(),
            role,
            hash,
            key: None,
            client: None,
            existing_roles: Vec::new(),
        }
    }

    fn create_with_existing(role: Role, has: Role) -> Command {
        let mut command = create(role);
        if let Command::Create { existing_roles, .. } = &mut command {
            *existing_roles = vec![Role::Observer, has];
        }
        command
    }

    fn create_for_mcp(role: Role, has: Role) -> Command {
        let mut command = create_with_existing(role, has);
        if let Command::Create { client, .. } = &mut command {
            *client = Some(TokenClient::Mcp);
        }
        command
    }

    fn by(role: Role) -> Actor {
        Actor::token_holder("caller".parse().unwrap(), role)
    }

    #[test]
    fn only_a_maintainer_creates_and_revokes_tokens() {
        use Role::{Maintainer, Observer, Operator, Runner};
        let maintainer = by(Maintainer);
        for role in [Observer, Runner, Operator, Maintainer] {
            let created = decide("tok_1", None, &maintainer, create(role), at(0)).unwrap();
            let token = apply(None, &created.unwrap()).unwrap();
            assert_eq!(token.actor(), Some(Actor::token_holder("ada".parse().unwrap(), role)));
            for other in [Observer, Runner, Operator] {
                let revoke = Command::Revoke { note: None };
                assert!(decide("tok_1", None, &by(other), create(role), at(0)).is_err());
                assert!(decide("tok_1", Some(&token), &by(other), revoke, at(0)).is_err());
            }
        }
        let system = decide("tok_1", None, &maintainer, create(Role::System), at(0));
        assert_eq!(system, Err(Refusal::RoleNotAllowed(Role::System)));
    }

    #[test]
    fn no_name_is_both_an_agent_and_an_approver() {
        use Role::{Maintainer, Observer, Operator, Runner};
        for role in [Observer, Runner, Operator, Maintainer] {
            for has in [Observer, Runner, Operator, Maintainer] {
                let command = create_with_existing(role, has);
                let decided = decide("tok_1", None, &by(Maintainer), command, at(0));
                let both = [role, has];
                let is_refused = both.contains(&Runner)
                    && (both.contains(&Operator) || both.contains(&Maintainer));
                assert_eq!(decided.is_err(), is_refused, "{role:?} {has:?}");
            }
        }
    }

    #[test]
    fn token_for_mcp_clients_acts_for_its_person_and_cannot_approve() {
        use Role::{Maintainer, Observer, Operator, Runner};
        let decide =
            |role, has| decide("tok_1", None, &by(Maintainer), create_for_mcp(role, has), at(0));
        for has in [Observer, Operator, Maintainer] {
            let token = apply(None, &decide(Runner, has).unwrap().unwrap()).unwrap();
            let actor = token.actor().unwrap();
            assert_eq!((actor.name(), actor.role), ("mcp:ada", Runner));
        }
        for role in [Observer, Operator, Maintainer] {
            assert_eq!(decide(role, Observer), Err(Refusal::RoleNotForClient(role)));
        }
        let agents_name = Refusal::AgentAndApprover { name: "ada".parse().unwrap(), has: Runner };
        assert_eq!(decide(Runner, Runner), Err(agents_name));
    }

    #[test]
    fn a_revoked_token_authenticates_no_one() {
        let maintainer = by(Role::Maintainer);
        let created = decide("tok_1", None, &maintainer, create(Role::Operator), at(0)).unwrap();
        let token = apply(None, &created.unwrap()).unwrap();
        let revoke = || Command::Revoke { note: None };
        let revoked = decide("tok_1", Some(&token), &maintainer, revoke(), at(1)).unwrap();
        let token = apply(Some(token), &revoked.unwrap()).unwrap();
        assert_eq!((token.actor(), token.index_key()), (None, None));
        assert_eq!(decide("tok_1", Some(&token), &maintainer, revoke(), at(2)), Ok(None));
        let unknown = decide("tok_2", None, &maintainer, revoke(), at(2));
        assert_eq!(unknown, Err(Refusal::Unknown("tok_2".into())));
    }

    #[test]
    fn contains_secret_finds_a_whole_token_in_text() {
        let secret = format!("{TOKEN_PREFIX}{}", "0a".repeat(TOKEN_DIGITS / 2));
        assert!(contains_secret(&secret) && contains_secret(&format!("--token=mwt_{secret},")));
        assert!(
            !contains_secret(&secret[..secret.len() - 1])
                && !contains_secret("mwt_")
                && !contains_secret("")
        );
    }

    #[test]
    fn person_names_cannot_imitate_local_users_runs_or_the_system() {
        for name in ["ada", "ada@home.example", "A-1_b.c", &"a".repeat(64)] {
            assert!(name.parse::<PersonName>().is_ok(), "{name}");
        }
        for name in ["", "midwatch", "uid:0", "run:run_1", "a b", "ä", "a\n", &"a".repeat(65)] {
            assert!(name.parse::<PersonName>().is_err(), "{name}");
        }
    }
}
