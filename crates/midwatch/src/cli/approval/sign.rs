//! `midwatch approval sign`: runs on the approver's machine and needs no daemon.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::display::on_one_line;
use api::{Approval, ApprovalShown, Code, Error};
use clap::Args;
use kernel::approval::Plan;
use ledger::SigningKey;
use runtime::{Statement, hash_plan};
use serde::Serialize;
use serde_json::Value;

use super::show;
use crate::cli::support::render::{fitted_pairs, paragraphs};
use crate::context::Context;
use crate::view::View;

/// The longest output of `approval show` that is read; a plan is always shorter.
const SHOWN_BYTES_MAX: u64 = 1 << 20;
/// Far above the length of a key.
const KEY_BYTES_MAX: usize = 4_096;

/// Sign an approval with your key, on your own machine
///
/// `midwatch approval show ID --json`, on the machine that runs Midwatch, prints what to sign. The plan is
/// checked against its hash and shown; the signature is valid for that plan, once.
#[derive(Debug, Args)]
pub(in crate::cli) struct Sign {
    /// The output of `midwatch approval show ID --json` [default: stdin]
    #[arg(value_name = "FILE")]
    shown: Option<PathBuf>,
    /// The file with your key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

#[derive(Serialize)]
struct Signed {
    approval_id: String,
    signature: String,
}

pub(super) fn run(context: &Context, Sign { shown, key }: &Sign) -> Result<ExitCode, Error> {
    let key = read_key(key)?;
    let approval = read_shown(shown.as_deref())?;
    let plan = verified_plan(&approval)?;
    let Some(approve_by) = &approval.approve_by else {
        let what = format!("approval `{}` is not pending", approval.id);
        return Err(Error::new(Code::NotNow, what));
    };
    if plan.prompt.is_sealed() && approval.unsealed.is_none() {
        let what = "the prompt is sealed, so you cannot read what you would sign";
        return Err(Error::new(Code::InvalidInput, what)
            .hint("run `midwatch approval show ID --json` as an operator, who may read it"));
    }
    let statement = Statement {
        approval: &approval.id,
        instance: &plan.instance,
        plan_hash: &approval.plan_hash,
        approve_by,
        opened_prompt: approval.unsealed.as_deref().filter(|_| plan.prompt.is_sealed()),
    };
    context.output.show_text(&render(&statement, &plan, &context.view));
    let signature =
        statement.sign(&key).ok_or_else(|| Error::new(Code::Failed, "signing failed"))?;
    let signed = Signed { approval_id: approval.id, signature };
    context.output.show(&signed, |Signed { approval_id, signature }| {
        format!("\nmidwatch approval approve {approval_id} --signature {signature}")
    });
    Ok(ExitCode::SUCCESS)
}

/// Only what the signature covers.
fn render(statement: &Statement<'_>, plan: &Plan, view: &View) -> String {
    let Statement { approval, instance, plan_hash, approve_by, opened_prompt } = *statement;
    let action = match (&plan.tool, &plan.agent) {
        (Some(tool), _) => format!("call the tool `{}`", on_one_line(&tool.name)),
        (None, Some(agent)) => format!("prompt agent `{agent}`"),
        (None, None) => "nothing".to_owned(),
    };
    let previous = plan.previous.as_ref().map(|it| ("ran before", on_one_line(&it.describe())));
    let facts = [
        ("sign", format!("{action}, tier {}", u8::from(plan.tier))),
        ("approve before", view.moment(approve_by)),
    ];
    let details = [
        ("approval", approval.to_owned()),
        ("installation", instance.to_owned()),
        ("plan hash", plan_hash.to_owned()),
    ];
    let (prompt, plan) = show::render_plan(&plan_document(plan), opened_prompt, &[], view);
    let facts = fitted_pairs(view, facts.into_iter().chain(previous));
    paragraphs([facts, prompt, plan, fitted_pairs(view, details)])
}

/// The plan with the fields that its hash covers, and no others.
fn plan_document(plan: &Plan) -> Value {
    serde_json::to_value(plan).unwrap_or_default()
}

/// The plan, if it matches its hash.
fn verified_plan(approval: &Approval) -> Result<Plan, Error> {
    let plan: Option<Plan> = serde_json::from_value(approval.plan.clone()).ok();
    plan.filter(|plan| hash_plan(plan).plan == approval.plan_hash).ok_or_else(|| {
        let what = "the plan does not match its hash, so it is not signed";
        Error::new(Code::InvalidInput, what).hint(
            "it may have been changed on the way; run `midwatch approval show ID` on the machine \
             that runs Midwatch",
        )
    })
}

fn read_shown(path: Option<&Path>) -> Result<Approval, Error> {
    let mut text = String::new();
    let source = path.map_or_else(|| "stdin".to_owned(), |path| format!("`{}`", path.display()));
    let read = match path {
        Some(path) => files::open_linked(path)
            .and_then(|file| file.take(SHOWN_BYTES_MAX).read_to_string(&mut text)),
        None => io::stdin().take(SHOWN_BYTES_MAX).read_to_string(&mut text),
    };
    let hint = "pass the output of `midwatch approval show ID --json` as a file or on stdin";
    read.map_err(|error| {
        Error::new(Code::InvalidInput, format!("{source} cannot be read: {error}")).hint(hint)
    })?;
    let shown: ApprovalShown = api::json::read(text.as_bytes()).map_err(|error| {
        let what = format!("{source} is not an approval: {error}");
        Error::new(Code::InvalidInput, what).hint(hint)
    })?;
    Ok(shown.approval)
}

fn read_key(path: &Path) -> Result<SigningKey, Error> {
    let invalid = |what: String| {
        Error::new(Code::InvalidInput, what).hint("`midwatch approval key NAME` creates a key")
    };
    let text = files::open_linked(path)
        .and_then(|file| files::read_text_of(file, KEY_BYTES_MAX))
        .map_err(|error| invalid(format!("`{}` cannot be read: {error}", path.display())))?;
    SigningKey::from_text(text.trim_end())
        .map_err(|error| invalid(format!("`{}` holds no valid key: {error}", path.display())))
}
