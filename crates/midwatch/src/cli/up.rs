//! `midwatch up`

use std::process::ExitCode;

use api::Error;
use tokio::sync::oneshot;

use crate::context::Context;
use crate::daemon;

pub(super) async fn run(context: &Context) -> Result<ExitCode, Error> {
    let (ready, _) = oneshot::channel();
    daemon::up(context, ready).await.map(|()| ExitCode::SUCCESS)
}
