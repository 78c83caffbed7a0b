//! A `command` agent: a program started without a shell, watched, and ended when it must end.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures::future::{Either, join, select};
use kernel::program::{Program, PromptAs};
use kernel::variables::steers;
use rustix::io::Errno;
use rustix::process::Signal;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{ChildStdin, Command};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::process::{LeftBehind, Process};
use crate::telling::Telling;
use crate::work::{Failure, Outcome, Reason, Work};

/// How long a program that was asked to end (SIGTERM) may take before it is killed.
pub const TERM_WAIT: Duration = Duration::from_secs(5);
/// How long a killed program is waited for; only one that hangs in the system takes this long.
pub const KILL_WAIT: Duration = Duration::from_secs(5);
/// How long the rest of the output is waited for after the end, should somebody hold the pipe.
pub const PIPE_WAIT: Duration = Duration::from_secs(2);

/// Of a variable that is not to be repeated.
const SECRET_BYTES_MIN: usize = 8;

/// What every program sees of the environment.
pub(crate) const VARIABLES: [&str; 4] = ["HOME", "LANG", "PATH", "TZ"];
/// What a shell says of a program that it could not execute, or could not find.
const CODES_NOT_STARTED: [i32; 2] = [126, 127];

/// A program, and what it is to be given.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    pub(crate) program: &'a Program,
    pub(crate) work: &'a Work,
    pub(crate) environment: &'a BTreeMap<String, String>,
}

impl Task<'_> {
    pub(crate) async fn run(&self, mut telling: Telling<'_>, stop: &CancellationToken) -> Outcome {
        let (mut process, pipe) = match self.start() {
            Ok(started) => started,
            Err(error) => return Outcome::Failed(self.not_started(&error)),
        };
        let outcome = {
            let giving = give(process.stdin(), &self.work.prompt);
            let talking = pin!(join(giving, telling.take_all(pipe)));
            let watching = pin!(watch(process, self.work.time_max, stop));
            match select(watching, talking).await {
                Either::Left((outcome, talking)) => {
                    let _ = timeout(PIPE_WAIT, talking).await;
                    outcome
                }
                Either::Right((_, watching)) => watching.await,
            }
        };
        telling.end().await;
        outcome
    }

    /// What the program is given that may be a secret: the variables that its agent names. A short value
    /// and a path would hide ordinary text.
    pub(crate) fn secrets(&self) -> Vec<&str> {
        let values = self.program.env.iter().filter_map(|name| self.environment.get(name.as_str()));
        let is_secret = |it: &&str| SECRET_BYTES_MIN <= it.len() && !it.starts_with('/');
        values.map(String::as_str).filter(is_secret).collect()
    }

    /// Both outputs go into one pipe, so that they are read in the order in which they were written.
    #[expect(clippy::disallowed_methods, reason = "this is where an agent's program is started")]
    fn start(&self) -> io::Result<(Process, Receiver)> {
        let (reader, writer) = io::pipe()?;
        let argv = self.program.argv_for(&self.work.prompt);
        let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.variables())
            .current_dir(self.directory())
            .stdin(match self.program.prompt_as {
                PromptAs::Stdin => Stdio::piped(),
                PromptAs::Argument => Stdio::null(),
            })
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let pipe = Receiver::from_owned_fd(reader.into())?;
        Ok((Process::start(command, Some(&self.work.run))?, pipe))
    }

    fn variables(&self) -> impl Iterator<Item = (&str, String)> {
        let given = passed_on(self.program, self.environment);
        let given = given.map(|(name, value)| (name, value.to_owned()));
        let work = self.work;
        let ours = [
            ("MIDWATCH_RUN_ID", Some(work.run.clone())),
            ("MIDWATCH_SCHEDULE_ID", work.schedule.clone()),
            ("MIDWATCH_SLOT", work.slot.clone()),
            ("MIDWATCH_ATTEMPT", Some(work.attempt.to_string())),
        ];
        let ours = ours.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.chain(ours)
    }

    /// The home directory unless the agent names one, as with cron.
    fn directory(&self) -> &Path {
        let given = self.program.cwd.as_ref().map(|path| Path::new(path.as_str()));
        given.unwrap_or_else(|| home(self.environment))
    }

    fn not_started(&self, error: &io::Error) -> Failure {
        let directory = self.directory();
        let message = match (directory.is_dir(), self.program.argv.first()) {
            (false, _) => format!("there is no directory `{}` to start in", directory.display()),
            (true, program) => {
                format!("`{}` cannot be started: {error}", program.map_or("", String::as_str))
            }
        };
        match is_permanent(error) {
            true => Failure::permanent(Reason::NotStarted, message),
            false => Failure::passing(Reason::NotStarted, message),
        }
    }
}

