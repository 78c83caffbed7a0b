//! The environment, read once when the program starts.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Variables whose names and values are text; others are none that we know.
pub fn of_process() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// A path, which need not be text. An empty variable is none.
#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
pub fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}
