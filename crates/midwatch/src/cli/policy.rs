//! `midwatch policy …`

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{
    Code, Error, PolicyExplain, PolicyExplained, PolicyFacts, PolicyReplay, PolicyReplayed,
    PolicyRequest,
};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::{given, unreadable};
use crate::access::{ask, ask_with_progress};
use crate::config;
use crate::context::Context;
use crate::output::{counted, pairs, paragraphs, table};
use api::words::on_one_line;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Look whether the standing orders are in order: those of the posture, and `policy.toml` in the
    /// data directory
    Check,
    /// Say what the standing orders said of a run, or would say of a request, and by which rules
    Explain(Explain),
    /// Say which decisions of the past would be others, by the rules in force or by rules to try
    Replay(Replay),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Explain {
    /// The id of a run: what was said of it then
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// A request, such as {"capability": "agent.prompt", "agent": "ada"}: what the files say of it
    /// now; `-` reads stdin, `@FILE` reads a file. It has a `capability`, and may have `principal`,
    /// `role`, `agent`, `tier`, `resource`, `host`, `path` and `argv`
    #[arg(long, value_name = "JSON")]
    request: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Replay {
    /// Decisions since then: a span before now, or an instant with its offset
    #[arg(long, value_name = "SPAN|INSTANT", default_value = "7d")]
    since: String,
    /// A file of rules to try in the place of `policy.toml`
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
    /// A posture to try in the place of the one in force
    #[arg(long, value_name = "POSTURE")]
    posture: Option<String>,
}

#[derive(Serialize)]
struct Checked {
    posture: &'static str,
    rules: usize,
    /// Which rules these are.
    policy: String,
}

#[derive(Serialize)]
struct Foreseen {
    ruling: api::Ruling,
    sentence: String,
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    let output = context.output;
    match command {
        Command::Check => {
            let rules = rules(context)?;
            let (posture, policy) = (rules.posture().name(), rules.version().to_owned());
            let checked = Checked { posture, rules: rules.iter().count(), policy };
            output.show(&checked, |it| {
                let rules = counted(it.rules as u64, "rule", "rules");
                format!("{rules} in order for {} (version {})", it.posture, it.policy)
            });
        }
        Command::Explain(Explain { run: Some(run), .. }) => {
            let answer = ask(context, PolicyExplain { run }).await?;
            output.show(&answer, explained);
        }
        Command::Explain(Explain { run: None, request }) => {
            let typed = request.unwrap_or_default();
            let document = given::read("request", typed, io::stdin().lock())?;
            let (ruling, sentence) = runtime::foresee(&rules(context)?, &document)?;
            output.show(&Foreseen { ruling, sentence }, |Foreseen { ruling, sentence }| {
                format!("{sentence} (version {})", ruling.policy)
            });
        }
        Command::Replay(Replay { since, with, posture }) => {
            let rules = with.as_deref().map(rules_in).transpose()?;
            let progress = output.progress("replaying");
            let request = PolicyReplay { since, rules, posture };
            let answer = ask_with_progress(context, request, progress.sink()).await?;
            drop(progress);
            output.show(&answer, replayed);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The rules as the files have them, whatever a daemon goes by.
fn rules(context: &Context) -> Result<runtime::Rules, Error> {
    let posture = context.load_config()?.config.posture;
    runtime::rules(posture, &context.policy()?, context.directory.path())
}

/// The text of a file that somebody names, read as `policy.toml` is.
fn rules_in(path: &Path) -> Result<String, Error> {
    match config::read(path) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(unreadable("file of rules", path, io::ErrorKind::NotFound.into())),
        Err(error) => {
            Err(Error::new(Code::PolicyInvalid, error).hint("name another file, or mend this one"))
        }
    }
}

/// What was said, and what was asked and was so then.
fn explained(answer: &PolicyExplained) -> String {
    let PolicyExplained { request, facts, sentence, .. } = answer;
    let rows = request.iter().flat_map(asked).chain(facts.iter().flat_map(known));
    let known = pairs(rows.map(|(name, value)| (name, on_one_line(&value))));
    paragraphs([sentence.clone(), known])
}

fn asked(request: &PolicyRequest) -> Vec<(&'static str, String)> {
    let PolicyRequest { principal, role, capability, tier, .. } = request.clone();
    let mut rows = vec![
        ("principal", principal),
        ("role", role),
        ("capability", capability),
        ("tier", tier.to_string()),
    ];
    let PolicyRequest { agent, resource, host, path, argv, .. } = request.clone();
    let argv = (!argv.is_empty()).then(|| argv.join(" "));
    let named =
        [("agent", agent), ("resource", resource), ("host", host), ("path", path), ("argv", argv)];
    rows.extend(named.into_iter().filter_map(|(name, value)| Some((name, value?))));
    rows
}

fn known(facts: &PolicyFacts) -> Vec<(&'static str, String)> {
    let PolicyFacts { runs_left, tokens_left, money_left, unattended, lease, off } = facts;
    let left = [
        ("runs left", runs_left.map(|it| it.to_string())),
        ("tokens left", tokens_left.map(|it| it.to_string())),
        ("money left", money_left.clone()),
        ("switched off", (!off.is_empty()).then(|| off.join(", "))),
    ];
    let mut rows = vec![
        ("unattended", if *unattended { "yes" } else { "no" }.to_owned()),
        ("lease", lease.clone()),
    ];
    rows.extend(left.into_iter().filter_map(|(name, value)| Some((name, value?))));
    rows
}

fn replayed(answer: &PolicyReplayed) -> String {
    let rows = answer.changed.iter().map(|it| {
        let agent = it.agent.clone().unwrap_or_default();
        let change = format!("{} → {}", it.was, it.would_be);
        [it.run_id.clone(), it.at.clone(), agent, change, it.rule.clone()]
    });
    let shown = match answer.changed.is_empty() {
        true => String::new(),
        false => table(["RUN", "AT", "AGENT", "WAS → WOULD BE", "RULE"], rows),
    };
    let counts = answer.counts.iter();
    let counts: Vec<String> = counts
        .map(|(change, count)| format!("{}: {count}", change.replace("_to_", " → ")))
        .collect();
    let sentence = format!("{} (version {})", answer.sentence, answer.policy);
    paragraphs([shown, counts.join(", "), sentence])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(answer: serde_json::Value, expected: &[&str]) {
        let answer: PolicyReplayed = serde_json::from_value(answer).unwrap();
        assert_eq!(replayed(&answer).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_would_change_is_a_table_with_its_counts() {
        let changed = json!({
            "run_id": "run_1", "at": "2026-10-01T00:00:00Z", "agent": "ada",
            "was": "allow", "would_be": "ask", "rule": "policy.toml/nights",
        });
        let mut answer = json!({
            "since": "2026-09-24T00:00:00Z", "posture": "staging", "policy": "0123", "decisions": 9,
            "changed": [changed], "counts": {"allow_to_ask": 1, "ask_to_deny": 3},
            "sentence": "4 of 9 would be others",
        });
        check(
            answer.clone(),
            &[
                "RUN    AT                    AGENT  WAS → WOULD BE  RULE",
                "run_1  2026-10-01T00:00:00Z  ada    allow → ask     policy.toml/nights",
                "",
                "allow → ask: 1, ask → deny: 3",
                "",
                "4 of 9 would be others (version 0123)",
            ],
        );
        answer["changed"] = json!([]);
        answer["counts"] = json!({});
        check(answer, &["4 of 9 would be others (version 0123)"]);
    }
}
