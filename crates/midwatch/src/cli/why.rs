//! `midwatch why`

use std::process::ExitCode;

use api::Error;
use clap::Args;

use super::support::sentence::for_people;
use crate::access::send;
use crate::context::Context;
use crate::wrap::{fit, wrap};

/// Explain why a scheduled time ran, was skipped or is late
#[derive(Debug, Args)]
pub(super) struct Why {
    /// The schedule: its name, its id, or the beginning of its id
    schedule: String,
    /// The slot, in the schedule's zone if it has no offset [default: the last slot]
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
}

pub(super) async fn run(context: &Context, why: Why) -> Result<ExitCode, Error> {
    let answer = send(context, api::Why { id: why.schedule, at: why.at }).await?;
    let view = &context.view;
    context.output.show(&answer, |answer| {
        let sentence = for_people(&answer.sentence, view);
        match sentence == answer.sentence {
            true => fit(&sentence, view.width),
            false => format!("{}\ntimes are {}", wrap(&sentence, view.width, ""), view.zone_name()),
        }
    });
    Ok(ExitCode::SUCCESS)
}
