//! Reading files and stdin that a command line names.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use api::{Code, Error};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Opens a regular file. `what` names it in errors, such as `crontab`.
pub(in crate::cli) fn open(what: &str, path: &Path) -> Result<File, Error> {
    files::open_linked(path).map_err(|error| unreadable(what, path, error))
}

/// Reads the file `path`, or stdin if it is `-`, as UTF-8 text of at most `bytes_max`.
pub(in crate::cli) fn read_file_or_stdin(
    what: &str,
    path: &Path,
    bytes_max: u64,
) -> Result<String, Error> {
    match path == Path::new("-") {
        true => read_text(what, path, io::stdin().lock(), bytes_max),
        false => read_text(what, path, open(what, path)?, bytes_max),
    }
}

/// Reads UTF-8 text of at most `bytes_max`; `what` and `path` name it in errors.
pub(in crate::cli) fn read_text(
    what: &str,
    path: &Path,
    from: impl Read,
    bytes_max: u64,
) -> Result<String, Error> {
    let invalid = |reason: String| {
        let message = format!("the {what} `{}` {reason}", path.display());
        Error::new(Code::InvalidInput, message)
    };
    let mut bytes = Vec::new();
    let read = from.take(bytes_max + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(what, path, error))?;
    if bytes_max < bytes.len() as u64 {
        let limit = match bytes_max {
            MIB.. => format!("{} MiB", bytes_max / MIB),
            _ => format!("{} KiB", bytes_max / KIB),
        };
        let reason = format!("is longer than {limit}");
        return Err(invalid(reason).hint("shorten it, or split it into several files"));
    }
    String::from_utf8(bytes)
        .map_err(|_| invalid("is not UTF-8 text".to_owned()).hint("save it as UTF-8"))
}

/// The error for a file or folder that cannot be read.
pub(in crate::cli) fn unreadable(what: &str, path: &Path, error: io::Error) -> Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            Error::new(Code::NotFound, format!("the {what} `{path}` does not exist"))
                .hint("check the path")
        }
        _ => Error::new(Code::Failed, format!("the {what} `{path}` cannot be read: {error}"))
            .hint("check the path and its permissions"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Result<&str, &str>) {
        let found = read_text("crontab", Path::new("-"), bytes, MIB).map_err(|error| {
            assert_eq!(error.code, Code::InvalidInput);
            assert!(error.hint.is_some());
            error.message
        });
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn only_utf8_text_up_to_the_limit_is_read() {
        check(b"", Ok(""));
        check(b"# gr\xc3\xb6\xc3\x9fe", Ok("# größe"));
        check(b"\xff", Err("the crontab `-` is not UTF-8 text"));
        let longest = "#".repeat(MIB as usize);
        check(longest.as_bytes(), Ok(&longest));
        check(format!("{longest}#").as_bytes(), Err("the crontab `-` is longer than 1 MiB"));
    }
}
