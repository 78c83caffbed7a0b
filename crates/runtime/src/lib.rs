//! The watch itself: opens a store, carries out requests, keeps the log in order, and hands out a
//! [`Local`] handle for whoever wants something.
//!
//! Rules are the kernel's; what is here loads, asks the kernel, and commits. Times come from a
//! [`Clock`]; files are the signing key, the checkpoint files, the verdict on a
//! damaged log, the exports, and how far notices have come, in the data directory.

mod agents;
mod anomaly;
mod approvals;
mod at_once;
mod authority;
mod budgets;
mod check;
mod checkpoints;
mod checks;
mod clock;
mod copy;
mod damage;
mod desk;
mod errors;
mod export;
mod follow;
mod handle;
mod happening;
mod holder;
mod keep;
mod key;
mod listen;
mod log;
mod notices;
mod orders;
mod outputs;
mod page;
mod pair;
mod principals;
mod reach;
mod rebuild;
mod reload;
mod remembered;
mod replay;
mod restore;
mod rows;
mod runs;
mod schedules;
mod sealing;
mod seen;
mod signatures;
mod standing;
mod status;
mod stored;
mod tallies;
mod test;
mod timer;
mod times;
mod token_files;
mod tokens;
mod tools;
mod transact;
mod turns;
mod watch;
pub mod when;
mod why;
mod work;
mod zones;

pub use checkpoints::{last_note, notes};
pub use checks::{Kept, refusal};
pub use clock::{Clock, SystemClock};
pub use copy::copy;
pub use damage::forget_damage;
pub use errors::store as store_error;
pub use handle::Local;
pub use log::{report_unreadable, verify};
pub use notices::{Messenger, Untold};
pub use orders::{POLICY_FILE, foresee, rules};
pub use policy::{Rules, capability};
pub use principals::{Descent, UNSEEN, Visitor};
pub use reload::{Reader, Reread};
pub use restore::{ExportDir, RestoredKey, restore};
pub use schedules::check_schedule;
pub use signatures::{SIGNATURE_PREFIX, Statement, hashes};
pub use standing::Standing;
pub use tokens::{TOKEN_DIGITS, TOKEN_PREFIX, token_hash};
pub use tools::{Meant, Tools};
pub use watch::{Settings, Engine};
