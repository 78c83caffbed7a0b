//! `midwatch token list`

use std::process::ExitCode;

use api::{Error, Token, TokenList, Tokens};
use clap::Args;

use crate::access::send;
use crate::cli::support::page::Page;
use crate::cli::support::render::table_with_cursor;
use crate::context::Context;

/// List tokens, newest first; secrets are never shown
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    #[command(flatten)]
    page: Page,
}

pub(super) async fn run(context: &Context, list: List) -> Result<ExitCode, Error> {
    let List { page: Page { limit, cursor } } = list;
    let answer = send(context, TokenList { limit, cursor }).await?;
    context.output.show(&answer, render);
    Ok(ExitCode::SUCCESS)
}

fn render(answer: &Tokens) -> String {
    if answer.tokens.is_empty() {
        return "no tokens yet; create one with `midwatch token create`".into();
    }
    let rows = answer.tokens.iter().map(|token| {
        let Token { id, name, role, key, client, created_at, revoked_at, .. } = token;
        let role = client.map_or_else(|| role.to_string(), |client| format!("{role} ({client})"));
        let key = if key.is_some() { "yes" } else { "" };
        let revoked = revoked_at.clone().unwrap_or_default();
        [id.clone(), name.clone(), role, key.to_owned(), created_at.clone(), revoked]
    });
    let head = ["ID", "NAME", "ROLE", "KEY", "CREATED", "REVOKED"];
    table_with_cursor(head, rows, answer.cursor.as_deref())
}
