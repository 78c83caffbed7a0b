//! `midwatch agent …`

use std::process::ExitCode;

use api::{
    Agent, AgentAdd, AgentEdit, AgentList, AgentRemove, AgentShow, AgentTest, Error, RunUsage,
    Schedule, ScheduleList, Test,
};
use calendar::{InvalidSpan, Span};
use clap::{Args, Subcommand};

use super::list_limit;
use super::schedule::called;
use crate::access::ask;
use crate::context::Context;
use crate::output::{pairs, paragraphs, table_with_more};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Register an agent; the same one again changes nothing
    Add(Add),
    /// Change an agent; what is not given stays as it is
    Edit(Edit),
    /// List the agents by name
    List {
        /// Most agents to show
        #[arg(long, value_name = "N", value_parser = list_limit, allow_negative_numbers = true)]
        limit: Option<u32>,
        /// Go on where an earlier list ended
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
    },
    /// Show one agent
    Show { name: String },
    /// Prompt an agent once, and show what it does
    ///
    /// The prompt is really sent, outside of any schedule, and the log says that it was. Ends with 0 if
    /// the agent did what it was asked, and with 1 if not.
    Test {
        name: String,
        /// What to ask [default: to answer with one word]
        #[arg(long, value_name = "TEXT")]
        prompt: Option<String>,
    },
    /// Remove an agent
    Remove { name: String },
}

#[derive(Debug, Args)]
pub(super) struct Add {
    name: String,
    /// What it runs on: builtin, command, letta, openai, anthropic, webhook or mcp
    #[arg(long, value_name = "KIND")]
    backend: String,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Args)]
pub(super) struct Edit {
    name: String,
    /// Run on something else
    #[arg(long, value_name = "KIND")]
    backend: Option<String>,
    #[command(flatten)]
    settings: Settings,
    /// Take the credential away
    #[arg(long, conflicts_with = "credential")]
    no_credential: bool,
    /// Its work may do harm when it is done twice
    #[arg(long, conflicts_with = "repeatable")]
    not_repeatable: bool,
    /// Let requests go to addresses of the internet only, and to this machine if the url of Letta says so
    #[arg(long, conflicts_with = "allow_private")]
    public_only: bool,
}

#[derive(Debug, Args)]
struct Settings {
    /// Where it listens (letta, openai, anthropic, webhook, mcp)
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The model to use (openai, anthropic)
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The agent's id on its own server (letta)
    #[arg(long, value_name = "ID")]
    remote_id: Option<String>,
    /// How far prompting it reaches: 0 read-only, 1 local write, 2 external [default: by backend]
    #[arg(long, value_name = "TIER", value_parser = tier, allow_negative_numbers = true)]
    tier: Option<u8>,
    /// Where its secret is found: env:NAME or file:/path; the secret itself is never stored
    #[arg(long, value_name = "REF")]
    credential: Option<String>,
    /// Where the program is started (command) [default: the home directory]
    #[arg(long, value_name = "DIR", value_parser = absolute)]
    cwd: Option<String>,
    /// A variable that the program may see, by name; may be given more than once (command)
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// How the program gets the prompt: stdin, or argument, in place of `{prompt}` or as the last
    /// one (command) [default: stdin]
    #[arg(long, value_name = "HOW")]
    prompt_as: Option<String>,
    /// How long one attempt may take, at most 24h (command, letta, webhook) [default: 10m, and 16m at the
    /// App Server]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    time_limit: Option<u32>,
    /// Canned answers, in a file (builtin) [default: say the prompt again]
    #[arg(long, value_name = "FILE", value_parser = absolute)]
    script: Option<String>,
    /// Which server of Letta's it is: rest, its V1 server, or openai, its App Server (letta) [default:
    /// rest]
    #[arg(long, value_name = "API")]
    api: Option<String>,
    /// How a prompt is sent: wait for the answer, stream it, or let the server work in the background
    /// and ask after it (letta) [default: wait]
    #[arg(long, value_name = "HOW")]
    send: Option<String>,
    /// Let requests go to this machine and to private networks (letta, webhook)
    #[arg(long)]
    allow_private: bool,
    /// Its work may be done twice without harm
    #[arg(long)]
    repeatable: bool,
    /// What a million tokens cost that its model reads, such as 3.00; 0 takes it away
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    price_input: Option<String>,
    /// What a million tokens cost that it writes
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    price_output: Option<String>,
    /// What each try costs, whatever it uses
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    price_run: Option<String>,
    /// The program and its arguments (command, mcp)
    #[arg(last = true, value_name = "ARGV")]
    argv: Vec<String>,
}

