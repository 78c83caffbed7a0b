//! The standing orders: asked before every run, and by whoever wants to know.

use std::path::Path;

use api::{Code, Error, Foretold, PolicyDecide, PolicyDecided, PolicyExplain, PolicyExplained};
use kernel::agent::{Agent, AgentName};
use kernel::approval::Decision;
use kernel::ruling::{Details, Facts, Posture, Request, Ruling, Verdict};
use kernel::run::{self, Cause, LEASE, Orders};
use kernel::schedule::{self, Schedule};
use kernel::tool::Called;
use kernel::{Actor, ApprovalId, Counter, Noun, ScheduleId};
use policy::{Example, Rules, Source, capability};

use crate::errors;
use crate::rows::Rows as Loaded;
use crate::runs::run_id;
use crate::signatures::{hashes, holds};
use crate::watch::Engine;

/// What the operator's own rules are called, in the data directory and in every decision.
pub const POLICY_FILE: &str = "policy.toml";

/// The words for allow, ask and deny about what has not happened yet.
pub(crate) const FORESEEN: [&str; 3] = ["allow it", "let a human decide", "do not allow it"];

/// The rules of a posture and an operator's own, each by the name of their file; what is in the data directory
/// is protected. With a fault they are no orders: nothing starts with them.
pub fn rules(posture: Posture, own: &[(String, String)], data: &Path) -> Result<Rules, Error> {
    let sources: Vec<Source<'_>> = own.iter().map(|(name, text)| Source { name, text }).collect();
    let rules = Rules::load(posture, &sources).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Error::new(Code::PolicyInvalid, faults.join("\n"))
            .hint("correct the file; `midwatch policy check` looks at it again")
    })?;
    Ok(rules.guarding(&real_path(data)))
}

/// Where a directory really is, with every link resolved: requests name what they write to by that.
fn real_path(directory: &Path) -> String {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    real.to_string_lossy().into_owned()
}

