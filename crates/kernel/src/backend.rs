//! The backend of an agent: its kind and the settings of that kind.
//!
//! [`Backend::parse`] turns loose settings into a complete backend, or returns which setting is missing or
//! not supported. Secrets are references; no type here holds a secret's value.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::program::{
    AbsolutePath, ENV_ITEMS_MAX, PROMPT_ARGUMENT, Program, PromptAs, TIME_LIMIT_SECONDS_MAX,
    TimeLimit, VariableName, is_absolute_path, is_variable_name,
};
use crate::remote::{Letta, LettaApi, Sending, Webhook};
use crate::variables::{is_reserved, selects_code};

/// A url parameter counts as a secret if its name contains one of these or is one of [`SECRET_NAMES`].
const SECRET_WORDS: [&str; 9] = [
    "secret",
    "token",
    "passw",
    "passphrase",
    "apikey",
    "privatekey",
    "accesskey",
    "authorization",
    "credential",
];
const SECRET_NAMES: [&str; 9] =
    ["key", "sig", "signature", "auth", "bearer", "code", "pass", "pwd", "jwt"];

pub const URL_BYTES_MAX: usize = 2_048;
pub const ARGV_ITEMS_MAX: usize = 256;
pub const ARGV_BYTES_MAX: usize = 32_768;
/// Longest model name, remote id, variable name.
pub const WORD_BYTES_MAX: usize = 256;
/// Longest path of a secret file, a script, a working directory.
pub const PATH_BYTES_MAX: usize = 4_096;

/// How far an action reaches, which decides what it needs before it may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum Tier {
    ReadOnly,
    LocalWrite,
    External,
}

/// What keeps an agent from getting around the rules of Midwatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Containment {
    /// It is part of Midwatch and only answers.
    Builtin,
    /// Nothing but its own behaviour: its program runs as the daemon's user and can change what the daemon can.
    Advisory,
    /// It acts elsewhere, where Midwatch neither starts nor limits it.
    External,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    Builtin,
    Command,
    Letta,
    Openai,
    Anthropic,
    Webhook,
    Mcp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Backend {
    /// Echoes its prompt, or returns the canned answer of a script.
    Builtin {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        script: Option<AbsolutePath>,
    },
    Command(Program),
    Letta(Letta),
    Openai {
        url: Url,
        model: String,
    },
    Anthropic {
        url: Url,
        model: String,
    },
    Webhook(Webhook),
    Mcp(McpServer),
}

/// An MCP server: a program that Midwatch starts, or one that listens at a url.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum McpServer {
    Argv(Vec<String>),
    Url(Url),
}

/// Settings as a caller gave them, before [`Backend::parse`] checks them against a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub url: Option<String>,
    pub model: Option<String>,
    pub remote_id: Option<String>,
    pub argv: Vec<String>,
    /// An empty text removes it, as with `script`.
    pub cwd: Option<String>,
    /// Empty names are ignored, so one empty name clears the list.
    pub env: Vec<String>,
    pub prompt_as: Option<String>,
    pub time_limit_seconds: Option<u32>,
    pub script: Option<String>,
    pub api: Option<String>,
    pub sending: Option<String>,
    pub allow_private: Option<bool>,
}

impl Settings {
    /// These settings, completed from `base`. A url and a command line are alternatives: giving one drops
    /// the other from `base`.
    pub fn merged_over(self, base: Settings) -> Settings {
        let replaces_target = self.url.is_some() || !self.argv.is_empty();
        let (base_url, base_argv) = match replaces_target {
            true => (None, Vec::new()),
            false => (base.url, base.argv),
        };
        Settings {
            url: self.url.or(base_url),
            model: self.model.or(base.model),
            remote_id: self.remote_id.or(base.remote_id),
            argv: if self.argv.is_empty() { base_argv } else { self.argv },
            cwd: self.cwd.or(base.cwd),
            env: if self.env.is_empty() { base.env } else { self.env },
            prompt_as: self.prompt_as.or(base.prompt_as),
            time_limit_seconds: self.time_limit_seconds.or(base.time_limit_seconds),
            script: self.script.or(base.script),
            api: self.api.or(base.api),
            sending: self.sending.or(base.sending),
            allow_private: self.allow_private.or(base.allow_private),
        }
    }
}

