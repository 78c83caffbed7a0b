//! A text that a flag gives: as it was typed, or what is in a file or comes from stdin.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use api::{Code, Error};

use super::unreadable;

/// Far more than any such text may have; how much that is, the watch knows.
const READ_BYTES_MAX: u64 = 1 << 20;

/// `-` is stdin, `@FILE` a file, and `@@` an `@` that was meant as one. `what` it is, errors say.
pub(super) fn read(what: &str, typed: String, stdin: impl Read) -> Result<String, Error> {
    match typed.strip_prefix('@') {
        None if typed == "-" => whole(what, stdin, Path::new("-")),
        None => Ok(typed),
        Some(rest) if rest.starts_with('@') => Ok(rest.to_owned()),
        Some(path) => {
            let path = Path::new(path);
            let file = File::open(path).map_err(|error| no_file(what, path, error))?;
            whole(what, file, path)
        }
    }
}

/// Without the end of the last line, which is no part of what was meant.
fn whole(what: &str, from: impl Read, path: &Path) -> Result<String, Error> {
    let refused = |reason: &str| {
        let message = format!("the {what} in `{}` {reason}", path.display());
        Error::new(Code::InvalidInput, message)
    };
    let mut bytes = Vec::new();
    let read = from.take(READ_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| no_file(what, path, error))?;
    if READ_BYTES_MAX < bytes.len() as u64 {
        return Err(refused("is longer than 1 MiB").hint("give a shorter one"));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| refused("is not text").hint("give a file in UTF-8"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn no_file(what: &str, path: &Path, error: io::Error) -> Error {
    unreadable(&format!("{what} file"), path, error)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn check(typed: &str, stdin: &[u8], expected: Result<&str, Code>) {
        let found = read("prompt", typed.to_owned(), stdin).map_err(|error| error.code);
        assert_eq!(found, expected.map(str::to_owned), "{typed}");
    }

    #[test]
    fn a_text_is_typed_or_read() {
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
    fn no_more_is_read_than_the_limit() {
        let most = "x".repeat(READ_BYTES_MAX as usize);
        check("-", most.as_bytes(), Ok(&most));
        check("-", format!("{most}x").as_bytes(), Err(Code::InvalidInput));
    }
}
