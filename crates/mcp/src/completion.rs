//! Completion of ids in the arguments of prompts and in resource URIs.

use api::{Error, Handle, RunList, ScheduleList, send};
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, Reference};

use crate::message::abbreviate;
use crate::{prompts, resources};

/// Completion considers this many of the newest runs or schedules.
const CANDIDATES_MAX: u32 = 100;

/// What an argument holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentKind {
    RunId,
    ScheduleId,
    /// Text of the user, which cannot be completed.
    FreeText,
}

pub(crate) async fn complete(
    handle: &dyn Handle,
    params: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let argument = params.argument.name.as_str();
    let kind = match &params.r#ref {
        Reference::Prompt(prompt) => prompts::argument_kind(&prompt.name, argument),
        Reference::Resource(template) => resources::argument_kind(&template.uri, argument),
        _ => None,
    };
    let unknown =
        || ErrorData::invalid_params(format!("unknown argument `{}`", abbreviate(argument)), None);
    let prefix = params.argument.value.as_str();
    let mut values = candidates(handle, kind.ok_or_else(unknown)?).await.map_err(|error| {
        let data = serde_json::to_value(&error).ok();
        ErrorData::internal_error(error.to_string(), data)
    })?;
    values.retain(|id| id.starts_with(prefix));
    let info = CompletionInfo::with_pagination(values, None, false);
    info.map(CompleteResult::new).map_err(|error| ErrorData::internal_error(error, None))
}

async fn candidates(handle: &dyn Handle, kind: ArgumentKind) -> Result<Vec<String>, Error> {
    let limit = Some(CANDIDATES_MAX);
    Ok(match kind {
        ArgumentKind::RunId => {
            let listed = send(handle, RunList { limit, ..RunList::default() }).await?;
            listed.runs.into_iter().map(|run| run.id).collect()
        }
        ArgumentKind::ScheduleId => {
            let listed = send(handle, ScheduleList { limit, ..ScheduleList::default() }).await?;
            listed.schedules.into_iter().map(|schedule| schedule.id).collect()
        }
        ArgumentKind::FreeText => Vec::new(),
    })
}
