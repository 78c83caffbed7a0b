//! A `command` agent: starts a program without a shell, enforces its time limit, and stops it.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures::future::{Either, join, select};
use kernel::program::{Program, PromptAs};
use kernel::variables::selects_code;
use rustix::io::Errno;
use rustix::process::Signal;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{ChildStdin, Command};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::attempt::{Attempt, Failure, Outcome, Reason};
use crate::environment::EnvironmentOf;
use crate::output_filter::OutputFilter;
use crate::problems::program_problem;
use crate::process::{Leftovers, Process};

/// How long a program may take to exit after SIGTERM before it is killed.
pub const TERM_WAIT: Duration = Duration::from_secs(5);
/// How long to wait for a killed program; only one that hangs in a system call takes this long.
pub const KILL_WAIT: Duration = Duration::from_secs(5);
/// How long to wait for more output after the program has exited, if another process holds the pipe open.
pub const PIPE_WAIT: Duration = Duration::from_secs(2);

/// Shorter values of variables are not redacted.
const SECRET_BYTES_MIN: usize = 8;

/// The environment variables that every program gets.
pub(crate) const VARIABLES: [&str; 4] = ["HOME", "LANG", "PATH", "TZ"];
/// The exit codes of a shell that could not execute or find a program.
const CODES_NOT_STARTED: [i32; 2] = [126, 127];

/// One attempt of a `command` agent.
#[derive(Debug)]
pub(crate) struct CommandAttempt<'a> {
    pub(crate) program: &'a Program,
    pub(crate) attempt: &'a Attempt,
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) environment_of: EnvironmentOf,
}

impl CommandAttempt<'_> {
    pub(crate) async fn run(
        &self,
        mut output: OutputFilter<'_>,
        stop: &CancellationToken,
    ) -> Outcome {
        let (process, pipe) = match self.start() {
            Ok(started) => started,
            Err(error) => return Outcome::Failed(self.not_started(&error)),
        };
        let (prompt, time_max) = (&self.attempt.prompt, self.attempt.time_max);
        let outcome = run_process(process, prompt, output.copy_from(pipe), time_max, stop).await;
        output.finish().await;
        outcome
    }

    /// The values to redact in the output: those of the variables that the agent names. Short values and paths are
    /// left out, because they would redact ordinary text.
    pub(crate) fn secrets(&self) -> Vec<&str> {
        let values = self.program.env.iter().filter_map(|name| self.environment.get(name.as_str()));
        let is_secret = |it: &&str| SECRET_BYTES_MIN <= it.len() && !it.starts_with('/');
        values.map(String::as_str).filter(is_secret).collect()
    }

    /// Standard output and standard error share one pipe, so that their order is kept.
    #[expect(clippy::disallowed_methods, reason = "the only place that starts an agent's program")]
    fn start(&self) -> io::Result<(Process, Receiver)> {
        let (reader, writer) = io::pipe()?;
        let argv = self.program.argv_for(&self.attempt.prompt);
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
        Ok((Process::start(command, Some(&self.attempt.run))?, pipe))
    }

    fn variables(&self) -> impl Iterator<Item = (&str, String)> {
        let passed = passed_variables(self.program, self.environment);
        let passed = passed.map(|(name, value)| (name, value.to_owned()));
        let attempt = self.attempt;
        let ours = [
            ("MIDWATCH_RUN_ID", Some(attempt.run.clone())),
            ("MIDWATCH_SCHEDULE_ID", attempt.schedule.clone()),
            ("MIDWATCH_SLOT", attempt.slot.clone()),
            ("MIDWATCH_ATTEMPT", Some(attempt.number.to_string())),
        ];
        let ours = ours.into_iter().filter_map(|(name, value)| Some((name, value?)));
        passed.chain(ours)
    }

    /// The agent's directory, or the home directory if it names none, as with cron.
    fn directory(&self) -> &Path {
        let passed = self.program.cwd.as_ref().map(|path| Path::new(path.as_str()));
        passed.unwrap_or_else(|| home(self.environment))
    }

    fn not_started(&self, error: &io::Error) -> Failure {
        let problem = program_problem(self.program, self.environment, self.environment_of);
        let message = problem.unwrap_or_else(|| {
            let program = self.program.argv.first().map_or("", String::as_str);
            format!("`{program}` cannot be started: {error}")
        });
        match is_permanent(error) {
            true => Failure::permanent(Reason::NotStarted, message),
            false => Failure::transient(Reason::NotStarted, message),
        }
    }
}

