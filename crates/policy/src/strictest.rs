//! Two rulings on one request become one.

use std::collections::BTreeSet;

use kernel::ruling::Ruling;

/// The stricter of two rulings on the same request, with what both had to say. So another source of
/// rules can join without a change to whoever asks.
///
/// The verdict does not depend on the order or on what is joined first; of two that are equally
/// strict, the rules of `a` come first. Where the two were made under different rules, both are
/// named, with `+` between them.
///
/// ```
/// use kernel::ruling::{Approvers, Posture, Ruling, Verdict};
///
/// let ruling = |verdict, rule: &str| Ruling {
///     verdict,
///     rules: vec![rule.to_owned()],
///     posture: Posture::Staging,
///     policy: "0123456789ab".to_owned(),
///     approvers: Approvers::default(),
/// };
/// let budget = ruling(Verdict::Deny, "@budget");
/// let joined = policy::strictest(ruling(Verdict::Allow, "baseline/agents"), budget);
/// assert_eq!(joined.verdict, Verdict::Deny);
/// assert_eq!(joined.rules, ["@budget", "baseline/agents"]);
/// ```
pub fn strictest(a: Ruling, b: Ruling) -> Ruling {
    let (stricter, other) = if a.verdict < b.verdict { (b, a) } else { (a, b) };
    let mut seen = BTreeSet::new();
    let rules = stricter.rules.iter().chain(&other.rules).filter(|rule| seen.insert(*rule));
    Ruling {
        verdict: stricter.verdict,
        rules: rules.cloned().collect(),
        posture: stricter.posture,
        policy: match stricter.policy == other.policy {
            true => stricter.policy,
            false => format!("{}+{}", stricter.policy, other.policy),
        },
        approvers: stricter.approvers.join(other.approvers),
    }
}
