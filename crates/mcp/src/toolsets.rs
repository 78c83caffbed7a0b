//! The tools of other systems, one module each, under their names and with their parameters and results.
//!
//! Each tool makes the same requests as one of our own, so the same policy applies, and turns the answer into the form
//! that its clients expect. None of them keeps state. Arguments that would force or bypass a check are not accepted.
//! What the command line needs as well is in the crate `compat`.

mod astra;
mod foundry;
mod promptyoself;

use crate::tool::Tool;

pub(crate) const TOOLS: [&[Tool]; 3] = [astra::TOOLS, promptyoself::TOOLS, foundry::TOOLS];

/// Maximum number of items in a list that is not paged.
const LIST_ITEMS_MAX: usize = 100;
