//! Pages of lists: rows of a noun by their ids, of these the ones that are asked for.

use std::str::FromStr;

use api::{Code, Error, LIST_BYTES_MAX, LIST_ITEMS_DEFAULT, LIST_ITEMS_MAX};
use kernel::Noun;
use store::Item;

use crate::errors;
use crate::watch::Engine;

/// Rows that are looked at for one page; the next one goes on there. Only where an agent has none among so
/// many, a page may be empty and have another's id for its cursor.
const LOOKED_AT_MAX: usize = 100_000;
/// Rows that are read at a time where the first ones did not fill the page.
const READ_AT_ONCE: usize = 256;

/// In which order a list has its rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order<'a> {
    ById,
    /// With a key, only those under it.
    NewestFirst(Option<&'a str>),
}

/// What a list is asked for.
pub(crate) struct Listed<'a> {
    pub noun: Noun,
    pub order: Order<'a>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

impl Engine {
    /// A page of a list, and the cursor with which to ask for the next one, if there is more. `show` says
    /// what is shown of a row, nothing of one that is not asked for.
    pub(crate) async fn page<Id: FromStr, T>(
        &self,
        listed: Listed<'_>,
        mut show: impl FnMut(&Item) -> Result<Option<T>, Error>,
    ) -> Result<(Vec<T>, Option<String>), Error> {
        let Listed { noun, order, limit, cursor } = listed;
        let limit = page_size(limit)?;
        let mut place = page_start::<Id>(cursor)?;
        let (mut shown, mut last) = (Vec::new(), None);
        let (mut bytes, mut looked_at) = (0, 0);
        // One more than asked for tells whether there is a next page.
        let mut read = limit + 1;
        loop {
            let items = match order {
                Order::ById => self.store().list(noun.name(), &place, read).await,
                Order::NewestFirst(under) => {
                    self.store().newest(noun.name(), under, &place, read).await
                }
            };
            let items = items.map_err(errors::store)?;
            for item in &items {
                place.clone_from(&item.id);
                let Some(it) = show(item)? else { continue };
                if shown.len() == limit || LIST_BYTES_MAX <= bytes {
                    return Ok((shown, last));
                }
                bytes += item.body.as_ref().map_or(0, |body| body.len());
                shown.push(it);
                last = Some(item.id.clone());
            }
            looked_at += items.len();
            if items.len() < read {
                return Ok((shown, None));
            }
            if LOOKED_AT_MAX <= looked_at {
                return Ok((shown, Some(place)));
            }
            read = read.max(READ_AT_ONCE);
        }
    }
}

/// How many items a page shall have.
pub(crate) fn page_size(limit: Option<u32>) -> Result<usize, Error> {
    let limit = limit.unwrap_or(LIST_ITEMS_DEFAULT);
    if !(1..=LIST_ITEMS_MAX).contains(&limit) {
        let what = format!("a list has 1 to {LIST_ITEMS_MAX} items, not {limit}");
        return Err(Error::new(Code::InvalidInput, what).hint("ask for the rest with the cursor"));
    }
    usize::try_from(limit).map_err(errors::internal)
}

/// After or below what a page begins: the last that the one before has shown, or nothing.
pub(crate) fn page_start<Id: FromStr>(cursor: Option<String>) -> Result<String, Error> {
    let cursor = cursor.unwrap_or_default();
    match cursor.is_empty() || cursor.parse::<Id>().is_ok() {
        true => Ok(cursor),
        false => {
            let begins: String = cursor.chars().take(80).collect();
            Err(Error::new(Code::InvalidInput, format!("`{begins}` is not a cursor of this list"))
                .hint("give the one that the page before ended with, or none for the first page"))
        }
    }
}
