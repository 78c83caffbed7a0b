//! Which rules match a request, and the decision.

use kernel::Role;
use kernel::backend::Tier;
use kernel::policy_decision::{Approvers, Request, Verdict};
use kernel::posture::Posture;
use policy::{Rules, Source};

use crate::support::{at_path, check, load, program, prompt, request, rule, rules, to_host};

#[test]
fn decision_names_the_deciding_rules_first() {
    let rules = rules(&[
        rule("id = 'b'\nask = ['agent.prompt']\nmatch = [{ capability = 'agent.prompt' }]\nnot_match = [{ capability = 'net.read' }]"),
        rule("id = 'a'\nask = ['agent.*']\nmatch = [{ capability = 'agent.prompt' }]\nnot_match = [{ capability = 'net.read' }]"),
        rule("id = 'c'\nallow = ['agent.*']\nmatch = [{ capability = 'agent.prompt' }]\nnot_match = [{ capability = 'net.read' }]"),
    ].concat());
    let decision = rules.decide(&prompt("ada"));
    let names = ["policy.toml/a", "policy.toml/b", "baseline/agents", "policy.toml/c"];
    assert_eq!((decision.verdict, decision.posture), (Verdict::Ask, Posture::Staging));
    assert_eq!(decision.rules, names);
    assert_eq!(decision.policy, rules.version());
}

#[test]
fn decision_names_a_limited_number_of_reasons() {
    let one = |number: usize, verdict: &str| {
        rule(&format!(
            "id = 'r{number:02}'\n{verdict} = ['agent.prompt']\nmatch = [{{ capability = 'agent.prompt' }}]\n\
             not_match = [{{ capability = 'net.read' }}]"
        ))
    };
    // One deny rule and one baseline rule match as well.
    for (asks, more) in [(14, None), (15, Some("@more:1")), (40, Some("@more:26"))] {
        let text: String = (0..asks).map(|number| one(number, "ask")).collect();
        let decision = rules(&format!("{text}{}", one(99, "deny"))).decide(&prompt("ada"));
        assert_eq!(decision.verdict, Verdict::Deny);
        let reasons: Vec<&str> = decision.rules.iter().map(String::as_str).collect();
        let is_more = |it: &&str| it.starts_with("@more");
        assert_eq!(reasons.first(), Some(&"policy.toml/r99"));
        assert_eq!(reasons.last().copied().filter(is_more), more);
        assert_eq!(reasons.iter().filter(|it| !is_more(it)).count(), 16);
    }
}

#[test]
fn rule_matches_by_role() {
    let rules = rules(&rule(
        "id = 'people'\ndeny = ['schedule.change']\nrole = ['runner', 'observer']\n\
         match = [{ capability = 'schedule.change', role = 'runner' }]\n\
         not_match = [{ capability = 'schedule.change', role = 'operator' }]",
    ));
    for (role, verdict, reason) in [
        (Role::Observer, Verdict::Deny, "policy.toml/people"),
        (Role::Runner, Verdict::Deny, "policy.toml/people"),
        (Role::Operator, Verdict::Allow, "baseline/local-work"),
        (Role::Maintainer, Verdict::Allow, "baseline/local-work"),
    ] {
        check(&rules, &Request { role, ..request("schedule.change") }, verdict, reason);
    }
    let shown = rules.iter().find(|it| it.name() == "policy.toml/people").unwrap().to_string();
    assert_eq!(shown, "deny schedule.change where role is runner, observer");
    for role in ["'system'", "'Runner'", "'*'", "1"] {
        let text = rule(&format!("id = 'a'\nask = ['*']\nrole = [{role}]"));
        let errors = load(Posture::Staging, &text).unwrap_err();
        assert!(errors.iter().any(|it| it.message.contains("a role is `observer`")), "{errors:?}");
    }
}

