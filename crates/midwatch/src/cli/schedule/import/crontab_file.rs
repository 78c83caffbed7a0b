//! Reads a crontab, and finds the name of the user who imports it.

use std::fs;
use std::path::Path;

use api::{Code, Error};
use rustix::process::getuid;

use crate::cli::support::input::read_file_or_stdin;
use crate::context::Context;

const CRONTAB_BYTES_MAX: u64 = 1 << 20;

pub(super) fn read(path: &Path) -> Result<String, Error> {
    let text = read_file_or_stdin("crontab", path, CRONTAB_BYTES_MAX)?;
    match text.contains('\0') {
        false => Ok(text),
        true => {
            let what = format!("the crontab `{}` contains a NUL byte", path.display());
            Err(Error::new(Code::InvalidInput, what).hint("save it as UTF-8"))
        }
    }
}

/// The name in `/etc/passwd`, else the one in the environment, else the uid.
pub(super) fn user_name(context: &Context) -> String {
    let uid = getuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let in_passwd = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    let in_environment =
        || ["LOGNAME", "USER"].iter().find_map(|name| context.environment.get(*name));
    in_passwd.or_else(|| in_environment().cloned()).unwrap_or(uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crontab_with_nul_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("crontab");
        fs::write(&path, "0 3 * * * backup").unwrap();
        assert_eq!(read(&path), Ok("0 3 * * * backup".to_owned()));
        fs::write(&path, "a\0b").unwrap();
        assert_eq!(read(&path).unwrap_err().code, Code::InvalidInput);
    }
}
