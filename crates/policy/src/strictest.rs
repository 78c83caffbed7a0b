//! Combines two decisions on one request.

use std::collections::BTreeSet;

use kernel::policy_decision::PolicyDecision;

/// The stricter of two decisions on the same request, with the reasons of both. So callers need no
/// change when another source of decisions is added.
///
/// The verdict does not depend on the order or grouping. Of two equally strict decisions, the rules
/// of `a` come first. If the policy versions differ, the result names both, joined by `+`.
///
/// ```
/// use kernel::policy_decision::{Approvers, PolicyDecision, Verdict};
/// use kernel::posture::Posture;
///
/// let decision = |verdict, rule: &str| PolicyDecision {
///     verdict,
///     rules: vec![rule.to_owned()],
///     posture: Posture::Staging,
///     policy: "0123456789ab".to_owned(),
///     approvers: Approvers::default(),
/// };
/// let budget = decision(Verdict::Deny, "@budget");
/// let joined = policy::strictest(decision(Verdict::Allow, "baseline/agents"), budget);
/// assert_eq!(joined.verdict, Verdict::Deny);
/// assert_eq!(joined.rules, ["@budget", "baseline/agents"]);
/// ```
pub fn strictest(a: PolicyDecision, b: PolicyDecision) -> PolicyDecision {
    let (stricter, other) = if a.verdict < b.verdict { (b, a) } else { (a, b) };
    let mut seen = BTreeSet::new();
    let rules = stricter.rules.iter().chain(&other.rules).filter(|rule| seen.insert(*rule));
    PolicyDecision {
        verdict: stricter.verdict,
        rules: rules.cloned().collect(),
        posture: stricter.posture,
        policy: match stricter.policy == other.policy {
            true => stricter.policy,
            false => format!("{}+{}", stricter.policy, other.policy),
        },
        approvers: stricter.approvers.strictest(other.approvers),
    }
}