#[test]
fn conditions_restrict_a_rule() {
    let rules = rules(
        r#"
[[rule]]
id = "agents"
deny = ["agent.prompt"]
agent = ["eve", "night-*"]
principal = ["schedule:*"]
match = [{ capability = "agent.prompt", agent = "eve", principal = "schedule:sch_1" }]
not_match = [{ capability = "agent.prompt", agent = "eve" }]

[[rule]]
id = "hosts"
deny = ["net.*"]
host = ["evil.org", "*.evil.org", "169.254.*"]
match = [{ capability = "net.read", host = "www.evil.org" }]
not_match = [{ capability = "net.read", host = "good.org" }]

[[rule]]
id = "paths"
deny = ["filesystem.*"]
path = ["/etc/*"]
match = [{ capability = "filesystem.read", path = "/etc/passwd" }]
not_match = [{ capability = "filesystem.read", path = "/etcetera" }]

[[rule]]
id = "tiers"
ask = ["agent.prompt"]
tier = [1]
match = [{ capability = "agent.prompt", tier = 1 }]
not_match = [{ capability = "agent.prompt" }]
"#,
    );
    let scheduled = |agent| Request { principal: "schedule:sch_9".to_owned(), ..prompt(agent) };
    let denied = |request: &Request, reason| check(&rules, request, Verdict::Deny, reason);
    denied(&scheduled("eve"), "policy.toml/agents");
    denied(&scheduled("night-7"), "policy.toml/agents");
    denied(&to_host("EVIL.org."), "policy.toml/hosts");
    denied(&to_host("a.b.evil.org"), "policy.toml/hosts");
    denied(&to_host("::ffff:169.254.169.254"), "policy.toml/hosts");
    denied(&at_path("filesystem.write", "//etc//shadow"), "policy.toml/paths");
    check(&rules, &scheduled("ada"), Verdict::Allow, "baseline/agents");
    check(&rules, &prompt("eve"), Verdict::Allow, "baseline/agents");
    check(&rules, &to_host("notevil.org"), Verdict::Ask, "baseline/outside");
    check(&rules, &at_path("filesystem.read", "/etc2/x"), Verdict::Allow, "baseline/reading");
    let writing = Request { tier: Tier::LocalWrite, ..prompt("ada") };
    check(&rules, &writing, Verdict::Ask, "policy.toml/tiers");
}

#[test]
fn request_with_an_invalid_field_is_denied() {
    let rules = Rules::baseline(Posture::Staging);
    for path in ["notes", "", "/srv/../etc/passwd", "/srv/./x", "/x\0y"] {
        check(&rules, &at_path("filesystem.read", path), Verdict::Deny, "@error:path");
    }
    for host in ["", "example.org:80", "127.1", "exämple.org"] {
        check(&rules, &to_host(host), Verdict::Deny, "@error:host");
    }
}

#[test]
fn non_matching_condition_decides_even_if_another_is_unknown() {
    let rules = rules(
        r#"
[[rule]]
id = "both"
deny = ["net.read"]
agent = ["eve"]
host = ["evil.org"]
match = [{ capability = "net.read", agent = "eve", host = "evil.org" }]
not_match = [{ capability = "net.read", agent = "ada" }]
"#,
    );
    let by = |agent: &str| Request { agent: agent.parse().ok(), ..request("net.read") };
    check(&rules, &by("ada"), Verdict::Ask, "baseline/outside");
    check(&rules, &by("eve"), Verdict::Deny, "@error:policy.toml/both");
}

#[test]
fn posture_decides_when_no_rule_matches() {
    for (posture, expected) in [
        (Posture::StrictProd, Verdict::Deny),
        (Posture::Staging, Verdict::Ask),
        (Posture::Debug, Verdict::Ask),
    ] {
        check(&Rules::baseline(posture), &request("rocket.launch"), expected, "@default");
    }
}

#[test]
fn allow_rule_does_not_allow_external_requests() {
    let rules = load(
        Posture::StrictProd,
        r#"
[[rule]]
id = "fetch"
allow = ["net.read"]
host = ["example.org"]
match = [{ capability = "net.read", host = "example.org" }]
not_match = [{ capability = "net.read" }]
"#,
    )
    .unwrap();
    let decision = rules.decide(&to_host("example.org"));
    assert_eq!(decision.verdict, Verdict::Ask);
    assert_eq!(decision.rules, ["@tier-2", "policy.toml/fetch"]);
}

#[test]
fn rule_for_another_posture_is_checked_but_not_active() {
    let text = rule(
        "id = 'x'\ndeny = ['*']\nposture = ['strict-prod']\nmatch = [{ capability = 'code.read' }]",
    );
    let here = rules(&text);
    assert!(here.iter().all(|rule| rule.name() != "policy.toml/x"));
    check(&here, &request("code.read"), Verdict::Allow, "baseline/reading");
    let there = load(Posture::StrictProd, &text).unwrap();
    check(&there, &request("code.read"), Verdict::Deny, "policy.toml/x");
    let wrong = text.replace("code.read", "code.reed");
    assert!(load(Posture::Staging, &wrong).is_err());
}

