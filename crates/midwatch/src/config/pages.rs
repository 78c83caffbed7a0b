//! Pages generated from the table of keys: the sample file and the manual.

use std::fmt::Write as _;

use super::RESERVED;
use super::keys::{KEYS, Key, SECTIONS};

const LINE_CHARS_MAX: usize = 96;

const SAMPLE_HEAD: &str = "\
Configuration of Midwatch. Every key is here, commented out, with its default. To change one, \
remove the `#` in front of it. `midwatch config check` checks the file, `midwatch config show` \
prints every active value and where it comes from.";

const PAGE_HEAD: &str = "\
# Configuration

<!-- Generated from crates/midwatch/src/config/keys.rs: do not edit. -->

Midwatch needs no configuration: every key has a default. To change one, use a TOML file;
`midwatch config init` writes one with every key in it, commented out.

- `midwatch config check` finds unknown keys, invalid values and misspelt variables, with their
  positions.
- `midwatch config show` prints every active value and where it comes from.
- `midwatch config reload` makes the daemon reload the file and `policy.toml`. If either has an error,
  nothing changes. Sections that say so are reloaded at once; changed keys of other sections are listed
  and take effect after a restart. The signal `SIGHUP` only reopens the log file.

An environment variable overrides the file, and the file overrides the default. An unknown key or
an invalid value is an error, and nothing starts. A variable that is set must have a valid value;
unset it to use the value of the file.

Sizes are a number with `B`, `kB`, `MB`, `GB`, `KiB`, `MiB` or `GiB` (`10MiB`); a number alone is
bytes. Spans are numbers with `d`, `h`, `m`, `s` or `ms` (`90s`, `1h30m`).
";

/// Added to the description of a section that a reload applies.
const RELOADABLE: &str = "`midwatch config reload` applies changes at once.";

/// The file of `config init`. It loads to the defaults, as it is and with every key uncommented.
pub fn sample() -> String {
    let mut page = String::new();
    comment(&mut page, SAMPLE_HEAD);
    sample_keys(&mut page, "");
    for section in SECTIONS {
        let _ = writeln!(page, "\n[{}]", section.name);
        comment(&mut page, section.doc);
        sample_keys(&mut page, section.name);
    }
    page
}

/// The page of the manual, `docs/config.md`.
pub fn reference_page() -> String {
    let mut page = PAGE_HEAD.to_owned();
    let _ = writeln!(page, "\n## At the top of the file");
    reference_keys(&mut page, "");
    for section in SECTIONS {
        let doc = match section.is_reloadable {
            true => format!("{} {RELOADABLE}", section.doc),
            false => section.doc.to_owned(),
        };
        let _ = writeln!(page, "\n## `[{}]`\n\n{}", section.name, fill(&doc, ""));
        reference_keys(&mut page, section.name);
    }
    let reserved = RESERVED.map(|name| format!("`{name}`")).join(", ");
    let tail = format!(
        "{reserved} are not keys: they name the configuration file, the data directory, a client's \
         token, and what the program of a run gets. `midwatch config check` warns about other \
         variables that start with `MIDWATCH_` and match no key."
    );
    let _ = writeln!(page, "\n## Other variables\n\n{}", fill(&tail, ""));
    page
}

fn keys_of(section: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.section() == section)
}

fn sample_keys(page: &mut String, section: &str) {
    for key in keys_of(section) {
        page.push('\n');
        comment(page, &format!("{} {}", key.doc, accepted(key)));
        // No space after the `#`, which distinguishes a key from a comment.
        let _ = writeln!(page, "#{} = {}", key.name(), key.default.as_setting());
    }
}

fn reference_keys(page: &mut String, section: &str) {
    for key in keys_of(section) {
        let _ = writeln!(page, "\n### `{}`\n\n{}\n", key.path, fill(key.doc, ""));
        let _ = writeln!(page, "- Value: {}", accepted(key).trim_end_matches('.'));
        let _ = writeln!(page, "- Default: `{}`", key.default.as_setting());
        let _ = writeln!(page, "- Variable: `{}`", key.variable());
    }
}

/// What a key accepts, as a sentence.
fn accepted(key: &Key) -> String {
    let expected = key.kind.expected();
    let mut letters = expected.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    format!("{}{}.", first.map(String::from).unwrap_or_default(), letters.as_str())
}

fn comment(page: &mut String, text: &str) {
    let _ = writeln!(page, "# {}", fill(text, "# "));
}

/// Breaks a paragraph into lines; every line but the first starts with `indent`.
fn fill(text: &str, indent: &str) -> String {
    let mut filled = String::new();
    let mut column = indent.chars().count();
    for word in text.split_whitespace() {
        let letters = word.chars().count();
        if !filled.is_empty() && LINE_CHARS_MAX < column + 1 + letters {
            filled.push('\n');
            filled.push_str(indent);
            column = indent.chars().count();
        } else if !filled.is_empty() {
            filled.push(' ');
            column += 1;
        }
        filled.push_str(word);
        column += letters;
    }
    filled
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn docs_page_is_fresh() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
        if std::fs::read_to_string(&path).unwrap_or_default() != reference_page() {
            std::fs::write(&path, reference_page()).unwrap();
            panic!("docs/config.md was stale and has been rewritten: commit it");
        }
    }

    #[test]
    fn lines_are_filled_up_to_the_limit() {
        let word = "a".repeat(LINE_CHARS_MAX / 2 - 1);
        assert_eq!(fill(&format!("{word} {word}b"), ""), format!("{word} {word}b"));
        assert_eq!(fill(&format!("{word} {word}bcd"), "# "), format!("{word}\n# {word}bcd"));
    }
}
