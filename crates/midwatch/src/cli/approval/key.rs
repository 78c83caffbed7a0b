//! `midwatch approval key`: runs on the approver's machine and needs no daemon.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::{Code, Error};
use clap::Args;
use kernel::token::{InvalidName, PersonName};
use ledger::SigningKey;
use serde::Serialize;

use crate::context::Context;
use crate::wrap::fit;

/// Create a key for signing approvals, on your own machine
#[derive(Debug, Args)]
pub(in crate::cli) struct Key {
    /// Your name, as in your token
    name: String,
    /// The file to write [default: NAME.key]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Serialize)]
struct Created {
    key: CreatedKey,
}

#[derive(Serialize)]
struct CreatedKey {
    file: String,
    public: String,
}

pub(super) fn run(context: &Context, Key { name, out }: Key) -> Result<ExitCode, Error> {
    let name: PersonName = name.parse().map_err(|invalid: InvalidName| {
        Error::new(Code::InvalidInput, invalid)
            .hint("use 1 to 64 letters, digits, `-`, `_`, `.` and `@`, as in your token")
    })?;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| Error::new(Code::Failed, error))?;
    let key = SigningKey::from_seed(&name.to_string(), seed)
        .map_err(|error| Error::new(Code::InvalidInput, error))?;
    let path = out.unwrap_or_else(|| format!("{name}.key").into());
    write_new(&path, &format!("{}\n", key.to_text())).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let what = format!("the file `{}` already exists", path.display());
            Error::new(Code::Exists, what)
                .hint("a lost key cannot be recovered; choose another file with `--out`")
        }
        _ => Error::new(Code::Failed, format!("`{}` cannot be written: {error}", path.display())),
    })?;
    let public = key.verifying_key().to_text();
    let created = Created { key: CreatedKey { file: path.display().to_string(), public } };
    context.output.show(&created, |Created { key: CreatedKey { file, public } }| {
        let what = format!(
            "the private key is in {file}: keep it off the machine that runs Midwatch. A maintainer \
             registers the public key with"
        );
        let what = fit(&what, context.view.width);
        format!(
            "{public}\n\n{what}\n  midwatch token create --name {name} --role operator --key '{public}'"
        )
    });
    Ok(ExitCode::SUCCESS)
}

/// Never overwrites a file.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
