//! How to change the rules so that a request needs no approval in the future. An approval never adds a rule:
//! an operator edits the rules file.

use kernel::backend::Tier;
use kernel::policy_decision::{PolicyDecision, Request};

use crate::rules::{BASELINE, DEFAULT, TIER_2};

/// A sentence that says how an operator can allow the request from now on, or why that is not possible.
///
/// ```
/// use kernel::Role;
/// use kernel::backend::Tier;
/// use kernel::policy_decision::{Details, Request};
/// use kernel::posture::Posture;
/// use policy::{Rules, how_to_allow};
///
/// let request = Request {
///     principal: "schedule:sch_0a1b2c3d".to_owned(),
///     role: Role::Runner,
///     capability: "agent.prompt".to_owned(),
///     tier: Tier::External,
///     agent: "ada".parse().ok(),
///     details: Details::default(),
/// };
/// let decision = Rules::baseline(Posture::Staging).decide(&request);
/// assert_eq!(
///     how_to_allow(&request, &decision),
///     "not possible: it is external (tier 2), which always needs approval"
/// );
/// ```
pub fn how_to_allow(request: &Request, decision: &PolicyDecision) -> String {
    let first = decision.rules.first().map(String::as_str).unwrap_or_default();
    let capability = &request.capability;
    match first {
        _ if request.tier == Tier::External || first == TIER_2 => {
            "not possible: it is external (tier 2), which always needs approval".to_owned()
        }
        DEFAULT => format!(
            "no rule matches it: add one with `allow = [\"{capability}\"]` and \
             `principal = [\"{}\"]`",
            request.principal
        ),
        rule if rule.starts_with(BASELINE) => {
            format!("not possible: `{rule}` of the posture asks, and no rule overrides it")
        }
        rule if rule.starts_with('@') => {
            format!("not possible: `{rule}` is built in, and no rule overrides it")
        }
        rule => format!(
            "`{rule}` asks, and an `allow` rule does not override it: narrow that rule, so that it does \
             not match `{capability}` by `{}`",
            request.principal
        ),
    }
}
