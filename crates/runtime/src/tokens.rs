//! Tokens: given out, listed, taken back, and looked up when somebody comes with one.

use api::{Answer, Code, Error, TokenCreate, TokenCreated, TokenList, TokenRevoke};
use api::{TokenRevoked, Tokens};
use kernel::token::{self, Command, PersonName, PublicKey, Token, TokenHash};
pub use kernel::token::{TOKEN_DIGITS, TOKEN_PREFIX};
use kernel::{Actor, Body, Noun, Role, TokenId};
use ledger::VerifyingKey;
use sha2::{Digest, Sha256};
use store::{Item, Store};

use crate::errors::{self, internal};
use crate::page::{Listed, Order};
use crate::rows::Rows;
use crate::stored;
use crate::times::rfc3339;
use crate::transact::{Change, Key};
use crate::watch::Engine;

/// Roles that a token can have.
const ROLES: [Role; 4] = [Role::Observer, Role::Runner, Role::Operator, Role::Maintainer];

/// What is stored of a secret.
pub fn token_hash(secret: &str) -> String {
    Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Engine {
    pub(crate) async fn token_create(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: TokenCreate,
    ) -> Result<Answer, Error> {
        let command = self.create(&asked).await?;
        // Who may give out none learns nothing of others.
        if let Command::Create { name, key: Some(public), .. } = &command
            && Role::Maintainer <= actor.role
        {
            self.check_own_key(name, public).await?;
        }
        let id = self.new_token();
        self.change_token(actor, key, id, command, |_, token| {
            Ok(Answer::TokenCreate(TokenCreated { token }))
        })
        .await
    }

    /// Whose signature it is must be known: one key is one person's.
    async fn check_own_key(&self, name: &PersonName, key: &PublicKey) -> Result<(), Error> {
        let tokens = self.tokens().await?;
        let is_others = |it: &Token| {
            let is_same = it.key.as_ref().is_some_and(|other| other.is_same_key(key));
            is_same && it.name != *name && it.actor().is_some()
        };
        match tokens.iter().find(|(_, token)| is_others(token)) {
            Some((_, other)) => {
                let what = format!("this is the public key of `{}`", other.name);
                Err(Error::new(Code::Exists, what).hint(
                    "`midwatch approval key` makes another; each person has one of their own",
                ))
            }
            None => Ok(()),
        }
    }

    pub(crate) async fn token_revoke(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: TokenRevoke,
    ) -> Result<Answer, Error> {
        let id: TokenId = asked.id.parse().map_err(|invalid| unknown(&invalid))?;
        let command = Command::Revoke { note: asked.note };
        self.change_token(actor, key, id, command, |changed, token| {
            Ok(Answer::TokenRevoke(TokenRevoked { token, changed }))
        })
        .await
    }

    pub(crate) async fn token_list(&self, asked: TokenList) -> Result<Tokens, Error> {
        let page = Listed {
            noun: Noun::Token,
            order: Order::NewestFirst(None),
            limit: asked.limit,
            cursor: asked.cursor,
        };
        let (tokens, cursor) = self
            .page::<TokenId, _>(page, |item| {
                let token = token_in(item)?;
                let token = token.ok_or_else(|| internal("a listed token has no state"))?;
                Ok(Some(wire(&item.id, &token)))
            })
            .await?;
        Ok(Tokens { tokens, cursor })
    }

    /// Every token that was ever given out.
    pub(crate) async fn tokens(&self) -> Result<Vec<(TokenId, Token)>, Error> {
        tokens(self.store()).await
    }

    /// Whom a secret lets in. Whatever is wrong with it, the answer is the same.
    pub(crate) async fn holder_of(&self, secret: &str) -> Result<Actor, Error> {
        let digits = secret.strip_prefix(TOKEN_PREFIX).map_or(0, str::len);
        let found = match digits == TOKEN_DIGITS {
            true => {
                let hash = token_hash(secret);
                let found = self.store().newest(Noun::Token.name(), Some(&hash), "", 1).await;
                found.map_err(errors::store)?
            }
            false => Vec::new(),
        };
        let token = found.first().map(token_in).transpose()?.flatten();
        token.and_then(|token| token.actor()).ok_or_else(|| {
            Error::new(Code::TokenInvalid, "this token lets nobody in")
                .hint("`midwatch token create` gives out another; MIDWATCH_TOKEN holds it")
        })
    }

    async fn create(&self, asked: &TokenCreate) -> Result<Command, Error> {
        let (name, role, hash, key) = parse(asked)?;
        let held = self.tokens().await?.into_iter().filter_map(|(_, token)| token.actor());
        let held = held.filter(|holder| holder.name == asked.name);
        let roles = held.map(|holder| holder.role).collect();
        Ok(Command::Create { name, role, hash, key, roles })
    }

    async fn change_token(
        &self,
        actor: &Actor,
        key: Option<Key>,
        id: TokenId,
        command: Command,
        answer: impl Fn(bool, api::Token) -> Result<Answer, Error>,
    ) -> Result<Answer, Error> {
        let change = Change { rows: vec![(Noun::Token, id.to_string())], ..Change::by(actor, key) };
        let decide = |rows: &Rows, now| {
            let event = token::decide(id.as_str(), rows.token(&id), actor, command.clone(), now);
            let event = event.map_err(errors::token)?;
            Ok(event.map(|event| Body::Token(id.clone(), event)).into_iter().collect())
        };
        self.transact(change, decide, |before, after| {
            let changed = before.token(&id) != after.token(&id);
            let token = after.token(&id).ok_or_else(|| internal("the token vanished"))?;
            answer(changed, wire(id.as_str(), token))
        })
        .await
    }
}

/// Whether somebody is let in as maintainer by a token.
pub(crate) async fn has_maintainer(store: &dyn Store) -> Result<bool, Error> {
    let mut holders = tokens(store).await?.into_iter().filter_map(|(_, token)| token.actor());
    Ok(holders.any(|holder| holder.role == Role::Maintainer))
}

async fn tokens(store: &dyn Store) -> Result<Vec<(TokenId, Token)>, Error> {
    let most = usize::try_from(token::TOKENS_MAX).unwrap_or(usize::MAX);
    let (mut tokens, mut before) = (Vec::new(), String::new());
    loop {
        let items = store.newest(Noun::Token.name(), None, &before, most).await;
        let items = items.map_err(errors::store)?;
        for item in &items {
            let id = item.id.parse().map_err(internal)?;
            tokens.extend(token_in(item)?.map(|token| (id, token)));
        }
        match items.into_iter().next_back() {
            Some(last) => before = last.id,
            None => return Ok(tokens),
        }
    }
}

/// Who gets a token, and which.
type Given = (PersonName, Role, TokenHash, Option<PublicKey>);

fn parse(asked: &TokenCreate) -> Result<Given, Error> {
    let invalid =
        |what: &dyn std::fmt::Display, hint: &str| Error::new(Code::InvalidInput, what).hint(hint);
    let name: PersonName = asked.name.parse().map_err(|it: token::InvalidName| {
        invalid(&it, "use 1 to 64 letters, digits, `-`, `_`, `.` and `@`")
    })?;
    let hash: TokenHash = asked.hash.parse().map_err(|it: token::InvalidHash| {
        invalid(&it, "it is a SHA-256, as 64 hexadecimal digits")
    })?;
    let role = ROLES.into_iter().find(|role| role.name() == asked.role).ok_or_else(|| {
        let what = format!("`{}` is not a role that a token can have", asked.role);
        invalid(&what, "the roles are `observer`, `runner`, `operator` and `maintainer`")
    })?;
    let key = asked.key.as_deref().map(|key| public_key(key, &name)).transpose()?;
    Ok((name, role, hash, key))
}

/// A key bears the name of its person, so that nobody signs as somebody else by mistake.
fn public_key(text: &str, name: &PersonName) -> Result<PublicKey, Error> {
    let invalid = |what: String| {
        Error::new(Code::InvalidInput, what)
            .hint("`midwatch approval key` makes a key, and prints what to give here")
    };
    let key = VerifyingKey::parse(text)
        .map_err(|error| invalid(format!("this is not a public key: {error}")))?;
    if key.name() != name.to_string() {
        return Err(invalid(format!("this is the key of `{}`, and not of `{name}`", key.name())));
    }
    text.parse().map_err(|error: token::InvalidKey| invalid(error.to_string()))
}

fn unknown(what: &dyn std::fmt::Display) -> Error {
    Error::new(Code::NotFound, what).hint("`midwatch token list` shows the tokens")
}

fn token_in(item: &Item) -> Result<Option<Token>, Error> {
    let Some(body) = &item.body else { return Ok(None) };
    Ok(stored::state(Noun::Token, body)?.token())
}

fn wire(id: &str, token: &Token) -> api::Token {
    api::Token {
        id: id.to_owned(),
        name: token.name.to_string(),
        role: token.role.name().to_owned(),
        key: token.key.as_ref().map(|key| key.as_str().to_owned()),
        created_by: token.created_by.clone(),
        created_at: rfc3339(token.created_at),
        revoked_by: token.revoked.as_ref().map(|it| it.by.clone()),
        revoked_at: token.revoked.as_ref().map(|it| rfc3339(it.at)),
    }
}
