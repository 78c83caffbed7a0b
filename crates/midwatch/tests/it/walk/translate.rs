//! A page has the ids of the walk that wrote it. This maps them to those of the present walk.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Hexadecimal digits of a plan hash that a command needs at least.
const PLAN_DIGITS: usize = 8;
/// Characters of an id in a command.
const ID_CHARS: usize = 20;

/// Ids, secrets and hashes in an output. The name of the group is the kind.
static NAMES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?P<run>run_[0-9a-f]{8,})|(?P<apr>apr_[0-9a-f]{8,})|(?P<sch>sch_[0-9a-f]{8,})|(?P<tok>tok_[0-9a-f]{8,})|(?P<mwt>mwt_[A-Za-z0-9_-]+)|(?P<mws>mws_[A-Za-z0-9_-]+)|(?P<key>[a-z]+\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+)|(?P<plan>plan hash +[0-9a-f]{64})",
    )
    .unwrap()
});

/// The same in a command. An ellipsis stands for the latest of its kind.
static REFERENCES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?P<run>run_[0-9a-f…]+)|(?P<apr>apr_[0-9a-f…]+)|(?P<sch>sch_[0-9a-f…]+)|(?P<tok>tok_[0-9a-f…]+)|(?P<mwt>mwt_[A-Za-z0-9_…-]+)|(?P<mws>mws_[A-Za-z0-9_…-]+)|(?P<key>[a-z]+\+(…|[0-9a-f]{8}\+[A-Za-z0-9+/=]+))|(?P<plan>--plan [0-9a-f…]+)",
    )
    .unwrap()
});
const KINDS: [&str; 8] = ["run", "apr", "sch", "tok", "mwt", "mws", "key", "plan"];

#[derive(Debug, Default)]
pub(super) struct Translation {
    /// From the name in the page to the present one, by kind.
    names: BTreeMap<(&'static str, String), String>,
    /// The names that this walk has printed, by kind.
    seen: Vec<(&'static str, String)>,
}

impl Translation {
    /// The command of the page with the names of this walk.
    pub(super) fn command(&self, command: &str) -> String {
        let replaced = REFERENCES.replace_all(command, |found: &Captures| {
            let (kind, name) = kind_and_name(found);
            let present = match name.strip_suffix('…') {
                Some(begin) => self.latest(kind, begin),
                None => self.present(kind, &name),
            };
            let present =
                present.unwrap_or_else(|| panic!("no output before `{command}` has `{name}`"));
            if kind == "plan" { format!("--plan {present}") } else { present }
        });
        replaced.into_owned()
    }

    /// The present name for one of the page, which may be cut off.
    fn present(&self, kind: &'static str, name: &str) -> Option<String> {
        let mut known = self.names.iter().filter(|((known, _), _)| *known == kind);
        let (_, present) = known.find(|((_, page), _)| page.starts_with(name))?;
        Some(present.chars().take(name.chars().count()).collect())
    }

    fn latest(&self, kind: &'static str, begin: &str) -> Option<String> {
        let mut seen = self.seen.iter().rev();
        let (_, name) = seen.find(|(it, name)| *it == kind && name.starts_with(begin))?;
        Some(short(kind, name))
    }

    /// Learns which names of the page are which of this walk: those of one kind come in the same order.
    pub(super) fn learn(&mut self, page: &str, present: &str) {
        let (page, present) = (names(page), names(present));
        for kind in KINDS {
            let of_kind = |names: &[(&'static str, String)]| {
                let names = names.iter().filter(|(it, _)| *it == kind);
                names.map(|(_, name)| name.clone()).collect::<Vec<_>>()
            };
            for (page, present) in of_kind(&page).into_iter().zip(of_kind(&present)) {
                self.names.insert((kind, page), present);
            }
        }
        self.seen.extend(present);
    }
}

/// The names in an output, each once, in the order in which they appear.
fn names(output: &str) -> Vec<(&'static str, String)> {
    let mut names: Vec<(&'static str, String)> = Vec::new();
    for found in NAMES.captures_iter(output) {
        let name = kind_and_name(&found);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn kind_and_name(found: &Captures) -> (&'static str, String) {
    let kind = KINDS.into_iter().find(|kind| found.name(kind).is_some()).unwrap();
    // A hash is the last word, after those that tell it from others.
    let name = found[0].rsplit(' ').next().unwrap_or_default();
    (kind, name.to_owned())
}

fn short(kind: &str, name: &str) -> String {
    let chars = match kind {
        "plan" => PLAN_DIGITS,
        "run" | "apr" | "tok" => ID_CHARS,
        _ => name.len(),
    };
    name.chars().take(chars).collect()
}

#[test]
fn commands_get_the_ids_of_this_walk() {
    let hash = |digit: &str| digit.repeat(64);
    let mut translation = Translation::default();
    let page =
        format!("run_aaaaaaaaaaaa of sch_11111111, run_bbbbbbbbbbbb\nplan hash   {}", hash("c"));
    let present =
        format!("run_000000000001 of sch_11111111, run_000000000002\nplan hash   {}", hash("d"));
    translation.learn(&page, &present);
    let check = |command: &str, expected: &str| assert_eq!(translation.command(command), expected);
    check("run show run_bbbbbbbbbbbb", "run show run_000000000002");
    check("run show run_bbbbbbbb", "run show run_00000000");
    check("run show run_…", "run show run_000000000002");
    check("why hello --plan cccccccc", "why hello --plan dddddddd");
    check("approve --plan …", "approve --plan dddddddd");
    translation.learn("", "ada+00000001+AAA= ben+00000002+BBB=");
    assert_eq!(translation.command("--key 'ada+…'"), "--key 'ada+00000001+AAA='");
}
