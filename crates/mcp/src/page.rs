//! Lists of what a server offers, a page at a time.
//!
//! A page is long enough that today's lists are one: there are clients that ask for the first and no more.

use rmcp::model::{ErrorData, PaginatedRequestParams};

/// Most items of one page.
const ITEMS_MAX: usize = 100;

/// A page, and the cursor with which the next begins.
pub(crate) fn page<T>(
    items: Vec<T>,
    asked: Option<PaginatedRequestParams>,
    name: impl Fn(&T) -> &str,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    page_of(ITEMS_MAX, items, asked.and_then(|asked| asked.cursor), name)
}

/// A cursor is the name of the last item that was seen.
fn page_of<T>(
    most: usize,
    mut items: Vec<T>,
    after: Option<String>,
    name: impl Fn(&T) -> &str,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    if let Some(after) = after {
        let seen = items.iter().position(|item| name(item) == after);
        let unknown = || ErrorData::invalid_params("that is no cursor of this list", None);
        items.drain(..=seen.ok_or_else(unknown)?);
    }
    let has_more = most < items.len();
    items.truncate(most);
    let next = items.last().filter(|_| has_more).map(|last| name(last).to_owned());
    Ok((items, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(most: usize, after: Option<&str>) -> Option<(Vec<&'static str>, Option<String>)> {
        page_of(most, vec!["a", "b", "c"], after.map(str::to_owned), |name| name).ok()
    }

    #[test]
    fn pages_follow_one_another_and_what_is_no_cursor_is_refused() {
        assert_eq!(check(3, None), Some((vec!["a", "b", "c"], None)));
        assert_eq!(check(2, None), Some((vec!["a", "b"], Some("b".to_owned()))));
        assert_eq!(check(2, Some("b")), Some((vec!["c"], None)));
        assert_eq!(check(2, Some("c")), Some((vec![], None)));
        assert_eq!(check(2, Some("d")), None);
    }
}
