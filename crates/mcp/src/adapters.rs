//! Tools of programs that were there before, under their names and in their words.
//!
//! Each makes the same requests as a tool of our own, so that the same orders judge it, and turns the answer
//! into what its clients expect. None of them keeps anything. No argument of theirs that forces something or
//! gets around something is taken.

mod astra;
mod foundry;
mod history;
mod promptyoself;

use crate::tool::Tool;

pub(crate) const TOOLS: [&[Tool]; 3] = [astra::TOOLS, promptyoself::TOOLS, foundry::TOOLS];

/// Most items of a list that has no pages.
const LIST_ITEMS_MAX: usize = 100;