/// Why settings are not a valid backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("unknown backend `{0}`")]
    Kind(String),
    #[error("invalid tier `{0}`")]
    Tier(String),
    #[error("backend `{kind}` needs {setting}")]
    Missing { kind: BackendKind, setting: &'static str },
    #[error("backend `{kind}` takes no {setting}")]
    Unsupported { kind: BackendKind, setting: &'static str },
    #[error("the url {0}")]
    Url(&'static str),
    #[error("the {setting} is longer than {max} bytes")]
    TooLong { setting: &'static str, max: usize },
    #[error("the {setting} is empty or contains control characters")]
    Unprintable { setting: &'static str },
    #[error("the secret is not given as a reference")]
    Secret,
    #[error("the path is not absolute")]
    Path,
    #[error("the {0} begins with `~`, which only a shell replaces by a home directory")]
    Tilde(&'static str),
    #[error("a variable is not given by its name alone")]
    Variable,
    #[error("there are more than {ENV_ITEMS_MAX} variables")]
    Variables,
    #[error("`{0}` selects which code a program runs, so no agent may have it")]
    SelectsCode(String),
    #[error("`{0}` is reserved for Midwatch, so no agent may have it")]
    Reserved(String),
    #[error("unknown prompt delivery `{0}`")]
    PromptAs(String),
    #[error("`{PROMPT_ARGUMENT}` is among the arguments, but the prompt goes to standard input")]
    PromptArgument,
    #[error("unknown Letta API `{0}`")]
    Api(String),
    #[error("unknown sending mode `{0}`")]
    Sending(String),
    #[error("the App Server has no background mode")]
    NoBackground,
    #[error("a time limit is 1 to {TIME_LIMIT_SECONDS_MAX} seconds, not {0}")]
    TimeLimit(u32),
}

impl Tier {
    pub const fn number(self) -> u8 {
        match self {
            Tier::ReadOnly => 0,
            Tier::LocalWrite => 1,
            Tier::External => 2,
        }
    }
}

impl From<Tier> for u8 {
    fn from(tier: Tier) -> u8 {
        tier.number()
    }
}

impl TryFrom<u8> for Tier {
    type Error = Invalid;

    fn try_from(number: u8) -> Result<Tier, Invalid> {
        match number {
            0 => Ok(Tier::ReadOnly),
            1 => Ok(Tier::LocalWrite),
            2 => Ok(Tier::External),
            other => Err(Invalid::Tier(other.to_string())),
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.number())
    }
}

impl BackendKind {
    pub const ALL: [BackendKind; 7] = [
        BackendKind::Builtin,
        BackendKind::Command,
        BackendKind::Letta,
        BackendKind::Openai,
        BackendKind::Anthropic,
        BackendKind::Webhook,
        BackendKind::Mcp,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            BackendKind::Builtin => "builtin",
            BackendKind::Command => "command",
            BackendKind::Letta => "letta",
            BackendKind::Openai => "openai",
            BackendKind::Anthropic => "anthropic",
            BackendKind::Webhook => "webhook",
            BackendKind::Mcp => "mcp",
        }
    }

    /// Default tier of an agent of this kind.
    pub const fn tier_default(self) -> Tier {
        match self {
            BackendKind::Builtin => Tier::ReadOnly,
            BackendKind::Command | BackendKind::Letta => Tier::LocalWrite,
            BackendKind::Openai | BackendKind::Anthropic => Tier::LocalWrite,
            BackendKind::Webhook | BackendKind::Mcp => Tier::External,
        }
    }

    /// What contains an agent of this kind.
    pub const fn containment(self) -> Containment {
        match self {
            BackendKind::Builtin => Containment::Builtin,
            BackendKind::Command | BackendKind::Mcp => Containment::Advisory,
            BackendKind::Letta | BackendKind::Openai => Containment::External,
            BackendKind::Anthropic | BackendKind::Webhook => Containment::External,
        }
    }

    /// How many runs an agent of this kind may execute at a time. An agent with a conversation gets one
    /// prompt after the other.
    pub const fn concurrency_max(self) -> usize {
        match self {
            BackendKind::Builtin => 256,
            BackendKind::Command => 16,
            BackendKind::Letta => 1,
            BackendKind::Openai | BackendKind::Anthropic => 4,
            BackendKind::Webhook | BackendKind::Mcp => 4,
        }
    }

    /// Whether an agent of this kind reports the tokens that its model used.
    pub const fn reports_usage(self) -> bool {
        match self {
            BackendKind::Letta | BackendKind::Openai | BackendKind::Anthropic => true,
            BackendKind::Builtin | BackendKind::Command => false,
            BackendKind::Webhook | BackendKind::Mcp => false,
        }
    }

    /// The lowest tier that an operator may register: one below the default for a webhook or an MCP
    /// server, the default for all others.
    pub const fn tier_min(self) -> Tier {
        match self {
            BackendKind::Webhook | BackendKind::Mcp => Tier::LocalWrite,
            other => other.tier_default(),
        }
    }

    /// The usual url of the service; a webhook and an MCP server have none.
    const fn url_default(self) -> Option<&'static str> {
        match self {
            BackendKind::Letta => Some("http://localhost:8283"),
            BackendKind::Openai => Some("https://api.openai.com/v1"),
            BackendKind::Anthropic => Some("https://api.anthropic.com"),
            BackendKind::Builtin | BackendKind::Command => None,
            BackendKind::Webhook | BackendKind::Mcp => None,
        }
    }
}

impl FromStr for BackendKind {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<BackendKind, Invalid> {
        let found = BackendKind::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| Invalid::Kind(text.to_owned()))
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl Backend {
    /// Whether every user of the machine can read the prompt of a running attempt.
    pub fn exposes_prompt(&self) -> bool {
        match self {
            Backend::Command(program) => program.prompt_as == PromptAs::Argument,
            Backend::Builtin { .. } | Backend::Letta(_) | Backend::Openai { .. } => false,
            Backend::Anthropic { .. } | Backend::Webhook(_) | Backend::Mcp(_) => false,
        }
    }

    /// Parses settings: all that the kind requires must be there, and nothing that it does not support.
    pub fn parse(kind: BackendKind, settings: Settings) -> Result<Backend, Invalid> {
        let mut parser = SettingsParser { kind, settings };
        let backend = match kind {
            BackendKind::Builtin => {
                Backend::Builtin { script: optional_path("script", parser.settings.script.take())? }
            }
            BackendKind::Command => Backend::Command(parser.program()?),
            BackendKind::Letta => Backend::Letta(parser.letta()?),
            BackendKind::Openai => Backend::Openai { url: parser.url()?, model: parser.model()? },
            BackendKind::Anthropic => {
                Backend::Anthropic { url: parser.url()?, model: parser.model()? }
            }
            BackendKind::Webhook => Backend::Webhook(Webhook {
                url: parser.url()?,
                time_limit: parser.time_limit()?,
                allow_private: parser.settings.allow_private.take().unwrap_or_default(),
            }),
            BackendKind::Mcp if parser.settings.argv.is_empty() => {
                let missing = parser.missing("a url, or a program and its arguments");
                let url = parser.url().map_err(|error| match error {
                    Invalid::Missing { .. } => missing,
                    other => other,
                })?;
                Backend::Mcp(McpServer::Url(url))
            }
            BackendKind::Mcp => Backend::Mcp(McpServer::Argv(parser.argv()?)),
        };
        parser.refuse_unused()?;
        Ok(backend)
    }

    pub const fn kind(&self) -> BackendKind {
        match self {
            Backend::Builtin { .. } => BackendKind::Builtin,
            Backend::Command(_) => BackendKind::Command,
            Backend::Letta(_) => BackendKind::Letta,
            Backend::Openai { .. } => BackendKind::Openai,
            Backend::Anthropic { .. } => BackendKind::Anthropic,
            Backend::Webhook(_) => BackendKind::Webhook,
            Backend::Mcp(_) => BackendKind::Mcp,
        }
    }

    /// What contains the agent.
    pub const fn containment(&self) -> Containment {
        match self {
            // Unlike an MCP server that Midwatch starts.
            Backend::Mcp(McpServer::Url(_)) => Containment::External,
            other => other.kind().containment(),
        }
    }

    /// How long one attempt may take.
    pub fn time_limit(&self) -> TimeLimit {
        match self {
            Backend::Command(program) => program.time_limit,
            Backend::Letta(letta) => letta.time_limit(),
            Backend::Webhook(webhook) => webhook.time_limit.unwrap_or_default(),
            Backend::Builtin { .. } | Backend::Openai { .. } => TimeLimit::default(),
            Backend::Anthropic { .. } | Backend::Mcp(_) => TimeLimit::default(),
        }
    }

    /// Id of the conversation that gets one prompt at a time, even if several agents lead to it.
    pub fn conversation(&self) -> Option<&str> {
        match self {
            // Without the url, which may be written in several ways: Letta's ids are unique.
            Backend::Letta(letta) => Some(&letta.remote_id),
            Backend::Builtin { .. } | Backend::Command(_) | Backend::Openai { .. } => None,
            Backend::Anthropic { .. } | Backend::Webhook(_) | Backend::Mcp(_) => None,
        }
    }

    /// Host of the backend's url.
    pub fn host(&self) -> Option<&str> {
        match self {
            Backend::Letta(letta) => Some(letta.url.host()),
            Backend::Webhook(webhook) => Some(webhook.url.host()),
            Backend::Openai { url, .. } | Backend::Anthropic { url, .. } => Some(url.host()),
            Backend::Mcp(McpServer::Url(url)) => Some(url.host()),
            Backend::Builtin { .. } | Backend::Command(_) | Backend::Mcp(McpServer::Argv(_)) => {
                None
            }
        }
    }

    /// The settings that [`Backend::parse`] turns into this backend again.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        match self {
            Backend::Builtin { script } => settings.script = script.clone().map(String::from),
            Backend::Command(program) => {
                settings.argv = program.argv.clone();
                settings.cwd = program.cwd.clone().map(String::from);
                settings.env = program.env.iter().cloned().map(String::from).collect();
                settings.prompt_as = Some(program.prompt_as.name().to_owned());
                settings.time_limit_seconds = Some(program.time_limit.seconds());
            }
            Backend::Mcp(McpServer::Argv(argv)) => settings.argv = argv.clone(),
            Backend::Letta(letta) => {
                settings.url = Some(letta.url.0.clone());
                settings.remote_id = Some(letta.remote_id.clone());
                settings.api = Some(letta.api.name().to_owned());
                settings.sending = Some(letta.sending.name().to_owned());
                settings.time_limit_seconds = letta.time_limit.map(TimeLimit::seconds);
                settings.allow_private = letta.allow_private.then_some(true);
            }
            Backend::Webhook(webhook) => {
                settings.url = Some(webhook.url.0.clone());
                settings.time_limit_seconds = webhook.time_limit.map(TimeLimit::seconds);
                settings.allow_private = webhook.allow_private.then_some(true);
            }
            Backend::Openai { url, model } | Backend::Anthropic { url, model } => {
                settings.url = Some(url.0.clone());
                settings.model = Some(model.clone());
            }
            Backend::Mcp(McpServer::Url(url)) => settings.url = Some(url.0.clone()),
        }
        settings
    }
}

/// Parses settings by taking out each one that is used.
struct SettingsParser {
    kind: BackendKind,
    settings: Settings,
}

impl SettingsParser {
    fn url(&mut self) -> Result<Url, Invalid> {
        let default = || self.kind.url_default().map(str::to_owned);
        let url = self.settings.url.take().or_else(default);
        let url: Url = url.ok_or(self.missing("a url"))?.parse()?;
        if url.parameters().any(is_secret_name) {
            return Err(Invalid::Url(
                "has a secret among its parameters, and urls are shown and logged",
            ));
        }
        Ok(url)
    }

    fn model(&mut self) -> Result<String, Invalid> {
        checked_text("model", self.settings.model.take().ok_or(self.missing("a model"))?)
    }

    fn remote_id(&mut self) -> Result<String, Invalid> {
        let id = self.settings.remote_id.take();
        checked_text("remote id", id.ok_or(self.missing("the remote id of the agent"))?)
    }

    fn letta(&mut self) -> Result<Letta, Invalid> {
        let remote_id = self.remote_id()?;
        let api = self.settings.api.take().map(|text| text.parse()).transpose()?;
        let api: LettaApi = api.unwrap_or_default();
        let sending = self.settings.sending.take().map(|text| text.parse()).transpose()?;
        let sending: Sending = sending.unwrap_or_default();
        match api {
            LettaApi::Rest => {}
            LettaApi::Openai if sending == Sending::Background => {
                return Err(Invalid::NoBackground);
            }
            // The App Server has no default port.
            LettaApi::Openai if self.settings.url.is_none() => return Err(self.missing("a url")),
            LettaApi::Openai => {}
        }
        let (url, time_limit) = (self.url()?, self.time_limit()?);
        let allow_private = self.settings.allow_private.take().unwrap_or_default();
        Ok(Letta { url, remote_id, api, sending, time_limit, allow_private })
    }

    fn time_limit(&mut self) -> Result<Option<TimeLimit>, Invalid> {
        self.settings.time_limit_seconds.take().map(TimeLimit::try_from).transpose()
    }

    fn argv(&mut self) -> Result<Vec<String>, Invalid> {
        let argv = std::mem::take(&mut self.settings.argv);
        if argv.first().is_none_or(String::is_empty) {
            return Err(self.missing("a program and its arguments"));
        }
        // Checked only here: stored agents may have one.
        if argv.first().is_some_and(|program| program.starts_with('~')) {
            return Err(Invalid::Tilde("program"));
        }
        let bytes: usize = argv.iter().map(String::len).sum();
        if ARGV_ITEMS_MAX < argv.len() || ARGV_BYTES_MAX < bytes {
            return Err(Invalid::TooLong { setting: "command line", max: ARGV_BYTES_MAX });
        }
        if argv.iter().any(|item| item.contains('\0')) {
            return Err(Invalid::Unprintable { setting: "command line" });
        }
        Ok(argv)
    }

    fn program(&mut self) -> Result<Program, Invalid> {
        let argv = self.argv()?;
        let cwd = optional_path("working directory", self.settings.cwd.take())?;
        let env = std::mem::take(&mut self.settings.env);
        let env: Vec<String> = env.into_iter().filter(|name| !name.is_empty()).collect();
        if ENV_ITEMS_MAX < env.len() {
            return Err(Invalid::Variables);
        }
        // Checked only here: stored agents may list one, and do not get it.
        if let Some(name) = env.iter().find(|name| is_variable_name(name) && selects_code(name)) {
            let why = if is_reserved(name) { Invalid::Reserved } else { Invalid::SelectsCode };
            return Err(why(name.clone()));
        }
        let env = env.into_iter().map(VariableName::try_from).collect::<Result<_, _>>()?;
        let prompt_as = self.settings.prompt_as.take().map(|text| text.parse()).transpose()?;
        let prompt_as = prompt_as.unwrap_or_default();
        if prompt_as == PromptAs::Stdin && argv.iter().any(|word| word == PROMPT_ARGUMENT) {
            return Err(Invalid::PromptArgument);
        }
        let time_limit = self.time_limit()?.unwrap_or_default();
        Ok(Program { argv, cwd, env, prompt_as, time_limit })
    }

    fn refuse_unused(self) -> Result<(), Invalid> {
        let Settings { url, model, remote_id, argv, .. } = &self.settings;
        let Settings { cwd, env, prompt_as, time_limit_seconds, script, .. } = &self.settings;
        let Settings { api, sending, allow_private, .. } = &self.settings;
        let left = [
            (url.is_some(), "url"),
            (model.is_some(), "model"),
            (remote_id.is_some(), "remote id"),
            (!argv.is_empty(), "command line"),
            (cwd.is_some(), "working directory"),
            (!env.is_empty(), "variables"),
            (prompt_as.is_some(), "prompt delivery"),
            (time_limit_seconds.is_some(), "time limit"),
            (script.is_some(), "script"),
            (api.is_some(), "Letta API"),
            (sending.is_some(), "sending mode"),
            (allow_private.is_some(), "access to private addresses"),
        ];
        match left.into_iter().find(|(is_left, _)| *is_left) {
            Some((_, setting)) => Err(Invalid::Unsupported { kind: self.kind, setting }),
            None => Ok(()),
        }
    }

    fn missing(&self, setting: &'static str) -> Invalid {
        Invalid::Missing { kind: self.kind, setting }
    }
}

/// An `http` or `https` address without credentials.
///
/// Parsing refuses what the URL standard reads in another way than [`Url::host`] does, and credentials however they are
/// written. A stored url was parsed by the rules of its time and is read as it is; no request goes to one that is invalid.
///
/// Invariant: starts with the scheme, has a host, no user part and no blanks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Url(String);

impl Url {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host as written, without the port.
    pub fn host(&self) -> &str {
        host(self.0.split_once("://").map_or("", |(_, rest)| rest))
    }

    /// Names of the query parameters.
    fn parameters(&self) -> impl Iterator<Item = &str> {
        let address = self.0.split('#').next().unwrap_or_default();
        let query = address.split_once('?').map_or("", |(_, query)| query);
        query.split('&').filter_map(|pair| pair.split('=').next())
    }
}

/// Whether a parameter of this name is probably a secret.
fn is_secret_name(name: &str) -> bool {
    let name: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.contains(&name.as_str()) || SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// The authority part of a url after its scheme.
fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// The host of a url after its scheme, without the port. An address in brackets contains colons itself.
fn host(rest: &str) -> &str {
    let authority = authority(rest);
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    }
}

impl FromStr for Url {
    type Err = Invalid;

    /// The refusal does not repeat the text, which may have a secret in it.
    fn from_str(text: &str) -> Result<Url, Invalid> {
        let url = Url::from_stored(text.to_owned())?;
        let rest = text.split_once("://").map_or("", |(_, rest)| rest);
        match check_authority(rest) {
            Ok(()) => Ok(url),
            // In `https://me:a/b@host` the standard reads the host `me`; its author meant a password.
            Err(_) if has_at_sign(rest) => Err(CREDENTIALS_IN_URL),
            Err(problem) => Err(Invalid::Url(problem)),
        }
    }
}

impl Url {
    fn from_stored(text: String) -> Result<Url, Invalid> {
        if URL_BYTES_MAX < text.len() {
            return Err(Invalid::TooLong { setting: "url", max: URL_BYTES_MAX });
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(Invalid::Url("contains blanks or control characters"));
        }
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let rest = rest.ok_or(Invalid::Url("does not start with http:// or https://"))?;
        if authority(rest).contains('@') {
            return Err(CREDENTIALS_IN_URL);
        }
        if host(rest).is_empty() {
            return Err(Invalid::Url("has no host"));
        }
        Ok(Url(text))
    }
}

const CREDENTIALS_IN_URL: Invalid =
    Invalid::Url("contains credentials; give them as a secret reference");

/// Checks the part of a url between its scheme and its path.
fn check_authority(rest: &str) -> Result<(), &'static str> {
    // The standard reads it as a slash.
    if rest.contains('\\') {
        return Err("contains a backslash");
    }
    let (authority, host) = (authority(rest), host(rest));
    let port = authority.strip_prefix(host).and_then(|it| it.strip_prefix(':'));
    // The standard allows an empty port, but no sign.
    let is_port =
        |port: &str| port.is_empty() || port.parse::<u16>().is_ok() && !port.starts_with('+');
    if !port.is_none_or(is_port) {
        return Err("has an invalid port");
    }
    match is_host(host) {
        true => Ok(()),
        false => Err("has an invalid host"),
    }
}

/// Whether a text is a name, an IPv4 address, or an IPv6 address in brackets. Nothing in it is encoded.
fn is_host(text: &str) -> bool {
    match text.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|it| it.parse::<Ipv6Addr>().is_ok()),
        None => text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_')),
    }
}