/// What a program sees of the environment: the usual, and what its agent names.
pub(crate) fn passed_on<'a>(
    program: &'a Program,
    environment: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let named = program.env.iter().map(|name| name.as_str()).filter(|name| !steers(name));
    let names = VARIABLES.into_iter().chain(named);
    names.filter_map(|name| Some((name, environment.get(name)?.as_str())))
}

/// Where a program is started that names no directory.
pub(crate) fn home(environment: &BTreeMap<String, String>) -> &Path {
    Path::new(environment.get("HOME").map_or("/", String::as_str))
}

/// Whether it is the program that cannot be started, and not the system that has no room for it.
fn is_permanent(error: &io::Error) -> bool {
    let lasting = [
        Errno::NOENT,
        Errno::NOTDIR,
        Errno::ISDIR,
        Errno::ACCESS,
        Errno::PERM,
        Errno::NOEXEC,
        Errno::TOOBIG,
        Errno::NAMETOOLONG,
        Errno::LOOP,
    ];
    // A word with a NUL in it is refused without asking the system.
    error.kind() == io::ErrorKind::InvalidInput
        || Errno::from_io_error(error).is_some_and(|errno| lasting.contains(&errno))
}

/// A program need not read its prompt, so that writing it may fail.
pub(crate) async fn give(stdin: Option<ChildStdin>, prompt: &str) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(prompt.as_bytes()).await;
    }
}

/// Waits for the end, or brings it about.
pub(crate) async fn watch(
    mut process: Process,
    time_max: Duration,
    stop: &CancellationToken,
) -> Outcome {
    let outcome = tokio::select! {
        biased;
        status = process.ended() => return outcome_of(status),
        () = stop.cancelled() => Outcome::Cancelled,
        () = sleep(time_max) => Outcome::Failed(Failure::timeout(time_max)),
    };
    process.signal(Signal::TERM);
    if timeout(TERM_WAIT, process.ended()).await.is_err() {
        process.signal(Signal::KILL);
        let _ = timeout(KILL_WAIT, process.ended()).await;
    }
    outcome
}

fn outcome_of(ended: io::Result<(ExitStatus, LeftBehind)>) -> Outcome {
    let left = ended.as_ref().map_or(LeftBehind::Nobody, |(_, left)| *left);
    let ended = ended.map(|(status, _)| (status.code(), status.signal()));
    Outcome::Failed(match ended {
        // What it has done is done; what was to come is not.
        Ok((Some(0), _)) if left == LeftBehind::Somebody => Failure::permanent(
            Reason::LeftBehind,
            "the program ended and left others running, which were killed",
        ),
        Ok((Some(0), _)) => return Outcome::Done,
        Ok((Some(code), _)) if CODES_NOT_STARTED.contains(&code) => Failure::permanent(
            Reason::NotStarted,
            format!("the program ended with code {code}: something could not be started"),
        ),
        Ok((Some(code), _)) => {
            Failure::passing(Reason::Exit, format!("the program ended with code {code}"))
        }
        Ok((None, Some(signal))) => {
            Failure::passing(Reason::Signal, format!("the program was ended by signal {signal}"))
        }
        Ok((None, None)) | Err(_) => {
            Failure::passing(Reason::Exit, "nobody knows how the program ended")
        }
    })
}
