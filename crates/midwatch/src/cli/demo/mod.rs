//! `midwatch demo`: a minute with a daemon of its own, in which a schedule fires, a slot is skipped, a run waits for approval,
//! the daemon is killed, and `why` explains what became of it.
//!
//! The daemon is a child process on a temporary directory, so that `kill -9` is real. Only the person at the terminal
//! approves; without a terminal the run stays parked. Whatever ends the demo, the daemon is stopped and the directory removed.

mod child;
mod story;

use std::future::pending;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use api::{Code, Error};
use serde::Serialize;
use tokio::select;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::child::Program;
use self::story::Story;
use crate::context::{Context, display_path};
use crate::output::Format;

/// One paragraph or line of the demo.
#[derive(Serialize)]
struct Said<'a> {
    text: &'a str,
}

pub(super) async fn run(context: &Context) -> Result<ExitCode, Error> {
    let directory = tempfile::Builder::new().prefix("midwatch-demo-").tempdir();
    let directory = directory.map_err(|error| {
        Error::new(Code::Failed, format!("a temporary directory cannot be created: {error}"))
    })?;
    let mut stop = StopSignals::new()?;
    let program = Program::new(&context.environment, directory.path())?;
    let mut daemon = program.start_daemon().await?;
    let demo = Context::new(
        Some(directory.path().to_owned()),
        None,
        program.environment().clone(),
        context.output,
        context.view.clone(),
    )?;
    let is_terminal = context.output.format == Format::Human
        && io::stdin().is_terminal()
        && io::stdout().is_terminal();
    let told: Result<(), Error> = {
        let mut story =
            Story { context: &demo, program: &program, daemon: &mut daemon, is_terminal };
        let told = async {
            story.tell().await?;
            // The commands that it ends with need the daemon.
            if is_terminal { pending().await } else { Ok(()) }
        };
        select! {
            told = told => told,
            () = stop.wait() => Ok(()),
        }
    };
    daemon.stop().await;
    let path = display_path(directory.path());
    if is_terminal {
        // After the `^C` of the terminal.
        context.output.show_text("");
    }
    directory.close().map_err(|error| {
        Error::new(Code::Failed, format!("`{path}` could not be removed: {error}"))
            .hint(format!("the daemon has ended; remove it with `rm -r {path}`"))
    })?;
    told?;
    let ended = format!("the demo has ended; its daemon is stopped and {path} removed");
    // Nobody may read it any more.
    let _ = context.output.show_line(&Said { text: &ended }, |it| it.text.to_owned());
    Ok(ExitCode::SUCCESS)
}

/// The signals that end the demo: ctrl-c, a request to terminate, a closed terminal.
struct StopSignals([Signal; 3]);

impl StopSignals {
    fn new() -> Result<StopSignals, Error> {
        let listen = |kind| signal(kind).map_err(|error| Error::new(Code::Failed, error));
        Ok(StopSignals([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    async fn wait(&mut self) {
        let StopSignals([interrupt, terminate, hangup]) = self;
        select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
