//! Every rule of Midwatch, one module per noun: command → events → state.
//!
//! The kernel is pure: it reads no clock, draws no random number, opens no file and knows no store;
//! every input is an argument. A noun has a `decide` that holds its rules and an `apply` that holds
//! none, so a replay of the ledger never decides again.
//!
//! The table at the end of this file lists the nouns; [`noun`] says what follows from it.
//!
//! Event bodies and states are stored. Their serde names are the stored format and are locked by
//! the golden files in `tests/golden`.

pub mod actor;
pub mod agent;
pub mod approval;
pub mod approvers;
pub mod authority;
pub mod backend;
pub mod budget;
pub mod counter;
pub mod device;
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
pub mod seen;
pub mod slot;
pub mod tables;
pub mod tick;
pub mod time;
pub mod timeline;
pub mod token;
pub mod tool;
pub mod variables;

pub use actor::{Actor, Role};
pub use approval::ApprovalId;
pub use counter::Counter;
pub use device::DeviceId;
pub use event::Event;
pub use noun::NounState;
pub use principal::Principal;
pub use run::RunId;
pub use schedule::ScheduleId;
pub use tables::{Row, Tables};
pub use time::{Now, Timestamp};
pub use token::TokenId;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use event::{Label, StoredEvent, unknown_kind};
use noun::{ChangedRow, NounEvent, OwnedId, StateVariant, nouns};
use private_fields::PrivateField;

// The names are stored and never change. `Noun` is ordered as listed here, and `Tables` by `Noun`.
nouns! {
    Agent "agent" agent::Agent, agent::Event;
    Approval "approval" approval::Approval, approval::Event;
    Authority "authority" authority::Authority, authority::Event;
    Device "device" device::Device, device::Event;
    Progress "progress" progress::Progress;
    Run "run" run::Run, run::Event;
    Schedule "schedule" schedule::Schedule, schedule::Event;
    Seen "seen" seen::Seen, seen::Event;
    Slot "slot" slot::Slot;
    Token "token" token::Token, token::Event;
    Tool "tool" tool::ToolStats, tool::Event;
    Installation "watch" installation::Identity, installation::Event;
}
