//! The style sheet and the script, at addresses that change with their content, so that browsers may keep them for ever.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

static STYLE: LazyLock<String> = LazyLock::new(|| compact(include_str!("../assets/style.css")));
static SCRIPT: LazyLock<String> = LazyLock::new(|| compact(include_str!("../assets/script.js")));

pub(crate) static STYLE_PATH: LazyLock<String> = LazyLock::new(|| path("style", &STYLE, "css"));
pub(crate) static SCRIPT_PATH: LazyLock<String> = LazyLock::new(|| path("script", &SCRIPT, "js"));

/// A file that pages load.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    pub content_type: &'static str,
    pub body: &'static [u8],
}

/// The file at a path, such as `/assets/style-….css`.
pub fn asset(path: &str) -> Option<Asset> {
    match path {
        _ if path == *STYLE_PATH => {
            Some(Asset { content_type: "text/css; charset=utf-8", body: STYLE.as_bytes() })
        }
        _ if path == *SCRIPT_PATH => {
            Some(Asset { content_type: "text/javascript; charset=utf-8", body: SCRIPT.as_bytes() })
        }
        _ => None,
    }
}

/// The text without indentation and without lines that are only a comment.
fn compact(text: &str) -> String {
    let lines = text.lines().map(str::trim_start);
    let is_comment =
        |line: &str| line.starts_with("// ") || line.starts_with("/* ") && line.ends_with("*/");
    lines
        .filter(|line| !line.is_empty() && !is_comment(line))
        .flat_map(|line| [line, "\n"])
        .collect()
}

fn path(name: &str, content: &str, extension: &str) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    format!("/assets/{name}-{:016x}.{extension}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Larger than this, the first page of a phone takes too long.
    const SCRIPT_BYTES_MAX: usize = 10 * 1024;

    #[test]
    fn assets_have_addresses_and_the_script_is_small() {
        assert!(asset(&STYLE_PATH).is_some() && asset(&SCRIPT_PATH).is_some());
        assert!(asset("/assets/style.css").is_none() && asset("/assets/").is_none());
        assert!(SCRIPT.len() < SCRIPT_BYTES_MAX, "{}", SCRIPT.len());
    }
}
