//! The verbs of `cargo xtask`: one table, which is also the help; one parser; one file per verb.

mod api_conformance;
mod bench;
mod browser;
mod crash;
mod dist;
mod docs;
mod fix;
mod fuzz;
mod letta;
mod mcp_conformance;
mod sim;
mod test;
mod tidy;
mod walk;

use std::fmt::{self, Display};
use std::path::Path;

use anyhow::Result;

/// The greatest edit distance at which a verb is suggested for a mistyped one.
const SUGGESTION_EDITS_MAX: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    Test,
    Tidy,
    Fix,
    Docs,
    Walk,
    Dist,
    Bench { name: String, args: Vec<String> },
    Crash { args: Vec<String> },
    Sim { args: Vec<String> },
    Fuzz { args: Vec<String> },
    Letta,
    McpConformance,
    ApiConformance { args: Vec<String> },
    Browser,
    Help,
}

/// Why a command line was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError(String);

impl Display for UsageError {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(&self.0)
    }
}

struct Help {
    verb: &'static str,
    args: &'static str,
    purpose: &'static str,
}

const fn row(verb: &'static str, args: &'static str, purpose: &'static str) -> Help {
    Help { verb, args, purpose }
}

#[rustfmt::skip]
const VERBS: &[Help] = &[
    row("test", "", "everything that CI checks: format, lints, tidy, tests"),
    row("tidy", "", "check the rules of the tree: layers, module docs, dead files"),
    row("fix", "", "apply the automatic fixes of clippy and rustfmt"),
    row("docs", "", "rewrite the generated documents"),
    row("walk", "", "run the commands of the manual, rewrite their output"),
    row("dist", "", "build the stripped program, its debug info beside it"),
    row("bench", "NAME [ARGS]", "run one benchmark, in release mode"),
    row("crash", "[ARGS]", "kill -9 in a loop: `[--runs] --cycles N`"),
    row("sim", "[ARGS]", "simulate on virtual time: `[--seed N] --lives N`"),
    row("fuzz", "[ARGS]", "feed mangled MCP messages: `[--seed N] --seconds N`"),
    row("letta", "", "install a Letta server and prompt its agent"),
    row("mcp-conformance", "", "test the MCP server with the official suite and the SDKs"),
    row("api-conformance", "[ARGS]", "test the HTTP API with Schemathesis: `[--examples N]`"),
    row("browser", "", "look for violations of WCAG on every page, with axe"),
    row("help", "", "print this table"),
];

impl Verb {
    pub fn parse(words: &[String]) -> Result<Verb, UsageError> {
        let Some((verb, args)) = words.split_first() else { return Ok(Verb::Help) };
        match (verb.as_str(), args) {
            ("test", []) => Ok(Verb::Test),
            ("tidy", []) => Ok(Verb::Tidy),
            ("fix", []) => Ok(Verb::Fix),
            ("docs", []) => Ok(Verb::Docs),
            ("walk", []) => Ok(Verb::Walk),
            ("dist", []) => Ok(Verb::Dist),
            ("bench", [name, args @ ..]) => {
                Ok(Verb::Bench { name: name.clone(), args: args.to_vec() })
            }
            ("crash", args) => Ok(Verb::Crash { args: args.to_vec() }),
            ("sim", args) => Ok(Verb::Sim { args: args.to_vec() }),
            ("fuzz", args) => Ok(Verb::Fuzz { args: args.to_vec() }),
            ("letta", []) => Ok(Verb::Letta),
            ("mcp-conformance", []) => Ok(Verb::McpConformance),
            ("api-conformance", args) => Ok(Verb::ApiConformance { args: args.to_vec() }),
            ("browser", []) => Ok(Verb::Browser),
            ("help" | "--help" | "-h", _) => Ok(Verb::Help),
            ("bench", []) => Err(UsageError("`bench` needs the name of a benchmark".to_owned())),
            (verb, _) => Err(refuse(verb)),
        }
    }

    pub fn run(&self, root: &Path) -> Result<()> {
        match self {
            Verb::Test => test::run(root),
            Verb::Tidy => tidy::run(root),
            Verb::Fix => fix::run(root),
            Verb::Docs => docs::run(root),
            Verb::Walk => walk::run(root),
            Verb::Dist => dist::run(root),
            Verb::Bench { name, args } => bench::run(root, name, args),
            Verb::Crash { args } => crash::run(root, args),
            Verb::Sim { args } => sim::run(root, args),
            Verb::Fuzz { args } => fuzz::run(root, args),
            Verb::Letta => letta::run(root),
            Verb::McpConformance => mcp_conformance::run(root),
            Verb::ApiConformance { args } => api_conformance::run(root, args),
            Verb::Browser => browser::run(root),
            Verb::Help => {
                help();
                Ok(())
            }
        }
    }
}

#[expect(clippy::print_stdout, reason = "`help` prints the table")]
fn help() {
    print!("{}", table());
}

fn table() -> String {
    let mut text = "cargo xtask VERB\n\n".to_owned();
    for Help { verb, args, purpose } in VERBS {
        let usage = format!("{verb} {args}");
        text += &format!("  {usage:<22} {purpose}\n");
    }
    text
}

fn refuse(verb: &str) -> UsageError {
    if VERBS.iter().any(|row| row.verb == verb) {
        return UsageError(format!("`{verb}` takes no arguments"));
    }
    let distance = |row: &Help| strsim::damerau_levenshtein(row.verb, verb);
    match VERBS.iter().map(|row| (distance(row), row.verb)).min() {
        Some((edits, near)) if edits <= SUGGESTION_EDITS_MAX => {
            UsageError(format!("no verb `{verb}`; did you mean `{near}`?"))
        }
        _ => UsageError(format!("no verb `{verb}`\n\n{}", table())),
    }
}

/// The fixed arguments of a program, then those of the developer.
fn with_args<'a>(fixed: &[&'a str], args: &'a [String]) -> Vec<&'a str> {
    fixed.iter().copied().chain(args.iter().map(String::as_str)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Result<Verb, &str>) {
        let expected = expected.map_err(|text| UsageError(text.to_owned()));
        assert_eq!(Verb::parse(&words(line)), expected, "`{line}`");
    }

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn verbs_are_parsed_with_their_arguments() {
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
    fn unknown_verbs_and_wrong_arguments_are_refused() {
        check("bench", Err("`bench` needs the name of a benchmark"));
        check("tidy twice", Err("`tidy` takes no arguments"));
        check("tets", Err("no verb `tets`; did you mean `test`?"));
        check("benhc x", Err("no verb `benhc`; did you mean `bench`?"));
        check("deploy", Err(&format!("no verb `deploy`\n\n{}", table())));
    }

    #[test]
    fn every_verb_of_the_table_is_parsed() {
        for Help { verb, args, .. } in VERBS {
            let parsed = Verb::parse(&words(&format!("{verb} {args}")));
            assert!(parsed.is_ok(), "{verb}: {parsed:?}");
        }
    }
}
