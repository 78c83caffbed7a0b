//! The flags of a list that is printed page by page, and the command that prints its next page.

use clap::Args;

use super::shell::shell_line;
use super::value_parsers::list_limit;
use crate::view::View;

const CURSOR: &str = "--cursor";

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

/// The command of the reader with another cursor.
pub(super) fn next_page(view: &View, cursor: &str) -> String {
    let mut words = vec!["midwatch".to_owned()];
    let mut typed = view.arguments.iter();
    while let Some(word) = typed.next() {
        if word == CURSOR {
            typed.next();
        } else if !word.starts_with("--cursor=") {
            words.push(word.clone());
        }
    }
    words.extend([CURSOR.to_owned(), cursor.to_owned()]);
    shell_line(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_page_is_the_whole_command_with_the_new_cursor() {
        for (typed, expected) in [
            (&["run", "list"][..], "midwatch run list --cursor run_2"),
            (
                &["--data", "/a b", "run", "list", "--cursor", "run_1", "--limit", "5"],
                "midwatch --data '/a b' run list --limit 5 --cursor run_2",
            ),
            (&["run", "list", "--cursor=run_1"], "midwatch run list --cursor run_2"),
        ] {
            let view = View::fixed(80, "UTC", "2026-03-28T12:30:00Z");
            let view = view.for_command(typed.iter().map(|&word| word.to_owned()));
            assert_eq!(next_page(&view, "run_2"), expected);
        }
    }
}
