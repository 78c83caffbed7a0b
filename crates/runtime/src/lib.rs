//! The engine: opens a store, answers requests, fires schedules, runs agents, and keeps the ledger in order.
//!
//! The rules are in `kernel` and `policy`. The code here loads rows, asks the kernel, commits its events, and acts on
//! them. It is arranged in rooms, along the way of a fire:
//!
//! | room | |
//! |---|---|
//! | [`schedule`] | due → queued |
//! | [`dispatch`] | queued → claimed |
//! | [`execute`] | claimed → outcome |
//! | [`commit`] | load, decide, commit, try again on a conflict |
//! | [`authorize`] | who is calling, and what they may see and do |
//! | [`ledger`], [`notify`], [`secrets`] | feed, checkpoints and export; calling people; keys |
//! | [`engine`] | the running instance, which owns the parts above |
//! | [`handlers`] | one `impl Serve<Request> for Engine` per request |
//!
//! ARCHITECTURE.md lists which room may import which; `cargo xtask tidy` checks it.

mod authorize;
mod clock;
mod commit;
mod config;
mod damage;
mod dispatch;
mod engine;
mod errors;
mod execute;
mod handlers;
mod installation;
mod ledger;
mod node;
mod notify;
mod pages;
mod retention;
mod schedule;
mod secrets;
mod shutdown;
mod timestamps;
mod wire;

pub use authorize::authenticate::{Credentials, ProcessOrigin, UNKNOWN_UID};
pub use authorize::devices::{DeviceUse, SignIn, SignedIn};
pub use authorize::policy::evaluate_document;
pub use authorize::signatures::{SIGNATURE_PREFIX, Statement, hash_plan};
pub use authorize::stop_markers::{StopMarkers, StopTarget};
pub use authorize::tokens::{TOKEN_DIGITS, TOKEN_PREFIX, token_hash};
pub use authorize::tool_catalog::{NoTools, ResolvedCall, ScheduledCall, Tools};
pub use clock::{Clock, SystemClock};
pub use config::{POLICY_FILE, ReloadableConfig, rules};
pub use damage::clear_damage;
pub use engine::Engine;
pub use engine::handle::LocalHandle;
pub use engine::open::Components;
pub use engine::reload::{ConfigReader, Reread};
pub use engine::startup_checks::{ConfiguredSecrets, refusal};
pub use errors::store as store_error;
pub use handlers::schedules::check_schedule;
pub use installation::{OUTPUTS_FOLDER, Settings};
pub use ledger::checkpoints::{CHECKPOINTS_FILE, read_last_note, read_notes};
pub use ledger::copy::copy;
pub use ledger::restore::{ExportDir, RestoredKey, restore};
pub use ledger::verify::{report_unreadable, verify};
pub use notify::{Channel, DeliveryError};
pub use policy::{Rules, capability};
pub use retention::{BACKUP_STAGING_PREFIX, Retention};
pub use schedule::trigger;
