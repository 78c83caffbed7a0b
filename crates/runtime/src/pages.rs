//! Pages of a list.

use std::str::FromStr;

use api::{Code, Error, LIST_BYTES_MAX, LIST_ITEMS_DEFAULT, LIST_ITEMS_MAX};
use kernel::Noun;
use store::{Item, Newest, Store};

use crate::errors;

/// Rows read for one page. If none of them matches, the page is empty and its cursor is the id of a row that is not shown.
pub(crate) const ROWS_READ_MAX: usize = 100_000;
/// Rows read at a time once the first read did not fill the page.
pub(crate) const READ_AHEAD: usize = 256;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Order<'a> {
    ById,
    /// With a key, only rows indexed under it.
    NewestFirst(Option<&'a str>),
}

pub(crate) struct PageRequest<'a> {
    pub noun: Noun,
    pub order: Order<'a>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

/// A page of a list, and the cursor of the next page if there is one. `show` returns `None` for a row to leave out.
pub(crate) async fn page<Id: FromStr, T>(
    store: &dyn Store,
    request: PageRequest<'_>,
    mut show: impl FnMut(&Item) -> Result<Option<T>, Error>,
) -> Result<(Vec<T>, Option<String>), Error> {
    let PageRequest { noun, order, limit, cursor } = request;
    let limit = page_size(limit)?;
    let mut position = page_start::<Id>(cursor)?;
    let (mut shown, mut last) = (Vec::new(), None);
    let (mut bytes, mut rows_read) = (0, 0);
    // One more than requested tells whether there is a next page.
    let mut batch = limit + 1;
    loop {
        let items = match order {
            Order::ById => store.list(noun.name(), &position, batch).await,
            Order::NewestFirst(under) => {
                store
                    .list_newest(Newest {
                        noun: noun.name(),
                        index_key: under,
                        before: &position,
                        limit: batch,
                    })
                    .await
            }
        };
        let items = items.map_err(errors::store)?;
        for item in &items {
            position.clone_from(&item.id);
            let Some(it) = show(item)? else { continue };
            if shown.len() == limit || LIST_BYTES_MAX <= bytes {
                return Ok((shown, last));
            }
            bytes += item.body.as_ref().map_or(0, |body| body.len());
            shown.push(it);
            last = Some(item.id.clone());
        }
        rows_read += items.len();
        if items.len() < batch {
            return Ok((shown, None));
        }
        if ROWS_READ_MAX <= rows_read {
            return Ok((shown, Some(position)));
        }
        batch = batch.max(READ_AHEAD);
    }
}

/// The number of items of a page.
pub(crate) fn page_size(limit: Option<u32>) -> Result<usize, Error> {
    let limit = limit.unwrap_or(LIST_ITEMS_DEFAULT);
    if !(1..=LIST_ITEMS_MAX).contains(&limit) {
        let what = format!("a list has 1 to {LIST_ITEMS_MAX} items, not {limit}");
        return Err(Error::new(Code::InvalidInput, what).hint("read the rest with the cursor"));
    }
    usize::try_from(limit).map_err(errors::internal)
}

/// The id after which a page starts; empty for the first page.
fn page_start<Id: FromStr>(cursor: Option<String>) -> Result<String, Error> {
    let cursor = cursor.unwrap_or_default();
    match cursor.is_empty() || cursor.parse::<Id>().is_ok() {
        true => Ok(cursor),
        false => Err(invalid_cursor(&cursor)),
    }
}

pub(crate) fn invalid_cursor(cursor: &str) -> Error {
    let begins: String = cursor.chars().take(80).collect();
    Error::new(Code::InvalidInput, format!("`{begins}` is not a cursor of this list"))
        .hint("use the cursor of the previous page, or none for the first page")
}
