//! The cost of the policy: a decision among 200 rules, and loading 1,000.
//!
//! All rules cover the requested capability, so that each is evaluated; how many match differs.

use std::hint::black_box;
use std::time::Instant;

use anyhow::anyhow;
use kernel::Role;
use kernel::backend::Tier;
use kernel::policy_decision::{Details, Request};
use kernel::posture::Posture;
use policy::{Rules, Source};

use crate::spread;

const DECIDED_RULES: usize = 200;
const LOADED_RULES: usize = 1_000;
/// Timed together, because the clock is too coarse for one.
const DECISIONS: usize = 10_000;
const DECISION_BAR_US: f64 = 20.0;
const LOAD_BAR_MS: f64 = 200.0;

pub(crate) fn run(rounds: usize) -> anyhow::Result<()> {
    println!("\na decision among {DECIDED_RULES} rules, {rounds} rounds of {DECISIONS}");
    let (prompt, fetch) = requests();
    for (what, rule, request) in [
        ("one rule matches by agent", by_agent as RuleText, &prompt),
        ("one rule matches by host", by_host, &fetch),
        ("all rules match", always, &prompt),
    ] {
        let rules = load(&text(DECIDED_RULES, rule))?;
        let spans = (0..rounds).map(|_| decision_us(&rules, request)).collect();
        show(what, spans, "µs", DECISION_BAR_US);
    }
    println!("\nloading {LOADED_RULES} rules with their examples, {rounds} rounds");
    for (what, rule) in [("by agent", by_agent as RuleText), ("by host", by_host)] {
        let text = text(LOADED_RULES, rule);
        let spans: Result<Vec<f64>, _> = (0..rounds).map(|_| load_ms(&text)).collect();
        show(what, spans?, "ms", LOAD_BAR_MS);
    }
    Ok(())
}

/// Writes the rule with a number.
type RuleText = fn(usize) -> String;

fn by_agent(number: usize) -> String {
    format!(
        "ask = ['agent.prompt']\nagent = ['agent-{number}', 'team-{number}-*']\n\
         match = [{{ capability = 'agent.prompt', agent = 'agent-{number}' }}]\n\
         not_match = [{{ capability = 'agent.prompt', agent = 'nobody' }}]"
    )
}

fn by_host(number: usize) -> String {
    format!(
        "deny = ['net.*']\nhost = ['h{number}.example.org']\n\
         match = [{{ capability = 'net.read', host = 'h{number}.example.org' }}]\n\
         not_match = [{{ capability = 'net.read', host = 'example.org' }}]"
    )
}

fn always(_: usize) -> String {
    "ask = ['agent.prompt']\nmatch = [{ capability = 'agent.prompt' }]\n\
     not_match = [{ capability = 'net.read' }]"
        .to_owned()
}

fn text(count: usize, rule: RuleText) -> String {
    (0..count).map(|number| format!("[[rule]]\nid = 'r{number}'\n{}\n", rule(number))).collect()
}

fn load(text: &str) -> anyhow::Result<Rules> {
    let rules = Rules::load(Posture::Staging, &[Source { name: "bench", text }]);
    rules.map_err(|faults| anyhow!("the rules have {} faults: {:?}", faults.len(), faults.first()))
}

/// One request to prompt an agent, and one to read from the network.
fn requests() -> (Request, Request) {
    let host = Some("h7.example.org".to_owned());
    let fetch = request("net.read", Details { host, ..Details::default() });
    (request("agent.prompt", Details::default()), fetch)
}

fn request(capability: &str, details: Details) -> Request {
    Request {
        principal: "schedule:sch_0a1b2c3d".to_owned(),
        role: Role::Runner,
        capability: capability.to_owned(),
        tier: Tier::LocalWrite,
        agent: "agent-7".parse().ok(),
        details,
    }
}

/// The time for one decision.
fn decision_us(rules: &Rules, request: &Request) -> f64 {
    let started = Instant::now();
    for _ in 0..DECISIONS {
        black_box(rules.decide(black_box(request)));
    }
    started.elapsed().as_secs_f64() * 1e6 / DECISIONS as f64
}

fn load_ms(text: &str) -> anyhow::Result<f64> {
    let started = Instant::now();
    black_box(load(black_box(text))?);
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

fn show(what: &str, spans: Vec<f64>, unit: &str, bar: f64) {
    let (median, least, most) = spread(spans);
    let verdict = if median < bar { "met" } else { "missed" };
    println!("{what}: {median:.2} {unit} [{least:.2}–{most:.2}], bar {bar} {unit} {verdict}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many rules match a request, including those that the decision only counts.
    fn matching(rule: RuleText, request: &Request) -> usize {
        let ruling = load(&text(DECIDED_RULES, rule)).unwrap().decide(request);
        let more = ruling.rules.iter().filter_map(|rule| rule.strip_prefix("@more:"));
        let more: usize = more.map(|count| count.parse::<usize>().unwrap()).sum();
        ruling.rules.iter().filter(|rule| rule.starts_with("bench/")).count() + more
    }

    #[test]
    fn the_expected_number_of_rules_matches() {
        let (prompt, fetch) = requests();
        assert_eq!(matching(by_agent, &prompt), 1);
        assert_eq!(matching(by_host, &fetch), 1);
        // The counted rules include one of the baseline.
        assert_eq!(matching(always, &prompt), DECIDED_RULES + 1);
    }
}
