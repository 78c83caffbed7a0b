//! Rules for `policy.toml` that several tests use.

/// Denies every prompt to the agent `ada`.
pub(crate) const DENY_ADA: &str = r#"
    [[rule]]
    id = "no-ada"
    deny = ["agent.prompt"]
    agent = ["ada"]
    match = [{ capability = "agent.prompt", agent = "ada" }]
    not_match = [{ capability = "agent.prompt", agent = "eve" }]
"#;
