//! What an import is made from: a file or stdin, and who asks for it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use api::{Code, Error};
use rustix::process::getuid;

use crate::cli::unreadable;
use crate::context::Context;

const CRONTAB_BYTES_MAX: u64 = 1 << 20;

pub(super) fn read(path: &Path) -> Result<String, Error> {
    if path == Path::new("-") {
        return whole(io::stdin().lock(), path);
    }
    let file = File::open(path).map_err(|error| unreadable("crontab", path, error))?;
    whole(file, path)
}

fn whole(from: impl Read, path: &Path) -> Result<String, Error> {
    let refused = |what: &str| {
        let what = format!("the crontab `{}` {what}", path.display());
        Error::new(Code::InvalidInput, what)
    };
    let mut bytes = Vec::new();
    let read = from.take(CRONTAB_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable("crontab", path, error))?;
    if CRONTAB_BYTES_MAX < bytes.len() as u64 {
        return Err(refused("is longer than 1 MiB").hint("give it in several files"));
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| refused("is not text").hint("give a file in UTF-8"))
}

/// By the system's list of users; those of a directory service are not in it.
pub(super) fn user_name(context: &Context) -> String {
    let uid = getuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let listed = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    let named = || ["LOGNAME", "USER"].iter().find_map(|name| context.environment.get(*name));
    listed.or_else(|| named().cloned()).unwrap_or(uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Result<&str, &str>) {
        let found = whole(bytes, Path::new("-")).map_err(|error| {
            assert_eq!(error.code, Code::InvalidInput);
            assert!(error.hint.is_some());
            error.message
        });
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn a_crontab_is_text_and_no_longer_than_the_limit() {
        check(b"", Ok(""));
        check(b"# gr\xc3\xb6\xc3\x9fe", Ok("# größe"));
        check(b"\xff", Err("the crontab `-` is not text"));
        check(b"a\0b", Err("the crontab `-` is not text"));
        let most = "#".repeat(CRONTAB_BYTES_MAX as usize);
        check(most.as_bytes(), Ok(&most));
        check(format!("{most}#").as_bytes(), Err("the crontab `-` is longer than 1 MiB"));
    }
}
