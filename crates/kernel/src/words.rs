//! The words in events: what people and programs wrote in their own. They are kept beside the facts
//! of an event, so that they can be removed from the log without breaking it; no rule reads them.

use std::collections::BTreeMap;

use crate::event::Body;
use crate::run::{self, Cause, Output};
use crate::schedule::{self, Action};
use crate::{approval, authority, token, watch};

/// The words of one event, each by its name.
pub type Words = BTreeMap<String, String>;

impl Body {
    /// Takes the words out. Each leaves an empty text behind, so that it is known where it was.
    pub fn take_words(&mut self) -> Words {
        let written = self.words_mut().into_iter().filter(|(_, text)| !text.is_empty());
        written.map(|(name, text)| (name.to_owned(), std::mem::take(text))).collect()
    }

    pub fn put_words(&mut self, mut words: Words) {
        for (name, text) in self.words_mut() {
            if let Some(word) = words.remove(name) {
                *text = word;
            }
        }
    }

    fn words_mut(&mut self) -> Vec<(&'static str, &mut String)> {
        match self {
            // What was wrong with a file quotes from it.
            Body::Watch(_, watch::Event::ReloadRefused(refused)) => {
                vec![("reason", &mut refused.reason)]
            }
            Body::Agent(..) | Body::Tool(..) | Body::Watch(..) => Vec::new(),
            Body::Token(_, token::Event::Created(_)) => Vec::new(),
            Body::Token(_, token::Event::Revoked(revoked)) => note(&mut revoked.note),
            Body::Authority(_, event) => match event {
                authority::Event::Frozen(said)
                | authority::Event::Thawed(said)
                | authority::Event::Renewed(said) => note(&mut said.note),
                authority::Event::Warned(_) => Vec::new(),
            },
            Body::Approval(_, event) => match event {
                approval::Event::Asked(asked) => vec![("prompt", asked.plan.prompt.stored_mut())],
                approval::Event::Assented(assented) => note(&mut assented.decision.note),
                approval::Event::Decided(decided) => note(&mut decided.decision.note),
                approval::Event::Consumed(_) | approval::Event::Lapsed(_) => Vec::new(),
            },
            Body::Schedule(_, event) => match event {
                schedule::Event::Added(added) => action(&mut added.definition.action),
                schedule::Event::Changed(changed) => action(&mut changed.definition.action),
                schedule::Event::Paused(paused) => note(&mut paused.note),
                schedule::Event::Resumed(_) | schedule::Event::Removed(_) => Vec::new(),
                schedule::Event::Passed(_) | schedule::Event::Moved(_) => Vec::new(),
                schedule::Event::BackfillBegun(_) => Vec::new(),
                schedule::Event::BackfillMoved(_) => Vec::new(),
                schedule::Event::Buffered(_) | schedule::Event::Dropped(_) => Vec::new(),
            },
            Body::Run(_, event) => match event {
                run::Event::Queued(_) | run::Event::Started(_) => Vec::new(),
                run::Event::Requeued(_) => Vec::new(),
                run::Event::CancelAsked(cancel) => note(&mut cancel.note),
                run::Event::Settled(settled) => note(&mut settled.note),
                run::Event::Retried(it) => said(Some(&mut it.cause), it.output.as_mut()),
                run::Event::Ended(it) => said(it.cause.as_mut(), it.output.as_mut()),
            },
        }
    }
}

fn action(action: &mut Action) -> Vec<(&'static str, &mut String)> {
    match action {
        Action::Prompt { prompt, .. } => vec![("prompt", prompt.stored_mut())],
        Action::Tool { payload, .. } => vec![("payload", payload.stored_mut())],
    }
}

fn note(note: &mut Option<String>) -> Vec<(&'static str, &mut String)> {
    note.iter_mut().map(|note| ("note", note)).collect()
}

fn said<'a>(
    cause: Option<&'a mut Cause>,
    output: Option<&'a mut Output>,
) -> Vec<(&'static str, &'a mut String)> {
    let message = cause.map(|cause| ("message", &mut cause.message));
    message.into_iter().chain(output.map(|output| ("output", output.text.stored_mut()))).collect()
}
