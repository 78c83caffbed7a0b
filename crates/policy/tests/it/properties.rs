//! Properties of all rules and requests.

use kernel::Role;
use kernel::backend::Tier;
use kernel::policy_decision::{Approvers, Details, PolicyDecision, Request, Verdict};
use kernel::posture::Posture;
use policy::{Rules, Source, capability, strictest};
use proptest::prelude::*;

use crate::support::{load, rule};

const AGENTS: [&str; 3] = ["ada", "eve", "team-a"];
const HOSTS: [&str; 3] = ["example.org", "www.example.org", "evil.org"];
const PATHS: [&str; 3] = ["/srv/ada/x", "/srv/ada", "/etc/passwd"];

/// A generated rule without its id and examples.
#[derive(Clone, Debug)]
struct GeneratedRule {
    verdict: &'static str,
    lines: String,
    number: usize,
}

impl GeneratedRule {
    /// The TOML of the rule, with examples that it satisfies.
    fn text(&self, verdict: &str) -> String {
        let GeneratedRule { lines, number, .. } = self;
        rule(&format!(
            "id = 'r{number}'\n{verdict} = ['ledger.read', {lines}\nprincipal = ['*']\n\
             match = [{{ capability = 'ledger.read', agent = 'ada', host = 'example.org', path = '/srv/ada/x' }}]\n\
             not_match = [{{ capability = 'approval.ask' }}]"
        ))
    }
}

fn generated_rule() -> impl Strategy<Value = GeneratedRule> {
    let class =
        prop::sample::select(vec!["agent.prompt", "net.*", "net.read", "memory.*", "code.read"]);
    let agent =
        prop::sample::select(vec!["", "agent = ['ada', 'eve']", "agent = ['a*', 'team-*']"]);
    let host =
        prop::sample::select(vec!["", "host = ['example.org']", "host = ['example.org', '*.org']"]);
    let path = prop::sample::select(vec!["", "path = ['/srv/ada/*']"]);
    let verdict = prop::sample::select(vec!["deny", "ask", "allow"]);
    (verdict, class, agent, host, path, 0..1_000_usize).prop_map(
        |(verdict, class, agent, host, path, number)| GeneratedRule {
            verdict,
            lines: format!("'{class}']\n{agent}\n{host}\n{path}"),
            number,
        },
    )
}

fn generated_rules() -> impl Strategy<Value = Vec<GeneratedRule>> {
    prop::collection::vec(generated_rule(), 0..8).prop_map(|mut all| {
        all.iter_mut()
            .enumerate()
            .for_each(|(number, generated_rule)| generated_rule.number = number);
        all
    })
}

