//! `midwatch promptyoself upload`

use api::{Code, Error};
use clap::Args;
use compat::promptyoself::UPLOAD_REFUSED;
use compat::promptyoself::register::invalid_input;
use serde::Serialize;

use super::agents::is_operator;
use super::letta_server::{LettaServer, Tool};
use super::missing_argument;
use super::settings::{Letta, only_agent};
use crate::context::Context;

/// Upload a tool to the Letta server
#[derive(Debug, Args)]
pub(super) struct Upload {
    /// Ignored: Letta reads the name from the source
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
    const MISSING: &str = "Missing required argument: source-code";
    let source_code = upload.source_code.ok_or_else(|| missing_argument(MISSING))?;
    if source_code.is_empty() {
        return Err(invalid_input(MISSING));
    }
    if only_agent(&context.environment)?.is_some() || !is_operator(context).await? {
        return Err(
            Error::new(Code::RoleTooLow, UPLOAD_REFUSED).hint("ask an operator to upload it")
        );
    }
    let tool = Tool { source_code, description: upload.description };
    let letta = Letta::from_environment(&context.environment);
    let uploaded = LettaServer::new(&letta, &context.environment).upload(&tool).await?;
    Ok(UploadResult { tool_id: uploaded.id, name: uploaded.name.or(upload.name) })
}
