//! Hints that a model can follow. The runtime's hints are for people at a terminal: they name commands, flags and
//! variables. A model gets tools and arguments instead, and only those that it has.

use std::sync::Arc;

use api::{Call, Code, Error, Handle, Response, ToolReport};
use futures::future::{BoxFuture, FutureExt};
use serde_json::Value;

use crate::arguments::KEY;
use crate::selection::Selection;
use crate::tool::Tool;

/// The hint if no part of it is left.
const TELL_USER: &str = "only a human can do something about it: tell your user";
/// Between the parts of a hint, each of which makes sense without the others.
const SEPARATORS: [&str; 3] = ["; ", ", or ", "? "];
/// Commands that no tool has as its own, and the tool that answers the same question.
const SIMILAR_TOOLS: [(&str, &str); 1] = [("schedule next", "schedule_preview")];

/// A handle whose errors have hints for a model, for requests that are not calls of tools.
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
        async { answer.await.map_err(|error| for_model(error, &self.selection, None)) }.boxed()
    }

    fn report(&self, report: ToolReport) -> BoxFuture<'_, Result<(), Error>> {
        self.handle.report(report)
    }
}

/// The error with a hint that names only tools of the selection, and arguments of the tool that was called.
pub(crate) fn for_model(error: Error, selection: &Selection, called: Option<&Tool>) -> Error {
    let hint = match (error.code, &error.hint) {
        (Code::RoleTooLow, _) => {
            "only a human may do this: tell your user what you wanted to do, and why".to_owned()
        }
        (_, Some(hint)) => Translation::new(selection, called).translate(hint),
        (_, None) => return error,
    };
    error.hint(hint)
}

/// A piece of a hint: plain text, or what is in backticks.
#[derive(Clone, Copy, Debug)]
enum Piece<'a> {
    Text(&'a str),
    Quoted(&'a str),
}

struct Translation<'a> {
    selection: &'a Selection,
    /// The names of the arguments of the called tool.
    arguments: Vec<String>,
}

impl Translation<'_> {
    fn new<'a>(selection: &'a Selection, called: Option<&Tool>) -> Translation<'a> {
        let arguments = called.map(Tool::argument_names).unwrap_or_default();
        Translation { selection, arguments }
    }

    /// Leaves out the parts that a model cannot follow.
    fn translate(&self, hint: &str) -> String {
        let mut followable = String::new();
        for (separator, part) in parts(hint) {
            let pieces: Option<Vec<String>> = part.into_iter().map(|it| self.piece(it)).collect();
            let Some(pieces) = pieces else { continue };
            if !followable.is_empty() {
                followable.push_str(separator);
            }
            followable.extend(pieces);
        }
        if followable.is_empty() { TELL_USER.to_owned() } else { followable }
    }

    /// `None` if it names something that the model does not have.
    fn piece(&self, piece: Piece<'_>) -> Option<String> {
        match piece {
            Piece::Text(text) | Piece::Quoted(text) if text.contains("MIDWATCH_") => None,
            Piece::Text(text) => {
                let words: Option<Vec<String>> = text.split(' ').map(|it| self.word(it)).collect();
                Some(words?.join(" "))
            }
            Piece::Quoted(quoted) => match (quoted.strip_prefix("midwatch "), flag(quoted)) {
                (Some(command), _) => self.tool_for(command),
                (None, Some(flag)) => self.argument_for(flag),
                (None, None) => Some(format!("`{quoted}`")),
            },
        }
    }

    /// A word outside of backticks, which may be a flag.
    fn word(&self, word: &str) -> Option<String> {
        let Some(flag) = flag(word) else { return Some(word.to_owned()) };
        let name = flag.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let rest = flag.strip_prefix(name).unwrap_or_default();
        Some(format!("{}{rest}", self.argument_for(name)?))
    }

    /// The argument that a flag, with or without a value, sets.
    fn argument_for(&self, flag: &str) -> Option<String> {
        let (name, value) = match flag.split_once(' ') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        let name = name.replace('-', "_");
        let is_argument = self.arguments.contains(&name);
        is_argument.then(|| match value {
            Some(value) => format!("`{name}: {value}`"),
            None => format!("`{name}`"),
        })
    }

    /// The tool that does the same as a command, with the object that the command names.
    fn tool_for(&self, command: &str) -> Option<String> {
        let rest_of = |name: &str| {
            let rest = command.strip_prefix(name)?;
            (rest.is_empty() || rest.starts_with(' ')).then_some(rest)
        };
        let similar = SIMILAR_TOOLS.iter().find(|(name, _)| rest_of(name).is_some());
        if let Some((_, tool)) = similar {
            return self.selection.find(tool).map(|tool| tool.name.to_owned());
        }
        let tools = || self.selection.tools().filter(|tool| rest_of(tool.cli_command).is_some());
        let longest = tools().map(|tool| tool.cli_command).max_by_key(|it| it.len())?;
        let same: Vec<&Tool> = tools().filter(|tool| tool.cli_command == longest).collect();
        let tool = match same.as_slice() {
            [only] => only,
            several => several.iter().find(|tool| tool.name.ends_with("_get"))?,
        };
        let object = rest_of(longest)?.split_whitespace().next().filter(|it| is_object(it));
        Some(match object.zip(tool.object_argument()) {
            Some((object, argument)) => format!("{} ({argument}: {object})", tool.name),
            None => tool.name.to_owned(),
        })
    }
}