/// Whether a text has an `@`, or a form of it that the URL standard reads as one.
fn has_at_sign(text: &str) -> bool {
    text.contains(['@', '\u{ff20}', '\u{fe6b}']) || text.contains("%40")
}

impl From<Url> for String {
    fn from(url: Url) -> String {
        url.0
    }
}

impl TryFrom<String> for Url {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Url, Invalid> {
        Url::from_stored(text)
    }
}

/// Where a secret is read from when it is needed. The value is never stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum SecretRef {
    Env(String),
    File(String),
}

impl FromStr for SecretRef {
    type Err = Invalid;

    /// The refusal does not repeat the text, which may be the secret itself.
    fn from_str(text: &str) -> Result<SecretRef, Invalid> {
        match text.split_once(':') {
            Some(("env", name)) if is_variable_name(name) => Ok(SecretRef::Env(name.to_owned())),
            Some(("file", path)) if is_absolute_path(path) => Ok(SecretRef::File(path.to_owned())),
            Some(("file", path)) if path.starts_with('~') => Err(Invalid::Tilde("secret file")),
            _ => Err(Invalid::Secret),
        }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretRef::Env(name) => write!(out, "env:{name}"),
            SecretRef::File(path) => write!(out, "file:{path}"),
        }
    }
}

impl From<SecretRef> for String {
    fn from(secret: SecretRef) -> String {
        secret.to_string()
    }
}

