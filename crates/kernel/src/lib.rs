//! Every rule of the product, one module per noun: command → events → state.
//!
//! The kernel only computes. It reads no clock, draws no random number, touches no file and knows
//! no store; what it needs comes in as an argument. A noun has a `decide` that holds its rules and
//! an `apply` that holds none, so a replay of the log never decides again.
//!
//! Event bodies and states are stored. Their serde names are the stored format and are locked by
//! the golden files in `tests/golden`.

pub mod actor;
pub mod agent;
pub mod approval;
pub mod authority;
pub mod backend;
pub mod budget;
pub mod event;
pub mod id;
pub mod money;
pub mod notice;
pub mod posture;
pub mod program;
pub mod progress;
pub mod remote;
pub mod ruling;
pub mod run;
pub mod schedule;
pub mod slot;
pub mod tables;
pub mod tick;
pub mod time;
pub mod token;
pub mod tool;
pub mod variables;
pub mod watch;
pub mod wording;
pub mod words;

pub use actor::{Actor, Role};
pub use event::{Body, Event, Noun};
pub use id::{ApprovalId, RunId, ScheduleId, TokenId};
pub use tables::{Counter, Row, State, Tables};
pub use time::{Now, Timestamp};
