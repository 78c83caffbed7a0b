//! `midwatch run output`

use std::process::ExitCode;

use api::{Error, RunRead};
use clap::Args;

use super::ID;
use crate::access::send;
use crate::context::Context;
use crate::output::Format;

/// Print the complete output of a run; with --json, in pieces
#[derive(Debug, Args)]
pub(in crate::cli) struct Output {
    #[arg(help = ID)]
    id: String,
}

pub(super) async fn run(context: &Context, Output { id }: Output) -> Result<ExitCode, Error> {
    let output = context.output;
    let mut next = Some(0);
    while let Some(from) = next {
        let piece = send(context, RunRead { id: id.clone(), from }).await?;
        let printed = match output.format {
            Format::Json => output.show_line(&piece, |_| String::new()),
            Format::Human => output.show_part(&piece.text),
        };
        // A closed stdout ends it.
        next = piece.next.filter(|_| printed.is_ok());
    }
    Ok(ExitCode::SUCCESS)
}
