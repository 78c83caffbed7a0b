//! The hashes of a plan, and the signature of an approver.
//!
//! An approver signs on another machine and need not trust this one: they compute the hash of the plan that they read,
//! and sign it together with the approval, the installation, the expiry time and the text of a sealed prompt. So a
//! signature is valid for one approval of one installation, and covers everything that the approver was shown.

use kernel::ApprovalId;
use kernel::approval::{Approval, Decision, Hashes, Plan};
use kernel::token::Token;
use ledger::{SigningKey, VerifyingKey, canonical_json};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::timestamps::rfc3339;

/// The first characters of a signature as text.
pub const SIGNATURE_PREFIX: &str = "mws_";
/// Domain separation: each kind of hashed or signed bytes starts with its own prefix.
const PLAN_DOMAIN: &[u8] = b"midwatch-plan/v1\n";
const ACTION_DOMAIN: &[u8] = b"midwatch-action/v1\n";
const DECISION_DOMAIN: &[u8] = b"midwatch-decision/v1\n";

/// What an approver signs.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    pub approval: &'a str,
    /// The installation.
    pub instance: &'a str,
    pub plan_hash: &'a str,
    /// When the approval expires, in RFC 3339.
    pub approve_by: &'a str,
    /// The text of the prompt, if the plan only has it sealed.
    pub opened_prompt: Option<&'a str>,
}

/// The hashes of a plan. They are empty if the plan has no canonical form, and then match nothing.
pub fn hash_plan(plan: &Plan) -> Hashes {
    let Ok(mut fields) = serde_json::to_value(plan) else { return Hashes::default() };
    let whole = digest(PLAN_DOMAIN, &fields);
    if let Value::Object(fields) = &mut fields {
        fields.remove("run");
        fields.remove("attempt");
        fields.remove("previous");
        fields.remove("place");
    }
    Hashes { plan: whole, action: digest(ACTION_DOMAIN, &fields) }
}

impl Statement<'_> {
    /// Returns the signature as text.
    pub fn sign(&self, key: &SigningKey) -> Option<String> {
        let signature = key.sign(&self.bytes()?);
        let digits: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(format!("{SIGNATURE_PREFIX}{digits}"))
    }

    /// Whether the signature is of this statement and was made with the key of this token.
    pub(crate) fn is_signed(&self, signature: &str, token: &Token) -> bool {
        let key = token.key.as_ref().and_then(|key| VerifyingKey::parse(key.as_str()).ok());
        let digits = signature.strip_prefix(SIGNATURE_PREFIX).and_then(decode_hex);
        let (Some(key), Some(signature), Some(text)) = (key, digits, self.bytes()) else {
            return false;
        };
        key.verifies(&text, &signature)
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        let Statement { approval, instance, plan_hash, approve_by, opened_prompt } = self;
        let mut fields = json!({
            "approval": approval,
            "approve_by": approve_by,
            "decision": "approve",
            "instance": instance,
            "plan_hash": plan_hash,
        });
        if let (Some(prompt), Some(fields)) = (opened_prompt, fields.as_object_mut()) {
            fields.insert("opened_prompt".to_owned(), json!(prompt));
        }
        Some([DECISION_DOMAIN, &canonical_json(&fields).ok()?].concat())
    }
}

/// Whether a decision about an approval is signed with the key of this token, and the token is still valid.
pub(crate) fn is_validly_signed(
    id: &ApprovalId,
    approval: &Approval,
    opened_prompt: Option<&str>,
    decision: &Decision,
    token: Option<&Token>,
) -> bool {
    let (Some(signature), Some(token)) = (&decision.signature, token) else { return false };
    let is_theirs = token.actor().is_some_and(|actor| actor.name() == decision.by);
    let approve_by = rfc3339(signature.expires_at);
    let statement = statement(id, approval, opened_prompt, &approve_by);
    is_theirs && decision.at < signature.expires_at && statement.is_signed(&signature.text, token)
}

/// The statement that approves an approval request.
pub(crate) fn statement<'a>(
    id: &'a ApprovalId,
    approval: &'a Approval,
    opened_prompt: Option<&'a str>,
    approve_by: &'a str,
) -> Statement<'a> {
    let (instance, plan_hash) = (&approval.plan.instance, &approval.plan_hash);
    Statement { approval: id.as_str(), instance, plan_hash, approve_by, opened_prompt }
}

fn digest(domain: &[u8], value: &Value) -> String {
    let Ok(bytes) = canonical_json(value) else { return String::new() };
    let digest = Sha256::new().chain_update(domain).chain_update(bytes).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && digits.len().is_multiple_of(2)).then(|| pairs.map(byte).collect()).flatten()
}
