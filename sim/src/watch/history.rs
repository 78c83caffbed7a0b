//! What happened in a life, in a form that two lives of one seed share to the letter: without the salts
//! of private words, and with the names of processes counted.

use std::fmt::Write;

use kernel::Body;
use kernel::run::Event;
use ledger::Fields;

#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) entries: Vec<String>,
    holders: Vec<String>,
    told: usize,
}

impl History {
    pub(super) fn add(&mut self, fields: &Fields<'_>, body: &Body) {
        let mut body = body.clone();
        if let Body::Run(_, Event::Started(started)) = &mut body {
            let known = self.holders.iter().position(|holder| *holder == started.holder);
            let place = known.unwrap_or(self.holders.len());
            if known.is_none() {
                self.holders.push(started.holder.clone());
            }
            started.holder = format!("process {place}");
        }
        let mut line = format!("{} {} {}", fields.ts_us, fields.actor, fields.cause);
        let _ = write!(line, " {body:?}");
        self.entries.push(line);
    }

    /// What came since it was last told, for whoever looks into a failure.
    pub(super) fn tell(&mut self, what: &str) {
        eprintln!("{what}");
        self.entries.iter().skip(self.told).for_each(|line| eprintln!("  {line}"));
        self.told = self.entries.len();
    }

    /// Where two histories part, in words.
    pub(super) fn difference(&self, other: &History) -> Option<String> {
        let mut pairs = self.entries.iter().zip(&other.entries).enumerate();
        if let Some((place, (left, right))) = pairs.find(|(_, (left, right))| left != right) {
            return Some(format!("entry {}:\n  {left}\n  {right}", place + 1));
        }
        let (left, right) = (self.entries.len(), other.entries.len());
        (left != right).then(|| format!("one has {left} entries, the other {right}"))
    }
}
