//! The audit of refused callers: a refusal is recorded in the ledger, at most once a minute for each caller and request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use api::{Code, Error, Request};
use kernel::installation::{Event as InstallationEvent, Refused};
use kernel::{Actor, Role, Timestamp};
use tracing::warn;

use crate::clock::Time;
use crate::commit::transaction::Transactions;

/// How often the same kind of refusal is recorded.
const RECORDED_EVERY_US: i64 = 60_000_000;
/// The longest subject that is recorded.
const SUBJECT_BYTES_MAX: usize = 128;
/// Kinds of refusals that are counted separately.
const KINDS_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct Audit {
    pub(crate) time: Arc<Time>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) refusals: Refusals,
}

/// A request that may be refused.
#[derive(Debug)]
pub(crate) struct AuditedCall<'a> {
    pub by: &'a Actor,
    /// The name of the request, if the caller got that far.
    pub call: Option<&'static str>,
    /// The hash of the plan that was decided, or the name of a tool that does not exist.
    pub subject: Option<String>,
}

/// When each kind of refusal was last recorded, and how many came since.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<HashMap<RefusalKind, (Timestamp, u64)>>);

/// A caller and the name of a request.
type RefusalKind = (String, Option<&'static str>);

/// The name under which a call of a tool that does not exist is recorded.
const MISSING_TOOL: &str = "tool.misuse";

impl Audit {
    /// Records the call of a tool that does not exist.
    pub(crate) async fn record_missing_tool(&self, by: &Actor, tool: &str) {
        let call = AuditedCall { by, call: Some(MISSING_TOOL), subject: short(tool) };
        let refusal = Error::new(Code::NotFound, format!("there is no tool `{tool}`"));
        self.record_refusal(call, &refusal).await;
    }

    /// Records a refusal that is about the caller's rights, or an attempt to decide in place of a person.
    pub(crate) async fn record_refusal(&self, call: AuditedCall<'_>, refusal: &Error) {
        if !call.is_recorded(refusal.code) {
            return;
        }
        let AuditedCall { by, call, subject } = call;
        let Some(before) = self.refusals.count(by.name(), call, self.time.now()) else { return };
        let refused = Refused {
            by: by.name().to_owned(),
            call: call.map(str::to_owned),
            about: subject,
            code: refusal.code.name().to_owned(),
            before,
        };
        if let Err(failed) = self.transactions.record(InstallationEvent::Refused(refused)).await {
            warn!(%failed, by = by.name(), "failed to record a refusal");
        }
    }
}

impl<'a> AuditedCall<'a> {
    pub(crate) fn of(by: &'a Actor, request: &Request) -> AuditedCall<'a> {
        let subject = match request {
            Request::ApprovalDecide(decide) => decide.plan_hash.as_ref(),
            _ => None,
        };
        AuditedCall { by, call: Some(request.name()), subject: subject.and_then(|it| short(it)) }
    }

    fn is_recorded(&self, code: Code) -> bool {
        match self.call {
            Some("approval.decide" | MISSING_TOOL) => true,
            // An agent that probes for approvals of other agents is told that they do not exist.
            Some("approval.show") if self.by.role == Role::Runner && code == Code::NotFound => true,
            _ => matches!(
                code,
                Code::RoleTooLow
                    | Code::HumanNeeded
                    | Code::Denied
                    | Code::TokenInvalid
                    | Code::TokenNotForMcp
                    | Code::SignatureInvalid
                    | Code::SignatureNeeded
            ),
        }
    }
}

/// A text that is short and printable enough to be recorded.
fn short(text: &str) -> Option<String> {
    let is_short = text.len() <= SUBJECT_BYTES_MAX && text.bytes().all(|it| it.is_ascii_graphic());
    is_short.then(|| text.to_owned())
}

impl Refusals {
    /// `None` if this refusal is not recorded. Else how many were left out before it.
    fn count(&self, by: &str, call: Option<&'static str>, now: Timestamp) -> Option<u64> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if KINDS_MAX <= kinds.len() {
            kinds.retain(|_, (at, _)| is_recent(*at, now));
        }
        // Beyond the limit, all callers count as one.
        let by = if kinds.len() < KINDS_MAX { by } else { "others" };
        match kinds.get_mut(&(by.to_owned(), call)) {
            Some((at, since)) if is_recent(*at, now) => {
                *since += 1;
                None
            }
            Some((at, since)) => {
                *at = now;
                Some(std::mem::take(since))
            }
            None => {
                kinds.insert((by.to_owned(), call), (now, 0));
                Some(0)
            }
        }
    }
}

/// Whether `at` is within a minute of `now`, in either direction because the clock may be set.
fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    now.as_micros().abs_diff(at.as_micros()) < RECORDED_EVERY_US.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_written_once_a_minute() {
        let refusals = Refusals::default();
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let mut written = Vec::new();
        for tenth in 0..1_800 {
            let now = at(tenth / 10);
            written.extend(refusals.count("run:1", Some("freeze"), now));
        }
        assert_eq!(written, [0, 599, 599]);
        assert_eq!(refusals.count("run:1", Some("thaw"), at(180)), Some(0));
        // However many names a caller makes up.
        let more = (0..10_000).filter_map(|n| refusals.count(&format!("run:{n}"), None, at(180)));
        assert!(more.count() <= KINDS_MAX);
    }
}
