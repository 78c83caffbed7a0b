//! The policy: decides whether a request is allowed, needs approval (`ask`) or is denied.
//!
//! A decision is a pure function of the rules and the request: no clock, no file, no model.
//! [`Rules::load`] parses the rules, checks each against its own examples, and indexes them;
//! [`Rules::decide`] evaluates a request. The strictest matching rule wins, whatever its position or
//! how specific it is. A request that cannot be evaluated is denied.
//!
//! ```
//! use kernel::Role;
//! use kernel::backend::Tier;
//! use kernel::policy_decision::{Details, Request, Verdict};
//! use kernel::posture::Posture;
//! use policy::{Rules, Source};
//!
//! let text = r#"
//! [[rule]]
//! id = "nights"
//! deny = ["agent.prompt"]
//! agent = ["night-*"]
//! match = [{ capability = "agent.prompt", agent = "night-1" }]
//! not_match = [{ capability = "agent.prompt", agent = "ada" }]
//! "#;
//! let rules = Rules::load(Posture::Staging, &[Source { name: "policy.toml", text }]).unwrap();
//!
//! let request = |agent: &str| Request {
//!     principal: "ada".to_owned(),
//!     role: Role::Operator,
//!     capability: "agent.prompt".to_owned(),
//!     tier: Tier::ReadOnly,
//!     agent: agent.parse().ok(),
//!     details: Details::default(),
//! };
//! assert_eq!(rules.decide(&request("ada")).verdict, Verdict::Allow);
//!
//! let decision = rules.decide(&request("night-2"));
//! assert_eq!(decision.verdict, Verdict::Deny);
//! assert_eq!(decision.rules, ["policy.toml/nights", "baseline/agents"]);
//! ```

pub mod capability;
mod conditions;
mod document;
mod error;
mod example;
mod host;
mod how_to_allow;
mod path;
mod pattern;
mod programs;
mod protected;
mod rule;
mod rules;
mod strictest;
mod system_place;

pub use error::RuleError;
pub use example::Example;
pub use how_to_allow::how_to_allow;
pub use rule::Rule;
pub use rules::{FILE_BYTES_MAX, RULES_MAX, Rules, Source, built_in_meaning, explain_error};
pub use strictest::strictest;
