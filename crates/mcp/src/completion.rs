//! What a client may put where a prompt or an address has a place for an id.

use api::{Error, Handle, RunList, ScheduleList, ask};
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, Reference};

use crate::message::brief;
use crate::{prompts, resources};

/// Of so many that are new, those that begin in the same way.
const LOOKED_AT: u32 = 100;

/// What can be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    Runs,
    Schedules,
    /// Words of a person, which nobody knows before.
    Unknown,
}

pub(crate) async fn complete(
    handle: &dyn Handle,
    asked: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let argument = asked.argument.name.as_str();
    let ids = match &asked.r#ref {
        Reference::Prompt(prompt) => prompts::ids(&prompt.name, argument),
        Reference::Resource(template) => resources::ids(&template.uri, argument),
        _ => None,
    };
    let nothing =
        || ErrorData::invalid_params(format!("there is no `{}` there", brief(argument)), None);
    let begun = asked.argument.value.as_str();
    let mut values = found(handle, ids.ok_or_else(nothing)?).await.map_err(|error| {
        let data = serde_json::to_value(&error).ok();
        ErrorData::internal_error(error.to_string(), data)
    })?;
    values.retain(|id| id.starts_with(begun));
    let info = CompletionInfo::with_pagination(values, None, false);
    info.map(CompleteResult::new).map_err(|wrong| ErrorData::internal_error(wrong, None))
}

async fn found(handle: &dyn Handle, ids: Ids) -> Result<Vec<String>, Error> {
    let limit = Some(LOOKED_AT);
    Ok(match ids {
        Ids::Runs => {
            let listed = ask(handle, RunList { limit, ..RunList::default() }).await?;
            listed.runs.into_iter().map(|run| run.id).collect()
        }
        Ids::Schedules => {
            let listed = ask(handle, ScheduleList { limit, ..ScheduleList::default() }).await?;
            listed.schedules.into_iter().map(|schedule| schedule.id).collect()
        }
        Ids::Unknown => Vec::new(),
    })
}
