//! Private fields of events: free text that people and programs wrote. They are stored beside the facts of an
//! event, so they can be redacted without breaking the ledger; no rule reads them. Each noun's events name theirs
//! in [`crate::noun::NounEvent::private_fields_mut`].

use std::collections::BTreeMap;

use crate::EventBody;

/// The private fields of one event, by name.
pub type PrivateFields = BTreeMap<String, String>;

/// The stored name of a private field, and its text.
pub type PrivateField<'a> = (&'static str, &'a mut String);

impl EventBody {
    /// Moves the private fields out. Each leaves an empty string, so that it can be put back.
    pub fn take_private_fields(&mut self) -> PrivateFields {
        let written = self.private_fields_mut().into_iter().filter(|(_, text)| !text.is_empty());
        written.map(|(name, text)| (name.to_owned(), std::mem::take(text))).collect()
    }

    /// Puts back what [`EventBody::take_private_fields`] moved out.
    pub fn put_private_fields(&mut self, mut fields: PrivateFields) {
        for (name, text) in self.private_fields_mut() {
            if let Some(value) = fields.remove(name) {
                *text = value;
            }
        }
    }
}

/// The private field of an event with an optional note.
pub(crate) fn note(note: &mut Option<String>) -> Vec<PrivateField<'_>> {
    note.iter_mut().map(|note| ("note", note)).collect()
}
