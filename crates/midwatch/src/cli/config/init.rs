//! `midwatch config init`

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use api::{Code, Error};
use serde::Serialize;

use crate::config::sample;
use crate::context::{Context, display_path};

#[derive(Debug, Serialize)]
struct Written {
    config: WrittenFile,
}

#[derive(Debug, Serialize)]
struct WrittenFile {
    file: String,
}

/// Writes the sample file; never overwrites a file.
pub(super) fn run(context: &Context) -> Result<(), Error> {
    let path = context.config_path();
    if path == context.directory.config() {
        context.directory.create()?;
    }
    let write = || -> io::Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(sample().as_bytes())?;
        file.sync_all()
    };
    match write() {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let what = format!("the configuration file `{}` already exists", path.display());
            return Err(Error::new(Code::Exists, what).hint("move it away to get a new one"));
        }
        Err(error) => {
            let what = format!("`{}` cannot be written: {error}", path.display());
            return Err(Error::new(Code::Failed, what));
        }
    }
    let written = Written { config: WrittenFile { file: display_path(&path) } };
    context.output.say(&written, |written| format!("wrote {}", written.config.file));
    Ok(())
}
