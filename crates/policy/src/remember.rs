//! What would have to be written so that a question is not asked again. No answer makes a rule: a human
//! changes the rules, and the strictest of them holds.

use kernel::backend::Tier;
use kernel::ruling::{Request, Ruling};

use crate::rules::{BASELINE, DEFAULT, TIER_2};

/// How a human can have the same allowed from now on, in a sentence.
///
/// ```
/// use kernel::Role;
/// use kernel::backend::Tier;
/// use kernel::ruling::{Details, Posture, Request};
/// use policy::{Rules, remember};
///
/// let request = Request {
///     principal: "schedule:sch_0a1b2c3d".to_owned(),
///     role: Role::Runner,
///     capability: "agent.prompt".to_owned(),
///     tier: Tier::External,
///     agent: "ada".parse().ok(),
///     details: Details::default(),
/// };
/// let ruling = Rules::baseline(Posture::Staging).decide(&request);
/// assert_eq!(
///     remember(&request, &ruling),
///     "it reaches outside (tier 2), and no rule allows that without a human"
/// );
/// ```
pub fn remember(request: &Request, ruling: &Ruling) -> String {
    let first = ruling.rules.first().map(String::as_str).unwrap_or_default();
    let capability = &request.capability;
    match first {
        _ if request.tier == Tier::External || first == TIER_2 => {
            "it reaches outside (tier 2), and no rule allows that without a human".to_owned()
        }
        DEFAULT => format!(
            "no rule speaks of it: add one with `allow = [\"{capability}\"]` and \
             `principal = [\"{}\"]`",
            request.principal
        ),
        rule if rule.starts_with(BASELINE) => {
            format!("`{rule}` of the posture asks, and no rule is stronger than that")
        }
        rule if rule.starts_with('@') => format!("`{rule}` asks, and that is no rule"),
        rule => format!(
            "`{rule}` asks, and an `allow` beside it would not be stronger: narrow that rule, so that \
             it does not match `{capability}` of `{}`",
            request.principal
        ),
    }
}
