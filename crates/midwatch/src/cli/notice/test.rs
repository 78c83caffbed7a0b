//! `midwatch notice test`

use std::process::ExitCode;

use api::{Error, NoticeTest, NoticeTested};

use crate::access::send;
use crate::context::Context;

pub(super) async fn run(context: &Context) -> Result<ExitCode, Error> {
    let answer = send(context, NoticeTest {}).await?;
    context.output.say(&answer, render);
    let is_delivered = answer.results.iter().all(|result| result.failure.is_none());
    Ok(if is_delivered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn render(NoticeTested { results }: &NoticeTested) -> String {
    let lines = results.iter().map(|result| match &result.failure {
        None => format!("{}: delivered", result.channel),
        Some(failure) => format!("{}: FAILED: {failure}", result.channel),
    });
    lines.collect::<Vec<_>>().join("\n")
}
