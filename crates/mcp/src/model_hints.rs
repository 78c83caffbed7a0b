//! Hints that a model can follow: the runtime's hints name commands, for people at a terminal.

use std::sync::Arc;

use api::{Call, Code, Error, Handle, Response, ToolReport};
use futures::future::{BoxFuture, FutureExt};

use crate::selection::Selection;

/// A handle whose errors have hints that name tools and arguments instead of commands and flags.
#[derive(Debug)]
pub(crate) struct ModelHints {
    handle: Arc<dyn Handle>,
    selection: Arc<Selection>,
}

impl ModelHints {
    pub(crate) fn new(handle: Arc<dyn Handle>, selection: Arc<Selection>) -> ModelHints {
        ModelHints { handle, selection }
    }
}

impl Handle for ModelHints {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Response, Error>> {
        let answer = self.handle.call(call);
        async { answer.await.map_err(|error| with_model_hint(error, &self.selection)) }.boxed()
    }

    fn report(&self, report: ToolReport) -> BoxFuture<'_, Result<(), Error>> {
        self.handle.report(report)
    }
}

fn with_model_hint(error: Error, selection: &Selection) -> Error {
    let hint = match error.code {
        Code::RoleTooLow => {
            "only a human may do this: tell your user what you wanted to do, and why".to_owned()
        }
        Code::TierTooLow => "omit `tier`, or pass one that is not below the agent's".to_owned(),
        _ => match &error.hint {
            Some(hint) => name_tools(hint, selection),
            None => return error,
        },
    };
    error.hint(hint)
}

/// Replaces commands and flags in backticks by tools and arguments.
fn name_tools(hint: &str, selection: &Selection) -> String {
    let replaced = |(index, part): (usize, &str)| match (index % 2, tool_for(part, selection)) {
        (0, _) => part.to_owned(),
        (_, Some(tool)) => tool.to_owned(),
        (_, None) => format!("`{}`", argument_for(part)),
    };
    hint.split('`').enumerate().map(replaced).collect()
}

/// The tool that does the same as a command, if there is exactly one.
fn tool_for(command: &str, selection: &Selection) -> Option<&'static str> {
    let command = command.strip_prefix("midwatch ")?;
    let matches = |name: &str| {
        command.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let longest = selection
        .tools()
        .map(|it| it.cli_command)
        .filter(|it| matches(it))
        .max_by_key(|it| it.len())?;
    let mut tools = selection.tools().filter(|tool| tool.cli_command == longest);
    let tool = tools.next()?;
    tools.next().is_none().then_some(tool.name)
}

/// Turns a flag with its value into an argument of a tool.
fn argument_for(part: &str) -> String {
    match part.strip_prefix("--").and_then(|flag| flag.split_once(' ')) {
        Some((name, value)) => format!("{}: {value}", name.replace('-', "_")),
        None => part.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_flags_are_replaced_by_tools_and_arguments() {
        let selection = Selection::default();
        for (hint, expected) in [
            ("`midwatch schedule list` shows the schedules", "schedule_list shows the schedules"),
            ("stop it with `midwatch run cancel run_1`", "stop it with run_cancel"),
            ("name it, as in `--tz Europe/Berlin`", "name it, as in `tz: Europe/Berlin`"),
            // No tool does this, or several tools do.
            ("`midwatch up` starts one", "`midwatch up` starts one"),
            ("`midwatch status` tells more", "`midwatch status` tells more"),
            ("`midwatch schedule listing`", "`midwatch schedule listing`"),
        ] {
            assert_eq!(name_tools(hint, &selection), expected);
        }
        let few = Selection::new(vec![crate::Toolset::Core]);
        let hint = "`midwatch run list` shows the runs";
        assert_eq!(name_tools(hint, &few), hint, "a tool that is not offered is not named");
    }

    #[test]
    fn a_model_is_not_told_to_use_a_token() {
        let error =
            Error::new(Code::RoleTooLow, "no").hint("come with their token in MIDWATCH_TOKEN");
        let hint = with_model_hint(error, &Selection::default()).hint.unwrap();
        assert!(hint.starts_with("only a human may do this"), "{hint}");
    }
}
