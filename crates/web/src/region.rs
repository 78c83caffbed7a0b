//! A page, made of regions that can change one by one.

use std::hash::{DefaultHasher, Hash, Hasher};

use maud::{Markup, html};

/// What a page shows, at one position of the ledger.
#[derive(Debug)]
pub struct Page {
    pub title: String,
    /// The number of ledger entries before the page was read.
    pub seq: u64,
    pub regions: Vec<Region>,
    /// How often the page changes without a new ledger entry, such as the output of a running run.
    pub refresh_ms: Option<u32>,
}

/// A part of a page with an id of its own.
#[derive(Debug)]
pub struct Region {
    pub id: &'static str,
    /// The whole element.
    pub html: String,
    /// Equal if nothing changed but how long ago something was.
    pub hash: u64,
}

impl Region {
    pub(crate) fn new(id: &'static str, content: &Markup) -> Region {
        let hash = hash_without_distances(&content.0);
        let html = html! { div.region id=(id) data-hash=(hash) { (content) } };
        Region { id, html: html.0, hash }
    }
}

/// The start of an element that says how far an instant is from now; the script keeps it up to date.
const DISTANCE: &str = "<span class=\"rel\"";

fn hash_without_distances(html: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut rest = html;
    while let Some((before, distance)) = rest.split_once(DISTANCE) {
        before.hash(&mut hasher);
        rest = distance.split_once("</span>").map_or("", |(_, after)| after);
    }
    rest.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_ignores_how_long_ago_something_was_and_nothing_else() {
        let hash = |name: &str, distance: &str| {
            hash_without_distances(
                &html! { b { (name) } span.rel data-at="1" { (distance) } i { "end" } }.0,
            )
        };
        assert_eq!(hash("a", "5s ago"), hash("a", "6s ago"));
        assert_ne!(hash("a", "5s ago"), hash("b", "5s ago"));
    }
}
