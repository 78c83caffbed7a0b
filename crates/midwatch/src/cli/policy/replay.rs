//! `midwatch policy replay`

use std::io;
use std::path::{Path, PathBuf};

use api::{Code, Error, PolicyReplay, PolicyReplayed};
use clap::Args;

use crate::access::send_with_progress;
use crate::cli::support::input::unreadable;
use crate::cli::support::render::paragraphs;
use crate::cli::support::short_id::short_ids;
use crate::cli::support::table::{Column, shortened, table, whole};
use crate::config;
use crate::context::Context;
use crate::view::View;
use crate::wrap::wrap;

const COLUMNS: [Column; 5] = [
    whole("RUN"),
    whole("AT"),
    shortened("AGENT", 6).or_left_out(1),
    whole("WAS → WOULD BE"),
    shortened("RULE", 10),
];

/// Evaluate past decisions again, by the active rules or by others, and show which would differ
#[derive(Debug, Args)]
pub(in crate::cli) struct Replay {
    /// Decisions since: a span before now, or an instant with its offset
    #[arg(long, value_name = "SPAN|INSTANT", default_value = "7d")]
    since: String,
    /// A file of rules to use instead of `policy.toml`
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
    /// A posture to use instead of the active one
    #[arg(long, value_name = "POSTURE")]
    posture: Option<String>,
}

pub(super) async fn run(context: &Context, replay: Replay) -> Result<(), Error> {
    let Replay { since, with, posture } = replay;
    let rules = with.as_deref().map(read_rules).transpose()?;
    let progress = context.output.progress("replaying");
    let posture = posture.as_deref().map(str::parse).transpose()?;
    let request = PolicyReplay { since, rules, posture };
    let answer = send_with_progress(context, request, progress.sink()).await?;
    drop(progress);
    context.output.show(&answer, |answer| render(answer, &context.view));
    Ok(())
}

/// Reads a file of rules, with the checks that `policy.toml` gets.
fn read_rules(path: &Path) -> Result<String, Error> {
    match config::read(path) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(unreadable("file of rules", path, io::ErrorKind::NotFound.into())),
        Err(error) => {
            Err(Error::new(Code::PolicyInvalid, error).hint("fix the file, or name another one"))
        }
    }
}

fn render(answer: &PolicyReplayed, view: &View) -> String {
    let ids = short_ids(answer.changed.iter().map(|it| it.run_id.as_str()));
    let rows = answer.changed.iter().zip(ids).map(|(it, id)| {
        let agent = it.agent.clone().unwrap_or_default();
        let change = format!("{} → {}", it.was, it.would_be);
        [id, view.time(&it.at), agent, change, it.rule.clone()]
    });
    let changed = match answer.changed.is_empty() {
        true => String::new(),
        false => table(view, COLUMNS, rows),
    };
    let counts = answer.counts.iter();
    let counts: Vec<String> = counts
        .map(|(change, count)| format!("{}: {count}", change.replace("_to_", " → ")))
        .collect();
    let sentence = format!("{} (policy version {})", answer.sentence, answer.policy);
    let sentence = wrap(&view.localize(&sentence), view.width, "");
    paragraphs([changed, counts.join(", "), sentence])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(answer: serde_json::Value, expected: &[&str]) {
        let answer: PolicyReplayed = serde_json::from_value(answer).unwrap();
        assert_eq!(
            render(&answer, &View::fixed(80, "UTC", "2026-10-01T00:00:00Z"))
                .lines()
                .collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn changed_decisions_are_a_table_with_counts() {
        let changed = json!({
            "run_id": "run_1", "at": "2026-10-01T00:00:00Z", "agent": "ada",
            "was": "allow", "would_be": "ask", "rule": "policy.toml/nights",
        });
        let mut answer = json!({
            "since": "2026-09-24T00:00:00Z", "posture": "staging", "policy": "0123", "decisions": 9,
            "changed": [changed], "counts": {"allow_to_ask": 1, "ask_to_deny": 3},
            "sentence": "4 of 9 would differ",
        });
        check(
            answer.clone(),
            &[
                "RUN    AT              AGENT  WAS → WOULD BE  RULE",
                "run_1  1 Oct 00:00:00  ada    allow → ask     policy.toml/nights",
                "",
                "allow → ask: 1, ask → deny: 3",
                "",
                "4 of 9 would differ (policy version 0123)",
            ],
        );
        answer["changed"] = json!([]);
        answer["counts"] = json!({});
        check(answer, &["4 of 9 would differ (policy version 0123)"]);
    }
}
