//! `midwatch promptyoself upload`

use api::{Code, Error};
use clap::Args;
use compat::promptyoself::register::invalid_input;
use serde::Serialize;

use super::agents::is_operator;
use super::letta_server::{LettaServer, Tool};
use super::settings::{Letta, only_agent};
use crate::context::Context;

/// Upload a tool to the Letta server
#[derive(Debug, Args)]
pub(super) struct Upload {
    /// The name of the tool [default: the name in its source]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    name: Option<String>,
    /// What the tool does
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    /// Its source in Python
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    source_code: Option<String>,
}

#[derive(Serialize)]
#[serde(tag = "status", rename = "success")]
pub(super) struct UploadResult {
    tool_id: String,
    name: Option<String>,
}

pub(super) async fn run(context: &Context, upload: Upload) -> Result<UploadResult, Error> {
    let source_code = upload.source_code.filter(|text| !text.is_empty());
    let missing = || invalid_input("Missing required argument: source-code");
    let source_code = source_code.ok_or_else(missing)?;
    if only_agent(&context.environment)?.is_some() || !is_operator(context).await? {
        let what = "Only an operator may upload a tool to the Letta server";
        return Err(Error::new(Code::RoleTooLow, what).hint("ask an operator to upload it"));
    }
    let tool = Tool { source_code, name: upload.name, description: upload.description };
    let letta = Letta::from_environment(&context.environment);
    let uploaded = LettaServer::new(&letta, &context.environment).upload(&tool).await?;
    Ok(UploadResult { tool_id: uploaded.id, name: uploaded.name.or(tool.name) })
}
