//! Prompts with which a person sets an agent to work with the watch.

use rmcp::model::{
    ErrorData, GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role,
};

use crate::completion::Ids;
use crate::message::brief;
use crate::toolset::Selection;

/// A prompt with what it asks for.
struct Canned {
    name: &'static str,
    about: &'static str,
    argument: Option<(&'static str, &'static str)>,
    /// The tools that it speaks of: without them it is not offered.
    tools: &'static [&'static str],
    text: &'static str,
}

/// Where the argument goes.
const PLACE: &str = "{}";

const ALL: &[Canned] = &[
    Canned {
        name: "stand_watch",
        about: "Look at how things stand, see to what you may, and report what needs a human",
        argument: None,
        tools: &["status_get", "run_list", "run_get", "approval_call_human"],
        text: "Stand the watch once. Call status_get, and run_list with the state `failed`. For each run that \
               failed since you last looked, call run_get and say in a sentence why. For each approval that waits, call approval_call_human and \
               pass its words on. Never repeat a run in the state `unknown`. Change nothing else. End with \
               what needs a human, or say that nothing does.",
    },
    Canned {
        name: "follow_run",
        about: "Follow one run to its end, and say what came of it",
        argument: Some(("run_id", "The run, `run_…`")),
        tools: &["run_wait", "approval_call_human"],
        text: "Follow the run {}. Call run_wait with it, and again with the cursor of each answer, until \
               `ended` is true. If it waits for a human, call approval_call_human once, pass the words on, \
               and go on waiting. At the end say what it did, or why it did not.",
    },
    Canned {
        name: "plan_schedule",
        about: "Turn a wish into a schedule, after showing when it would fire",
        argument: Some(("wish", "What is to happen, and when, in plain words")),
        tools: &["agent_list", "schedule_preview", "schedule_create"],
        text: "Make a schedule for this wish: {}. Choose an agent with agent_list. Call schedule_preview and \
               show when it would fire and whether its runs would need a human. Ask whether that is meant. \
               Only then call schedule_create.",
    },
];

pub(crate) fn all(selection: &Selection) -> Vec<Prompt> {
    offered(selection).map(Canned::described).collect()
}

fn offered(selection: &Selection) -> impl Iterator<Item = &'static Canned> {
    let is_there = |name: &&str| selection.find(name).is_some();
    ALL.iter().filter(move |canned| canned.tools.iter().all(is_there))
}

pub(crate) fn get(
    selection: &Selection,
    name: &str,
    arguments: JsonObject,
) -> Result<GetPromptResult, ErrorData> {
    let invalid = |what: String| ErrorData::invalid_params(what, None);
    let canned = offered(selection).find(|canned| canned.name == name);
    let canned = canned.ok_or_else(|| invalid(format!("there is no prompt `{}`", brief(name))))?;
    let text = match canned.argument {
        None => canned.text.to_owned(),
        Some((argument, _)) => {
            let given = arguments.get(argument).and_then(|value| value.as_str());
            let given = given.ok_or_else(|| invalid(format!("`{argument}` is missing")))?;
            canned.text.replacen(PLACE, given, 1)
        }
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(canned.about))
}

/// What completes an argument of a prompt.
pub(crate) fn ids(name: &str, argument: &str) -> Option<Ids> {
    let canned = ALL.iter().find(|canned| canned.name == name)?;
    let (takes, _) = canned.argument?;
    (takes == argument).then_some(if takes == "run_id" { Ids::Runs } else { Ids::Unknown })
}

impl Canned {
    fn described(&self) -> Prompt {
        let argument = self.argument.map(|(name, about)| {
            vec![PromptArgument::new(name).with_description(about).with_required(true)]
        });
        Prompt::new(self.name, Some(self.about), argument)
    }
}
