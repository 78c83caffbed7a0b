//! The value of a flag that takes text, a file or stdin.

use std::io::Read;
use std::path::Path;

use api::Error;
use kernel::schedule::PROMPT_BYTES_MAX;

use super::input::{open, read_text};

/// The engine takes no longer text, so the first error names the limit that counts. The line end of a file is removed.
const READ_BYTES_MAX: u64 = PROMPT_BYTES_MAX as u64 + 2;

/// Reads `typed`: `-` is stdin, `@FILE` a file, `@@` a text that starts with `@`, and anything else
/// the text itself. `what` names the text in errors.
pub(in crate::cli) fn read(what: &str, typed: String, stdin: impl Read) -> Result<String, Error> {
    match typed.strip_prefix('@') {
        None if typed == "-" => read_all(what, stdin, Path::new("-")),
        None => Ok(typed),
        Some(rest) if rest.starts_with('@') => Ok(rest.to_owned()),
        Some(path) => {
            let path = Path::new(path);
            let what = format!("{what} file");
            read_all(&what, open(&what, path)?, path)
        }
    }
}

/// Without the line end of the last line.
fn read_all(what: &str, from: impl Read, path: &Path) -> Result<String, Error> {
    let text = read_text(what, path, from, READ_BYTES_MAX)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use api::Code;

    use super::*;

    fn check(typed: &str, stdin: &[u8], expected: Result<&str, Code>) {
        let found = read("prompt", typed.to_owned(), stdin).map_err(|error| error.code);
        assert_eq!(found, expected.map(str::to_owned), "{typed}");
    }

    #[test]
    fn text_is_taken_as_typed_or_read_from_a_file_or_stdin() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prompt");
        let from_file = format!("@{}", path.display());
        check(&from_file, b"", Err(Code::NotFound));
        fs::write(&path, "two\nlines\n").unwrap();
        check(&from_file, b"unread", Ok("two\nlines"));
        check("-", b"from stdin\r\n", Ok("from stdin"));
        check("typed\n", b"unread", Ok("typed\n"));
        check("- one\n- two", b"unread", Ok("- one\n- two"));
        check("@@ada, hello", b"unread", Ok("@ada, hello"));
        check("", b"unread", Ok(""));
        check(&format!("@{}", dir.path().display()), b"", Err(Code::Failed));
        check("-", b"\xff", Err(Code::InvalidInput));
    }

    #[test]
    fn text_over_the_limit_is_refused() {
        let longest = "x".repeat(READ_BYTES_MAX as usize);
        check("-", longest.as_bytes(), Ok(&longest));
        check("-", format!("{longest}x").as_bytes(), Err(Code::InvalidInput));
        let error = read("prompt", "-".to_owned(), "x".repeat(2 << 20).as_bytes()).unwrap_err();
        assert_eq!(error.message, "the prompt `-` is longer than 64 KiB");
    }
}
