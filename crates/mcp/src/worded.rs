//! Refusals in words that a model can follow: the runtime's hints are for people at a terminal.

use std::sync::Arc;

use api::{Answer, Call, Code, Error, Handle};
use futures::future::{BoxFuture, FutureExt};

use crate::toolset::Selection;

/// A handle whose refusals name tools where they would name commands.
#[derive(Debug)]
pub(crate) struct Worded {
    handle: Arc<dyn Handle>,
    selection: Arc<Selection>,
}

impl Worded {
    pub(crate) fn new(handle: Arc<dyn Handle>, selection: Arc<Selection>) -> Worded {
        Worded { handle, selection }
    }
}

impl Handle for Worded {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Answer, Error>> {
        let answer = self.handle.call(call);
        async { answer.await.map_err(|refused| for_a_model(refused, &self.selection)) }.boxed()
    }
}

fn for_a_model(error: Error, selection: &Selection) -> Error {
    let hint = match error.code {
        Code::RoleTooLow => {
            "this is for a human: tell your user what you would have done, and why".to_owned()
        }
        Code::TierTooLow => {
            "leave `tier` out, or give one that is not below the agent's".to_owned()
        }
        _ => match &error.hint {
            Some(hint) => in_tools(hint, selection),
            None => return error,
        },
    };
    error.hint(hint)
}

/// A hint with the names of tools and of their arguments in the place of commands and their flags.
fn in_tools(hint: &str, selection: &Selection) -> String {
    let quoted = |(place, part): (usize, &str)| match (place % 2, tool_of(part, selection)) {
        (0, _) => part.to_owned(),
        (_, Some(tool)) => tool.to_owned(),
        (_, None) => format!("`{}`", argument_of(part)),
    };
    hint.split('`').enumerate().map(quoted).collect()
}

/// The tool that does what a command does, if it is the only one.
fn tool_of(command: &str, selection: &Selection) -> Option<&'static str> {
    let command = command.strip_prefix("midwatch ")?;
    let is_it = |twin: &str| {
        command.strip_prefix(twin).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let longest =
        selection.tools().map(|it| it.twin).filter(|twin| is_it(twin)).max_by_key(|it| it.len())?;
    let mut twins = selection.tools().filter(|tool| tool.twin == longest);
    let tool = twins.next()?;
    twins.next().is_none().then_some(tool.name)
}

/// A flag with its value, as an argument of a tool.
fn argument_of(part: &str) -> String {
    match part.strip_prefix("--").and_then(|flag| flag.split_once(' ')) {
        Some((name, value)) => format!("{}: {value}", name.replace('-', "_")),
        None => part.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_tools_and_arguments_where_there_are_such() {
        let selection = Selection::default();
        for (told, expected) in [
            ("`midwatch schedule list` shows the schedules", "schedule_list shows the schedules"),
            ("stop it with `midwatch run cancel run_1`", "stop it with run_cancel"),
            ("name it, as in `--tz Europe/Berlin`", "name it, as in `tz: Europe/Berlin`"),
            // No tool does that, or several do.
            ("`midwatch up` starts one", "`midwatch up` starts one"),
            ("`midwatch status` tells more", "`midwatch status` tells more"),
            ("`midwatch schedule listing`", "`midwatch schedule listing`"),
        ] {
            assert_eq!(in_tools(told, &selection), expected);
        }
        let few = Selection::of(vec![crate::Toolset::Core]);
        let told = "`midwatch run list` shows the runs";
        assert_eq!(in_tools(told, &few), told, "what is not offered is not named");
    }

    #[test]
    fn what_is_for_people_sends_no_model_for_their_token() {
        let told =
            Error::new(Code::RoleTooLow, "no").hint("come with their token in MIDWATCH_TOKEN");
        let hint = for_a_model(told, &Selection::default()).hint.unwrap();
        assert!(hint.starts_with("this is for a human"), "{hint}");
    }
}
