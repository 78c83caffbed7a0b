//! `midwatch token list`

use std::process::ExitCode;

use api::{Error, Token, TokenList, Tokens};
use clap::Args;

use crate::access::send;
use crate::cli::support::page::Page;
use crate::cli::support::short_id::short_ids;
use crate::cli::support::table::{Column, shortened, table_with_cursor, whole};
use crate::context::Context;
use crate::view::View;

const COLUMNS: [Column; 6] = [
    whole("TOKEN"),
    shortened("NAME", 8),
    shortened("ROLE", 8),
    whole("KEY").or_left_out(1),
    whole("CREATED").or_left_out(2),
    whole("REVOKED"),
];

/// List tokens, newest first; secrets are never shown
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    #[command(flatten)]
    page: Page,
}

pub(super) async fn run(context: &Context, list: List) -> Result<ExitCode, Error> {
    let List { page: Page { limit, cursor } } = list;
    let answer = send(context, TokenList { limit, cursor }).await?;
    context.output.show(&answer, |answer| render(answer, &context.view));
    Ok(ExitCode::SUCCESS)
}

fn render(answer: &Tokens, view: &View) -> String {
    if answer.tokens.is_empty() {
        return "no tokens yet; create one with `midwatch token create`".into();
    }
    let ids = short_ids(answer.tokens.iter().map(|token| token.id.as_str()));
    let rows = answer.tokens.iter().zip(ids).map(|(token, id)| {
        let Token { name, role, key, client, created_at, revoked_at, .. } = token;
        let role = client.map_or_else(|| role.to_string(), |client| format!("{role} ({client})"));
        let key = if key.is_some() { "yes" } else { "" };
        let revoked = revoked_at.as_deref().map(|at| view.time(at)).unwrap_or_default();
        [id, name.clone(), role, key.to_owned(), view.time(created_at), revoked]
    });
    let table = table_with_cursor(view, COLUMNS, rows, answer.cursor.as_deref());
    format!("{table}\ntimes are {}", view.zone_name())
}
