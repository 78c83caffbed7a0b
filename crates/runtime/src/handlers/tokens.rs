//! Creates, lists and revokes access tokens.

use api::{
    ApiRequest, Code, Error, Serve, TokenCreate, TokenCreated, TokenList, TokenRevoke,
    TokenRevoked, Tokens,
};
use kernel::token::{self, Command, PersonName, PublicKey, Refusal, Token, TokenClient, TokenHash};
use kernel::{EventBody, Noun, Role, TokenId};
use ledger::VerifyingKey;

use crate::authorize::authenticate::kernel_role;
use crate::commit::caller::Caller;
use crate::commit::codec::decode_item;
use crate::engine::Engine;
use crate::engine::startup_checks;
use crate::errors::{self, ToError, internal};
use crate::pages::{self, Order, PageRequest};
use crate::timestamps::rfc3339;
use crate::wire;

impl Serve<TokenCreate> for Engine {
    async fn serve(&self, caller: &Caller, create: TokenCreate) -> Result<TokenCreated, Error> {
        let command = self.create_command(&create).await?;
        // A caller that may not create tokens learns nothing about the keys of others.
        if let Command::Create { name, key: Some(public), .. } = &command
            && Role::Maintainer <= caller.actor.role
        {
            self.check_own_key(name, public).await?;
        }
        let id = TokenId::of(self.time.time_ordered(self.time.now()));
        self.change_token::<TokenCreate>(caller, id, command, |_, token| Ok(TokenCreated { token }))
            .await
    }
}

impl Serve<TokenRevoke> for Engine {
    async fn serve(&self, caller: &Caller, revoke: TokenRevoke) -> Result<TokenRevoked, Error> {
        let id: TokenId = revoke.id.parse().map_err(|invalid| unknown(&invalid))?;
        let command = Command::Revoke { note: revoke.note };
        let revoked = self
            .change_token::<TokenRevoke>(caller, id, command, |changed, token| {
                Ok(TokenRevoked { token, changed, warnings: Vec::new() })
            })
            .await?;
        // A daemon that runs goes on; its next start counts the approvers again.
        let findings = self.approver_findings(&self.config.active()).await?;
        let posture = self.installation.posture;
        let warnings = findings.iter().map(|it| startup_checks::wire(it, posture)).collect();
        Ok(TokenRevoked { warnings, ..revoked })
    }
}

impl Serve<TokenList> for Engine {
    async fn serve(&self, _: &Caller, list: TokenList) -> Result<Tokens, Error> {
        let page = PageRequest {
            noun: Noun::Token,
            order: Order::NewestFirst(None),
            limit: list.limit,
            cursor: list.cursor,
        };
        let (tokens, cursor) = pages::page::<TokenId, _>(&*self.store, page, |item| {
            let token = decode_item(item)?;
            let token = token.ok_or_else(|| internal("a listed token has no state"))?;
            Ok(Some(wire_token(&item.id, &token)))
        })
        .await?;
        Ok(Tokens { tokens, cursor })
    }
}

impl Engine {
    /// Refuses the key of another person, because a signature must identify its signer.
    async fn check_own_key(&self, name: &PersonName, key: &PublicKey) -> Result<(), Error> {
        let tokens = self.tokens.all().await?;
        let is_others = |it: &Token| {
            let is_same = it.key.as_ref().is_some_and(|other| other.is_same_key(key));
            is_same && it.name != *name && it.actor().is_some()
        };
        match tokens.iter().find(|(_, token)| is_others(token)) {
            Some((_, other)) => {
                let what = format!("`{}` already has this public key", other.name);
                Err(Error::new(Code::Exists, what)
                    .hint("each person needs their own key; `midwatch approval key` creates one"))
            }
            None => Ok(()),
        }
    }

    async fn create_command(&self, create: &TokenCreate) -> Result<Command, Error> {
        let (name, role, hash, key) = parse(create)?;
        let client = create.client.map(kernel_client);
        let holders = self.tokens.all().await?.into_iter().filter_map(|(_, token)| token.actor());
        let same_name = holders.filter(|holder| holder.name() == create.name);
        let existing_roles = same_name.map(|holder| holder.role).collect();
        Ok(Command::Create { name, role, hash, key, client, existing_roles })
    }

