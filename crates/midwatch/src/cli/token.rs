//! `midwatch token …`

use std::process::ExitCode;

use api::{Code, Error, Token, TokenCreate, TokenList, TokenRevoke, Tokens};
use clap::{Subcommand, ValueEnum};
use runtime::{TOKEN_PREFIX, token_hash};
use serde::Serialize;

use super::list_limit;
use crate::access::ask;
use crate::context::Context;
use crate::output::table_with_more;

const SECRET_BYTES: usize = 32;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Give somebody a token; its secret is shown this once
    ///
    /// Whoever has the secret is let in with it: `MIDWATCH_TOKEN=mwt_… midwatch status`. Only its hash is
    /// kept.
    Create {
        /// The person or program that gets it; two tokens of one name are one person, and never both an agent
        /// and somebody who approves
        #[arg(long, value_name = "NAME")]
        name: String,
        /// What they may do
        #[arg(long, value_enum)]
        role: Role,
        /// Their public key, as `midwatch approval key` prints it: what they sign is checked with it
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
    },
    /// List the tokens, the newest first, and who has a key to sign with; no secret is shown
    List {
        /// How many to show
        #[arg(long, value_parser = list_limit, value_name = "COUNT")]
        limit: Option<u32>,
        /// Where an earlier list ended
        #[arg(long, value_name = "ID")]
        cursor: Option<String>,
    },
    /// Let nobody in with a token any more
    Revoke {
        /// Its id
        id: String,
        /// Why, for those who read the log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Role {
    /// Reads
    Observer,
    /// What agents get
    Runner,
    /// Approves, cancels, pauses, freezes, registers agents
    Operator,
    /// Also thaws, and gives out tokens
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

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    let output = context.output;
    match command {
        Command::Create { name, role, key } => {
            let secret = new_secret()?;
            let (role, hash) = (role.name().to_owned(), token_hash(&secret));
            let token = ask(context, TokenCreate { name, role, hash, key }).await?.token;
            output.show(&Created { token: WithSecret { token, secret } }, |it| created(&it.token));
        }
        Command::List { limit, cursor } => {
            let answer = ask(context, TokenList { limit, cursor }).await?;
            output.show(&answer, list);
        }
        Command::Revoke { id, reason } => {
            let answer = ask(context, TokenRevoke { id, note: reason }).await?;
            output.show(&answer, |it| match it.changed {
                true => format!("revoked; `{}` is not let in with it any more", it.token.name),
                false => "it was revoked already".to_owned(),
            });
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Role::Observer => "observer",
            Role::Runner => "runner",
            Role::Operator => "operator",
            Role::Maintainer => "maintainer",
        }
    }
}

fn new_secret() -> Result<String, Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| Error::new(Code::Failed, error))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{TOKEN_PREFIX}{digits}"))
}

fn created(WithSecret { token, secret }: &WithSecret) -> String {
    let Token { id, name, role, .. } = token;
    format!("{secret}\n\nthis is shown once: `{name}` is let in with it as {role} ({id})")
}

fn list(answer: &Tokens) -> String {
    if answer.tokens.is_empty() {
        return "there are no tokens; `midwatch token create` gives one out".into();
    }
    let rows = answer.tokens.iter().map(|token| {
        let Token { id, name, role, key, created_at, revoked_at, .. } = token;
        let key = if key.is_some() { "yes" } else { "" };
        let revoked = revoked_at.clone().unwrap_or_default();
        [id.clone(), name.clone(), role.clone(), key.to_owned(), created_at.clone(), revoked]
    });
    let head = ["ID", "NAME", "ROLE", "KEY", "CREATED", "REVOKED"];
    table_with_more(head, rows, answer.cursor.as_deref())
}
