//! `midwatch demo`: a daemon in a temporary directory, one schedule, and its events as they happen.

use std::process::ExitCode;

use api::{Action, AgentAdd, Code, Error, ScheduleAdd, ScheduleAdded, When};
use tokio::select;
use tokio::sync::oneshot;

use super::support::narrate::narrate;
use crate::access::send;
use crate::context::{Context, display_path};
use crate::daemon;
use crate::environment;

const EVERY: &str = "10s";

pub(super) async fn run(context: &Context) -> Result<ExitCode, Error> {
    let directory = tempfile::Builder::new().prefix("midwatch-demo-").tempdir();
    let directory = directory.map_err(|error| {
        Error::new(Code::Failed, format!("a temporary directory cannot be created: {error}"))
    })?;
    let mut environment = environment::of_process();
    // The user's own configuration does not apply to the demo.
    environment.retain(|name, _| !name.starts_with("MIDWATCH_"));
    environment.insert("MIDWATCH_LOG_LEVEL".to_owned(), "warn".to_owned());
    // The default port is left to a real daemon.
    environment.insert("MIDWATCH_HTTP_LISTEN".to_owned(), String::new());
    let (output, view) = (context.output, context.view.clone());
    let data = Some(directory.path().to_owned());
    let context = Context::new(data, None, environment, output, view)?;
    let (ready, is_ready) = oneshot::channel();
    let narrated = async {
        match is_ready.await {
            Ok(()) => add_and_narrate(&context).await,
            // The daemon failed to start; its own error is returned below.
            Err(_) => std::future::pending().await,
        }
    };
    select! {
        ended = daemon::up(&context, daemon::Start::default(), ready) => ended?,
        failed = narrated => failed?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds the schedule and prints what happens, until stdout closes.
async fn add_and_narrate(context: &Context) -> Result<(), Error> {
    let added = add_schedule(context).await?;
    let data = display_path(context.directory.path());
    let _ = context.output.show_line(&added, |added| {
        let id = &added.schedule.id;
        format!(
            "schedule {id}: {}; ctrl-c ends the demo and removes it\n\
             in another terminal: midwatch --data {data} why {id}\n",
            added.schedule.describe,
        )
    });
    narrate(context).await
}

async fn add_schedule(context: &Context) -> Result<ScheduleAdded, Error> {
    let agent = AgentAdd { name: "echo".into(), backend: "builtin".into(), ..AgentAdd::default() };
    send(context, agent).await?;
    let schedule = ScheduleAdd {
        name: "demo".into(),
        when: When { every: Some(EVERY.into()), ..When::default() },
        action: Action {
            agent: Some("echo".into()),
            prompt: Some("All is well.".into()),
            ..Action::default()
        },
        ..ScheduleAdd::default()
    };
    send(context, schedule).await
}
