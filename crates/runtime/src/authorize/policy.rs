//! Evaluates the policy: before every run, for changes of agents, and for callers that ask about a request.

use std::sync::Arc;

use agents::AgentBackend;
use api::{Code, Error, PolicyPreview};
use kernel::agent::{Agent, AgentName};
use kernel::approval::{Approval, Decision};
use kernel::policy_decision::{Details, Facts, PolicyDecision, Request, Verdict};
use kernel::run::{self, Cause, LEASE_RULE, StartContext};
use kernel::schedule::{self, Schedule};
use kernel::token::Token;
use kernel::tool::ToolCall;
use kernel::{Actor, ApprovalId, Counter, ScheduleId};
use policy::{Example, Rules, built_in_meaning, capability, explain_error};

use crate::authorize::signatures::{hash_plan, is_validly_signed};
use crate::clock::Time;
use crate::commit::rows::Rows;
use crate::config::{ActiveConfig, Config};
use crate::errors;
use crate::installation::Installation;
use crate::secrets::sealing::{Purpose, Sealing};
use crate::wire;

/// The verbs for allow, ask and deny in the present tense.
pub(crate) const PRESENT_TENSE: [&str; 3] = ["allows it", "requires approval", "denies it"];

/// The decision of the rules about a request that a JSON document describes, also as a sentence.
pub fn evaluate_document(
    rules: &Rules,
    document: &str,
) -> Result<(api::PolicyDecision, String), Error> {
    let example = parse_request(document).map_err(|reason| {
        Error::new(Code::InvalidInput, format!("not a valid request: {reason}"))
            .hint(r#"write it as in `{"capability": "agent.prompt", "agent": "ada", "tier": 1}`"#)
    })?;
    let request = example.into_request();
    let decision = rules.decide(&request);
    let mut sentence = decision_sentence(&decision, PRESENT_TENSE);
    if capability::find(&request.capability).is_none() {
        let name = &request.capability;
        sentence.push_str(&format!("; `{name}` is not a known capability and so counts as tier 2"));
    }
    Ok((wire_decision(&decision), sentence))
}

/// Accepts only an object: serde would also accept a list of values in the right order.
fn parse_request(document: &str) -> Result<Example, String> {
    match document.trim_start().starts_with('{') {
        true => api::json::read(document.as_bytes()).map_err(|error| error.to_string()),
        false => Err("not a JSON object".to_owned()),
    }
}

#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) time: Arc<Time>,
    pub(crate) config: Arc<Config>,
    pub(crate) installation: Arc<Installation>,
    pub(crate) backend: Arc<dyn AgentBackend>,
    pub(crate) sealing: Arc<Sealing>,
}

