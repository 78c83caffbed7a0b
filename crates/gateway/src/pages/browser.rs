//! The name of a browser, from what it says of itself. It is made of words of ours, so a browser cannot choose a text.

use http::HeaderMap;
use http::header::USER_AGENT;

use crate::origin::single;

/// The first that occurs. Browsers name others for compatibility, so the more special come first.
const BROWSERS: [(&str, &str); 7] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS", "Chrome"),
    ("Safari/", "Safari"),
];
const SYSTEMS: [(&str, &str); 7] = [
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
];

/// A name such as `Firefox on Linux`.
pub(super) fn browser_name(headers: &HeaderMap) -> String {
    let text = single(headers, &USER_AGENT).ok().flatten().unwrap_or_default();
    let first = |table: &[(&str, &'static str)]| {
        table.iter().find(|(mark, _)| text.contains(mark)).map(|(_, name)| *name)
    };
    let browser = first(&BROWSERS).unwrap_or("a browser");
    match first(&SYSTEMS) {
        Some(system) => format!("{browser} on {system}"),
        None => browser.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_named() {
        for (agent, expected) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                "Firefox on Linux",
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36",
                "Chrome on Linux",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) AppleWebKit/605.1.15 Version/26.0 Safari/604.1",
                "Safari on iPhone",
            ),
            ("curl/8", "a browser"),
            ("<script>", "a browser"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(USER_AGENT, agent.parse().unwrap());
            assert_eq!(browser_name(&headers), expected);
        }
        assert_eq!(browser_name(&HeaderMap::new()), "a browser");
    }
}
