//! The verbs of `cargo xtask`: one table, which is the help; one parser, which refuses what is not
//! in the table; one file per verb.

mod bench;
mod crash;
mod docs;
mod fix;
mod fuzz;
mod letta;
mod mcp_conformance;
mod sim;
mod test;
mod tidy;

use std::fmt::{self, Display};
use std::path::Path;

use anyhow::Result;

/// Edits between a mistyped verb and the one that is suggested instead, at most.
const SUGGESTION_EDITS_MAX: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    Test,
    Tidy,
    Fix,
    Docs,
    Bench { name: String, args: Vec<String> },
    Crash { args: Vec<String> },
    Sim { args: Vec<String> },
    Fuzz { args: Vec<String> },
    Letta,
    McpConformance,
    Help,
}

/// Why a command line is not a verb, in words for the developer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse(String);

impl Display for Misuse {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(&self.0)
    }
}

struct Row {
    verb: &'static str,
    args: &'static str,
    purpose: &'static str,
}

const ROWS: &[Row] = &[
    Row { verb: "test", args: "", purpose: "all that CI checks: format, lints, tidy, tests" },
    Row { verb: "tidy", args: "", purpose: "rules of the tree: layers, module docs, dead files" },
    Row { verb: "fix", args: "", purpose: "apply what clippy and rustfmt can mend themselves" },
    Row { verb: "docs", args: "", purpose: "write the generated documents again" },
    Row { verb: "bench", args: "NAME [ARGS]", purpose: "run one benchmark, in release mode" },
    Row { verb: "crash", args: "[ARGS]", purpose: "kill -9 in a loop: `[--runs] --cycles N`" },
    Row { verb: "sim", args: "[ARGS]", purpose: "lives on virtual time: `[--seed N] --lives N`" },
    Row { verb: "fuzz", args: "[ARGS]", purpose: "mangled lines of MCP: `[--seed N] --seconds N`" },
    Row { verb: "letta", args: "", purpose: "install a Letta server and prompt its agent" },
    Row { verb: "mcp-conformance", args: "", purpose: "hold the MCP server to suite and SDKs" },
    Row { verb: "help", args: "", purpose: "this table" },
];

impl Verb {
    pub fn parse(words: &[String]) -> Result<Verb, Misuse> {
        let Some((verb, args)) = words.split_first() else { return Ok(Verb::Help) };
        match (verb.as_str(), args) {
            ("test", []) => Ok(Verb::Test),
            ("tidy", []) => Ok(Verb::Tidy),
            ("fix", []) => Ok(Verb::Fix),
            ("docs", []) => Ok(Verb::Docs),
            ("bench", [name, args @ ..]) => {
                Ok(Verb::Bench { name: name.clone(), args: args.to_vec() })
            }
            ("crash", args) => Ok(Verb::Crash { args: args.to_vec() }),
            ("sim", args) => Ok(Verb::Sim { args: args.to_vec() }),
            ("fuzz", args) => Ok(Verb::Fuzz { args: args.to_vec() }),
            ("letta", []) => Ok(Verb::Letta),
            ("mcp-conformance", []) => Ok(Verb::McpConformance),
            ("help" | "--help" | "-h", _) => Ok(Verb::Help),
            ("bench", []) => Err(Misuse("`bench` needs the name of a benchmark".to_owned())),
            (verb, _) => Err(refuse(verb)),
        }
    }

    pub fn run(&self, root: &Path) -> Result<()> {
        match self {
            Verb::Test => test::run(root),
            Verb::Tidy => tidy::run(root),
            Verb::Fix => fix::run(root),
            Verb::Docs => docs::run(root),
            Verb::Bench { name, args } => bench::run(root, name, args),
            Verb::Crash { args } => crash::run(root, args),
            Verb::Sim { args } => sim::run(root, args),
            Verb::Fuzz { args } => fuzz::run(root, args),
            Verb::Letta => letta::run(root),
            Verb::McpConformance => mcp_conformance::run(root),
            Verb::Help => {
                help();
                Ok(())
            }
        }
    }
}

#[expect(clippy::print_stdout, reason = "the table is the answer to `help`")]
fn help() {
    print!("{}", table());
}

fn table() -> String {
    let mut text = "cargo xtask VERB\n\n".to_owned();
    for Row { verb, args, purpose } in ROWS {
        let usage = format!("{verb} {args}");
        text += &format!("  {usage:<18} {purpose}\n");
    }
    text
}

fn refuse(verb: &str) -> Misuse {
    if ROWS.iter().any(|row| row.verb == verb) {
        return Misuse(format!("`{verb}` takes no arguments"));
    }
    let distance = |row: &Row| strsim::damerau_levenshtein(row.verb, verb);
    match ROWS.iter().map(|row| (distance(row), row.verb)).min() {
        Some((edits, near)) if edits <= SUGGESTION_EDITS_MAX => {
            Misuse(format!("no verb `{verb}`; did you mean `{near}`?"))
        }
        _ => Misuse(format!("no verb `{verb}`\n\n{}", table())),
    }
}

/// The arguments of a program, as its caller holds them: fixed words, then those of the developer.
fn joined<'a>(fixed: &[&'a str], args: &'a [String]) -> Vec<&'a str> {
    fixed.iter().copied().chain(args.iter().map(String::as_str)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Result<Verb, &str>) {
        let expected = expected.map_err(|text| Misuse(text.to_owned()));
        assert_eq!(Verb::parse(&words(line)), expected, "`{line}`");
    }

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn verbs_are_read_with_their_arguments() {
        check("", Ok(Verb::Help));
        check("--help", Ok(Verb::Help));
        check("test", Ok(Verb::Test));
        check("bench commit", Ok(Verb::Bench { name: "commit".to_owned(), args: vec![] }));
        check(
            "bench commit --seconds 3",
            Ok(Verb::Bench { name: "commit".to_owned(), args: words("--seconds 3") }),
        );
        check("crash", Ok(Verb::Crash { args: vec![] }));
        check("sim --lives 9", Ok(Verb::Sim { args: words("--lives 9") }));
        check("crash --cycles 9", Ok(Verb::Crash { args: words("--cycles 9") }));
    }

    #[test]
    fn what_is_no_verb_is_refused() {
        check("bench", Err("`bench` needs the name of a benchmark"));
        check("tidy twice", Err("`tidy` takes no arguments"));
        check("tets", Err("no verb `tets`; did you mean `test`?"));
        check("benhc x", Err("no verb `benhc`; did you mean `bench`?"));
        check("deploy", Err(&format!("no verb `deploy`\n\n{}", table())));
    }

    #[test]
    fn every_verb_of_the_table_is_understood() {
        for Row { verb, args, .. } in ROWS {
            let parsed = Verb::parse(&words(&format!("{verb} {args}")));
            assert!(parsed.is_ok(), "{verb}: {parsed:?}");
        }
    }
}
