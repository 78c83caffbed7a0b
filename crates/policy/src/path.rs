//! Paths, and patterns over them. They are compared by whole components, never as text.
//!
//! It opens nothing: the caller brings the path that is really meant, with every link resolved.

use std::fmt;
use std::str::FromStr;

use crate::pattern::Invalid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    components: Vec<String>,
    reach: Reach,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Itself,
    /// `/srv/ada/*`: what is below the directory, at any depth, and not the directory itself.
    Below,
}

/// Nothing, if the path is not absolute or could mean another place than it says.
pub(crate) fn components(path: &str) -> Option<Vec<&str>> {
    let rest = path.strip_prefix('/').filter(|rest| !rest.contains('\0'))?;
    let components: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    (!components.iter().any(|part| matches!(*part, "." | ".."))).then_some(components)
}

impl Pattern {
    pub(crate) fn covers(&self, path: &[&str]) -> bool {
        let depth = self.components.len();
        let deep_enough = match self.reach {
            Reach::Itself => path.len() == depth,
            Reach::Below => depth < path.len(),
        };
        deep_enough && self.components.iter().zip(path).all(|(mine, other)| mine == other)
    }
}

impl FromStr for Pattern {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Pattern, Invalid> {
        let (path, reach) = match text.strip_suffix("/*") {
            Some("") => ("/", Reach::Below),
            Some(directory) => (directory, Reach::Below),
            None => (text, Reach::Itself),
        };
        match components(path) {
            Some(parts) if !path.contains('*') => {
                Ok(Pattern { components: parts.into_iter().map(str::to_owned).collect(), reach })
            }
            _ => Err(Invalid(format!(
                "`{text}` is not a pattern for paths: write an absolute path without `.` and `..`, \
                 or a directory and `/*` for all that is below it"
            ))),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.components.iter().try_for_each(|part| write!(out, "/{part}"))?;
        match (self.reach, self.components.is_empty()) {
            (Reach::Below, _) => out.write_str("/*"),
            (Reach::Itself, true) => out.write_str("/"),
            (Reach::Itself, false) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, covered: &[&str], others: &[&str]) {
        let compiled: Pattern = pattern.parse().unwrap();
        assert_eq!(compiled.to_string(), pattern);
        let covers = |path: &str| compiled.covers(&components(path).unwrap());
        covered.iter().for_each(|path| assert!(covers(path), "{pattern} {path}"));
        others.iter().for_each(|path| assert!(!covers(path), "{pattern} {path}"));
    }

    #[test]
    fn paths_are_compared_by_whole_components() {
        check("/srv/ada", &["/srv/ada", "//srv//ada/"], &["/home", "/srv/ada2", "/srv/ada/x"]);
        check("/srv/ada/*", &["/srv/ada/x", "/srv/ada//x/y"], &["/srv/ada", "/srv/ada2/x"]);
        check("/*", &["/x", "/x/y"], &["/"]);
        check("/", &["/"], &["/x"]);
    }

    #[test]
    fn a_path_that_could_mean_another_place_is_none() {
        for path in ["", "x", "~/x", "./x", "/x/../y", "/..", "/x/.", "/x\0y", "%2f"] {
            assert_eq!(components(path), None, "{path}");
        }
        assert!(components("/x/..y/.z/%2e%2e").is_some());
    }

    #[test]
    fn a_star_is_a_whole_component_at_the_end() {
        for text in ["", "*", "/srv/ad*", "/*/ada", "/srv/**", "/srv/*/", "home/*", "/srv/../*"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