impl Policy {
    /// Calls `start` with everything that the decision to start a run depends on.
    pub(crate) fn with_start_context<T>(
        &self,
        schedule: &ScheduleId,
        approval: Option<&ApprovalId>,
        rows: &Rows,
        counters: &[(Counter, i64)],
        start: impl FnOnce(&StartContext<'_>) -> T,
    ) -> T {
        let approval = approval.and_then(|id| Some((id, rows.get::<Approval>(id)?)));
        let is_signed = |decision: &Decision| {
            let token = decision.signature.as_ref().and_then(|it| rows.get::<Token>(&it.token));
            let Some((id, approval)) = approval else { return false };
            let opened = self.sealing.open_sealed(&approval.plan.prompt, Purpose::PrivateFields);
            let is_valid =
                |opened: Option<&str>| is_validly_signed(id, approval, opened, decision, token);
            opened.is_ok_and(|opened| is_valid(opened.as_deref()))
        };
        let authors = rows.get::<Schedule>(schedule).map(Schedule::authors).unwrap_or_default();
        let config = self.config.active();
        start(&StartContext {
            instance: &self.installation.instance,
            data_directory: self.installation.location.as_deref(),
            authority: &rows.authority_of(&self.installation.instance),
            lease: config.lease,
            clock: self.time.now(),
            evaluate: &|request| config.rules.decide(request),
            hash_plan: &hash_plan,
            approval: approval.map(|(_, approval)| approval),
            is_signed: &is_signed,
            new_approval: &|| ApprovalId::of(self.time.time_ordered(self.time.now())),
            authors: &authors,
            limits: &config.limits,
            tool_call: None,
            counters,
            trust: config.trust,
            agent_details: &|agent| self.details(agent),
            preflight: None,
            other_approvals: &[],
        })
    }

    /// The details of a prompt that rules can match.
    pub(crate) fn details(&self, agent: &Agent) -> Details {
        self.backend.details(agent)
    }

    /// What the policy will decide about the runs of a schedule. `rows` has the schedule, its agent and the authority.
    pub(crate) fn preview(
        &self,
        id: &ScheduleId,
        rows: &Rows,
        tool_call: Option<&Result<ToolCall, Cause>>,
    ) -> Result<PolicyPreview, Error> {
        let unknown = || errors::refused(schedule::Refusal::Unknown(id.clone()));
        let definition = &rows.get::<Schedule>(id).ok_or_else(unknown)?.definition;
        let agent = definition.action.agent().and_then(|name| rows.get::<Agent>(name));
        let preview = self.with_start_context(id, None, rows, &[], |start| {
            let start = StartContext { tool_call, ..*start };
            run::preview(id, definition, agent, &start, self.time.monotonic_now().latest)
        });
        Ok(PolicyPreview {
            by_itself: preview.starts_without_human(),
            sentence: preview_sentence(&preview),
            ruling: preview.ruling.as_ref().ok().map(wire_decision),
        })
    }

    /// What the rules of a configuration decide about the runs of a schedule; `None` if they cannot start. `rows` has the
    /// schedule, its agent and the authority.
    pub(crate) fn decide_under(
        &self,
        config: &ActiveConfig,
        id: &ScheduleId,
        rows: &Rows,
        tool_call: Option<&Result<ToolCall, Cause>>,
    ) -> Option<PolicyDecision> {
        let definition = &rows.get::<Schedule>(id)?.definition;
        let agent = definition.action.agent().and_then(|name| rows.get::<Agent>(name));
        let evaluate = |request: &Request| config.rules.decide(request);
        self.with_start_context(id, None, rows, &[], |start| {
            let (lease, trust) = (config.lease, config.trust);
            let start = StartContext { tool_call, evaluate: &evaluate, lease, trust, ..*start };
            let now = self.time.monotonic_now().latest;
            run::preview(id, definition, agent, &start, now).ruling.ok()
        })
    }

    /// What the policy decides about an action of a caller.
    pub(crate) fn evaluate(
        &self,
        actor: &Actor,
        capability: &str,
        agent: Option<AgentName>,
        details: Details,
    ) -> PolicyDecision {
        self.config.active().rules.decide(&Request {
            principal: actor.name().to_owned(),
            role: actor.role,
            capability: capability.to_owned(),
            tier: capability::tier(capability),
            agent,
            details,
        })
    }
}

/// A decision as a sentence, with the verbs for allow, ask and deny.
pub(crate) fn decision_sentence(
    decision: &PolicyDecision,
    [allow, ask, deny]: [&str; 3],
) -> String {
    let meaning = |name: &str| match name {
        LEASE_RULE => Some("the lease has expired"),
        name => built_in_meaning(name),
    };
    let rule = |name: &String| match meaning(name) {
        Some(meaning) => format!("`{name}` ({meaning})"),
        None => format!("`{name}`"),
    };
    let rules: Vec<String> = decision.rules.iter().map(rule).collect();
    let verb = match decision.verdict {
        Verdict::Allow => allow,
        Verdict::Ask => ask,
        Verdict::Deny => deny,
    };
    let because = format!("the policy {verb} because of {}", rules.join(", "));
    let errors = decision.rules.iter().filter_map(|rule| explain_error(rule));
    let errors: String = errors.map(|error| format!("; {error}")).collect();
    format!("{because} in {}{errors}", decision.posture)
}

/// What happens to the runs of a schedule, as a sentence.
fn preview_sentence(preview: &run::PolicyPreview) -> String {
    let then = match &preview.ruling {
        Ok(decision) => {
            let rule = decision.rules.first().map_or("", String::as_str);
            match decision.verdict {
                Verdict::Allow => "each run starts without approval".to_owned(),
                Verdict::Ask => format!("each run needs approval (`{rule}`)"),
                Verdict::Deny if rule == LEASE_RULE => {
                    format!("no run starts before the lease is renewed (`{rule}`)")
                }
                Verdict::Deny => format!("no run starts: `{rule}` denies it"),
            }
        }
        Err(cause) => format!("each run fails: {}", cause.message),
    };
    match preview.is_frozen {
        true => {
            format!("no run starts while the installation is frozen; after it is thawed, {then}")
        }
        false => then,
    }
}

pub(crate) fn wire_request(request: Request) -> api::PolicyRequest {
    let Request { principal, role, capability, tier, agent, details } = request;
    let Details { resource, host, path, argv } = details;
    api::PolicyRequest {
        principal,
        role: wire::role(role),
        capability,
        tier: tier.number(),
        agent: agent.map(|agent| agent.to_string()),
        resource,
        host,
        path,
        argv,
    }
}

pub(crate) fn wire_facts(facts: &Facts) -> api::PolicyFacts {
    let Facts { left, unattended, lease, off } = facts;
    api::PolicyFacts {
        runs_left: left.runs,
        tokens_left: left.tokens,
        money_left: left.money.map(|money| money.to_string()),
        unattended: *unattended,
        lease: wire::lease_state(*lease),
        off: off.clone(),
    }
}

pub(crate) fn wire_decision(decision: &PolicyDecision) -> api::PolicyDecision {
    api::PolicyDecision {
        verdict: wire::verdict(decision.verdict),
        rules: decision.rules.clone(),
        posture: wire::posture(decision.posture),
        policy: decision.policy.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kernel::posture::Posture;

    use super::*;
    use crate::config::rules;

    const NIGHTS: &str = r#"
        [[rule]]
        id = "nights"
        deny = ["agent.prompt"]
        agent = ["night-*"]
        match = [{ capability = "agent.prompt", agent = "night-1" }]
        not_match = [{ capability = "agent.prompt", agent = "ada" }]
    "#;

    /// Expects the verdict and the first rule, or a part of the error message.
    fn check(document: &str, expected: Result<(&str, &str), &str>) {
        let own = [("policy.toml".to_owned(), NIGHTS.to_owned())];
        let found =
            evaluate_document(&rules(Posture::Staging, &own, Path::new("/srv")).unwrap(), document);
        let found = found.map(|(ruling, sentence)| {
            assert!(sentence.contains(&format!("`{}`", ruling.rules[0])), "{sentence}");
            (ruling.verdict, ruling.rules[0].clone())
        });
        let found = found.map_err(|error| error.message);
        match (found, expected) {
            (Ok((verdict, rule)), Ok(expected)) => assert_eq!((verdict.as_str(), &*rule), expected),
            (Err(message), Err(expected)) => assert!(message.contains(expected), "{message}"),
            (found, _) => panic!("{document}: {found:?}"),
        }
    }

    #[test]
    fn evaluates_a_described_request_by_the_rules() {
        let ada = r#"{"capability": "agent.prompt", "agent": "ada"}"#;
        check(ada, Ok(("allow", "baseline/agents")));
        let all = r#" {"capability": "agent.prompt", "principal": "schedule:sch_0a1b2c3d",
            "role": "operator", "agent": "night-1", "tier": 1, "resource": "x", "host": "a.org",
            "path": "/srv/x", "argv": ["/bin/true"]} "#;
        check(all, Ok(("deny", "policy.toml/nights")));
        let outside = r#"{"capability": "agent.prompt", "agent": "ada", "tier": 2}"#;
        check(outside, Ok(("ask", "@tier-2")));
        // A request without a field that a rule matches is denied.
        check(r#"{"capability": "agent.prompt"}"#, Ok(("deny", "@error:policy.toml/nights")));
    }

    #[test]
    fn a_decision_says_what_is_wrong_with_a_request() {
        let own = [("policy.toml".to_owned(), NIGHTS.to_owned())];
        let rules = rules(Posture::Staging, &own, Path::new("/srv")).unwrap();
        for (document, expected) in [
            (
                r#"{"capability": "shell.run", "argv": ["ls", "-l"]}"#,
                "`argv` must begin with the absolute path of a program, without `.` and `..`",
            ),
            (
                r#"{"capability": "filesystem.read", "path": "a/../b"}"#,
                "`path` must be absolute, without `.` and `..`",
            ),
            (
                r#"{"capability": "net.read", "host": "a.org:80"}"#,
                "`host` must be a plain name or address, without a port",
            ),
            (
                r#"{"capability": "agent.prompt"}"#,
                "the request lacks a field that rule `policy.toml/nights` needs",
            ),
        ] {
            let (ruling, sentence) = evaluate_document(&rules, document).unwrap();
            assert_eq!(ruling.verdict, api::Verdict::Deny, "{document}");
            assert!(sentence.ends_with(&format!("; {expected}")), "{sentence}");
        }
        let (_, sentence) =
            evaluate_document(&rules, r#"{"capability": "shell.run", "argv": ["/bin/ls"]}"#)
                .unwrap();
        assert!(!sentence.contains("must"), "{sentence}");
    }

    #[test]
    fn an_unknown_capability_counts_as_external() {
        let rules = rules(Posture::Staging, &[], Path::new("/srv")).unwrap();
        let (ruling, sentence) =
            evaluate_document(&rules, r#"{"capability": "rocket.launch"}"#).unwrap();
        assert_eq!(ruling.verdict, api::Verdict::Ask);
        assert!(sentence.ends_with("is not a known capability and so counts as tier 2"));
    }

    #[test]
    fn a_duplicate_key_is_refused() {
        let twice = |key: &str, one: &str, other: &str| {
            let document =
                format!(r#"{{"capability": "agent.prompt", "{key}": {one}, "{key}": {other}}}"#);
            check(&document, Err(&format!("the key `{key}` occurs twice")));
        };
        for key in ["principal", "agent", "resource", "host", "path"] {
            twice(key, r#""ada""#, r#""eve""#);
        }
        twice("role", r#""runner""#, r#""operator""#);
        twice("tier", "2", "0");
        twice("argv", "[]", "[]");
        let spelt = r#"{"capability": "net.read", "c\u0061pability": "agent.prompt"}"#;
        check(spelt, Err("the key `capability` occurs twice"));
    }

    #[test]
    fn a_malformed_request_is_refused() {
        for (document, reason) in [
            ("", "not a JSON object"),
            ("7", "not a JSON object"),
            (r#"["agent.prompt"]"#, "not a JSON object"),
            ("{}", "missing field `capability`"),
            (r#"{"capability": "agent.prompt", "agnet": "ada"}"#, "unknown field `agnet`"),
            (r#"{"capability": "agent.prompt", "tier": 3}"#, "`3`"),
            (r#"{"capability": "agent.prompt", "agent": "A"}"#, "`A` is not a valid agent name"),
            (r#"{"capability": "agent.prompt"} {}"#, "trailing characters"),
        ] {
            check(document, Err(reason));
        }
    }
}
