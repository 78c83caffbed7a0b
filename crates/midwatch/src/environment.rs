//! The environment, read once when the program starts.

use std::collections::BTreeMap;

/// Variables whose names and values are text; others are none that we know.
pub fn of_process() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
