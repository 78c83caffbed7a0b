//! The position of a list in the ledger.

use serde_json::Value;

/// Adds the position at which a list was read. Who follows the ledger from there misses no change.
pub(super) fn add_position(list: &mut Value, at: u64) {
    if let Some(list) = list.as_object_mut() {
        list.insert("at".to_owned(), at.into());
    }
}
