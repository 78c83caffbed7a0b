//! What the demo shows, step by step. Each step waits for what it announces, and prints it as it happens.

use std::fs;
use std::time::Duration;

use api::{
    Action, AgentAdd, AgentSettings, Code, Error, LIST_ITEMS_MAX, LedgerTail, RunShow, ScheduleAdd,
    ScheduleFire, TimelineLine, TimelineShow, When, Why,
};
use tokio::time::timeout;

use super::Said;
use super::child::{Answer, Daemon, Program};
use crate::access::send;
use crate::cli::support::sentence::for_people;
use crate::cli::support::short_id::short_ids;
use crate::context::{Context, display_path};
use crate::wrap::wrap;

/// Every schedule of the demo fires this often.
const EVERY: &str = "5s";
/// Far longer than any step takes.
const STEP_TIME_MAX: Duration = Duration::from_secs(60);
const WAIT_MS: u32 = 1_000;
/// `14:00:05  `
const TIME_COLUMNS: usize = 10;
/// The answer of an agent that works until it is stopped.
const NEVER_DONE: &str = "[[answer]]\ntext = \"working\"\nthen = \"hang\"\n";
const SCRIPT_FILE: &str = "never-done.toml";
/// What people want to see of a schedule.
const SHOWN: [&str; 5] =
    ["run.started", "run.ended", "slot.passed", "approval.asked", "approval.decided"];

pub(super) struct Story<'a> {
    pub(super) context: &'a Context,
    pub(super) program: &'a Program,
    pub(super) daemon: &'a mut Daemon,
    /// Whether a person can answer.
    pub(super) is_terminal: bool,
}

