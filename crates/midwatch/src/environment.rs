//! The environment of this process, read once at the start.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// All variables whose names and values are UTF-8; others are ignored.
pub fn of_process() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// A variable that holds a path, which need not be UTF-8. An empty value counts as unset.
#[expect(clippy::disallowed_methods, reason = "the only place that reads the environment")]
pub fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}