/// The environment variables that a program gets: the usual ones and those its agent names.
pub(crate) fn passed_variables<'a>(
    program: &'a Program,
    environment: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let named = program.env.iter().map(|name| name.as_str()).filter(|name| !selects_code(name));
    let names = VARIABLES.into_iter().chain(named);
    names.filter_map(|name| Some((name, environment.get(name)?.as_str())))
}

/// The directory of programs whose agent names none.
pub(crate) fn home(environment: &BTreeMap<String, String>) -> &Path {
    Path::new(environment.get("HOME").map_or("/", String::as_str))
}

/// Whether the program itself cannot be started, rather than the system being short of resources.
fn is_permanent(error: &io::Error) -> bool {
    let permanent = [
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
    // An argument that contains a NUL is rejected before any system call.
    error.kind() == io::ErrorKind::InvalidInput
        || Errno::from_io_error(error).is_some_and(|errno| permanent.contains(&errno))
}

/// Writes `input` to a program while `read` collects its output, until it exits or is stopped.
pub(crate) async fn run_process(
    mut process: Process,
    input: &str,
    read: impl Future<Output = ()>,
    time_max: Duration,
    stop: &CancellationToken,
) -> Outcome {
    let writing = write_input(process.stdin(), input);
    let streaming = pin!(join(writing, read));
    let waiting = pin!(wait_or_stop(process, time_max, stop));
    match select(waiting, streaming).await {
        Either::Left((outcome, streaming)) => {
            let _ = timeout(PIPE_WAIT, streaming).await;
            outcome
        }
        Either::Right((_, waiting)) => waiting.await,
    }
}

/// A program need not read its input, so errors are ignored.
async fn write_input(stdin: Option<ChildStdin>, input: &str) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input.as_bytes()).await;
    }
}

/// Waits until the program exits, or ends it at its time limit or when `stop` is cancelled.
async fn wait_or_stop(
    mut process: Process,
    time_max: Duration,
    stop: &CancellationToken,
) -> Outcome {
    let outcome = tokio::select! {
        biased;
        status = process.wait() => return outcome_of(status),
        () = stop.cancelled() => Outcome::Cancelled,
        () = sleep(time_max) => Outcome::Failed(Failure::timeout(time_max)),
    };
    process.signal(Signal::TERM);
    if timeout(TERM_WAIT, process.wait()).await.is_err() {
        process.signal(Signal::KILL);
        let _ = timeout(KILL_WAIT, process.wait()).await;
    }
    outcome
}

fn outcome_of(exit: io::Result<(ExitStatus, Leftovers)>) -> Outcome {
    let leftovers = exit.as_ref().map_or(Leftovers::None, |(_, leftovers)| *leftovers);
    let status = exit.map(|(status, _)| (status.code(), status.signal()));
    Outcome::Failed(match status {
        // What it did is done, but the processes it left may have had work to do.
        Ok((Some(0), _)) if leftovers == Leftovers::Killed => Failure::permanent(
            Reason::LeftoverProcesses,
            "the program exited and left processes running, which were killed",
        ),
        Ok((Some(0), _)) => return Outcome::Done,
        Ok((Some(code), _)) if CODES_NOT_STARTED.contains(&code) => Failure::permanent(
            Reason::NotStarted,
            format!("the program exited with code {code}: a command could not be started"),
        ),
        Ok((Some(code), _)) => {
            Failure::transient(Reason::Exit, format!("the program exited with code {code}"))
        }
        Ok((None, Some(signal))) => {
            Failure::transient(Reason::Signal, format!("the program was killed by signal {signal}"))
        }
        Ok((None, None)) | Err(_) => {
            Failure::transient(Reason::Exit, "the exit status of the program is unknown")
        }
    })
}
