//! The metrics of Midwatch: their definitions, the counters behind them, and the text that a Prometheus server reads.
//!
//! [`DEFINITIONS`] lists every metric. The values of a label are a closed list, so a counter is an array of atomic numbers:
//! an increment takes no lock, and no id, name or secret can become the value of a label.
//!
//! Not here: when something is counted, and what a gauge shows. `runtime` knows that.

mod definition;
mod definitions;
mod exposition;
mod page;
#[cfg(test)]
mod published;
mod registry;
mod series;

pub use definition::{Definition, Kind, Label};
pub use definitions::*;
pub use exposition::{CONTENT_TYPE, Exposition};
pub use page::page;
pub use registry::Registry;
pub use series::{Counter, Histogram};
