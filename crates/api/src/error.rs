//! Errors as people and programs see them: a stable code, a message and a hint.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub code: Code,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Error {
    pub fn new(code: Code, message: impl fmt::Display) -> Error {
        Error { code, message: message.to_string(), hint: None }
    }

    #[must_use]
    pub fn hint(self, hint: impl fmt::Display) -> Error {
        Error { hint: Some(hint.to_string()), ..self }
    }
}

/// The list of all codes: variant, wire name, exit code of the command, status over HTTP, description.
macro_rules! codes {
    ($($variant:ident $name:literal $exit:literal $status:literal $meaning:literal;)*) => {
        /// The kind of an error. Codes are stable: neither a name nor its meaning changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code {
            $(#[doc = $meaning] #[serde(rename = $name)] $variant,)*
        }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            pub const fn exit_code(self) -> u8 {
                match self { $(Code::$variant => $exit,)* }
            }

            pub const fn http_status(self) -> u16 {
                match self { $(Code::$variant => $status,)* }
            }

            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning,)* }
            }
        }
    };
}

codes! {
    Failed "failed" 1 503 "An error without a more specific code; the message describes it.";
    BadUsage "bad_usage" 2 400 "The command line is invalid.";
    InvalidInput "invalid_input" 2 400 "A value in the request is invalid.";
    ConfigInvalid "config_invalid" 2 422 "The configuration has an error; the message says where.";
    PolicyInvalid "policy_invalid" 2 422 "The policy has an error, and Midwatch does not use it.";
    NotFound "not_found" 3 404 "The object, file or directory does not exist.";
    Exists "exists" 4 409 "Another object already has this name or path.";
    RoleTooLow "role_too_low" 4 403 "Your role does not allow this.";
    HumanNeeded "human_needed" 4 403 "The policy requires a human to do this.";
    Denied "denied" 4 403 "The policy does not allow this.";
    SignatureNeeded "signature_needed" 4 403 "The approval needs a signature made with the approver's own key.";
    SignatureInvalid "signature_invalid" 4 403 "The signature was not made with a known key for this approval.";
    TokenInvalid "token_invalid" 4 401 "The token is unknown or was revoked.";
    TokenNotForMcp "token_not_for_mcp" 4 403 "An MCP client needs a token that cannot approve.";
    SwitchedOff "switched_off" 4 403 "The configuration disables this.";
    TierTooLow "tier_too_low" 4 422 "The tier is below the lowest tier of the backend.";
    BackendUnavailable "backend_unavailable" 4 422 "This version cannot prompt agents with this backend.";
    LimitReached "limit_reached" 4 429 "A limit of the installation is reached.";
    BudgetExhausted "budget_exhausted" 12 409 "A daily budget is used up.";
    NotNow "not_now" 4 409 "The object is in a state that does not allow this.";
    Stale "stale" 4 412 "The request is about an attempt or a version that is over.";
    VersionNeeded "version_needed" 4 428 "An edit over HTTP names the version that it changes, and this one does not.";
    OtherLedger "other_ledger" 4 409 "The position belongs to the ledger of another installation.";
    KeyTaken "key_taken" 4 409 "The idempotency key was already used for a different request.";
    AlreadyRunning "already_running" 4 409 "Another process uses the data directory.";
    Busy "busy" 1 409 "Too many concurrent changes to the same object; nothing was changed.";
    DiskFull "disk_full" 1 503 "The disk is full; nothing was written.";
    ReadOnly "read_only" 1 503 "The data directory is not writable; nothing was changed.";
    DiskFailed "disk_failed" 1 503 "A write to the disk failed; Midwatch has stopped.";
    LogDamaged "log_damaged" 4 503 "The ledger is damaged; nothing is written to it until it is repaired.";
    DatabaseAway "database_away" 1 503 "The database of the store does not respond.";
    PasswordNotSent "password_not_sent" 4 503 "The database asked for the password in a form that reveals it, so it was not sent.";
    DatabaseRefused "database_refused" 4 503 "The database of the store refuses the user or the password.";
    DatabaseMissing "database_missing" 3 503 "The server of the store has no such database.";
    TablesDamaged "tables_damaged" 4 503 "A table is unreadable; it can be rebuilt from the ledger, which is intact.";
    LogRewound "log_rewound" 4 503 "The ledger is shorter than a checkpoint stored elsewhere, or differs from it.";
    DataNewer "data_newer" 4 503 "The data was written by a newer version of Midwatch.";
    VersionMismatch "version_mismatch" 4 503 "The daemon and this command have different versions.";
    Unreachable "unreachable" 1 503 "The daemon did not respond.";
    UnsafeSetup "unsafe_setup" 4 409 "A startup check refuses this; the message names the check, and the hint says how to fix it.";
    BackupInvalid "backup_invalid" 4 422 "The backup is incomplete, was changed, or is not a backup; nothing was restored.";
    KeyMissing "key_missing" 4 503 "The signing key of the ledger, or the key for sensitive schedules, is missing, unreadable or a different one.";
}
