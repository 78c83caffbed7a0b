//! Errors as people and programs see them: a stable code, one sentence, what to do next.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub code: Code,
    /// One sentence in the user's words.
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

/// The one list of codes: variant, name on the wire, exit code of the command, what it means.
macro_rules! codes {
    ($($variant:ident $name:literal $exit:literal $meaning:literal;)*) => {
        /// Codes are stable: a name never changes its meaning.
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

            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning,)* }
            }
        }
    };
}

codes! {
    Failed "failed" 1 "Something went wrong that has no code of its own; the message says what.";
    BadUsage "bad_usage" 2 "The command line is not one that Midwatch understands.";
    InvalidInput "invalid_input" 2 "A value is not of the form that is asked for.";
    ConfigInvalid "config_invalid" 2 "The configuration has an error; the message names the place.";
    PolicyInvalid "policy_invalid" 2 "The standing orders have an error; nothing starts with them.";
    NotFound "not_found" 3 "There is no such thing, file or directory.";
    Exists "exists" 4 "Something else already has this name or place.";
    RoleTooLow "role_too_low" 4 "Your role does not allow this.";
    HumanNeeded "human_needed" 4 "The standing orders leave this to a human.";
    Denied "denied" 4 "The standing orders do not allow this.";
    SignatureNeeded "signature_needed" 4 "An approval needs a signature made with the approver's own key.";
    SignatureInvalid "signature_invalid" 4 "The signature is none of a known key for this approval.";
    TokenInvalid "token_invalid" 4 "The token is none that lets anybody in, or was revoked.";
    SwitchedOff "switched_off" 4 "A flag of the configuration has switched this off.";
    TierTooLow "tier_too_low" 4 "The tier is below what the backend implies.";
    LimitReached "limit_reached" 4 "A limit of the installation is reached.";
    BudgetExhausted "budget_exhausted" 12 "What may be done or spent in a day is used up.";
    NotNow "not_now" 4 "The thing is in a state in which this cannot be done.";
    Stale "stale" 4 "What was said is about a try that is over.";
    KeyTaken "key_taken" 4 "The idempotency key was used before, for another request.";
    AlreadyRunning "already_running" 4 "Another process holds the data directory.";
    Busy "busy" 1 "Many changes to the same thing at once; nothing was changed.";
    DiskFull "disk_full" 1 "There is no room on the disk; nothing was written.";
    ReadOnly "read_only" 1 "The data directory cannot be written; nothing was changed.";
    DiskFailed "disk_failed" 1 "The disk failed to keep a write; the watch has stopped.";
    LogDamaged "log_damaged" 4 "The log is damaged; nothing new is written until it is looked at.";
    DatabaseAway "database_away" 1 "The database that the store is on does not answer.";
    TablesDamaged "tables_damaged" 4 "A table cannot be read; the log can, and the table can be made anew from it.";
    LogRewound "log_rewound" 4 "The log is shorter than a checkpoint kept elsewhere, or another one.";
    DataNewer "data_newer" 4 "The data was written by a newer version of Midwatch.";
    VersionMismatch "version_mismatch" 4 "The daemon is of another version than this command.";
    Unreachable "unreachable" 1 "The daemon did not answer.";
    UnsafeSetup "unsafe_setup" 4 "A check of the installation refuses this; the message names the check, and the hint mends it.";
    KeyMissing "key_missing" 4 "The signing key of this log, or the key of its sensitive schedules, is missing, unreadable or another one.";
}
