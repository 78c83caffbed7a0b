//! `midwatch ledger checkpoint`

use api::{Error, LedgerCheckpoint};

use crate::access::send;
use crate::context::Context;

pub(super) async fn run(context: &Context) -> Result<(), Error> {
    let answer = send(context, LedgerCheckpoint {}).await?;
    context.output.say(&answer, |answer| answer.checkpoint.note.clone());
    Ok(())
}
