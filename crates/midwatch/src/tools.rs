//! The tools that schedules may call: those of the MCP server.

use api::{Error, Handle};
use futures::future::{BoxFuture, FutureExt};
use mcp::scheduled;
use runtime::{Meant, Tools};

#[derive(Debug)]
pub struct OwnTools;

impl Tools for OwnTools {
    fn is_known(&self, tool: &str) -> bool {
        mcp::tools().any(|it| it.name == tool)
    }

    fn meant(&self, tool: &str, payload: &str) -> Result<Meant, Error> {
        let tool = scheduled::find(tool)?;
        Ok(Meant { hash: tool.hash(), request: scheduled::request(tool, payload)? })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        payload: &'a str,
        key: String,
        handle: &'a dyn Handle,
    ) -> BoxFuture<'a, Result<String, Error>> {
        async move {
            let tool = scheduled::find(tool)?;
            Ok(scheduled::call(tool, payload, &key, handle).await?.to_string())
        }
        .boxed()
    }
}
