//! `midwatch device revoke`

use std::process::ExitCode;

use api::{DeviceRevoke, Error};
use clap::Args;

use crate::access::send;
use crate::context::Context;

/// Sign a browser out; its open pages end at once
///
/// You can revoke your own devices. A maintainer can revoke all.
#[derive(Debug, Args)]
pub(in crate::cli) struct Revoke {
    /// The id of the device, from `midwatch device list`
    id: String,
}

pub(super) async fn run(context: &Context, revoke: Revoke) -> Result<ExitCode, Error> {
    let answer = send(context, DeviceRevoke { id: revoke.id }).await?;
    context.output.show(&answer, |it| match it.changed {
        true => format!("revoked; {} can no longer use {}", it.device.person, it.device.browser),
        false => "this device had ended already".to_owned(),
    });
    Ok(ExitCode::SUCCESS)
}
