//! Private fields of events: free text that people and programs wrote. They are stored beside the facts of an
//! event, so they can be redacted without breaking the ledger; no rule reads them.

use std::collections::BTreeMap;

use crate::event::EventBody;
use crate::run::{self, Cause, Output};
use crate::schedule::{self, Action};
use crate::{approval, authority, installation, token};

/// The private fields of one event, by name.
pub type PrivateFields = BTreeMap<String, String>;

impl EventBody {
    /// Moves the private fields out. Each leaves an empty string, so that it can be put back.
    pub fn take_private_fields(&mut self) -> PrivateFields {
        let written = self.private_fields_mut().into_iter().filter(|(_, text)| !text.is_empty());
        written.map(|(name, text)| (name.to_owned(), std::mem::take(text))).collect()
    }

    pub fn put_private_fields(&mut self, mut fields: PrivateFields) {
        for (name, text) in self.private_fields_mut() {
            if let Some(value) = fields.remove(name) {
                *text = value;
            }
        }
    }

    fn private_fields_mut(&mut self) -> Vec<(&'static str, &mut String)> {
        match self {
            // The reason quotes from the file.
            EventBody::Installation(_, installation::Event::ReloadRefused(refused)) => {
                vec![("reason", &mut refused.reason)]
            }
            EventBody::Agent(..) | EventBody::Tool(..) | EventBody::Installation(..) => Vec::new(),
            EventBody::Token(_, token::Event::Created(_)) => Vec::new(),
            EventBody::Token(_, token::Event::Revoked(revoked)) => note(&mut revoked.note),
            EventBody::Authority(_, event) => match event {
                authority::Event::Frozen(attribution)
                | authority::Event::Thawed(attribution)
                | authority::Event::Renewed(attribution) => note(&mut attribution.note),
                authority::Event::Warned(_) => Vec::new(),
            },
            EventBody::Approval(_, event) => match event {
                approval::Event::Requested(requested) => {
                    vec![("prompt", requested.plan.prompt.stored_mut())]
                }
                approval::Event::Assented(assented) => note(&mut assented.decision.note),
                approval::Event::Decided(decided) => note(&mut decided.decision.note),
                approval::Event::Consumed(_) | approval::Event::Lapsed(_) => Vec::new(),
            },
            EventBody::Schedule(_, event) => match event {
                schedule::Event::Added(added) => action(&mut added.definition.action),
                schedule::Event::Changed(changed) => action(&mut changed.definition.action),
                schedule::Event::Paused(paused) => note(&mut paused.note),
                schedule::Event::Resumed(_) | schedule::Event::Removed(_) => Vec::new(),
                schedule::Event::Passed(_) | schedule::Event::Moved(_) => Vec::new(),
                schedule::Event::BackfillStarted(_) => Vec::new(),
                schedule::Event::BackfillMoved(_) => Vec::new(),
                schedule::Event::Buffered(_) | schedule::Event::Dropped(_) => Vec::new(),
            },
            EventBody::Run(_, event) => match event {
                run::Event::Queued(_) | run::Event::Started(_) => Vec::new(),
                run::Event::Requeued(_) => Vec::new(),
                run::Event::CancelRequested(cancel) => note(&mut cancel.note),
                run::Event::Settled(settled) => note(&mut settled.note),
                run::Event::Retried(it) => {
                    cause_and_output(Some(&mut it.cause), it.output.as_mut())
                }
                run::Event::Ended(it) => cause_and_output(it.cause.as_mut(), it.output.as_mut()),
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

fn cause_and_output<'a>(
    cause: Option<&'a mut Cause>,
    output: Option<&'a mut Output>,
) -> Vec<(&'static str, &'a mut String)> {
    let message = cause.map(|cause| ("message", &mut cause.message));
    message.into_iter().chain(output.map(|output| ("output", output.text.stored_mut()))).collect()
}
