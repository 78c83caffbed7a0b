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
    #[arg(long, value_enum)]
    role: Role,
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
    let Create { name, role, key } = create;
    let secret = new_secret()?;
    let (role, hash) = (role.into(), token_hash(&secret));
    let token = send(context, TokenCreate { name, role, hash, key }).await?.token;
    let created = Created { token: WithSecret { token, secret } };
    context.output.show(&created, |it| render(&it.token));
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

fn new_secret() -> Result<String, Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| Error::new(Code::Failed, error))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{TOKEN_PREFIX}{digits}"))
}

fn render(WithSecret { token, secret }: &WithSecret) -> String {
    let Token { id, name, role, .. } = token;
    format!("{secret}\n\nshown only once: the secret of token {id}, for `{name}` as {role}")
}
