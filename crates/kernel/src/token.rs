//! A token: what somebody shows to be let in as themselves, with a role.
//!
//! Only its hash is known here. Its name is the person who holds it, however many tokens they have: two
//! tokens of one name are one person. No name is both an agent's and that of a person who approves.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Role};
use crate::schedule::check_note;
use crate::time::Timestamp;

/// Tokens that let somebody in at a time.
pub const TOKENS_MAX: i64 = 1_000;
pub const NAME_BYTES_MAX: usize = 64;
/// What the secret of a token begins with, so that scanners find one that was lost.
pub const TOKEN_PREFIX: &str = "mwt_";
/// Hexadecimal digits that follow: 256 bits.
pub const TOKEN_DIGITS: usize = 64;
const HASH_DIGITS: usize = 64;
const KEY_BYTES_MAX: usize = 256;

/// Invariant: 1 to 64 letters, digits, `-`, `_`, `.` and `@` of ASCII, and not a name of the watch itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PersonName(String);

/// Invariant: 64 hexadecimal digits, a SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TokenHash(String);

/// Invariant: 1 to 256 printable characters without blanks. What they mean is not known here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PublicKey(String);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    pub name: PersonName,
    pub role: Role,
    pub hash: TokenHash,
    /// What the signatures of the person are checked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PublicKey>,
    pub created_by: String,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revoked>,
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
    pub by: String,
    pub at: Timestamp,
}

