//! Errors of the inner layers as errors of the wire: a code, a message and a hint.

use agents::supported_backends;
use api::{Code, Error};
use kernel::backend::{BackendKind, Invalid};
use kernel::{Actor, Role};

/// A refusal of the kernel about a noun. The handlers of the noun give it a code and a hint.
pub(crate) trait ToError {
    fn to_error(&self) -> Error;
}

/// A refusal of the kernel.
pub(crate) fn refused(refusal: impl ToError) -> Error {
    refusal.to_error()
}

/// An error of the store.
pub fn store(error: store::Error) -> Error {
    use store::Error as Store;
    match &error {
        Store::DiskFull => {
            Error::new(Code::DiskFull, "the disk is full, nothing was changed")
                .hint("free some disk space and try again; reads still work")
        }
        Store::ReadOnly => Error::new(Code::ReadOnly, error)
            .hint("check the permissions of the data directory and of the files in it"),
        Store::Damaged(_) => Error::new(Code::LogDamaged, error).hint(
            "this command lost nothing; `midwatch ledger verify` shows where the damage is, \
             `midwatch up` checks the whole ledger and writes again once it is sound, and `midwatch \
             ledger rebuild --from-export` recreates the directory from exports",
        ),
        Store::TablesDamaged(_) => Error::new(Code::TablesDamaged, error).hint(
            "the ledger is not affected; `midwatch ledger rebuild` rebuilds the tables from it",
        ),
        Store::Rewound(_) => Error::new(Code::LogRewound, error).hint(
            "a failover or a restored copy has lost acknowledged entries; \
             compare `midwatch ledger verify` with a checkpoint that you kept, then start again",
        ),
        Store::Unreachable(_) => Error::new(Code::DatabaseAway, error)
            .hint("nothing was changed; check the database and `store.url`, then try again"),
        Store::PasswordNotSent { .. } => Error::new(Code::PasswordNotSent, error).hint(
            "Midwatch sends a password by SCRAM only: on the server set `password_encryption = \
             scram-sha-256`, set the role's password again, and use the method `scram-sha-256` in \
             `pg_hba.conf`",
        ),
        Store::AccessDenied(_) => Error::new(Code::DatabaseRefused, error).hint(
            "name the password with `store.password` (`env:NAME` or `file:/path`), and check the user in \
             `store.url`",
        ),
        Store::NoDatabase(_) => Error::new(Code::DatabaseMissing, error)
            .hint("create it with `createdb`, or correct its name in `store.url`"),
        Store::InDoubt(_) => Error::new(Code::DatabaseAway, error)
            .hint("repeat it with the same idempotency key, or check first whether it took effect"),
        Store::WriteFailed(_) => Error::new(Code::DiskFailed, error)
            .hint("check the disk, then start again: the start checks for missing entries"),
        Store::NewerFormat { .. } => Error::new(Code::DataNewer, error)
            .hint("use the newer version of Midwatch, or another data directory"),
        Store::Failed(_) => Error::new(Code::Failed, error),
    }
}

/// An approval without a personal token.
pub(crate) fn not_personal(refusal: impl std::fmt::Display) -> Error {
    Error::new(Code::RoleTooLow, refusal).hint(
        "a maintainer creates one with `midwatch token create --role operator`; set it as \
         MIDWATCH_TOKEN",
    )
}

/// A refusal of a request for which the kernel has no rule.
pub(crate) fn role_too_low(actor: &Actor, needed: Role) -> Error {
    too_low(&kernel::token::Refusal::RoleTooLow { actor: actor.clone(), needed })
}

/// A refusal because of the caller's role.
pub(crate) fn too_low(refusal: &impl std::fmt::Display) -> Error {
    Error::new(Code::RoleTooLow, refusal)
        .hint("ask a person with that role, or set a token with that role as MIDWATCH_TOKEN")
}

/// A token that authenticates no one. The error is the same for every reason.
pub(crate) fn invalid_token() -> Error {
    Error::new(Code::TokenInvalid, "unknown or revoked token")
        .hint("`midwatch token create` creates a new one; set it as MIDWATCH_TOKEN")
}

/// Invalid settings of a backend.
pub(crate) fn invalid(invalid: Invalid) -> Error {
    let hint = match &invalid {
        Invalid::Kind(_) => format!("the backends are {}", supported_backends()),
        Invalid::Tier(_) => "a tier is 0 (read-only), 1 (local write) or 2 (external)".to_owned(),
        Invalid::Secret => {
            "write `env:NAME` or `file:/absolute/path`; the secret itself is never stored"
                .to_owned()
        }
        Invalid::Missing { kind, .. } | Invalid::Unsupported { kind, .. } => {
            format!("backend `{kind}` takes {}", settings_of(*kind))
        }
        Invalid::Url(_) => {
            "write a url as `https://host/path`, and pass a secret with --credential".to_owned()
        }
        Invalid::Tilde(_) => {
            "write the whole path, or `$HOME/…` without quotes; a `~` in quotes or after `=` stays as it is"
                .to_owned()
        }
        Invalid::Path => "write an absolute path, like `/srv/work`".to_owned(),
        Invalid::Variable => {
            "write the name, like `--env API_KEY`; the value comes from the environment of the \
             daemon and is never stored"
                .to_owned()
        }
        Invalid::SelectsCode(_) => {
            "pass it to the program as an argument, or set it in a script of your own".to_owned()
        }
        Invalid::Reserved(_) => {
            "omit it: in a run, a program calls Midwatch in the name of that run".to_owned()
        }
        Invalid::Variables => "name only those that the program needs".to_owned(),
        Invalid::PromptAs(_) => "a prompt is passed as `stdin` or as `argument`".to_owned(),
        Invalid::PromptArgument => "use `--prompt-as argument`, or omit it".to_owned(),
        Invalid::Api(_) => {
            "`rest` is the V1 server of Letta, `openai` its App Server with --openai-api".to_owned()
        }
        Invalid::Sending(_) => {
            "a prompt is sent with `wait`, `stream` or, to the V1 server, `background`".to_owned()
        }
        Invalid::NoBackground => "use `--send stream`, or omit it".to_owned(),
        Invalid::TimeLimit(_) => "write a duration like `90s`, `10m` or `24h`".to_owned(),
        Invalid::TooLong { .. } => "choose a shorter one".to_owned(),
        Invalid::Unprintable { .. } => "use printable text".to_owned(),
    };
    Error::new(Code::InvalidInput, invalid).hint(hint)
}

/// A backend that no agent can have yet.
pub(crate) fn unavailable(kind: BackendKind) -> Error {
    let what = format!("this version cannot prompt an agent with backend `{kind}`");
    let hint = format!("the available backends are {}", supported_backends());
    Error::new(Code::BackendUnavailable, what).hint(hint)
}

fn settings_of(kind: BackendKind) -> &'static str {
    match kind {
        BackendKind::Builtin => "only --script",
        BackendKind::Command => {
            "a program and its arguments after `--`, and --cwd, --env, --prompt-as and --time-limit"
        }
        BackendKind::Letta => {
            "--remote-id, --url (default http://localhost:8283), and --api, --send, --time-limit \
             and --allow-private"
        }
        BackendKind::Openai | BackendKind::Anthropic => {
            "--model, and --url if it is not the default"
        }
        BackendKind::Webhook => "--url, and --time-limit and --allow-private",
        BackendKind::Mcp => "--url, or a program and its arguments after `--`",
    }
}

/// A failure that a correct program never has.
pub(crate) fn internal(what: impl std::fmt::Display) -> Error {
    Error::new(Code::Failed, what)
}
