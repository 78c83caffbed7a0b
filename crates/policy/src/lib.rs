//! The standing orders: which request is allowed, which is asked of a human, which is denied.
//!
//! A pure function of the rules and the request: no clock, no file, no model. [`Rules::load`] checks
//! the rules, each with its own examples, and compiles them into a table; [`Rules::decide`] weighs a
//! request. Of all that has something to say the strictest holds, whatever its order or how narrow
//! it is; what cannot be evaluated is denied.
//!
//! ```
//! use kernel::Role;
//! use kernel::backend::Tier;
//! use kernel::ruling::{Details, Posture, Request, Verdict};
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
//! let ruling = rules.decide(&request("night-2"));
//! assert_eq!(ruling.verdict, Verdict::Deny);
//! assert_eq!(ruling.rules, ["policy.toml/nights", "baseline/agents"]);
//! ```

pub mod capability;
mod conditions;
mod document;
mod example;
mod fault;
mod host;
mod path;
mod pattern;
mod programs;
mod protected;
mod remember;
mod rule;
mod rules;
mod strictest;

pub use example::Example;
pub use fault::Fault;
pub use remember::remember;
pub use rule::Rule;
pub use rules::{FILE_BYTES_MAX, RULES_MAX, Rules, Source};
pub use strictest::strictest;
