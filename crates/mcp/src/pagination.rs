//! Pages of the lists that the protocol defines: tools, prompts, resources.
//!
//! A page holds more items than any list has today, because some clients only read the first page.

use rmcp::model::{ErrorData, PaginatedRequestParams};

/// Maximum number of items in a page.
const ITEMS_MAX: usize = 100;

/// Returns a page and the cursor of the next one.
pub(crate) fn paginate<T>(
    items: Vec<T>,
    params: Option<PaginatedRequestParams>,
    name: impl Fn(&T) -> &str,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    page_after(ITEMS_MAX, items, params.and_then(|params| params.cursor), name)
}

/// A cursor is the name of the last item of the previous page.
fn page_after<T>(
    limit: usize,
    mut items: Vec<T>,
    after: Option<String>,
    name: impl Fn(&T) -> &str,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    if let Some(after) = after {
        let seen = items.iter().position(|item| name(item) == after);
        let unknown = || ErrorData::invalid_params("invalid cursor", None);
        items.drain(..=seen.ok_or_else(unknown)?);
    }
    let has_more = limit < items.len();
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(|last| name(last).to_owned());
    Ok((items, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limit: usize, after: Option<&str>) -> Option<(Vec<&'static str>, Option<String>)> {
        page_after(limit, vec!["a", "b", "c"], after.map(str::to_owned), |name| name).ok()
    }

    #[test]
    fn pages_continue_after_the_cursor_and_an_invalid_cursor_is_refused() {
        assert_eq!(check(3, None), Some((vec!["a", "b", "c"], None)));
        assert_eq!(check(2, None), Some((vec!["a", "b"], Some("b".to_owned()))));
        assert_eq!(check(2, Some("b")), Some((vec!["c"], None)));
        assert_eq!(check(2, Some("c")), Some((vec![], None)));
        assert_eq!(check(2, Some("d")), None);
    }
}