/// Which numbers are tiers, the watch knows.
pub(super) fn tier(text: &str) -> Result<u8, &'static str> {
    text.parse().map_err(|_| "a tier is 0 (read-only), 1 (local write) or 2 (external)")
}

/// An empty text takes a path away.
fn absolute(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let path = std::path::absolute(text).map_err(|error| error.to_string())?;
    path.into_os_string().into_string().map_err(|_| "the path is not text".to_owned())
}

/// Whole seconds, rounded up. How many are allowed, the watch knows.
fn seconds(text: &str) -> Result<u32, String> {
    let span: Span = text.parse().map_err(|error: InvalidSpan| error.to_string())?;
    Ok(u32::try_from(span.as_millis()).map_or(u32::MAX, |millis| millis.div_ceil(1000)))
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    let output = context.output;
    match command {
        Command::Add(add) => {
            let answer = ask(context, add.request()).await?;
            output.show(&answer, |answer| {
                let verb = if answer.created { "registered" } else { "was registered already" };
                let said =
                    format!("agent `{}` {verb} ({})", answer.agent.name, summary(&answer.agent));
                let server = answer.server.iter().map(|seen| format!("server: {seen}"));
                [said].into_iter().chain(server).collect::<Vec<_>>().join("\n")
            });
        }
        Command::Edit(edit) => {
            let answer = ask(context, edit.request()).await?;
            output.show(&answer, |answer| {
                let verb = if answer.changed { "changed" } else { "was so already" };
                format!("agent `{}` {verb} ({})", answer.agent.name, summary(&answer.agent))
            });
        }
        Command::List { limit, cursor } => {
            let answer = ask(context, AgentList { limit, cursor, ..AgentList::default() }).await?;
            output.show(&answer, |answer| list(&answer.agents, answer.cursor.as_deref()));
        }
        Command::Show { name } => {
            let answer = ask(context, AgentShow { name }).await?;
            output.show(&answer, |answer| page(&answer.agent));
        }
        Command::Test { name, prompt } => {
            let answer = ask(context, AgentTest { name, prompt }).await?;
            output.show(&answer, |answer| seen(&answer.test));
            return Ok(if answer.test.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Remove { name } => {
            let answer = ask(context, AgentRemove { name: name.clone() }).await?;
            let left =
                ScheduleList { agent: Some(name), limit: Some(1), ..ScheduleList::default() };
            // It is removed, whether or not they can be listed.
            let left = ask(context, left).await.map(|left| left.schedules).unwrap_or_default();
            output.show(&answer, |answer| removed(&answer.agent.name, left.first()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Its schedules stay, and say so one by one when they are due: better now.
fn removed(name: &str, left: Option<&Schedule>) -> String {
    let removed = format!("agent `{name}` removed");
    match left {
        Some(schedule) => format!(
            "{removed}; schedule {} still prompts it, and its runs fail until there is an agent of that name: \
             `midwatch schedule list --agent {name}` shows all that do",
            called(schedule)
        ),
        None => removed,
    }
}

impl Add {
    fn request(self) -> AgentAdd {
        let settings = self.settings;
        AgentAdd {
            name: self.name,
            backend: self.backend,
            url: settings.url,
            model: settings.model,
            remote_id: settings.remote_id,
            argv: settings.argv,
            cwd: settings.cwd,
            env: settings.env,
            prompt_as: settings.prompt_as,
            time_limit_seconds: settings.time_limit,
            script: settings.script,
            api: settings.api,
            sending: settings.send,
            allow_private: settings.allow_private,
            tier: settings.tier,
            credential: settings.credential,
            repeatable: settings.repeatable,
            price_input: settings.price_input,
            price_output: settings.price_output,
            price_run: settings.price_run,
            look: true,
        }
    }
}

impl Edit {
    fn request(self) -> AgentEdit {
        let settings = self.settings;
        AgentEdit {
            name: self.name,
            backend: self.backend,
            url: settings.url,
            model: settings.model,
            remote_id: settings.remote_id,
            argv: settings.argv,
            cwd: settings.cwd,
            env: settings.env,
            prompt_as: settings.prompt_as,
            time_limit_seconds: settings.time_limit,
            script: settings.script,
            api: settings.api,
            sending: settings.send,
            allow_private: given(settings.allow_private, self.public_only),
            tier: settings.tier,
            credential: match self.no_credential {
                true => Some(String::new()),
                false => settings.credential,
            },
            repeatable: given(settings.repeatable, self.not_repeatable),
            price_input: settings.price_input,
            price_output: settings.price_output,
            price_run: settings.price_run,
        }
    }
}

/// What a flag and its opposite say, if one of them is there.
fn given(yes: bool, no: bool) -> Option<bool> {
    (yes || no).then_some(yes)
}

fn list(agents: &[Agent], cursor: Option<&str>) -> String {
    if agents.is_empty() {
        return "no agents yet; register one with `midwatch agent add NAME --backend builtin`"
            .into();
    }
    let rows = agents.iter().map(|agent| {
        [agent.name.clone(), agent.backend.clone(), agent.tier.to_string(), target(agent)]
    });
    table_with_more(["NAME", "BACKEND", "TIER", "TARGET"], rows, cursor)
}

fn page(agent: &Agent) -> String {
    let some = |name, value: &Option<String>| value.clone().map(|value| (name, value));
    let argv = (!agent.argv.is_empty()).then(|| ("argv", typed(&agent.argv)));
    let rows = [
        Some(("name", agent.name.clone())),
        Some(("backend", agent.backend.clone())),
        some("url", &agent.url),
        some("model", &agent.model),
        some("remote id", &agent.remote_id),
        argv,
        some("cwd", &agent.cwd),
        (!agent.env.is_empty()).then(|| ("variables", agent.env.join(" "))),
        some("prompt as", &agent.prompt_as),
        agent.time_limit_seconds.map(|seconds| ("time limit", time(seconds))),
        some("script", &agent.script),
        some("api", &agent.api),
        some("send", &agent.sending),
        agent.allow_private.then(|| ("private addresses", "allowed".to_owned())),
        Some(("tier", agent.tier.to_string())),
        some("credential", &agent.credential),
        Some(("repeatable", if agent.repeatable { "yes" } else { "no" }.to_owned())),
        price(agent).map(|price| ("price", price)),
        Some(("registered at", agent.registered_at.clone())),
        Some(("changed at", agent.changed_at.clone())),
    ];
    pairs(rows.into_iter().flatten())
}

fn price(agent: &Agent) -> Option<String> {
    let part =
        |price: &Option<String>, of: &str| price.as_ref().map(|price| format!("{price} {of}"));
    let parts = [
        part(&agent.price_input, "for a million tokens in"),
        part(&agent.price_output, "for a million tokens out"),
        part(&agent.price_run, "for each try"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What it said comes last: it may be long.
fn seen(test: &Test) -> String {
    let some = |name, value: &Option<String>| value.clone().map(|value| (name, value));
    let server = test.server.iter().map(|said| ("server", said.clone()));
    let rows = [
        Some(("agent", test.agent.clone())),
        Some(("passed", if test.passed { "yes" } else { "no" }.to_owned())),
        some("reason", &test.reason),
        some("message", &test.message),
        Some(("took", format!("{} ms", test.took_ms))),
        test.usage
            .map(|RunUsage { input, output }| ("tokens", format!("{input} in, {output} out"))),
    ];
    paragraphs([pairs(rows.into_iter().flatten().chain(server)), test.said.clone()])
}

fn summary(agent: &Agent) -> String {
    format!("{}, tier {}", agent.backend, agent.tier)
}

/// Where prompts to it go, in a few words.
fn target(agent: &Agent) -> String {
    let model = agent.model.as_deref().or(agent.remote_id.as_deref());
    match (&agent.url, model) {
        (Some(url), Some(model)) => format!("{model} at {url}"),
        (Some(url), None) => url.clone(),
        (None, _) => agent.script.clone().unwrap_or_else(|| typed(&agent.argv)),
    }
}

/// `600` as `10m`.
fn time(seconds: u32) -> String {
    let span = Span::from_millis(i64::from(seconds) * 1000);
    span.map_or_else(|| format!("{seconds}s"), |span| span.to_string())
}

/// A program and its arguments as they would be typed into a shell.
fn typed(argv: &[String]) -> String {
    argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@+,%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_in_a_shell() {
        for (word, expected) in [
            ("echo", "echo"),
            ("--key=a/b.c", "--key=a/b.c"),
            ("größe", "größe"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$HOME", "'$HOME'"),
            ("*", "'*'"),
            ("~", "'~'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
