//! The entries of a simulation in a form that is identical for two simulations of one seed: without the salts of private
//! fields, and with numbers instead of process names.

use std::fmt::Write;

use kernel::EventBody;
use kernel::run::Event;
use ledger::EntryRef;

#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) entries: Vec<String>,
    holders: Vec<String>,
    printed: usize,
}

impl History {
    pub(super) fn add(&mut self, fields: &EntryRef<'_>, body: &EventBody) {
        let mut body = body.clone();
        if let EventBody::Run(_, Event::Started(started)) = &mut body {
            let known = self.holders.iter().position(|holder| *holder == started.holder);
            let number = known.unwrap_or(self.holders.len());
            if known.is_none() {
                self.holders.push(started.holder.clone());
            }
            started.holder = format!("process {number}");
        }
        let mut line = format!("{} {} {}", fields.ts_us, fields.actor, fields.cause);
        let _ = write!(line, " {body:?}");
        self.entries.push(line);
    }

    /// Prints a heading and the entries since the last call, to investigate a failure.
    pub(super) fn print_new(&mut self, heading: &str) {
        eprintln!("{heading}");
        self.entries.iter().skip(self.printed).for_each(|line| eprintln!("  {line}"));
        self.printed = self.entries.len();
    }

    /// Describes the first difference between two histories.
    pub(super) fn difference(&self, other: &History) -> Option<String> {
        let mut pairs = self.entries.iter().zip(&other.entries).enumerate();
        if let Some((index, (left, right))) = pairs.find(|(_, (left, right))| left != right) {
            return Some(format!("entry {}:\n  {left}\n  {right}", index + 1));
        }
        let (left, right) = (self.entries.len(), other.entries.len());
        (left != right).then(|| format!("one has {left} entries, the other {right}"))
    }
}
