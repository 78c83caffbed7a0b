//! What holds whatever the rules and the request are.

use kernel::Role;
use kernel::backend::Tier;
use kernel::ruling::{Approvers, Details, Posture, Request, Ruling, Verdict};
use policy::{Rules, Source, capability, strictest};
use proptest::prelude::*;

use crate::support::{load, rule};

const AGENTS: [&str; 3] = ["ada", "eve", "team-a"];
const HOSTS: [&str; 3] = ["example.org", "www.example.org", "evil.org"];
const PATHS: [&str; 3] = ["/srv/ada/x", "/srv/ada", "/etc/passwd"];

/// The lines of a rule without its id and examples.
#[derive(Clone, Debug)]
struct Written {
    verdict: &'static str,
    lines: String,
    number: usize,
}

impl Written {
    /// Examples are of no interest here, but each rule has to have some that hold.
    fn text(&self, verdict: &str) -> String {
        let Written { lines, number, .. } = self;
        rule(&format!(
            "id = 'r{number}'\n{verdict} = ['ledger.read', {lines}\nprincipal = ['*']\n\
             match = [{{ capability = 'ledger.read', agent = 'ada', host = 'example.org', path = '/srv/ada/x' }}]\n\
             not_match = [{{ capability = 'approval.ask' }}]"
        ))
    }
}

fn written() -> impl Strategy<Value = Written> {
    let class =
        prop::sample::select(vec!["agent.prompt", "net.*", "net.read", "memory.*", "code.read"]);
    let agent =
        prop::sample::select(vec!["", "agent = ['ada', 'eve']", "agent = ['a*', 'team-*']"]);
    let host =
        prop::sample::select(vec!["", "host = ['example.org']", "host = ['example.org', '*.org']"]);
    let path = prop::sample::select(vec!["", "path = ['/srv/ada/*']"]);
    let verdict = prop::sample::select(vec!["deny", "ask", "allow"]);
    (verdict, class, agent, host, path, 0..1_000_usize).prop_map(
        |(verdict, class, agent, host, path, number)| Written {
            verdict,
            lines: format!("'{class}']\n{agent}\n{host}\n{path}"),
            number,
        },
    )
}

fn all_written() -> impl Strategy<Value = Vec<Written>> {
    prop::collection::vec(written(), 0..8).prop_map(|mut all| {
        all.iter_mut().enumerate().for_each(|(number, written)| written.number = number);
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

fn ruling() -> impl Strategy<Value = Ruling> {
    let verdict = prop::sample::select(vec![Verdict::Allow, Verdict::Ask, Verdict::Deny]);
    let rules = prop::collection::vec("[a-d]", 0..4);
    (verdict, rules, posture(), "[01]").prop_map(|(verdict, rules, posture, policy)| Ruling {
        verdict,
        rules,
        posture,
        policy,
        approvers: Approvers::default(),
    })
}

fn text_of(all: &[Written]) -> String {
    all.iter().map(|written| written.text(written.verdict)).collect()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn the_order_of_rules_changes_nothing(
        posture in posture(),
        (all, shuffled) in all_written().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        request in request(),
    ) {
        let one = load(posture, &text_of(&all)).unwrap().decide(&request);
        let other = load(posture, &text_of(&shuffled)).unwrap().decide(&request);
        prop_assert_eq!((one.verdict, one.rules), (other.verdict, other.rules));
    }

    #[test]
    fn the_order_of_sources_changes_nothing(posture in posture(), a in all_written(), b in all_written(), request in request()) {
        let (a, b) = (text_of(&a), text_of(&b));
        let (a, b) = (Source { name: "a", text: &a }, Source { name: "b", text: &b });
        let one = Rules::load(posture, &[a, b]).unwrap().decide(&request);
        let other = Rules::load(posture, &[b, a]).unwrap().decide(&request);
        prop_assert_eq!((one.verdict, one.rules), (other.verdict, other.rules));
    }

    #[test]
    fn one_more_deny_or_ask_never_weakens(
        all in all_written(),
        more in written(),
        verdict in prop::sample::select(vec!["deny", "ask"]),
        posture in posture(),
        request in request(),
    ) {
        let before = text_of(&all);
        let after = format!("{before}{}", Written { number: 999, ..more }.text(verdict));
        let (before, after) = (load(posture, &before).unwrap(), load(posture, &after).unwrap());
        let (before, after) = (before.decide(&request), after.decide(&request));
        // The one exception is the point of `strict-prod`: where no rule matched, it denies, and a
        // rule that asks opens the way to a human.
        let opened = posture == Posture::StrictProd && before.rules.contains(&"@default".to_owned());
        prop_assert!(before.verdict <= after.verdict || opened);
    }

    #[test]
    fn what_is_external_is_never_just_allowed(posture in posture(), all in all_written(), request in request()) {
        let ruling = load(posture, &text_of(&all)).unwrap().decide(&request);
        let external = request.tier.max(capability::tier(&request.capability)) == Tier::External;
        prop_assert!(!external || Verdict::Ask <= ruling.verdict);
        prop_assert!(!ruling.rules.is_empty());
    }

    #[test]
    fn the_strictest_does_not_depend_on_the_order(a in ruling(), b in ruling(), c in ruling()) {
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
    fn every_request_has_an_answer(
        texts in prop::collection::vec("\\PC{0,20}|[a-z./*:\\[\\]0-9\\x00]{0,20}", 5),
        argv in prop::collection::vec(".{0,10}", 0..3),
        posture in posture(),
        all in all_written(),
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
        let ruling = load(posture, &text_of(&all)).unwrap().decide(&request);
        prop_assert!(!ruling.rules.is_empty());
    }

    #[test]
    fn every_text_is_rules_or_has_faults(
        text in "\\PC{0,80}|(\\[\\[rule\\]\\]\n|id = '[a-c]'\n|(deny|ask|allow|agent|host|path|argv|tier|match|not_match) = \\[?(['*a-z./]{0,9}|[0-9]|\\{ capability = 'net.read' \\})\\]?\n){0,9}",
    ) {
        if let Err(faults) = load(Posture::Staging, &text) {
            prop_assert!(faults.iter().all(|fault| !fault.message.is_empty()));
        }
    }
}
