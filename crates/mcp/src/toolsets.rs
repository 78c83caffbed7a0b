//! The tools of other systems, one module each, under their names and with their parameters and results.
//!
//! Each tool makes the same requests as one of our own, so the same policy applies, and turns the answer into the form
//! that its clients expect. None of them keeps state. Arguments that would force or bypass a check are not accepted.
//! What the command line needs as well is in the crate `compat`.

pub(crate) mod astra;
pub(crate) mod foundry;
pub(crate) mod promptyoself;

/// Maximum number of items in a list that is not paged.
const LIST_ITEMS_MAX: usize = 100;