#[test]
fn version_differs_for_different_rules() {
    let version = |posture, sources: &[Source<'_>]| {
        Rules::load(posture, sources).unwrap().version().to_owned()
    };
    let source = |name, text| Source { name, text };
    let versions = [
        version(Posture::Staging, &[]),
        version(Posture::Debug, &[]),
        version(Posture::Staging, &[source("a", "")]),
        version(Posture::Staging, &[source("a", "#")]),
        version(Posture::Staging, &[source("a", ""), source("b", "")]),
    ];
    for (position, version) in versions.iter().enumerate() {
        assert_eq!(version.len(), 12);
        assert!(version.chars().all(|c| c.is_ascii_hexdigit()));
        assert!(!versions[..position].contains(version), "{position}");
    }
    assert_eq!(versions[0], version(Posture::Staging, &[]));
}

#[test]
fn rule_is_printed_on_one_line() {
    let rules = rules(
        r#"
[[rule]]
id = "report-test"
allow = ["shell.run"]
agent = ["ada", "team-*"]
argv = ["/usr/bin/report", "test"]
match = [{ capability = "shell.run", agent = "ada", argv = ["/usr/bin/report", "test"] }]
not_match = [{ capability = "shell.run", agent = "ada", argv = ["/usr/bin/report", "run"] }]
"#,
    );
    let rule = rules.iter().find(|rule| rule.name() == "policy.toml/report-test").unwrap();
    assert_eq!(
        rule.to_string(),
        "allow shell.run where agent is ada, team-* and argv starts with /usr/bin/report test"
    );
    assert_eq!(
        (rule.verdict(), rule.capabilities()),
        (Verdict::Allow, vec!["shell.run".to_owned()])
    );
    let by_ada =
        Request { agent: "ada".parse().ok(), ..program(&["/usr/bin/report", "test", "-q"]) };
    assert!(rules.decide(&by_ada).rules.contains(&"policy.toml/report-test".to_owned()));
}

#[test]
fn decision_needs_the_strictest_approvers_of_all_matching_rules() {
    let text = [
        rule(
            "id = 'two'\nask = ['agent.prompt']\npersons = 2\nmatch = [{ capability = 'agent.prompt' }]\nnot_match = [{ capability = 'code.read' }]",
        ),
        rule(
            "id = 'boss'\nask = ['agent.prompt']\napprover = 'maintainer'\nmatch = [{ capability = 'agent.prompt' }]\nnot_match = [{ capability = 'code.read' }]",
        ),
    ];
    let approvers = |persons, role| Approvers { persons, role };
    let table = [
        (String::new(), approvers(1, Role::Operator)),
        (text[0].clone(), approvers(2, Role::Operator)),
        (text[1].clone(), approvers(1, Role::Maintainer)),
        (text.concat(), approvers(2, Role::Maintainer)),
    ];
    for (text, expected) in table {
        assert_eq!(rules(&text).decide(&request("agent.prompt")).approvers, expected, "{text}");
        assert_eq!(
            rules(&text).decide(&request("code.read")).approvers,
            approvers(1, Role::Operator)
        );
    }
}

#[test]
fn approvers_are_validated_and_printed() {
    let of = |line: &str, verdict: &str| {
        rule(&format!(
            "id = 'x'\n{verdict} = ['agent.prompt']\n{line}\nmatch = [{{ capability = 'agent.prompt' }}]\nnot_match = [{{ capability = 'code.read' }}]"
        ))
    };
    for line in [
        "persons = 0",
        "persons = 6",
        "persons = '2'",
        "persons = 1.5",
        "approver = 'runner'",
        "approver = 2",
    ] {
        assert!(load(Posture::Staging, &of(line, "ask")).is_err(), "{line}");
    }
    for verdict in ["deny", "allow"] {
        assert!(load(Posture::Staging, &of("persons = 2", verdict)).is_err(), "{verdict}");
    }
    let two = rules(&of("persons = 2", "ask"));
    let shown = two.iter().find(|rule| rule.name() == "policy.toml/x").unwrap().to_string();
    assert_eq!(shown, "ask agent.prompt, approved by 2 with the role operator");
}