impl Story<'_> {
    pub(super) async fn tell(&mut self) -> Result<(), Error> {
        self.daemon.wait_until_ready().await?;
        let (data, pid) = (display_path(self.context.directory.path()), self.daemon.pid());
        self.say(&format!(
            "A daemon (pid {pid}) runs in {data}, which has nothing to do with yours. Ctrl-c ends the demo."
        ))?;
        self.set_up().await?;

        self.head("1. A schedule fires: `hello` prompts an agent every 5 seconds")?;
        let hello = self.follow("hello", 0, |line| line.kind == "run.ended").await?;
        self.show_output(&hello).await?;

        self.head("2. A slot is skipped: `report` is still busy when its next slot is due")?;
        self.follow("report", 0, |line| line.kind == "slot.passed").await?;
        self.explain("report", None).await?;

        self.head("3. A run waits for you: `deploy` reaches the outside world (tier 2)")?;
        let is_approved = self.park_and_ask().await?;

        self.head("4. The daemon is killed while `report` runs")?;
        let interrupted = self.kill_and_restart().await?;
        if !is_approved {
            self.show("", "deploy: still waits for approval")?;
        }
        self.say(
            "The run may have done its work, or not. Midwatch does not guess and does not repeat it: you look, and \
             record how it ended.",
        )?;

        self.head("5. Why?")?;
        self.explain("report", interrupted.run_id.as_deref()).await?;
        self.now_type()
    }

    async fn set_up(&self) -> Result<(), Error> {
        let script = self.context.directory.path().join(SCRIPT_FILE);
        fs::write(&script, NEVER_DONE).map_err(|error| Error::new(Code::Failed, error))?;
        let script = Some(script.to_string_lossy().into_owned());
        let slow = AgentSettings { script, ..AgentSettings::default() };
        let outside = AgentSettings { tier: Some(2), ..AgentSettings::default() };
        for (name, every, prompt, settings) in [
            ("hello", EVERY, "All is well.", AgentSettings::default()),
            ("report", EVERY, "Write the report.", slow),
            ("deploy", "1000h", "Deploy it.", outside),
        ] {
            let backend = "builtin".to_owned();
            let agent =
                AgentAdd { name: name.to_owned(), backend, settings, ..AgentAdd::default() };
            send(self.context, agent).await?;
            let action = Action {
                agent: Some(name.to_owned()),
                prompt: Some(prompt.to_owned()),
                ..Action::default()
            };
            let when = When { every: Some(every.to_owned()), ..When::default() };
            let name = name.to_owned();
            send(self.context, ScheduleAdd { name, when, action, ..ScheduleAdd::default() })
                .await?;
        }
        Ok(())
    }

    /// Starts a run that needs approval. Returns whether a person approved it.
    async fn park_and_ask(&self) -> Result<bool, Error> {
        let after = self.position().await?;
        send(self.context, ScheduleFire { id: "deploy".to_owned() }).await?;
        let parked = self.follow("deploy", after, |line| line.kind == "approval.asked").await?;
        let id = parked.approval_id.unwrap_or_default();
        let short = short_ids(std::iter::once(id.as_str())).pop().unwrap_or_default();
        self.print(&format!("$ midwatch approval approve {short}"))?;
        if !self.is_terminal {
            self.say(
                "Only a person at a terminal approves, and there is none here. The run stays parked, and the \
                 demo goes on.",
            )?;
            return Ok(false);
        }
        match self.program.approve(&id).await? {
            Answer::Approved => {
                self.print("")?;
                self.follow("deploy", parked.seq, |line| line.kind == "run.ended").await?;
                Ok(true)
            }
            Answer::NotApproved => {
                self.say("It was not approved, so it does not run. The demo goes on.")?;
                Ok(false)
            }
            Answer::None => {
                self.head("No answer for a minute. The run stays parked, and the demo goes on.")?;
                Ok(false)
            }
        }
    }

    /// Returns the line about the run that the kill interrupted.
    async fn kill_and_restart(&mut self) -> Result<TimelineLine, Error> {
        let after = self.position().await?;
        let pid = self.daemon.pid();
        self.print(&format!("$ kill -9 {pid}"))?;
        self.daemon.kill().await;
        self.print("$ midwatch up")?;
        // From here on the end of the demo stops this one.
        *self.daemon = self.program.start_daemon()?;
        self.daemon.wait_until_ready().await?;
        self.follow("report", after, |line| line.kind == "run.ended").await
    }

    /// `midwatch why`, for the slot of a run or the last slot.
    async fn explain(&self, schedule: &str, run: Option<&str>) -> Result<(), Error> {
        let at = match run {
            Some(id) => send(self.context, RunShow { id: id.to_owned() }).await?.run.slot,
            None => None,
        };
        let view = &self.context.view;
        let flag = at.as_ref().map(|at| format!(" --at {at}")).unwrap_or_default();
        let explained = send(self.context, Why { id: schedule.to_owned(), at }).await?;
        self.print(&format!("$ midwatch why {schedule}{flag}"))?;
        self.say(&for_people(&explained.sentence, view))
    }

    async fn show_output(&self, line: &TimelineLine) -> Result<(), Error> {
        let id = line.run_id.clone().unwrap_or_default();
        let run = send(self.context, RunShow { id }).await?.run;
        let output = run.output.map(|output| output.text).unwrap_or_default();
        self.show("", &format!("its answer: {}", output.trim()))
    }

    fn now_type(&self) -> Result<(), Error> {
        let data = display_path(self.context.directory.path());
        if self.is_terminal {
            self.print(&format!(
                "\nNow type, in another terminal, while this demo runs:\n\
                 \x20 export MIDWATCH_DATA={data}\n\
                 \x20 midwatch status              # what needs you\n\
                 \x20 midwatch timeline            # everything that happened\n\
                 \x20 midwatch run list            # and `midwatch run settle RUN --as failed`\n\
                 \x20 midwatch why report\n\
                 \n\
                 Ctrl-c ends the demo. Then, for yourself:"
            ))?;
        } else {
            self.print("\nNow type:")?;
        }
        self.print(
            "  midwatch agent add echo --backend builtin\n\
             \x20 midwatch schedule add --name hello --every 10m --agent echo --prompt 'Hello.'\n\
             \x20 midwatch up                  # in a terminal of its own\n\
             \x20 midwatch status",
        )
    }

    /// The position in the ledger, after which the next step looks.
    async fn position(&self) -> Result<u64, Error> {
        let last = LedgerTail { limit: Some(1), ..LedgerTail::default() };
        Ok(send(self.context, last).await?.cursor)
    }

    /// Prints what happens to a schedule after a position, up to the line that `is_last` accepts, and returns that.
    async fn follow(
        &self,
        schedule: &str,
        after: u64,
        is_last: impl Fn(&TimelineLine) -> bool,
    ) -> Result<TimelineLine, Error> {
        let following = async {
            let mut after = after;
            loop {
                let page = TimelineShow {
                    after: Some(after),
                    limit: Some(LIST_ITEMS_MAX),
                    wait_ms: WAIT_MS,
                    ..TimelineShow::default()
                };
                let page = send(self.context, page).await?;
                after = page.cursor;
                let lines = page
                    .lines
                    .into_iter()
                    .filter(|line| line.about == schedule && SHOWN.contains(&line.kind.as_str()));
                for line in lines {
                    let at = self.context.view.time_of_day(&line.at);
                    let text = self.context.view.localize(&line.text);
                    self.show(&at, &format!("{schedule}: {text}"))?;
                    if is_last(&line) {
                        return Ok(line);
                    }
                }
            }
        };
        let late =
            |_| Error::new(Code::Failed, format!("nothing happened to `{schedule}` in time"));
        timeout(STEP_TIME_MAX, following).await.map_err(late)?
    }

    /// Prints a paragraph, wrapped to the width of the terminal.
    fn say(&self, text: &str) -> Result<(), Error> {
        self.print(&wrap(text, self.context.view.width, ""))
    }

    /// Prints something that happened at a time, wrapped beside the time.
    fn show(&self, time: &str, text: &str) -> Result<(), Error> {
        let indent = " ".repeat(TIME_COLUMNS);
        let width = self.context.view.width.saturating_sub(TIME_COLUMNS);
        let time = format!("{time}  ");
        self.print(&format!("{time:TIME_COLUMNS$}{}", wrap(text, width, &indent)))
    }

    /// Prints a new step.
    fn head(&self, text: &str) -> Result<(), Error> {
        self.print("")?;
        self.say(text)
    }

    fn print(&self, text: &str) -> Result<(), Error> {
        let printed = self.context.output.show_line(&Said { text }, |said| said.text.to_owned());
        printed.map_err(|error| Error::new(Code::Failed, format!("stdout is closed: {error}")))
    }
}
