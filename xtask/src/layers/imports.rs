//! Finds what a file of a crate imports from that crate: the first name after `crate::` in every path, in `use`
//! declarations and in bodies. `super::` paths that leave the file's room count too; comments, strings and items under
//! `#[cfg(test)]` do not.
//!
//! It works on text, as rustfmt leaves it. A path that a macro puts together is not found.

use std::collections::BTreeSet;

/// A file, by its path below the sources of the crate, and a name of the crate root that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import<'a> {
    pub(super) file: &'a str,
    pub(super) name: String,
}

pub(super) fn of_file<'a>(file: &'a str, text: &str) -> Vec<Import<'a>> {
    let code = without_tests(&without_comments_and_strings(text));
    let root_by_super = "super::".repeat(module_depth(file));
    let names: BTreeSet<String> = ["crate::", root_by_super.as_str()]
        .into_iter()
        .filter(|root| !root.is_empty())
        .flat_map(|root| names_after(&code, root))
        .collect();
    names.into_iter().map(|name| Import { file, name }).collect()
}

/// How many `super::` lead from the module of a file to the crate root.
fn module_depth(file: &str) -> usize {
    let module = file.strip_suffix("/mod.rs").or(file.strip_suffix(".rs")).unwrap_or(file);
    module.split('/').count()
}

/// The first name of every path that begins with `root`; of a group, the first name of each member.
fn names_after(code: &str, root: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices(root) {
        let (before, path) = code.split_at(at);
        if before.ends_with(|it: char| is_word(it) || it == ':') {
            continue;
        }
        let rest = path.get(root.len()..).unwrap_or("");
        match rest.strip_prefix('{') {
            Some(group) => names.extend(group_members(group).into_iter().filter_map(first_name)),
            None => names.extend(first_name(rest)),
        }
    }
    names
}

/// The members of a `use` group up to its closing brace; `group` begins behind the opening one.
fn group_members(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut members) = (0_usize, 0, Vec::new());
    for (at, it) in group.char_indices() {
        let ends = depth == 0 && matches!(it, ',' | '}');
        if ends {
            members.extend(group.get(start..at));
            start = at + 1;
        }
        match it {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            _ => {}
        }
    }
    members
}

fn first_name(path: &str) -> Option<String> {
    let path = path.trim_start();
    let name = path.split(|it| !is_word(it)).next().unwrap_or("");
    (!name.is_empty() && name != "super").then(|| name.to_owned())
}

fn is_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

/// The code with every comment, string and character literal replaced by a space.
fn without_comments_and_strings(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match ignored_length(rest) {
            Some(length) => {
                code.push(' ');
                length
            }
            // A raw string begins with a letter; the letter at the end of a name is none.
            None if is_word(first) => {
                let length = rest.find(|it| !is_word(it)).unwrap_or(rest.len());
                code.push_str(rest.get(..length).unwrap_or(""));
                length
            }
            None => {
                code.push(first);
                first.len_utf8()
            }
        };
        rest = rest.get(length..).unwrap_or("");
    }
    code
}

/// The length of the comment or literal with which `code` begins.
fn ignored_length(code: &str) -> Option<usize> {
    if code.starts_with("//") {
        return Some(code.find('\n').unwrap_or(code.len()));
    }
    if code.starts_with("/*") {
        return Some(block_comment_length(code));
    }
    let literal = code.strip_prefix(['b', 'c']).unwrap_or(code);
    let prefix = code.len() - literal.len();
    if let Some(raw) = literal.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let body = raw.get(hashes..)?.strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = body.find(&end).map_or(body.len(), |at| at + end.len());
        return Some(prefix + 1 + hashes + 1 + length);
    }
    match literal.strip_prefix('"') {
        Some(body) => Some(prefix + 1 + quoted_length(body, '"')),
        None => character_length(literal).map(|length| prefix + length),
    }
}

/// Comments of this kind may hold others.
fn block_comment_length(code: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    code.len()
}

/// The length up to and with the closing quote; `body` begins behind the opening one.
fn quoted_length(body: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, it) in body.char_indices() {
        if it == quote && !is_escaped {
            return at + quote.len_utf8();
        }
        is_escaped = it == '\\' && !is_escaped;
    }
    body.len()
}

/// The length of a character literal. A lifetime begins with the same sign and has none.
fn character_length(code: &str) -> Option<usize> {
    let body = code.strip_prefix('\'')?;
    let mut letters = body.chars();
    let (first, second) = (letters.next()?, letters.next());
    (first == '\\' || second == Some('\'')).then(|| 1 + quoted_length(body, '\''))
}

/// The code without the items that only tests compile.
fn without_tests(code: &str) -> String {
    let mut parts = code.split("#[cfg(test)]");
    let mut kept = parts.next().unwrap_or("").to_owned();
    for part in parts {
        kept.push_str(part.get(item_length(part)..).unwrap_or(""));
    }
    kept
}

/// The length of the item with which `code` begins: up to its semicolon or the end of its braces.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, it) in code.char_indices() {
        match it {
            ';' if depth == 0 => return at + 1,
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, text: &str, expected: &[&str]) {
        let names: Vec<String> = of_file(file, text).into_iter().map(|it| it.name).collect();
        assert_eq!(names, expected, "{file}: {text}");
    }

    #[test]
    fn paths_in_declarations_and_bodies_are_found() {
        check("execute/start.rs", "use crate::commit::rows::Row;", &["commit"]);
        check("execute/start.rs", "use crate::errors;\nuse crate::Engine;", &["Engine", "errors"]);
        check(
            "execute/start.rs",
            "use crate::{\n    commit::{self, rows::{Row, Rows}},\n    dispatch,\n};",
            &["commit", "dispatch"],
        );
        check(
            "execute/start.rs",
            "fn f() { crate::ledger::feed(&[crate::clock::now()]) }",
            &["clock", "ledger"],
        );
        check("execute/start.rs", "macro_rules! m { () => { $crate::notify::n() } }", &["notify"]);
    }

    #[test]
    fn super_paths_count_when_they_leave_the_room() {
        check("execute/start.rs", "use super::outcome::Outcome;", &[]);
        check("execute/start.rs", "use super::super::commit::rows;", &["commit"]);
        check("execute/mod.rs", "use super::commit::rows;", &["commit"]);
        check("handlers/schedules/add.rs", "use super::super::runs::list;", &[]);
        check("handlers/schedules/add.rs", "use super::super::super::engine::Engine;", &["engine"]);
        check("clock.rs", "use super::engine::Engine;", &["engine"]);
    }

    #[test]
    fn comments_strings_and_tests_do_not_count() {
        check(
            "execute/start.rs",
            "//! See [`crate::engine`].\n/* crate::a /* b */ crate::c */",
            &[],
        );
        check("execute/start.rs", r##"const A: &str = "crate::a \" crate::b";"##, &[]);
        check("execute/start.rs", r###"const A: &str = br#"crate::a " crate::b"#;"###, &[]);
        check(
            "execute/start.rs",
            "fn f<'a>(it: &'a u8) { ('\"', '\\'', crate::commit::f) }",
            &["commit"],
        );
        let tests = "#[cfg(test)]\nuse crate::a::A;\n#[cfg(test)]\nmod tests { fn f() { crate::b::f() } }\n";
        check("execute/start.rs", &format!("{tests}use crate::commit::Row;"), &["commit"]);
        check("execute/start.rs", "fn f() { other_crate::engine::f(); my::crate_::g() }", &[]);
    }
}
