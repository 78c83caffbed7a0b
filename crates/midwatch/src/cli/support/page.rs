//! The flags of a list that is printed page by page.

use clap::Args;

use super::value_parsers::list_limit;

#[derive(Debug, Args)]
#[group(skip)]
pub(in crate::cli) struct Page {
    /// The most items to show
    #[arg(long, value_name = "N", value_parser = list_limit, allow_negative_numbers = true)]
    pub(in crate::cli) limit: Option<u32>,
    /// Continue where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    pub(in crate::cli) cursor: Option<String>,
}