/// It lets nobody in any more.
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
        /// Those with which the name is let in already.
        roles: Vec<Role>,
    },
    Revoke {
        note: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no token `{0}`")]
    Unknown(String),
    #[error("this needs the role `{}`, and `{}` has the role `{}`", needed.name(), actor.name, actor.role.name())]
    RoleTooLow { actor: Actor, needed: Role },
    #[error("no token has the role `{}`", .0.name())]
    Role(Role),
    #[error("a token of the role `{}` has no key: its holder approves nothing", .0.name())]
    NoKeyFor(Role),
    #[error("`{name}` has a token of the role `{}`, and no agent is one of those who approve", has.name())]
    TwoKinds { name: PersonName, has: Role },
    #[error(transparent)]
    Note(#[from] crate::schedule::Refusal),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be the name of a person")]
pub struct InvalidName(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the hash of a token")]
pub struct InvalidHash;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a public key")]
pub struct InvalidKey;

/// Every rule about tokens. Nothing happens when it is so already.
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
    let by = actor.name.clone();
    match (command, token) {
        (Command::Create { role: role @ Role::System, .. }, _) => Err(Refusal::Role(role)),
        // What cannot approve has nothing to sign.
        (Command::Create { role, key: Some(_), .. }, None) if role < Role::Operator => {
            Err(Refusal::NoKeyFor(role))
        }
        (Command::Create { name, role, hash, key, roles }, None) => {
            match roles.into_iter().find(|has| is_other_kind(role, *has)) {
                Some(has) => Err(Refusal::TwoKinds { name, has }),
                None => Ok(Some(Event::Created(Created { name, role, hash, key, by, at: now }))),
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

/// Whether one of two roles is an agent's and the other that of somebody who approves.
fn is_other_kind(one: Role, other: Role) -> bool {
    let (low, high) = (one.min(other), one.max(other));
    low == Role::Runner && Role::Operator <= high
}

/// Whether the secret of a token stands in a text.
pub fn is_in(text: &str) -> bool {
    text.match_indices(TOKEN_PREFIX).any(|(at, prefix)| {
        let rest = text.bytes().skip(at + prefix.len());
        TOKEN_DIGITS <= rest.take_while(u8::is_ascii_hexdigit).count()
    })
}

/// The token after an event.
pub fn apply(token: Option<Token>, event: &Event) -> Option<Token> {
    match event {
        Event::Created(Created { name, role, hash, key, by, at }) => Some(Token {
            name: name.clone(),
            role: *role,
            hash: hash.clone(),
            key: key.clone(),
            created_by: by.clone(),
            created_at: *at,
            revoked: None,
        }),
        Event::Revoked(revoked) => Some(Token { revoked: Some(revoked.clone()), ..token? }),
    }
}

impl Token {
    /// Whom it lets in.
    pub fn actor(&self) -> Option<Actor> {
        let actor = Actor { name: self.name.0.clone(), role: self.role };
        self.revoked.is_none().then_some(actor)
    }

    /// It is found by its hash while it lets somebody in.
    pub(crate) fn listed_under(&self) -> Option<String> {
        self.revoked.is_none().then(|| self.hash.0.clone())
    }
}

impl FromStr for PersonName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<PersonName, InvalidName> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
        let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(plain);
        match fits && text != Actor::system().name {
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
    /// Whether it is the same key, whatever name stands before it.
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
        Command::Create { name: "ada".parse().unwrap(), role, hash, key: None, roles: Vec::new() }
    }

    fn create_beside(role: Role, has: Role) -> Command {
        match create(role) {
            Command::Create { name, role, hash, key, .. } => {
                Command::Create { name, role, hash, key, roles: vec![Role::Observer, has] }
            }
            other => other,
        }
    }

    fn by(role: Role) -> Actor {
        Actor { name: "somebody".into(), role }
    }

    #[test]
    fn only_a_maintainer_gives_and_takes_tokens() {
        use Role::{Maintainer, Observer, Operator, Runner};
        let maintainer = by(Maintainer);
        for role in [Observer, Runner, Operator, Maintainer] {
            let created = decide("tok_1", None, &maintainer, create(role), at(0)).unwrap();
            let token = apply(None, &created.unwrap()).unwrap();
            assert_eq!(token.actor(), Some(Actor { name: "ada".into(), role }));
            for other in [Observer, Runner, Operator] {
                let revoke = Command::Revoke { note: None };
                assert!(decide("tok_1", None, &by(other), create(role), at(0)).is_err());
                assert!(decide("tok_1", Some(&token), &by(other), revoke, at(0)).is_err());
            }
        }
        let system = decide("tok_1", None, &maintainer, create(Role::System), at(0));
        assert_eq!(system, Err(Refusal::Role(Role::System)));
    }

    #[test]
    fn no_name_is_an_agents_and_an_approvers() {
        use Role::{Maintainer, Observer, Operator, Runner};
        for role in [Observer, Runner, Operator, Maintainer] {
            for has in [Observer, Runner, Operator, Maintainer] {
                let command = create_beside(role, has);
                let decided = decide("tok_1", None, &by(Maintainer), command, at(0));
                let both = [role, has];
                let is_refused = both.contains(&Runner)
                    && (both.contains(&Operator) || both.contains(&Maintainer));
                assert_eq!(decided.is_err(), is_refused, "{role:?} {has:?}");
            }
        }
    }

    #[test]
    fn a_token_that_was_revoked_lets_nobody_in() {
        let maintainer = by(Role::Maintainer);
        let created = decide("tok_1", None, &maintainer, create(Role::Operator), at(0)).unwrap();
        let token = apply(None, &created.unwrap()).unwrap();
        let revoke = || Command::Revoke { note: None };
        let revoked = decide("tok_1", Some(&token), &maintainer, revoke(), at(1)).unwrap();
        let token = apply(Some(token), &revoked.unwrap()).unwrap();
        assert_eq!((token.actor(), token.listed_under()), (None, None));
        assert_eq!(decide("tok_1", Some(&token), &maintainer, revoke(), at(2)), Ok(None));
        let unknown = decide("tok_2", None, &maintainer, revoke(), at(2));
        assert_eq!(unknown, Err(Refusal::Unknown("tok_2".into())));
    }

    #[test]
    fn a_secret_is_found_in_a_text() {
        let secret = format!("{TOKEN_PREFIX}{}", "0a".repeat(TOKEN_DIGITS / 2));
        assert!(is_in(&secret) && is_in(&format!("--token=mwt_{secret},")));
        assert!(!is_in(&secret[..secret.len() - 1]) && !is_in("mwt_") && !is_in(""));
    }

    /// No name passes for a user of the machine, a run, or the watch.
    #[test]
    fn names_of_people() {
        for name in ["ada", "ada@home.example", "A-1_b.c", &"a".repeat(64)] {
            assert!(name.parse::<PersonName>().is_ok(), "{name}");
        }
        for name in ["", "midwatch", "uid:0", "run:run_1", "a b", "ä", "a\n", &"a".repeat(65)] {
            assert!(name.parse::<PersonName>().is_err(), "{name}");
        }
    }
}
