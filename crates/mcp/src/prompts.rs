//! Prompts that the server offers: texts with which a user starts an agent on a task with Midwatch.

use rmcp::model::{
    ErrorData, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role,
};

use crate::completion::ArgumentKind;
use crate::message::abbreviate;
use crate::selection::Selection;

/// A prompt with at most one argument.
struct PromptTemplate {
    name: &'static str,
    description: &'static str,
    argument: Option<(&'static str, &'static str)>,
    /// The tools that the text mentions. The prompt is offered only with all of them.
    tools: &'static [&'static str],
    text: &'static str,
}

/// Replaced by the argument.
const PLACEHOLDER: &str = "{}";

const ALL: &[PromptTemplate] = &[
    PromptTemplate {
        name: "stand_watch",
        description: "Check the status, explain failed runs, and report what needs a human",
        argument: None,
        tools: &["status_get", "run_list", "run_get", "approval_call_human"],
        text: "Check on Midwatch once. Call status_get, and run_list with the state `failed`. For each run that failed \
               since your last check, call run_get and explain in one sentence why. For each pending approval, \
               call approval_call_human and pass its message on. Never repeat a run in the state `unknown`. \
               Change nothing else. End with what needs a human, or state that nothing does.",
    },
    PromptTemplate {
        name: "follow_run",
        description: "Follow one run to its end and report the outcome",
        argument: Some(("run_id", "The run, `run_…`")),
        tools: &["run_wait", "approval_call_human"],
        text: "Follow the run {}. Call run_wait with it, and again with the cursor of each answer, until \
               `ended` is true. If it waits for a human, call approval_call_human once, pass its message on, \
               and continue to wait. At the end report what the run did, or why it failed.",
    },
    PromptTemplate {
        name: "plan_schedule",
        description: "Create a schedule from a description, after a preview of when it would fire",
        argument: Some(("wish", "What should happen, and when, in plain language")),
        tools: &["agent_list", "schedule_preview", "schedule_create"],
        text: "Create a schedule for this request: {}. Choose an agent with agent_list. Call schedule_preview, and \
               show when the schedule would fire and whether its runs would need approval. Ask the user to \
               confirm. Only then call schedule_create.",
    },
];

pub(crate) fn all(selection: &Selection) -> Vec<Prompt> {
    offered(selection).map(PromptTemplate::definition).collect()
}

fn offered(selection: &Selection) -> impl Iterator<Item = &'static PromptTemplate> {
    let is_offered = |name: &&str| selection.find(name).is_some();
    ALL.iter().filter(move |template| template.tools.iter().all(is_offered))
}

pub(crate) fn get(
    selection: &Selection,
    name: &str,
    arguments: JsonObject,
) -> Result<GetPromptResult, ErrorData> {
    let invalid = |what: String| ErrorData::invalid_params(what, None);
    let template = offered(selection).find(|template| template.name == name);
    let template =
        template.ok_or_else(|| invalid(format!("there is no prompt `{}`", abbreviate(name))))?;
    let text = match template.argument {
        None => template.text.to_owned(),
        Some((argument, _)) => {
            let value = arguments.get(argument).and_then(|value| value.as_str());
            let value =
                value.ok_or_else(|| invalid(format!("the argument `{argument}` is missing")))?;
            template.text.replacen(PLACEHOLDER, value, 1)
        }
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(template.description))
}

/// What an argument of a prompt holds. `None` if the prompt has no such argument.
pub(crate) fn argument_kind(name: &str, argument: &str) -> Option<ArgumentKind> {
    let template = ALL.iter().find(|template| template.name == name)?;
    let (expected, _) = template.argument?;
    (expected == argument).then_some(match expected {
        "run_id" => ArgumentKind::RunId,
        _ => ArgumentKind::FreeText,
    })
}

impl PromptTemplate {
    fn definition(&self) -> Prompt {
        let argument = self.argument.map(|(name, about)| {
            vec![PromptArgument::new(name).with_description(about).with_required(true)]
        });
        Prompt::new(self.name, Some(self.description), argument)
    }
}
