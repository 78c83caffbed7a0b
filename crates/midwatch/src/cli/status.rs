//! `midwatch status`

use std::process::ExitCode;

use api::{Error, Status, StatusAsk};

use crate::access::ask;
use crate::context::Context;
use crate::output::{entries, pairs};

pub(super) async fn run(context: &Context) -> Result<ExitCode, Error> {
    let status = ask(context, StatusAsk {}).await?;
    context.output.show(&status, page);
    Ok(ExitCode::SUCCESS)
}

fn page(status: &Status) -> String {
    let Status { watch, log, agents } = status;
    let kept = match (watch.pid, &watch.since) {
        (Some(pid), Some(since)) => format!("kept by process {pid} since {since}"),
        _ => "not kept: no daemon runs (`midwatch up` starts one)".to_owned(),
    };
    let signed = match log.checkpoint {
        0 => format!("{}, none signed yet", entries(log.entries)),
        signed => format!("{}, signed up to {signed}", entries(log.entries)),
    };
    let rows = [
        Some(("watch", kept)),
        Some(("posture", watch.posture.clone())),
        Some(("data", watch.data.clone())),
        Some(("version", watch.version.clone())),
        Some(("agents", agents.to_string())),
        Some(("log", signed)),
        watch.kept.then(|| ("check", log.check.clone())),
        log.stopped.clone().map(|reason| ("STOPPED", reason)),
        Some(("public key", log.key.clone())),
    ];
    pairs(rows.into_iter().flatten())
}
