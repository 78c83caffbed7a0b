//! Every tool, in the order in which clients see them.

mod agent;
mod approval;
mod core;
mod ledger;
mod run;
mod schedule;

use api::{Code, Error};

use crate::adapters;
use crate::tool::Tool;

/// Items in a list when nobody says how many, so that a page is some 8 KB.
const PAGE_DEFAULT: u32 = 20;
/// Most items in one list.
const PAGE_MAX: u32 = 100;

/// Every tool there is.
pub fn all() -> impl Iterator<Item = &'static Tool> {
    [core::TOOLS, schedule::TOOLS, run::TOOLS, approval::TOOLS, agent::TOOLS, ledger::TOOLS]
        .into_iter()
        .chain(adapters::TOOLS)
        .flatten()
}

/// How many items to ask for.
fn page(limit: Option<u32>) -> Result<Option<u32>, Error> {
    let limit = limit.unwrap_or(PAGE_DEFAULT);
    match (1..=PAGE_MAX).contains(&limit) {
        true => Ok(Some(limit)),
        false => {
            let what = format!("`limit` is 1 to {PAGE_MAX}, not {limit}");
            Err(Error::new(Code::InvalidInput, what)
                .hint("more come with the `cursor` of the answer"))
        }
    }
}
