//! `midwatch promptyoself test`

use api::Error;
use compat::promptyoself::CONNECTED;
use serde::Serialize;

use super::count_letta_agents;
use crate::context::Context;

#[derive(Serialize)]
#[serde(tag = "status", rename = "success")]
pub(super) struct TestResult {
    message: &'static str,
    agent_count: usize,
}

pub(super) async fn run(context: &Context) -> Result<TestResult, Error> {
    let agent_count = count_letta_agents(context).await?;
    Ok(TestResult { message: CONNECTED, agent_count })
}
