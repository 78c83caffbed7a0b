//! Finds the holder of an access token.

use std::sync::Arc;

use api::Error;
use kernel::token::Token;
pub use kernel::token::{TOKEN_DIGITS, TOKEN_PREFIX};
use kernel::{Actor, Noun, NounState, Role, TokenId};
use sha2::{Digest, Sha256};
use store::{Newest, Store};

use crate::commit::codec::decode_item;
use crate::errors::{self, internal, invalid_token};

#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) store: Arc<dyn Store>,
}

impl Tokens {
    /// Every token that was ever created, including revoked ones.
    pub(crate) async fn all(&self) -> Result<Vec<(TokenId, Token)>, Error> {
        tokens(&*self.store).await
    }

    /// The person or agent that a secret belongs to.
    pub(crate) async fn find_holder(&self, secret: &str) -> Result<Actor, Error> {
        let digits = secret.strip_prefix(TOKEN_PREFIX).map_or(0, str::len);
        let found = match digits == TOKEN_DIGITS {
            true => {
                let hash = token_hash(secret);
                let found = self
                    .store
                    .list_newest(Newest {
                        noun: Noun::Token.name(),
                        index_key: Some(&hash),
                        before: "",
                        limit: 1,
                    })
                    .await;
                found.map_err(errors::store)?
            }
            false => Vec::new(),
        };
        let Some(item) = found.first() else { return Err(invalid_token()) };
        let actor = decode_item::<Token>(item)?.and_then(|token| token.actor());
        let actor = actor.ok_or_else(invalid_token)?;
        Ok(actor.authenticated_by(item.id.parse().map_err(internal)?))
    }
}

/// The SHA-256 of a secret, which is stored instead of it.
pub fn token_hash(secret: &str) -> String {
    Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a valid token with the role of maintainer exists.
pub(crate) async fn has_maintainer(store: &dyn Store) -> Result<bool, Error> {
    let mut holders = tokens(store).await?.into_iter().filter_map(|(_, token)| token.actor());
    Ok(holders.any(|holder| holder.role == Role::Maintainer))
}

async fn tokens(store: &dyn Store) -> Result<Vec<(TokenId, Token)>, Error> {
    let limit = usize::try_from(Token::OBJECTS_MAX).unwrap_or(usize::MAX);
    let (mut tokens, mut before) = (Vec::new(), String::new());
    loop {
        let items = store
            .list_newest(Newest {
                noun: Noun::Token.name(),
                index_key: None,
                before: &before,
                limit,
            })
            .await;
        let items = items.map_err(errors::store)?;
        for item in &items {
            let id = item.id.parse().map_err(internal)?;
            tokens.extend(decode_item(item)?.map(|token| (id, token)));
        }
        match items.into_iter().next_back() {
            Some(last) => before = last.id,
            None => return Ok(tokens),
        }
    }
}