impl Tool {
    fn argument_names(&self) -> Vec<String> {
        let schema = self.input_schema();
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(|it| it.keys()).cloned().collect()
    }

    /// The only required argument, which names the object of a call.
    fn object_argument(&self) -> Option<String> {
        let schema = self.input_schema();
        let required = schema.get("required").and_then(Value::as_array)?;
        let mut names = required.iter().filter_map(Value::as_str).filter(|name| *name != KEY);
        let only = names.next()?.to_owned();
        names.next().is_none().then_some(only)
    }
}

/// The name of a flag, and its value if it has one.
fn flag(text: &str) -> Option<&str> {
    text.strip_prefix("--").filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Whether a word of a command names an object, and is neither a flag nor a placeholder such as `ID`.
fn is_object(word: &str) -> bool {
    !word.starts_with('-') && word.chars().any(|c| c.is_lowercase() || c.is_ascii_digit())
}

/// The parts of a hint, each with the separator before it. Text in backticks, such as a name, is not split.
fn parts(hint: &str) -> Vec<(&'static str, Vec<Piece<'_>>)> {
    let mut parts = vec![("", Vec::new())];
    for (index, piece) in hint.split('`').enumerate() {
        if index % 2 == 1 {
            push(&mut parts, Piece::Quoted(piece));
            continue;
        }
        let mut rest = piece;
        while let Some((at, separator)) = first_separator(rest) {
            let (before, after) = rest.split_at(at);
            // A question keeps its mark.
            let (end, between) = if separator == "? " { ("?", " ") } else { ("", separator) };
            push(&mut parts, Piece::Text(before));
            push(&mut parts, Piece::Text(end));
            parts.push((between, Vec::new()));
            rest = after.strip_prefix(separator).unwrap_or_default();
        }
        push(&mut parts, Piece::Text(rest));
    }
    parts
}

fn push<'a>(parts: &mut [(&'static str, Vec<Piece<'a>>)], piece: Piece<'a>) {
    if let Some((_, pieces)) = parts.last_mut() {
        pieces.push(piece);
    }
}

fn first_separator(text: &str) -> Option<(usize, &'static str)> {
    let found = SEPARATORS.iter().filter_map(|separator| Some((text.find(separator)?, *separator)));
    found.min_by_key(|(at, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translate(hint: &str, called: &str, selection: &Selection) -> String {
        Translation::new(selection, selection.find(called)).translate(hint)
    }

    #[test]
    fn commands_and_flags_become_tools_and_arguments() {
        let selection = Selection::default();
        for (hint, expected) in [
            ("`midwatch schedule list` shows the schedules", "schedule_list shows the schedules"),
            ("stop it with `midwatch run cancel run_1`", "stop it with run_cancel (run_id: run_1)"),
            ("see `midwatch run show ID`", "see run_get"),
            ("`midwatch schedule next` shows when", "schedule_preview shows when"),
            ("`midwatch status` tells more", "status_get tells more"),
            ("`midwatch status --budgets` shows it", "budget_get shows it"),
            ("name it, as in `--tz Europe/Berlin`", "name it, as in `tz: Europe/Berlin`"),
            ("omit --tier, and go on", "omit `tier`, and go on"),
            ("use `10m` -- as before", "use `10m` -- as before"),
        ] {
            assert_eq!(translate(hint, "schedule_create", &selection), expected);
        }
    }

    #[test]
    fn parts_about_what_a_model_does_not_have_are_left_out() {
        let selection = Selection::default();
        for (hint, expected) in [
            ("start one with `midwatch up`, or choose another with `--data DIR`", TELL_USER),
            ("`midwatch schedule listing`", TELL_USER),
            ("set it as MIDWATCH_TOKEN", TELL_USER),
            (
                "register it with `midwatch agent add x --backend K`; `midwatch agent list` shows the agents",
                "agent_list shows the agents",
            ),
            (
                "did you mean `a; b? c, or d`? `midwatch agent list` shows the agents",
                "did you mean `a; b? c, or d`? agent_list shows the agents",
            ),
            ("did you mean `x`? `midwatch token list` shows", "did you mean `x`?"),
            (
                "`midwatch agent edit a --prompt-as stdin`, or omit `--sensitive`",
                "omit `sensitive`",
            ),
        ] {
            assert_eq!(translate(hint, "schedule_create", &selection), expected);
        }
        let few = Selection::new(vec![crate::Toolset::Core]);
        let hint = "`midwatch run list` shows the runs";
        assert_eq!(translate(hint, "status_get", &few), TELL_USER, "the tool is not offered");
        assert_eq!(translate("omit `--tier`", "run_get", &selection), TELL_USER);
    }

    #[test]
    fn a_model_is_not_told_to_use_a_token() {
        let error =
            Error::new(Code::RoleTooLow, "no").hint("come with their token in MIDWATCH_TOKEN");
        let hint = for_model(error, &Selection::default(), None).hint.unwrap();
        assert!(hint.starts_with("only a human may do this"), "{hint}");
    }
}