impl TryFrom<String> for SecretRef {
    type Error = Invalid;

    fn try_from(text: String) -> Result<SecretRef, Invalid> {
        text.parse()
    }
}

fn optional_path(
    setting: &'static str,
    text: Option<String>,
) -> Result<Option<AbsolutePath>, Invalid> {
    match text {
        Some(text) if text.starts_with('~') => Err(Invalid::Tilde(setting)),
        Some(text) if !text.is_empty() => AbsolutePath::try_from(text).map(Some),
        Some(_) | None => Ok(None),
    }
}

fn checked_text(setting: &'static str, text: String) -> Result<String, Invalid> {
    if WORD_BYTES_MAX < text.len() {
        return Err(Invalid::TooLong { setting, max: WORD_BYTES_MAX });
    }
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        return Err(Invalid::Unprintable { setting });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET_IN_URL: &str =
        "the url has a secret among its parameters, and urls are shown and logged";

    /// Parses words: `key=value` is a setting, the rest is argv.
    fn settings(words: &str) -> Settings {
        let mut settings = Settings::default();
        for word in words.split_whitespace() {
            match word.split_once('=') {
                Some(("url", value)) => settings.url = Some(value.to_owned()),
                Some(("model", value)) => settings.model = Some(value.to_owned()),
                Some(("id", value)) => settings.remote_id = Some(value.to_owned()),
                Some(("cwd", value)) => settings.cwd = Some(value.to_owned()),
                Some(("env", value)) => settings.env.push(value.to_owned()),
                Some(("prompt", value)) => settings.prompt_as = Some(value.to_owned()),
                Some(("limit", value)) => settings.time_limit_seconds = value.parse().ok(),
                Some(("script", value)) => settings.script = Some(value.to_owned()),
                Some(("api", value)) => settings.api = Some(value.to_owned()),
                Some(("send", value)) => settings.sending = Some(value.to_owned()),
                Some(("private", value)) => settings.allow_private = value.parse().ok(),
                _ => settings.argv.push(word.to_owned()),
            }
        }
        settings
    }

    #[test]
    fn settings_parse_to_a_backend_or_name_what_is_wrong() {
        let table = [
            ("builtin", "", "ok"),
            ("builtin", "model=x", "backend `builtin` takes no model"),
            ("command", "", "backend `command` needs a program and its arguments"),
            ("command", "claude -p", "ok"),
            ("command", "claude url=http://x", "backend `command` takes no url"),
            ("command", "claude -p cwd=/srv env=A env=_b prompt=stdin limit=86400", "ok"),
            ("command", "claude cwd=srv", "the path is not absolute"),
            (
                "command",
                "claude cwd=~/src",
                "the working directory begins with `~`, which only a shell replaces by a home directory",
            ),
            (
                "command",
                "~/bin/claude ~",
                "the program begins with `~`, which only a shell replaces by a home directory",
            ),
            ("command", "claude ~/notes", "ok"),
            (
                "builtin",
                "script=~me/answers.toml",
                "the script begins with `~`, which only a shell replaces by a home directory",
            ),
            ("command", "claude cwd= env=", "ok"),
            ("command", "claude env=A=1", "a variable is not given by its name alone"),
            ("command", "claude prompt=shell", "unknown prompt delivery `shell`"),
            ("command", "claude limit=86401", "a time limit is 1 to 86400 seconds, not 86401"),
            ("command", "claude prompt=argument {prompt}", "ok"),
            (
                "command",
                "claude {prompt}",
                "`{prompt}` is among the arguments, but the prompt goes to standard input",
            ),
            ("command", "claude script=/a", "backend `command` takes no script"),
            ("builtin", "script=/srv/answers.toml", "ok"),
            ("builtin", "script=answers.toml", "the path is not absolute"),
            ("builtin", "limit=5", "backend `builtin` takes no time limit"),
            ("letta", "id=agent-1 cwd=/", "backend `letta` takes no working directory"),
            ("mcp", "server env=A", "backend `mcp` takes no variables"),
            ("mcp", "server prompt=stdin", "backend `mcp` takes no prompt delivery"),
            ("letta", "", "backend `letta` needs the remote id of the agent"),
            ("letta", "id=agent-1", "ok"),
            ("letta", "id=agent-1 send=background limit=30 private=true", "ok"),
            ("letta", "id=agent-1 send=pigeon", "unknown sending mode `pigeon`"),
            ("letta", "id=agent-1 api=grpc", "unknown Letta API `grpc`"),
            ("letta", "id=agent-1 api=openai", "backend `letta` needs a url"),
            ("letta", "id=agent-1 api=openai url=http://127.0.0.1:4500 send=stream", "ok"),
            (
                "letta",
                "id=agent-1 api=openai url=http://127.0.0.1:4500 send=background",
                "the App Server has no background mode",
            ),
            ("openai", "model=m api=rest", "backend `openai` takes no Letta API"),
            ("command", "claude send=wait", "backend `command` takes no sending mode"),
            (
                "mcp",
                "url=http://x private=false",
                "backend `mcp` takes no access to private addresses",
            ),
            ("webhook", "url=https://x private=true limit=86400", "ok"),
            ("webhook", "url=https://x limit=0", "a time limit is 1 to 86400 seconds, not 0"),
            ("openai", "", "backend `openai` needs a model"),
            ("openai", "model=gpt url=http://127.0.0.1:1/v1", "ok"),
            ("anthropic", "model=claude", "ok"),
            ("webhook", "", "backend `webhook` needs a url"),
            ("webhook", "url=ftp://x", "the url does not start with http:// or https://"),
            ("webhook", "url=http://:80/", "the url has no host"),
            (
                "webhook",
                "url=https://me:pw@x/",
                "the url contains credentials; give them as a secret reference",
            ),
            ("webhook", "url=https://x/a@b", "ok"),
            ("webhook", "url=https://x/a?b=token&keyboard=1&monkey#token=1", "ok"),
            ("webhook", "url=https://x/?a=1&Api-Key=hunter2", SECRET_IN_URL),
            ("webhook", "url=https://x?sig=hunter2", SECRET_IN_URL),
            ("webhook", "url=https://x?access_token", SECRET_IN_URL),
            ("letta", "id=agent-1 url=https://x?password=hunter2", SECRET_IN_URL),
            ("mcp", "", "backend `mcp` needs a url, or a program and its arguments"),
            ("mcp", "server --stdio", "ok"),
            ("mcp", "url=http://localhost:7400/mcp", "ok"),
            ("mcp", "server url=http://x", "backend `mcp` takes no url"),
        ];
        for (kind, words, expected) in table {
            let parsed = Backend::parse(kind.parse().unwrap(), settings(words));
            let message = parsed.as_ref().map_or_else(ToString::to_string, |_| "ok".to_owned());
            assert_eq!(message, expected, "{kind} {words}");
            if let Ok(backend) = parsed {
                let again = Backend::parse(backend.kind(), backend.settings());
                assert_eq!(again, Ok(backend), "{kind} {words}");
            }
        }
    }

    #[test]
    fn given_settings_override_the_base_and_empty_text_removes_a_setting() {
        let base = "tool cwd=/a env=A prompt=argument limit=5";
        for (given, expected) in [
            ("", base),
            ("other {prompt}", "other {prompt} cwd=/a env=A prompt=argument limit=5"),
            ("cwd=/b env=B env=C limit=6", "tool cwd=/b env=B env=C prompt=argument limit=6"),
            ("cwd= env= prompt=stdin", "tool limit=5"),
        ] {
            let parse = |settings| Backend::parse(BackendKind::Command, settings);
            let after = parse(settings(given).merged_over(settings(base)));
            assert_eq!(after, parse(settings(expected)), "{given}");
        }
    }

    #[test]
    fn secret_is_a_reference_and_its_refusal_never_repeats_the_text() {
        for good in ["env:KEY", "env:_K9", "file:/run/secrets/key"] {
            assert_eq!(good.parse::<SecretRef>().unwrap().to_string(), good);
        }
        for bad in ["sk-verysecret", "env:", "env:9A", "env:A B", "file:relative", "file:"] {
            let refusal = bad.parse::<SecretRef>().unwrap_err();
            assert_eq!(refusal, Invalid::Secret, "{bad}");
            assert!(!refusal.to_string().contains("verysecret"));
        }
        assert_eq!("file:~/key".parse::<SecretRef>(), Err(Invalid::Tilde("secret file")));
    }

    #[test]
    fn credentials_in_a_url_are_refused_without_repeating_them() {
        const CREDENTIALS: &str = "the url contains credentials; give them as a secret reference";
        const BACKSLASH: &str = "the url contains a backslash";
        const PORT: &str = "the url has an invalid port";
        const HOST: &str = "the url has an invalid host";
        for (text, expected) in [
            ("https://me:hunter2@x", CREDENTIALS),
            ("https://me:hunter2@x:8/y", CREDENTIALS),
            ("https://hunter2@x", CREDENTIALS),
            ("https://@x", CREDENTIALS),
            ("https://:hunter2@x", CREDENTIALS),
            ("https://me:hunter2@y@x", CREDENTIALS),
            // A slash, `?` or `#` in the password ends the host, and leaves a port that is none.
            ("https://me:hunter2/a@x", CREDENTIALS),
            ("https://me:hunter2?a@x", CREDENTIALS),
            ("https://me:hunter2#a@x", CREDENTIALS),
            ("https://me:65536/hunter2@x", CREDENTIALS),
            ("https://me:hunter2\\a@x", CREDENTIALS),
            ("https://me\\:hunter2@x", CREDENTIALS),
            ("https://\\me:hunter2@x", CREDENTIALS),
            ("https://x\\@hunter2/", CREDENTIALS),
            ("https://me%3Ahunter2%40x/", CREDENTIALS),
            ("https://me:hunter2%40x/", CREDENTIALS),
            ("https://me:hunter2\u{ff20}x/", CREDENTIALS),
            ("https://hunter2\u{fe6b}x/", CREDENTIALS),
            ("https://x\\hunter2", BACKSLASH),
            ("https://x/a\\hunter2", BACKSLASH),
            ("https://me:hunter2/", PORT),
            ("https://me:hunter2:80/", HOST),
            ("https://x:+80/", PORT),
            ("https://x:65536/", PORT),
            ("https://hunter2%2Fx/", HOST),
            ("https://[::1/", HOST),
            ("https://[hunter2]/", HOST),
            // By the standard these name `x` and a path, a query or a fragment.
            ("https://x/a:b@c", "ok"),
            ("https://x:80/a@b", "ok"),
            ("https://x?a@b", "ok"),
            ("https://x#a@b", "ok"),
            ("https://x:/", "ok"),
            ("https://x:65535/%40", "ok"),
            ("https://a-b_c.example./", "ok"),
            ("https://b\u{fc}cher.example", "ok"),
            ("http://[::1]:7400/mcp", "ok"),
            ("http://[::ffff:127.0.0.1]", "ok"),
        ] {
            let parsed = text.parse::<Url>();
            let found = parsed.as_ref().map_or_else(ToString::to_string, |_| "ok".to_owned());
            assert_eq!(found, expected, "{text}");
            assert!(!found.contains("hunter2"), "{text}: {found}");
        }
    }

    #[test]
    fn stored_url_is_read_as_it_is() {
        for stored in ["https://me:hunter2/a@x", "https://x:65536/", "https://x\\y"] {
            let json = serde_json::to_string(stored).unwrap();
            let url: Url = serde_json::from_str(&json).unwrap();
            assert_eq!(url.as_str(), stored);
            assert!(stored.parse::<Url>().is_err(), "{stored}");
        }
    }

    #[test]
    fn limits_hold_at_the_limit_and_one_past() {
        let url = |len: usize| format!("http://{}", "x".repeat(len - "http://".len()));
        assert!(url(URL_BYTES_MAX).parse::<Url>().is_ok());
        assert!(url(URL_BYTES_MAX + 1).parse::<Url>().is_err());
        let model = |len: usize| Settings { model: Some("m".repeat(len)), ..Settings::default() };
        assert!(Backend::parse(BackendKind::Openai, model(WORD_BYTES_MAX)).is_ok());
        assert!(Backend::parse(BackendKind::Openai, model(WORD_BYTES_MAX + 1)).is_err());
        let argv = |items: usize| Settings { argv: vec!["a".into(); items], ..Settings::default() };
        assert!(Backend::parse(BackendKind::Command, argv(ARGV_ITEMS_MAX)).is_ok());
        assert!(Backend::parse(BackendKind::Command, argv(ARGV_ITEMS_MAX + 1)).is_err());
        let env = |items: usize| Settings { env: vec!["A".into(); items], ..argv(1) };
        assert!(Backend::parse(BackendKind::Command, env(ENV_ITEMS_MAX)).is_ok());
        assert!(Backend::parse(BackendKind::Command, env(ENV_ITEMS_MAX + 1)).is_err());
        let bytes = |len: usize| Settings { argv: vec!["a".repeat(len)], ..Settings::default() };
        assert!(Backend::parse(BackendKind::Command, bytes(ARGV_BYTES_MAX)).is_ok());
        assert!(Backend::parse(BackendKind::Command, bytes(ARGV_BYTES_MAX + 1)).is_err());
    }
}
