//! The tools that schedules may call, which are those of the MCP server.

use api::Error;
use futures::future::{BoxFuture, FutureExt};
use mcp::scheduled;
use runtime::{ResolvedCall, ScheduledCall, Tools};

#[derive(Debug)]
pub struct McpTools;

impl Tools for McpTools {
    fn is_known(&self, tool: &str) -> bool {
        mcp::tools().any(|it| it.name == tool)
    }

    fn resolve(&self, tool: &str, payload: &str) -> Result<ResolvedCall, Error> {
        let tool = scheduled::find(tool)?;
        Ok(ResolvedCall {
            hash: tool.definition_hash(),
            request: scheduled::request(tool, payload)?,
        })
    }

    fn call<'a>(&'a self, call: ScheduledCall<'a>) -> BoxFuture<'a, Result<String, Error>> {
        async move {
            let ScheduledCall { tool, payload, key, handle } = call;
            Ok(scheduled::call(scheduled::find(tool)?, payload, key, handle).await?.to_string())
        }
        .boxed()
    }
}
