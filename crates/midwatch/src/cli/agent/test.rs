//! `midwatch agent test`

use std::process::ExitCode;

use api::{AgentTest, AgentTestResult, Error, RunUsage, send};
use clap::Args;

use crate::access::{Access, IfMissing};
use crate::cli::support::interrupt::{INTERRUPTED, until_interrupted};
use crate::cli::support::render::{fitted_pairs, paragraphs, warnings};
use crate::context::Context;
use crate::view::View;
use crate::wrap::fit;

/// Send one prompt to an agent and show the result
///
/// The prompt is really sent, outside of any schedule, and recorded in the ledger. The exit code is 0 if the agent did
/// what the prompt asked, and 1 if it failed.
#[derive(Debug, Args)]
pub(in crate::cli) struct Test {
    /// The name of the agent
    name: String,
    /// The prompt [default: asks for an answer of one word]
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
}

pub(super) async fn run(context: &Context, test: Test) -> Result<ExitCode, Error> {
    let Test { name, prompt } = test;
    let access = Access::open(context, IfMissing::Refuse).await?;
    let test = send(access.handle(), AgentTest { name, prompt });
    let Some(answer) = until_interrupted(test).await else {
        context.output.remark(match access {
            Access::Daemon(_) => "\nthe test goes on in the daemon; its result is not shown",
            Access::Directory { .. } => "\nthe test was stopped, and its program with it",
        });
        access.close().await;
        return Ok(ExitCode::from(INTERRUPTED));
    };
    access.close().await;
    let answer = answer?;
    context.output.show(&answer, |answer| render(&answer.test, &context.view));
    Ok(if answer.test.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How the prompt ended comes first, the agent's output last, because it may be long.
fn render(test: &AgentTestResult, view: &View) -> String {
    let AgentTestResult { agent, passed, message, reason, output, .. } = test;
    let result = match (passed, output.is_empty()) {
        (true, false) => format!("agent `{agent}` works: it answered what is below"),
        (true, true) => format!("agent `{agent}` works, but it answered nothing"),
        (false, _) => {
            let message = message.as_deref().unwrap_or("it did not say why");
            let reason = reason.as_ref().map(|reason| format!(" [{reason}]")).unwrap_or_default();
            format!("x failed agent `{agent}`: {message}{reason}")
        }
    };
    let server = test.server.iter().map(|finding| ("server", finding.clone()));
    let tokens = test
        .usage
        .map(|RunUsage { input, output }| ("tokens", format!("{input} in, {output} out")));
    let rows = [("took", took(test.took_ms))].into_iter().chain(tokens).chain(server);
    let result = fit(&result, view.width);
    paragraphs([result, fitted_pairs(view, rows), warnings(view, &test.warnings), output.clone()])
}

/// `12 ms` or `1.3 s`.
fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        _ => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(test: AgentTestResult, expected: &[&str]) {
        let view = View::fixed(80, "UTC", "2026-03-28T12:00:00Z");
        assert_eq!(render(&test, &view).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_outcome_comes_first_and_the_answer_last() {
        let passed = AgentTestResult {
            agent: "scout".to_owned(),
            passed: true,
            reason: None,
            message: None,
            took_ms: 1_349,
            output: "ready".to_owned(),
            usage: Some(RunUsage { input: 812, output: 4 }),
            server: vec!["it is the V1 server, Letta 0.16.8".to_owned()],
            warnings: Vec::new(),
        };
        check(
            passed.clone(),
            &[
                "agent `scout` works: it answered what is below",
                "",
                "took           1.3 s",
                "tokens         812 in, 4 out",
                "server         it is the V1 server, Letta 0.16.8",
                "",
                "ready",
            ],
        );
        let silent = AgentTestResult {
            output: String::new(),
            took_ms: 999,
            usage: None,
            server: Vec::new(),
            warnings: vec![
                "the server has no agent `a`; the prompt worked all the same".to_owned(),
            ],
            ..passed.clone()
        };
        check(
            silent,
            &[
                "agent `scout` works, but it answered nothing",
                "",
                "took           999 ms",
                "",
                "warning: the server has no agent `a`; the prompt worked all the same",
            ],
        );
        let failed = AgentTestResult {
            passed: false,
            reason: Some("not_reached".to_owned()),
            message: Some("http://localhost:8283 refused the connection".to_owned()),
            took_ms: 3,
            output: String::new(),
            usage: None,
            server: Vec::new(),
            ..passed
        };
        check(
            failed,
            &[
                "x failed agent `scout`: http://localhost:8283 refused the connection",
                "[not_reached]",
                "",
                "took           3 ms",
            ],
        );
    }
}