    async fn change_token<R: ApiRequest>(
        &self,
        caller: &Caller,
        id: TokenId,
        command: Command,
        respond: impl Fn(bool, api::Token) -> Result<R::Response, Error> + Sync,
    ) -> Result<R::Response, Error> {
        let decide = |token: Option<&Token>, now| {
            let event = token::decide(id.as_str(), token, &caller.actor, command.clone(), now);
            let event = event.map_err(errors::refused)?;
            Ok(event.map(|event| EventBody::Token(id.clone(), event)))
        };
        let respond = |before: Option<&Token>, after: Option<&Token>| {
            let token = after.ok_or_else(|| internal("the changed token does not exist"))?;
            respond(before != after, wire_token(id.as_str(), token))
        };
        self.transactions.change::<R, Token>(caller, &id, decide, respond).await
    }
}

impl ToError for Refusal {
    fn to_error(&self) -> Error {
        match self {
            Refusal::Unknown(_) => unknown(self),
            Refusal::RoleTooLow { .. } => errors::too_low(self),
            Refusal::RoleNotAllowed(_) | Refusal::RoleNotForClient(_) => {
                Error::new(Code::InvalidInput, self)
            }
            Refusal::KeyNotAllowed(_) => {
                Error::new(Code::InvalidInput, self).hint("omit the key, or choose another role")
            }
            Refusal::AgentAndApprover { .. } => Error::new(Code::Exists, self)
                .hint("choose another name; `midwatch token list` shows the tokens"),
            Refusal::Note(inner) => inner.to_error(),
        }
    }
}

/// The fields of a new token: name, role, hash of the secret, public key.
type NewToken = (PersonName, Role, TokenHash, Option<PublicKey>);

fn parse(create: &TokenCreate) -> Result<NewToken, Error> {
    let invalid =
        |what: &dyn std::fmt::Display, hint: &str| Error::new(Code::InvalidInput, what).hint(hint);
    let name: PersonName = create.name.parse().map_err(|it: token::InvalidName| {
        invalid(&it, "use 1 to 64 letters, digits, `-`, `_`, `.` and `@`")
    })?;
    let hash: TokenHash = create.hash.parse().map_err(|it: token::InvalidHash| {
        invalid(&it, "it must be a SHA-256 of 64 hexadecimal digits")
    })?;
    let role = kernel_role(create.role);
    let key = create.key.as_deref().map(|key| parse_public_key(key, &name)).transpose()?;
    Ok((name, role, hash, key))
}

/// A key has the name of its person, so that a person does not sign with another person's key by mistake.
fn parse_public_key(text: &str, name: &PersonName) -> Result<PublicKey, Error> {
    let invalid = |what: String| {
        Error::new(Code::InvalidInput, what)
            .hint("`midwatch approval key` creates a key and prints its public key")
    };
    let key = VerifyingKey::parse(text)
        .map_err(|error| invalid(format!("not a valid public key: {error}")))?;
    if key.name() != name.to_string() {
        return Err(invalid(format!("this is the key of `{}`, not of `{name}`", key.name())));
    }
    text.parse().map_err(|error: token::InvalidKey| invalid(error.to_string()))
}

const fn kernel_client(client: api::TokenClient) -> TokenClient {
    match client {
        api::TokenClient::Mcp => TokenClient::Mcp,
    }
}

const fn wire_client(client: TokenClient) -> api::TokenClient {
    match client {
        TokenClient::Mcp => api::TokenClient::Mcp,
    }
}

fn unknown(what: &dyn std::fmt::Display) -> Error {
    Error::new(Code::NotFound, what).hint("`midwatch token list` shows the tokens")
}

fn wire_token(id: &str, token: &Token) -> api::Token {
    api::Token {
        id: id.to_owned(),
        name: token.name.to_string(),
        role: wire::role(token.role),
        key: token.key.as_ref().map(|key| key.as_str().to_owned()),
        client: token.client.map(wire_client),
        created_by: token.created_by.clone(),
        created_at: rfc3339(token.created_at),
        revoked_by: token.revoked.as_ref().map(|it| it.by.clone()),
        revoked_at: token.revoked.as_ref().map(|it| rfc3339(it.at)),
    }
}
