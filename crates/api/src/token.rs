//! Requests about tokens, which authenticate people and programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Finding;

use crate::words::words;
use crate::{ActorRole, Role};

words! {
    /// A kind of program that acts for a person with a token of its own.
    pub enum TokenClient "client" {
        Mcp "mcp",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    pub id: String,
    /// The person or program that the token authenticates.
    pub name: String,
    pub role: ActorRole,
    /// The public key that verifies the owner's signatures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The kind of program that uses the token for the person.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub client: Option<TokenClient>,
    pub created_by: String,
    pub created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

/// Registers a token. The client creates the secret and sends only its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenCreate {
    pub name: String,
    pub role: Role,
    /// SHA-256 of the secret, in hexadecimal digits.
    pub hash: String,
    /// The public key that verifies the owner's signatures, as `midwatch approval key` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The kind of program that uses the token for the person; it needs the role `runner`.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub client: Option<TokenClient>,
}

/// Lists tokens, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TokenList {
    /// Most items in the page, 1 to 1000. Default: 50.
    pub limit: Option<u32>,
    /// The `cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRevoke {
    pub id: String,
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenCreated {
    pub token: Token,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    pub tokens: Vec<Token>,
    /// Where the next page starts; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenRevoked {
    pub token: Token,
    /// False if the token was already revoked.
    pub changed: bool,
    /// What the startup checks find now that the token is revoked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Finding>,
}
