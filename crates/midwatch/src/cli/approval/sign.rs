//! `midwatch approval key` and `sign`: what an approver does where their own key is. Neither asks a watch
//! for anything.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use api::{Approval, ApprovalShown, Code, Error};
use kernel::approval::Plan;
use kernel::token::{InvalidName, PersonName};
use ledger::SigningKey;
use runtime::{Statement, hashes};
use serde::Serialize;

use super::page;
use crate::context::Context;

/// A plan is not longer than this.
const SHOWN_BYTES_MAX: u64 = 1 << 20;

#[derive(Serialize)]
struct Made {
    key: MadeKey,
}

#[derive(Serialize)]
struct MadeKey {
    file: String,
    public: String,
}

#[derive(Serialize)]
struct Signed {
    approval_id: String,
    signature: String,
}

/// A new key, never over a file that is there.
pub(super) fn key(context: &Context, name: &str, out: Option<PathBuf>) -> Result<(), Error> {
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
            let what = format!("there is a file `{}` already", path.display());
            Error::new(Code::Exists, what)
                .hint("a key that is lost cannot be made again; use --out")
        }
        _ => Error::new(Code::Failed, format!("`{}` cannot be written: {error}", path.display())),
    })?;
    let public = key.verifying_key().to_text();
    let made = Made { key: MadeKey { file: path.display().to_string(), public } };
    context.output.show(&made, |Made { key: MadeKey { file, public } }| {
        format!(
            "{public}\n\nthe key is in {file}: keep it away from where the watch runs. A maintainer makes \
             it known with\n  midwatch token create --name {name} --role operator --key '{public}'"
        )
    });
    Ok(())
}

/// Signs what was shown, if it is what its hash says.
pub(super) fn sign(context: &Context, key: &Path, shown: Option<&Path>) -> Result<(), Error> {
    let key = read_key(key)?;
    let approval = read_shown(shown)?;
    let plan = plan_of(&approval)?;
    let Some(approve_by) = &approval.approve_by else {
        let what = format!("approval `{}` does not wait for an answer", approval.id);
        return Err(Error::new(Code::NotNow, what));
    };
    context.output.text(&page(&approval));
    let statement = Statement {
        approval: &approval.id,
        instance: &plan.instance,
        plan_hash: &approval.plan_hash,
        approve_by,
    };
    let signature = statement.sign(&key).ok_or_else(|| Error::new(Code::Failed, "not signed"))?;
    let signed = Signed { approval_id: approval.id, signature };
    context.output.show(&signed, |Signed { approval_id, signature }| {
        format!("\nmidwatch approval approve {approval_id} --signature {signature}")
    });
    Ok(())
}

/// The plan, if it is the one that its hash belongs to.
fn plan_of(approval: &Approval) -> Result<Plan, Error> {
    let plan: Option<Plan> = serde_json::from_value(approval.plan.clone()).ok();
    plan.filter(|plan| hashes(plan).plan == approval.plan_hash).ok_or_else(|| {
        let what = "the plan is not the one that its hash belongs to, and is not signed";
        Error::new(Code::InvalidInput, what)
            .hint("somebody may have changed it on the way; look at it where the watch runs")
    })
}

fn read_shown(path: Option<&Path>) -> Result<Approval, Error> {
    let mut text = String::new();
    let read = match path {
        Some(path) => fs::File::open(path)
            .and_then(|file| file.take(SHOWN_BYTES_MAX).read_to_string(&mut text)),
        None => io::stdin().take(SHOWN_BYTES_MAX).read_to_string(&mut text),
    };
    let hint =
        "give what `midwatch approval show ID --json` prints, as a file or on standard input";
    read.map_err(|error| Error::new(Code::InvalidInput, error).hint(hint))?;
    let shown: ApprovalShown = serde_json::from_str(&text)
        .map_err(|error| Error::new(Code::InvalidInput, error).hint(hint))?;
    Ok(shown.approval)
}

fn read_key(path: &Path) -> Result<SigningKey, Error> {
    let invalid = |what: String| {
        Error::new(Code::InvalidInput, what).hint("`midwatch approval key NAME` makes a key")
    };
    let text = fs::read_to_string(path)
        .map_err(|error| invalid(format!("`{}` cannot be read: {error}", path.display())))?;
    SigningKey::from_text(text.trim_end())
        .map_err(|error| invalid(format!("`{}` holds no key: {error}", path.display())))
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