/// What the rules say of a request that a JSON document describes, and the same in a sentence.
pub fn foresee(rules: &Rules, document: &str) -> Result<(api::Ruling, String), Error> {
    let described = described(document).map_err(|reason| {
        Error::new(Code::InvalidInput, format!("this describes no request: {reason}"))
            .hint(r#"write it as in `{"capability": "agent.prompt", "agent": "ada", "tier": 1}`"#)
    })?;
    let request = described.into_request();
    let ruling = rules.decide(&request);
    let mut sentence = sentence(&ruling, FORESEEN);
    if capability::find(&request.capability).is_none() {
        let name = &request.capability;
        sentence
            .push_str(&format!("; `{name}` is no class that is known, and so counts as tier 2"));
    }
    Ok((wire(&ruling), sentence))
}

/// An object and nothing else: a list of values in the right order is not meant.
fn described(document: &str) -> Result<Example, String> {
    match document.trim_start().starts_with('{') {
        true => api::json::read(document.as_bytes()).map_err(|error| error.to_string()),
        false => Err("it is not a JSON object".to_owned()),
    }
}

impl Engine {
    /// What a run is begun under.
    pub(crate) fn under_orders<T>(
        &self,
        schedule: &ScheduleId,
        approval: Option<&ApprovalId>,
        rows: &Loaded,
        used: &[(Counter, i64)],
        begin: impl FnOnce(&Orders<'_>) -> T,
    ) -> T {
        let answered = approval.and_then(|id| Some((id, rows.approval(id)?)));
        let is_signed = |said: &Decision| {
            let token = said.signature.as_ref().and_then(|it| rows.token(&it.token));
            answered.is_some_and(|(id, approval)| holds(id, approval, said, token))
        };
        let authors = rows.schedule(schedule).map(Schedule::authors).unwrap_or_default();
        let in_force = self.in_force();
        begin(&Orders {
            instance: self.instance(),
            place: self.place(),
            authority: &self.authority_in(rows),
            lease: in_force.lease,
            clock: self.now(),
            judge: &|request| in_force.rules.decide(request),
            hash: &hashes,
            approval: answered.map(|(_, approval)| approval),
            is_signed: &is_signed,
            new_approval: &|| self.new_approval(),
            authors: &authors,
            limits: &in_force.limits,
            called: None,
            used,
            trust: in_force.trust,
            details: &|agent| self.details(agent),
            looked: None,
            questions: &[],
        })
    }

    /// What rules can narrow their view to where an agent is prompted.
    pub(crate) fn details(&self, agent: &Agent) -> Details {
        match self.doer() {
            Some(doer) => doer.details(agent),
            None => Details::of(&agent.backend),
        }
    }

    /// What will be said of the runs of a schedule. The rows have it, its agent and the authority.
    pub(crate) fn foretell(
        &self,
        id: &ScheduleId,
        rows: &Loaded,
        called: Option<&Result<Called, Cause>>,
    ) -> Result<Foretold, Error> {
        let unknown = || errors::schedule(schedule::Refusal::Unknown(id.clone()));
        let definition = &rows.schedule(id).ok_or_else(unknown)?.definition;
        let agent = definition.action.agent().and_then(|name| rows.agent(name));
        let foretold = self.under_orders(id, None, rows, &[], |orders| {
            let orders = Orders { called, ..*orders };
            run::foretell(id, definition, agent, &orders, self.by_log().latest)
        });
        Ok(Foretold {
            by_itself: foretold.is_by_itself(),
            sentence: prospect(&foretold),
            ruling: foretold.ruling.as_ref().ok().map(wire),
        })
    }

    /// What the standing orders say of what somebody is about to do elsewhere.
    pub(crate) async fn policy_decide(
        &self,
        actor: &Actor,
        asked: PolicyDecide,
    ) -> Result<PolicyDecided, Error> {
        let PolicyDecide { capability, resource, host, path, argv } = asked;
        let agent = self.asking(actor, &capability, None).await?.map(|asking| asking.agent);
        let details = Details { resource, host, path, argv };
        let ruling = self.judged(actor, &capability, agent, details);
        let sentence = sentence(&ruling, FORESEEN);
        Ok(PolicyDecided { ruling: wire(&ruling), sentence })
    }

    /// What the standing orders say of what somebody wants to do by themselves.
    pub(crate) fn judged(
        &self,
        actor: &Actor,
        capability: &str,
        agent: Option<AgentName>,
        details: Details,
    ) -> Ruling {
        self.in_force().rules.decide(&Request {
            principal: actor.name.clone(),
            role: actor.role,
            capability: capability.to_owned(),
            tier: capability::tier(capability),
            agent,
            details,
        })
    }

    /// What the standing orders said of a run.
    pub(crate) async fn policy_explain(
        &self,
        asked: PolicyExplain,
    ) -> Result<PolicyExplained, Error> {
        let id = run_id(&asked.run)?;
        let rows = self.load(&[(Noun::Run, id.to_string())]).await?;
        let unknown = || errors::run(kernel::run::Refusal::Unknown(id.clone()));
        let run = rows.run(&id).ok_or_else(unknown)?;
        let sentence = match &run.ruling {
            None => {
                "the standing orders were not asked yet: it has not come to its turn".to_owned()
            }
            Some(ruling) => {
                sentence(ruling, ["allowed it", "let a human decide", "did not allow it"])
            }
        };
        let (request, facts) = run::asked_of(run).unzip();
        Ok(PolicyExplained {
            run_id: id.to_string(),
            state: run.state.name().to_owned(),
            request: request.map(wire_request),
            facts: facts.map(wire_facts),
            ruling: run.ruling.as_ref().map(wire),
            sentence,
        })
    }
}

/// What the orders say, with the words for allow, ask and deny.
pub(crate) fn sentence(ruling: &Ruling, [allow, ask, deny]: [&str; 3]) -> String {
    let rules: Vec<String> = ruling.rules.iter().map(|it| format!("`{it}`")).collect();
    let said = match ruling.verdict {
        Verdict::Allow => allow,
        Verdict::Ask => ask,
        Verdict::Deny => deny,
    };
    format!("the standing orders {said} by {} in {}", rules.join(", "), ruling.posture)
}

/// What becomes of the runs of a schedule, in a sentence.
fn prospect(foretold: &run::Foretold) -> String {
    let then = match &foretold.ruling {
        Ok(ruling) => {
            let rule = ruling.rules.first().map_or("", String::as_str);
            match ruling.verdict {
                Verdict::Allow => "each run begins by itself".to_owned(),
                Verdict::Ask => format!("each run waits for a human's approval (`{rule}`)"),
                Verdict::Deny if rule == LEASE => {
                    format!("no run begins before the lease is renewed (`{rule}`)")
                }
                Verdict::Deny => format!("no run begins: `{rule}` denies it"),
            }
        }
        Err(cause) => format!("each run fails: {}", cause.message),
    };
    match foretold.is_frozen {
        true => format!("no run begins while the watch is frozen; thawed, {then}"),
        false => then,
    }
}

fn wire_request(request: Request) -> api::PolicyRequest {
    let Request { principal, role, capability, tier, agent, details } = request;
    let Details { resource, host, path, argv } = details;
    api::PolicyRequest {
        principal,
        role: role.name().to_owned(),
        capability,
        tier: tier.number(),
        agent: agent.map(|agent| agent.to_string()),
        resource,
        host,
        path,
        argv,
    }
}

fn wire_facts(facts: &Facts) -> api::PolicyFacts {
    let Facts { left, unattended, lease, off } = facts;
    api::PolicyFacts {
        runs_left: left.runs,
        tokens_left: left.tokens,
        money_left: left.money.map(|money| money.to_string()),
        unattended: *unattended,
        lease: lease.name().to_owned(),
        off: off.clone(),
    }
}

pub(crate) fn wire(ruling: &Ruling) -> api::Ruling {
    api::Ruling {
        verdict: ruling.verdict.name().to_owned(),
        rules: ruling.rules.clone(),
        posture: ruling.posture.name().to_owned(),
        policy: ruling.policy.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIGHTS: &str = r#"
        [[rule]]
        id = "nights"
        deny = ["agent.prompt"]
        agent = ["night-*"]
        match = [{ capability = "agent.prompt", agent = "night-1" }]
        not_match = [{ capability = "agent.prompt", agent = "ada" }]
    "#;

    /// A document, and what is said of it: the verdict and the beginning of the rules, or why not.
    fn check(document: &str, expected: Result<(&str, &str), &str>) {
        let own = [("policy.toml".to_owned(), NIGHTS.to_owned())];
        let found = foresee(&rules(Posture::Staging, &own, Path::new("/srv")).unwrap(), document);
        let found = found.map(|(ruling, sentence)| {
            assert!(sentence.contains(&format!("`{}`", ruling.rules[0])), "{sentence}");
            (ruling.verdict, ruling.rules[0].clone())
        });
        let found = found.map_err(|error| error.message);
        match (found, expected) {
            (Ok((verdict, rule)), Ok(expected)) => assert_eq!((&*verdict, &*rule), expected),
            (Err(message), Err(expected)) => assert!(message.contains(expected), "{message}"),
            (found, _) => panic!("{document}: {found:?}"),
        }
    }

    #[test]
    fn a_described_request_is_judged_by_the_rules() {
        let ada = r#"{"capability": "agent.prompt", "agent": "ada"}"#;
        check(ada, Ok(("allow", "baseline/agents")));
        let all = r#" {"capability": "agent.prompt", "principal": "schedule:sch_0a1b2c3d",
            "role": "operator", "agent": "night-1", "tier": 1, "resource": "x", "host": "a.org",
            "path": "/srv/x", "argv": ["/bin/true"]} "#;
        check(all, Ok(("deny", "policy.toml/nights")));
        let outside = r#"{"capability": "agent.prompt", "agent": "ada", "tier": 2}"#;
        check(outside, Ok(("ask", "@tier-2")));
        // What a rule looks at and the request does not have is denied.
        check(r#"{"capability": "agent.prompt"}"#, Ok(("deny", "@error:policy.toml/nights")));
    }

    #[test]
    fn a_class_that_is_not_known_is_said_to_be_external() {
        let rules = rules(Posture::Staging, &[], Path::new("/srv")).unwrap();
        let (ruling, sentence) = foresee(&rules, r#"{"capability": "rocket.launch"}"#).unwrap();
        assert_eq!(ruling.verdict, "ask");
        assert!(sentence.ends_with("is no class that is known, and so counts as tier 2"));
    }

    #[test]
    fn a05_a_key_that_is_there_twice_is_refused() {
        let twice = |key: &str, one: &str, other: &str| {
            let document =
                format!(r#"{{"capability": "agent.prompt", "{key}": {one}, "{key}": {other}}}"#);
            check(&document, Err(&format!("the key `{key}` stands twice")));
        };
        for key in ["principal", "agent", "resource", "host", "path"] {
            twice(key, r#""ada""#, r#""eve""#);
        }
        twice("role", r#""runner""#, r#""operator""#);
        twice("tier", "2", "0");
        twice("argv", "[]", "[]");
        let spelt = r#"{"capability": "net.read", "c\u0061pability": "agent.prompt"}"#;
        check(spelt, Err("the key `capability` stands twice"));
    }

    #[test]
    fn what_describes_no_request_is_refused() {
        for (document, reason) in [
            ("", "it is not a JSON object"),
            ("7", "it is not a JSON object"),
            (r#"["agent.prompt"]"#, "it is not a JSON object"),
            ("{}", "missing field `capability`"),
            (r#"{"capability": "agent.prompt", "agnet": "ada"}"#, "unknown field `agnet`"),
            (r#"{"capability": "agent.prompt", "tier": 3}"#, "`3`"),
            (r#"{"capability": "agent.prompt", "agent": "A"}"#, "`A` is not an agent's name"),
            (r#"{"capability": "agent.prompt"} {}"#, "trailing characters"),
        ] {
            check(document, Err(reason));
        }
    }
}
