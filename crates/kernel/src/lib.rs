//! Every rule of Midwatch, one module per noun: command → events → state.
//!
//! The kernel is pure: it reads no clock, draws no random number, opens no file and knows no store;
//! every input is an argument. A noun has a `decide` that holds its rules and an `apply` that holds
//! none, so a replay of the ledger never decides again.
//!
//! The nouns are listed in [`noun`].
//!
//! Event bodies and states are stored. Their serde names are the stored format and are locked by
//! the golden files in `tests/golden`.

pub mod actor;
pub mod agent;
pub mod approval;
pub mod authority;
pub mod backend;
pub mod budget;
pub mod counter;
pub mod event;
pub mod id;
pub mod installation;
pub mod money;
pub mod notice;
pub mod noun;
pub mod policy_decision;
pub mod posture;
pub mod principal;
pub mod private_fields;
pub mod program;
pub mod progress;
pub mod remote;
pub mod run;
pub mod schedule;
pub mod sealable_text;
pub mod slot;
pub mod tables;
pub mod tick;
pub mod time;
pub mod token;
pub mod tool;
pub mod variables;

pub use actor::{Actor, Role};
pub use counter::Counter;
pub use event::Event;
pub use id::{ApprovalId, RunId, ScheduleId, TokenId};
pub use noun::{EventBody, Noun, NounState, State};
pub use principal::Principal;
pub use tables::{Row, Tables};
pub use time::{Now, Timestamp};
