//! `midwatch agent test`

use std::process::ExitCode;

use api::{AgentTest, Error, RunUsage, send};
use clap::Args;

use crate::access::{Access, IfMissing};
use crate::cli::support::interrupt::{INTERRUPTED, until_interrupted};
use crate::cli::support::render::{pairs, paragraphs, yes_no};
use crate::context::Context;

/// Send one prompt to an agent and show the result
///
/// The prompt is really sent, outside of any schedule, and recorded in the ledger. The exit code is 0 if
/// the agent succeeded and 1 if it failed.
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
    context.output.show(&answer, |answer| render(&answer.test));
    Ok(if answer.test.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The agent's output comes last, because it may be long.
fn render(test: &api::AgentTestResult) -> String {
    let some = |name, value: &Option<String>| value.clone().map(|value| (name, value));
    let server = test.server.iter().map(|finding| ("server", finding.clone()));
    let rows = [
        Some(("agent", test.agent.clone())),
        Some(("passed", yes_no(test.passed))),
        some("reason", &test.reason),
        some("message", &test.message),
        Some(("took", format!("{} ms", test.took_ms))),
        test.usage
            .map(|RunUsage { input, output }| ("tokens", format!("{input} in, {output} out"))),
    ];
    paragraphs([pairs(rows.into_iter().flatten().chain(server)), test.output.clone()])
}