fn request() -> impl Strategy<Value = Request> {
    let names: Vec<&str> = capability::ALL.iter().map(|class| class.name).collect();
    let capability = prop_oneof![
        4 => prop::sample::select(vec!["agent.prompt", "net.read", "memory.write", "code.read"]),
        2 => prop::sample::select(names),
        1 => prop::sample::select(vec!["net.listen", "rocket.launch", ""]),
    ];
    let tier = prop::sample::select(vec![Tier::ReadOnly, Tier::LocalWrite, Tier::External]);
    let optional =
        |texts: [&'static str; 3]| prop::option::of(prop::sample::select(texts.to_vec()));
    (capability, tier, optional(AGENTS), optional(HOSTS), optional(PATHS)).prop_map(
        |(capability, tier, agent, host, path)| Request {
            principal: "somebody".to_owned(),
            role: Role::Runner,
            capability: capability.to_owned(),
            tier,
            agent: agent.and_then(|agent| agent.parse().ok()),
            details: Details {
                host: host.map(str::to_owned),
                path: path.map(str::to_owned),
                ..Details::default()
            },
        },
    )
}

fn posture() -> impl Strategy<Value = Posture> {
    prop::sample::select(vec![Posture::StrictProd, Posture::Staging, Posture::Debug])
}

fn decision() -> impl Strategy<Value = PolicyDecision> {
    let verdict = prop::sample::select(vec![Verdict::Allow, Verdict::Ask, Verdict::Deny]);
    let rules = prop::collection::vec("[a-d]", 0..4);
    (verdict, rules, posture(), "[01]").prop_map(|(verdict, rules, posture, policy)| {
        PolicyDecision { verdict, rules, posture, policy, approvers: Approvers::default() }
    })
}

fn text_of(all: &[GeneratedRule]) -> String {
    all.iter().map(|generated_rule| generated_rule.text(generated_rule.verdict)).collect()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn order_of_rules_has_no_effect(
        posture in posture(),
        (all, shuffled) in generated_rules().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        request in request(),
    ) {
        let one = load(posture, &text_of(&all)).unwrap().decide(&request);
        let other = load(posture, &text_of(&shuffled)).unwrap().decide(&request);
        prop_assert_eq!((one.verdict, one.rules), (other.verdict, other.rules));
    }

    #[test]
    fn order_of_sources_has_no_effect(posture in posture(), a in generated_rules(), b in generated_rules(), request in request()) {
        let (a, b) = (text_of(&a), text_of(&b));
        let (a, b) = (Source { name: "a", text: &a }, Source { name: "b", text: &b });
        let one = Rules::load(posture, &[a, b]).unwrap().decide(&request);
        let other = Rules::load(posture, &[b, a]).unwrap().decide(&request);
        prop_assert_eq!((one.verdict, one.rules), (other.verdict, other.rules));
    }

    #[test]
    fn additional_deny_or_ask_never_weakens_the_verdict(
        all in generated_rules(),
        more in generated_rule(),
        verdict in prop::sample::select(vec!["deny", "ask"]),
        posture in posture(),
        request in request(),
    ) {
        let before = text_of(&all);
        let after = format!("{before}{}", GeneratedRule { number: 999, ..more }.text(verdict));
        let (before, after) = (load(posture, &before).unwrap(), load(posture, &after).unwrap());
        let (before, after) = (before.decide(&request), after.decide(&request));
        // One exception, by design: `strict-prod` denies if no rule matches, and an `ask` rule then
        // makes approval possible.
        let opened = posture == Posture::StrictProd && before.rules.contains(&"@default".to_owned());
        prop_assert!(before.verdict <= after.verdict || opened);
    }

    #[test]
    fn external_requests_are_never_allowed_without_approval(posture in posture(), all in generated_rules(), request in request()) {
        let decision = load(posture, &text_of(&all)).unwrap().decide(&request);
        let external = request.tier.max(capability::tier(&request.capability)) == Tier::External;
        prop_assert!(!external || Verdict::Ask <= decision.verdict);
        prop_assert!(!decision.rules.is_empty());
    }

    #[test]
    fn strictest_is_commutative_and_associative(a in decision(), b in decision(), c in decision()) {
        let (ab, ba) = (strictest(a.clone(), b.clone()), strictest(b.clone(), a.clone()));
        prop_assert_eq!(ab.verdict, a.verdict.max(b.verdict));
        prop_assert_eq!(ab.verdict, ba.verdict);
        prop_assert_eq!(sorted(ab.rules.clone()), sorted(ba.rules));
        let left = strictest(ab, c.clone());
        let right = strictest(a, strictest(b, c));
        prop_assert_eq!(left.verdict, right.verdict);
        prop_assert_eq!(sorted(left.rules), sorted(right.rules));
    }

    #[test]
    fn every_request_gets_a_decision_with_a_reason(
        texts in prop::collection::vec("\\PC{0,20}|[a-z./*:\\[\\]0-9\\x00]{0,20}", 5),
        argv in prop::collection::vec(".{0,10}", 0..3),
        posture in posture(),
        all in generated_rules(),
    ) {
        let request = Request {
            principal: texts[0].clone(),
            role: Role::Observer,
            capability: texts[1].clone(),
            tier: Tier::ReadOnly,
            agent: texts[0].parse().ok(),
            details: Details {
                resource: Some(texts[2].clone()),
                host: Some(texts[3].clone()),
                path: Some(texts[4].clone()),
                argv,
            },
        };
        let decision = load(posture, &text_of(&all)).unwrap().decide(&request);
        prop_assert!(!decision.rules.is_empty());
    }

    #[test]
    fn every_text_loads_or_has_errors(
        text in "\\PC{0,80}|(\\[\\[rule\\]\\]\n|id = '[a-c]'\n|(deny|ask|allow|agent|host|path|argv|tier|match|not_match) = \\[?(['*a-z./]{0,9}|[0-9]|\\{ capability = 'net.read' \\})\\]?\n){0,9}",
    ) {
        if let Err(errors) = load(Posture::Staging, &text) {
            prop_assert!(errors.iter().all(|error| !error.message.is_empty()));
        }
    }
}
