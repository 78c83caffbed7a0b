//! `midwatch promptyoself list`

use api::Error;
use clap::Args;
use clap::builder::BoolishValueParser;
use compat::promptyoself::{ListResult, PromptFilter, list_prompts};

use super::settings::only_agent;
use super::{handle, has_no_data};
use crate::context::Context;

/// List scheduled prompts
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only prompts of this agent
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    agent_id: Option<String>,
    /// Include prompts that are cancelled or completed
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_value = "false",
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
          value_parser = BoolishValueParser::new())]
    all: bool,
}

pub(super) async fn run(context: &Context, list: List) -> Result<ListResult, Error> {
    let only_agent = only_agent(&context.environment)?;
    let filter = PromptFilter { only_agent, agent_id: list.agent_id.as_deref() };
    match has_no_data(context)? {
        true => Ok(ListResult::default()),
        false => list_prompts(&handle(context), filter, list.all).await,
    }
}
