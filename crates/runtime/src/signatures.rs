//! What a plan is recognised by, and what an approver signs with a key of their own.
//!
//! Whoever signs is elsewhere and trusts nobody here: they compute the hash of the plan that they were
//! shown themselves, and sign it together with the approval, the watch and the time to answer. So a
//! signature is good for one question, at one watch, and cannot be made from anything that is stored.

use kernel::ApprovalId;
use kernel::approval::{Approval, Decision, Hashes, Plan};
use kernel::token::Token;
use ledger::{SigningKey, VerifyingKey, canonical};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::times::rfc3339;

/// What the text of a signature begins with.
pub const SIGNATURE_PREFIX: &str = "mws_";
/// What is hashed or signed begins with one of these, so that it is taken for nothing else.
const PLAN: &[u8] = b"midwatch-plan/v1\n";
const ACTION: &[u8] = b"midwatch-action/v1\n";
const DECISION: &[u8] = b"midwatch-decision/v1\n";

/// What an approver says yes to.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    pub approval: &'a str,
    /// Of the watch.
    pub instance: &'a str,
    pub plan_hash: &'a str,
    /// An instant: too late from then on.
    pub approve_by: &'a str,
}

/// What a plan is recognised by. One that has no canonical form is good for nothing.
pub fn hashes(plan: &Plan) -> Hashes {
    let Ok(mut fields) = serde_json::to_value(plan) else { return Hashes::default() };
    let whole = digest(PLAN, &fields);
    if let Value::Object(fields) = &mut fields {
        fields.remove("run");
        fields.remove("attempt");
        fields.remove("place");
    }
    Hashes { plan: whole, action: digest(ACTION, &fields) }
}

impl Statement<'_> {
    /// The signature, as it is handed over.
    pub fn sign(&self, key: &SigningKey) -> Option<String> {
        let signature = key.sign(&self.bytes()?);
        let digits: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(format!("{SIGNATURE_PREFIX}{digits}"))
    }

    /// Whether that signature of it was made with the key of this token.
    pub(crate) fn is_signed(&self, signature: &str, token: &Token) -> bool {
        let key = token.key.as_ref().and_then(|key| VerifyingKey::parse(key.as_str()).ok());
        let digits = signature.strip_prefix(SIGNATURE_PREFIX).and_then(bytes_of);
        let (Some(key), Some(signature), Some(text)) = (key, digits, self.bytes()) else {
            return false;
        };
        key.verifies(&text, &signature)
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        let Statement { approval, instance, plan_hash, approve_by } = self;
        let fields = json!({
            "approval": approval,
            "approve_by": approve_by,
            "decision": "approve",
            "instance": instance,
            "plan_hash": plan_hash,
        });
        Some([DECISION, &canonical(&fields).ok()?].concat())
    }
}

/// Whether what somebody said to this approval is signed with the key of this token, which still lets
/// its person in.
pub(crate) fn holds(
    id: &ApprovalId,
    it: &Approval,
    said: &Decision,
    token: Option<&Token>,
) -> bool {
    let (Some(signature), Some(token)) = (&said.signature, token) else { return false };
    let is_theirs = token.actor().is_some_and(|actor| actor.name == said.by);
    let approve_by = rfc3339(signature.expires_at);
    let statement = statement(id, it, &approve_by);
    is_theirs && said.at < signature.expires_at && statement.is_signed(&signature.text, token)
}

/// What a yes to this approval says.
pub(crate) fn statement<'a>(
    id: &'a ApprovalId,
    approval: &'a Approval,
    approve_by: &'a str,
) -> Statement<'a> {
    let (instance, plan_hash) = (&approval.plan.instance, &approval.plan_hash);
    Statement { approval: id.as_str(), instance, plan_hash, approve_by }
}

fn digest(domain: &[u8], value: &Value) -> String {
    let Ok(bytes) = canonical(value) else { return String::new() };
    let digest = Sha256::new().chain_update(domain).chain_update(bytes).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && digits.len().is_multiple_of(2)).then(|| pairs.map(byte).collect()).flatten()
}
