//! What the standing orders cost: a decision among 200 rules, and loading 1,000.
//!
//! All rules cover the class that is asked for, so that each is looked at; which of them match differs.

use std::hint::black_box;
use std::time::Instant;

use anyhow::anyhow;
use kernel::Role;
use kernel::backend::Tier;
use kernel::ruling::{Details, Posture, Request};
use policy::{Rules, Source};

use crate::spread;

const DECIDED_RULES: usize = 200;
const LOADED_RULES: usize = 1_000;
/// Timed together, because a clock is too coarse for one.
const DECISIONS: usize = 10_000;
const DECISION_BAR_US: f64 = 20.0;
const LOAD_BAR_MS: f64 = 200.0;

pub(crate) fn run(rounds: usize) -> anyhow::Result<()> {
    println!("\na decision among {DECIDED_RULES} rules, {rounds} rounds of {DECISIONS}");
    let (prompt, fetch) = requests();
    for (what, rule, request) in [
        ("one matches by its agent", by_agent as Form, &prompt),
        ("one matches by its host", by_host, &fetch),
        ("all match", always, &prompt),
    ] {
        let rules = load(&text(DECIDED_RULES, rule))?;
        let spans = (0..rounds).map(|_| decision_us(&rules, request)).collect();
        show(what, spans, "µs", DECISION_BAR_US);
    }
    println!("\nloading {LOADED_RULES} rules with their examples, {rounds} rounds");
    for (what, rule) in [("by agent", by_agent as Form), ("by host", by_host)] {
        let text = text(LOADED_RULES, rule);
        let spans: Result<Vec<f64>, _> = (0..rounds).map(|_| load_ms(&text)).collect();
        show(what, spans?, "ms", LOAD_BAR_MS);
    }
    Ok(())
}

/// The lines of a rule, by its number.
type Form = fn(usize) -> String;

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

fn text(count: usize, form: Form) -> String {
    (0..count).map(|number| format!("[[rule]]\nid = 'r{number}'\n{}\n", form(number))).collect()
}

fn load(text: &str) -> anyhow::Result<Rules> {
    let rules = Rules::load(Posture::Staging, &[Source { name: "bench", text }]);
    rules.map_err(|faults| anyhow!("the rules have {} faults: {:?}", faults.len(), faults.first()))
}

/// To prompt an agent, and to fetch something.
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

/// Of one decision, in a round of many.
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

    /// How many of the rules have something to say of a request, with those that are only counted.
    fn matching(form: Form, request: &Request) -> usize {
        let ruling = load(&text(DECIDED_RULES, form)).unwrap().decide(request);
        let more = ruling.rules.iter().filter_map(|rule| rule.strip_prefix("@more:"));
        let more: usize = more.map(|count| count.parse::<usize>().unwrap()).sum();
        ruling.rules.iter().filter(|rule| rule.starts_with("bench/")).count() + more
    }

    #[test]
    fn as_many_rules_match_as_is_said() {
        let (prompt, fetch) = requests();
        assert_eq!(matching(by_agent, &prompt), 1);
        assert_eq!(matching(by_host, &fetch), 1);
        // The baseline's own is among those that are only counted.
        assert_eq!(matching(always, &prompt), DECIDED_RULES + 1);
    }
}
