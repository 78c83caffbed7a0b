//! `midwatch promptyoself test`

use api::Error;
use serde::Serialize;

use super::agents::visible_agents;
use crate::context::Context;

#[derive(Serialize)]
#[serde(tag = "status", rename = "success")]
pub(super) struct TestResult {
    message: &'static str,
    agent_count: usize,
}

pub(super) async fn run(context: &Context) -> Result<TestResult, Error> {
    let agent_count = visible_agents(context).await?.len();
    Ok(TestResult { message: "Connection to Letta server successful", agent_count })
}
