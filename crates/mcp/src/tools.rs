//! Every tool, in the order in which clients see them.

mod agent;
mod approval;
mod core;
mod ledger;
mod run;
mod schedule;

use api::{Code, Error};
use serde_json::Value;

use crate::tool::Tool;
use crate::{toolsets, truncation};

/// Default number of items in a page. Such a page has about 8 KB.
const PAGE_ITEMS_DEFAULT: u32 = 20;
/// Maximum number of items in a page.
const PAGE_ITEMS_MAX: u32 = 100;

/// All tools: our own, then those of other systems.
pub fn all() -> impl Iterator<Item = &'static Tool> {
    [core::TOOLS, schedule::TOOLS, run::TOOLS, approval::TOOLS, agent::TOOLS, ledger::TOOLS]
        .into_iter()
        .chain(toolsets::TOOLS)
        .flatten()
}

/// Loads a page of at most `limit` items that fits into an answer: while it is too long, a page of half as many items is
/// loaded instead, so that its cursor matches its items.
async fn load_page<A>(limit: Option<u32>, load: impl Fn(Option<u32>) -> A) -> Result<Value, Error>
where
    A: Future<Output = Result<Value, Error>>,
{
    let mut limit = limit.unwrap_or(PAGE_ITEMS_DEFAULT);
    if !(1..=PAGE_ITEMS_MAX).contains(&limit) {
        let what = format!("`limit` must be 1 to {PAGE_ITEMS_MAX}, not {limit}");
        return Err(
            Error::new(Code::InvalidInput, what).hint("use the `cursor` of the answer to get more")
        );
    }
    loop {
        let answer = load(Some(limit)).await?;
        if limit == 1 || truncation::fits(&answer) {
            return Ok(answer);
        }
        limit /= 2;
    }
}
