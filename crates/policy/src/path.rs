//! Paths and path patterns, compared by whole components.
//!
//! Does not access the file system: the caller resolves symbolic links first.

use std::fmt;
use std::str::FromStr;

use crate::pattern::InvalidPattern;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    components: Vec<String>,
    scope: PathScope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathScope {
    Exact,
    /// `/srv/ada/*`: everything below the directory, at any depth, but not the directory itself.
    Below,
}

/// `None` if the path is relative or contains `.`, `..` or a control character.
pub(crate) fn components(path: &str) -> Option<Vec<&str>> {
    let rest = path.strip_prefix('/').filter(|rest| !rest.contains(char::is_control))?;
    let components: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    (!components.iter().any(|part| matches!(*part, "." | ".."))).then_some(components)
}

impl Pattern {
    pub(crate) fn matches(&self, path: &[&str]) -> bool {
        let depth = self.components.len();
        let deep_enough = match self.scope {
            PathScope::Exact => path.len() == depth,
            PathScope::Below => depth < path.len(),
        };
        deep_enough && self.components.iter().zip(path).all(|(mine, other)| mine == other)
    }
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Pattern, InvalidPattern> {
        let (path, reach) = match text.strip_suffix("/*") {
            Some("") => ("/", PathScope::Below),
            Some(directory) => (directory, PathScope::Below),
            None => (text, PathScope::Exact),
        };
        match components(path) {
            Some(parts) if !path.contains('*') => Ok(Pattern {
                components: parts.into_iter().map(str::to_owned).collect(),
                scope: reach,
            }),
            _ => Err(InvalidPattern(format!(
                "`{text}` is not a path pattern: write an absolute path without `.` and `..`, or a \
                 directory and `/*` for everything below it"
            ))),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.components.iter().try_for_each(|part| write!(out, "/{part}"))?;
        match (self.scope, self.components.is_empty()) {
            (PathScope::Below, _) => out.write_str("/*"),
            (PathScope::Exact, true) => out.write_str("/"),
            (PathScope::Exact, false) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let compiled: Pattern = pattern.parse().unwrap();
        assert_eq!(compiled.to_string(), pattern);
        let matches = |path: &str| compiled.matches(&components(path).unwrap());
        matching.iter().for_each(|path| assert!(matches(path), "{pattern} {path}"));
        others.iter().for_each(|path| assert!(!matches(path), "{pattern} {path}"));
    }

    #[test]
    fn paths_are_compared_by_whole_components() {
        check("/srv/ada", &["/srv/ada", "//srv//ada/"], &["/home", "/srv/ada2", "/srv/ada/x"]);
        check("/srv/ada/*", &["/srv/ada/x", "/srv/ada//x/y"], &["/srv/ada", "/srv/ada2/x"]);
        check("/*", &["/x", "/x/y"], &["/"]);
        check("/", &["/"], &["/x"]);
    }

    #[test]
    fn relative_and_ambiguous_paths_are_refused() {
        for path in [
            "", "x", "~/x", "./x", "/x/../y", "/..", "/x/.", "/x\0y", "/x\ny", "/x\u{7f}",
            "/x\u{9b}", "%2f",
        ] {
            assert_eq!(components(path), None, "{path}");
        }
        assert!(components("/x/..y/.z/%2e%2e").is_some());
    }

    #[test]
    fn star_is_allowed_only_as_the_last_component() {
        for text in ["", "*", "/srv/ad*", "/*/ada", "/srv/**", "/srv/*/", "home/*", "/srv/../*"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
