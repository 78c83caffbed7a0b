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
use crate::{adapters, size};

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

/// A page of so many items, or of as many as fit into an answer: it is asked for half of them again until they do, so
/// that its cursor is that of what it shows.
async fn paged<A>(limit: Option<u32>, ask: impl Fn(Option<u32>) -> A) -> Result<Value, Error>
where
    A: Future<Output = Result<Value, Error>>,
{
    let mut limit = limit.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&limit) {
        let what = format!("`limit` is 1 to {PAGE_MAX}, not {limit}");
        return Err(
            Error::new(Code::InvalidInput, what).hint("more come with the `cursor` of the answer")
        );
    }
    loop {
        let answer = ask(Some(limit)).await?;
        if limit == 1 || size::fits(&answer) {
            return Ok(answer);
        }
        limit /= 2;
    }
}
