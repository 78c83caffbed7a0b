//! `midwatch promptyoself cancel`

use api::Error;
use clap::Args;
use compat::promptyoself::{
    CancelResult, PromptFilter, cancel_prompt, parse_number, schedule_not_found,
};

use super::settings::only_agent;
use super::{handle, has_no_data, missing_argument};
use crate::context::Context;

/// Cancel a scheduled prompt
#[derive(Debug, Args)]
pub(super) struct Cancel {
    /// The number of the prompt, from `list`
    #[arg(long, value_name = "N", alias = "schedule-id", allow_hyphen_values = true)]
    id: Option<String>,
}

pub(super) async fn run(context: &Context, cancel: Cancel) -> Result<CancelResult, Error> {
    let only_agent = only_agent(&context.environment)?;
    let filter = PromptFilter { only_agent, ..PromptFilter::default() };
    let id = cancel.id.ok_or_else(|| missing_argument("Missing required argument: id"))?;
    let number = parse_number(&id)?;
    match has_no_data(context)? {
        true => Err(schedule_not_found(number)),
        false => cancel_prompt(&handle(context), None, filter, number).await,
    }
}
