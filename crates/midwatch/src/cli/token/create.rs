//! `midwatch token create`

use std::process::ExitCode;

use api::{Code, Error, Token, TokenCreate};
use clap::{Args, ValueEnum};
use runtime::{TOKEN_PREFIX, token_hash};
use serde::Serialize;

use crate::access::send;
use crate::context::Context;

const SECRET_BYTES: usize = 32;

/// Create a token; its secret is shown only once
///
/// The secret gives access: `MIDWATCH_TOKEN=mwt_… midwatch status`. Only its hash is stored.
#[derive(Debug, Args)]
pub(in crate::cli) struct Create {
    /// The person or program that gets it; tokens of the same name belong to one person, and a name
    /// cannot belong to both an agent and an approver
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What its holder may do
    #[arg(long, value_enum, required_unless_present = "client")]
    role: Option<Role>,
    /// The kind of program that uses the token for this person; such a token can never approve
    #[arg(long = "for", value_enum, value_name = "CLIENT", conflicts_with_all = ["role", "key"])]
    client: Option<Client>,
    /// The holder's public key, from `midwatch approval key`, to verify signatures with
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Role {
    /// Can read
    Observer,
    /// Can do what agents do
    Runner,
    /// Can also approve, cancel, pause, freeze and register agents
    Operator,
    /// Can also thaw, and manage tokens
    Maintainer,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Client {
    /// An MCP client such as an editor or a chat program
    Mcp,
}

#[derive(Serialize)]
struct Created {
    token: WithSecret,
}

#[derive(Serialize)]
struct WithSecret {
    #[serde(flatten)]
    token: Token,
    secret: String,
}

pub(super) async fn run(context: &Context, create: Create) -> Result<ExitCode, Error> {
    let Create { name, role, client, key } = create;
    let secret = new_secret()?;
    let hash = token_hash(&secret);
    let role = role.map_or(api::Role::Runner, api::Role::from);
    let client = client.map(api::TokenClient::from);
    let token = send(context, TokenCreate { name, role, hash, key, client }).await?.token;
    let created = Created { token: WithSecret { token, secret } };
    context.output.say(&created, |it| render(&it.token));
    Ok(ExitCode::SUCCESS)
}

impl From<Role> for api::Role {
    fn from(role: Role) -> api::Role {
        match role {
            Role::Observer => api::Role::Observer,
            Role::Runner => api::Role::Runner,
            Role::Operator => api::Role::Operator,
            Role::Maintainer => api::Role::Maintainer,
        }
    }
}

impl From<Client> for api::TokenClient {
    fn from(client: Client) -> api::TokenClient {
        match client {
            Client::Mcp => api::TokenClient::Mcp,
        }
    }
}

fn new_secret() -> Result<String, Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| Error::new(Code::Failed, error))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{TOKEN_PREFIX}{digits}"))
}

fn render(WithSecret { token, secret }: &WithSecret) -> String {
    let Token { id, name, role, client, .. } = token;
    let holder = match client {
        Some(api::TokenClient::Mcp) => format!("MCP clients of `{name}`; it can never approve"),
        None => format!("`{name}` as {role}"),
    };
    format!("{secret}\n\nshown only once: the secret of token {id}, for {holder}")
}
