//! `midwatch demo`: a watch in a throw-away directory, one schedule, and what comes of it.

use std::process::ExitCode;

use api::{
    Action, AgentAdd, Code, Error, Event, LIST_ITEMS_MAX, LedgerTail, ScheduleAdd, ScheduleAdded,
    When,
};
use tokio::select;
use tokio::sync::oneshot;

use crate::access::ask;
use crate::context::{Context, shown};
use crate::daemon;
use crate::environment;
use crate::output::Output;

const EVERY: &str = "10s";
const WAIT_MS: u32 = 20_000;

pub(super) async fn run(output: Output) -> Result<ExitCode, Error> {
    let place = tempfile::Builder::new().prefix("midwatch-demo-").tempdir();
    let place = place.map_err(|error| {
        Error::new(Code::Failed, format!("a temporary directory cannot be made: {error}"))
    })?;
    let mut environment = environment::of_process();
    // What is set up elsewhere has nothing to do with this.
    environment.retain(|name, _| !name.starts_with("MIDWATCH_"));
    environment.insert("MIDWATCH_LOG_LEVEL".to_owned(), "warn".to_owned());
    // The port is for a watch that stays.
    environment.insert("MIDWATCH_HTTP_LISTEN".to_owned(), String::new());
    let context = Context::new(Some(place.path().to_owned()), None, environment, output)?;
    let (ready, is_ready) = oneshot::channel();
    let shown = async {
        match is_ready.await {
            Ok(()) => show(&context).await,
            // The watch ends before it began, and says why.
            Err(_) => std::future::pending().await,
        }
    };
    select! {
        ended = daemon::up(&context, ready) => ended?,
        failed = shown => failed?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds the schedule and tells what happens, for ever.
async fn show(context: &Context) -> Result<(), Error> {
    let added = prepare(context).await?;
    let data = shown(context.directory.path());
    let _ = context.output.show_line(&added, |added| {
        let id = &added.schedule.id;
        format!(
            "schedule {id}: {}; ctrl-c ends the demo and removes it\n\
             in another terminal: midwatch --data {data} why {id}\n",
            added.schedule.describe,
        )
    });
    let mut after = None;
    loop {
        let asked = LedgerTail { after, limit: Some(LIST_ITEMS_MAX), wait_ms: WAIT_MS };
        let news = ask(context, asked).await?;
        after = Some(news.cursor);
        for event in news.events {
            if let Some(said) = told(&event)
                && context.output.show_line(&event, |_| said).is_err()
            {
                return Ok(());
            }
        }
    }
}

async fn prepare(context: &Context) -> Result<ScheduleAdded, Error> {
    let agent = AgentAdd { name: "echo".into(), backend: "builtin".into(), ..AgentAdd::default() };
    ask(context, agent).await?;
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
    ask(context, schedule).await
}

/// What people are told of an event, if anything.
fn told(event: &Event) -> Option<String> {
    let (at, id) = (&event.at, &event.id);
    let text = |pointer| event.body.pointer(pointer).and_then(|value| value.as_str());
    match event.kind.as_str() {
        "run.queued" => Some(format!("{at}  a slot fires: {id}")),
        "run.started" => {
            Some(format!("{at}  begun, and that is in the log before it takes effect"))
        }
        "run.ended" => {
            let said = event.words.get("output").map_or("nothing", String::as_str);
            Some(format!("{at}  {}: \"{said}\"\n", text("/outcome").unwrap_or("ended")))
        }
        _ => None,
    }
}
