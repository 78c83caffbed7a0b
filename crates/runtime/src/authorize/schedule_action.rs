//! The action that a request gives to a schedule.

use api::{Code, Error};
use kernel::schedule::Action;
use kernel::sealable_text::SealableText;

/// The action after an edit: omitted fields keep their value, as long as it is the same kind of action.
pub(crate) fn edited_action(before: &Action, asked: api::Action) -> Result<Action, Error> {
    match (before, asked) {
        (_, asked) if asked == api::Action::default() => Ok(before.clone()),
        (Action::Prompt { agent, prompt }, asked) if asked.tool.is_none() => {
            let asked = ActionParts::from(asked);
            action(ActionParts {
                agent: asked.agent.or_else(|| Some(agent.to_string())),
                prompt: asked.prompt.or_else(|| Some(prompt.clone())),
                ..asked
            })
        }
        (Action::Tool { tool, payload, .. }, asked) if asked.agent.is_none() => {
            let asked = ActionParts::from(asked);
            action(ActionParts {
                tool: asked.tool.or_else(|| Some(tool.clone())),
                payload: asked.payload.or_else(|| Some(payload.clone())),
                ..asked
            })
        }
        (_, asked) => action(asked.into()),
    }
}

/// The fields of an action, some of which may be sealed already.
pub(crate) struct ActionParts {
    agent: Option<String>,
    prompt: Option<SealableText>,
    tool: Option<String>,
    payload: Option<SealableText>,
}

impl From<api::Action> for ActionParts {
    fn from(asked: api::Action) -> ActionParts {
        let api::Action { agent, prompt, tool, payload } = asked;
        ActionParts {
            agent,
            prompt: prompt.map(SealableText::from),
            tool,
            payload: payload.map(|payload| String::from(payload).into()),
        }
    }
}

pub(crate) fn action(parts: ActionParts) -> Result<Action, Error> {
    match parts {
        ActionParts { agent: Some(agent), prompt: Some(prompt), tool: None, payload: None } => {
            let agent = agent.parse().map_err(|invalid| {
                Error::new(Code::InvalidInput, invalid)
                    .hint("`midwatch agent list` shows the agents")
            })?;
            Ok(Action::Prompt { agent, prompt })
        }
        ActionParts { agent: None, prompt: None, tool: Some(tool), payload } => {
            let payload = payload.unwrap_or_else(|| "{}".into());
            Ok(Action::Tool { tool, payload, hash: None })
        }
        other => Err(other.incomplete()),
    }
}

impl ActionParts {
    /// What is missing, or too much.
    fn incomplete(&self) -> Error {
        let ActionParts { agent, prompt, tool, payload } = self;
        let prompts = agent.is_some() || prompt.is_some();
        let (what, hint) = match (agent, prompt, tool) {
            (Some(_), None, None) if payload.is_none() => {
                ("`prompt` is missing", "describe the task with `--prompt TEXT`")
            }
            (None, Some(_), None) if payload.is_none() => {
                ("`agent` is missing", "`midwatch agent list` shows the agents")
            }
            (None, None, None) if payload.is_none() => (
                "`agent` and `prompt` are missing",
                "name the agent and describe the task; or name a `tool` to call",
            ),
            (_, _, None) if !prompts => {
                ("`tool` is missing", "name the tool that gets the `payload`")
            }
            (_, _, None) => ("`payload` needs `tool`", "omit `payload`"),
            (_, _, Some(_)) => (
                "a schedule either prompts an agent or calls a tool",
                "omit `tool` and `payload`, or omit `agent` and `prompt`",
            ),
        };
        Error::new(Code::InvalidInput, what).hint(hint)
    }
}

/// A tool call that cannot be resolved makes the request invalid.
pub(crate) fn invalid_call(refused: Error) -> Error {
    Error { code: Code::InvalidInput, ..refused }
}
