//! Files of rules that are refused, with what is said about them.

use kernel::ruling::Posture;
use policy::{Rules, Source};

use crate::support::{load, rule, shown};

const EXAMPLES: &str =
    "match = [{ capability = 'net.read' }]\nnot_match = [{ capability = 'code.read' }]";

/// All faults of a text, one on each line.
fn check(text: &str, expected: &[&str]) {
    let faults = load(Posture::Staging, text).err().unwrap_or_default();
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let same = lines.len() == expected.len();
    let begins = lines.iter().zip(expected).all(|(line, start)| line.starts_with(start));
    assert!(same && begins, "{text}\n{}", shown(&faults));
}

#[test]
fn a_text_that_is_not_toml_is_refused() {
    check(
        "[[rule]]\nid = \n\n[[rule",
        &["policy.toml:2: this is not valid TOML", "policy.toml:4: "],
    );
    check("x = 1", &["policy.toml:1: unknown key `x`: a file of rules holds `[[rule]]`"]);
    check("[rule]\nid = 'a'", &["policy.toml:1: write `[[rule]]`"]);
    check("rule = [1]", &["policy.toml:1: a rule is a table"]);
}

#[test]
fn every_fault_of_a_file_is_reported() {
    let text = "
[[rule]]
id = 'one'
deny = ['net.raed', 'net.write', 'nett.*']
agent = []
hots = ['x']
match = [{ capability = 'net.write' }]
not_match = [{ capability = 'code.read' }]

[[rule]]
deny = ['net.read']
ask = ['net.read']
";
    check(
        text,
        &[
            "policy.toml:4: rule `one`: `deny`: no capability is called `net.raed`: write `net.read`",
            "policy.toml:4: rule `one`: `deny`: `nett.*` is in no family of capabilities",
            "policy.toml:5: rule `one`: `agent` is an empty list",
            "policy.toml:6: rule `one`: unknown key `hots`: the keys of a rule are `id`, `deny`",
            "policy.toml:10: it has no `id`",
            "policy.toml:10: write exactly one of `deny`, `ask` and `allow`",
        ],
    );
}

#[test]
fn a_key_with_the_wrong_value_is_refused() {
    for (line, fault) in [
        ("agent = 'ada'", "`agent` is a list: put brackets around it"),
        ("agent = [1]", "`agent`: it holds texts: put quotes around each"),
        ("agent = ['']", "`agent`: an empty pattern matches nothing"),
        ("agent = ['a*b']", "`agent`: `a*b` has a `*` that is not its end"),
        ("principal = ['*a']", "`principal`: `*a` has a `*` that is not its end"),
        ("host = ['example.org:80']", "`host`: `example.org:80` is not a pattern for hosts"),
        ("path = ['/srv/ad*']", "`path`: `/srv/ad*` is not a pattern for paths"),
        ("path = ['notes']", "`path`: `notes` is not a pattern for paths"),
        ("tier = [3]", "`tier`: a tier is 0, 1 or 2"),
        ("tier = ['1']", "`tier`: a tier is 0, 1 or 2"),
        ("posture = ['prod']", "`posture`: a posture is `strict-prod`, `staging` or `debug`"),
    ] {
        let text = rule(&format!("id = 'x'\ndeny = ['net.read']\n{line}"));
        let faults = load(Posture::Staging, &text).unwrap_err();
        let found = faults.iter().any(|it| it.line == Some(4) && it.message.starts_with(fault));
        assert!(found, "{line}\n{}", shown(&faults));
    }
}

#[test]
fn an_id_is_plain_and_stands_once() {
    for id in ["", "A", "a b", "a/b", "@default", &"a".repeat(65)] {
        let text = rule(&format!("id = '{id}'\ndeny = ['net.read']\n{EXAMPLES}"));
        check(&text, &["policy.toml:2: an `id` is 1 to 64"]);
    }
    let text = rule(&format!("id = 'a'\ndeny = ['net.read']\n{EXAMPLES}"));
    check(&text.repeat(2), &["policy.toml:6: rule `a`: there is another rule `a`: rename one"]);
    let same_name = [Source { name: "x", text: &text }, Source { name: "x", text: &text }];
    assert!(Rules::load(Posture::Staging, &same_name).is_err());
    let other_name = [Source { name: "x", text: &text }, Source { name: "y", text: &text }];
    assert!(Rules::load(Posture::Staging, &other_name).is_ok());
}

#[test]
fn a_source_cannot_pass_for_the_baseline_or_for_what_is_no_rule() {
    for name in ["", "baseline", "@tier-2", "a/b", "a b", &"a".repeat(65)] {
        let faults = Rules::load(Posture::Staging, &[Source { name, text: "" }]).unwrap_err();
        assert!(faults[0].message.starts_with("the name of a source is"), "{name}");
    }
}

#[test]
fn a_rule_without_examples_is_refused() {
    check(
        &rule("id = 'a'\ndeny = ['net.read']"),
        &[
            "policy.toml:1: rule `a`: it has no `match` example",
            "policy.toml:1: rule `a`: it has no `not_match`",
        ],
    );
    check(&rule("id = 'a'\ndeny = ['*']\nmatch = [{ capability = 'net.read' }]"), &[]);
}

#[test]
fn an_example_that_does_not_hold_is_refused() {
    let with = |examples: &str| {
        rule(&format!("id = 'a'\ndeny = ['net.*']\nhost = ['evil.org']\n{examples}"))
    };
    let bad = "{ capability = 'net.read', host = 'evil.org' }";
    let good = "{ capability = 'net.read', host = 'good.org' }";
    check(&with(&format!("match = [{bad}]\nnot_match = [{good}]")), &[]);
    check(
        &with(&format!("match = [{good}]\nnot_match = [{bad}]")),
        &[
            "policy.toml:5: rule `a`: it does not match its `match` example `net.read good.org`",
            "policy.toml:6: rule `a`: it matches its `not_match` example `net.read evil.org`",
        ],
    );
    for (not_match, fault) in [
        ("{ capability = 'net.read' }", "it looks at something that its `not_match` example"),
        ("{ capability = 'net.raed' }", "a `not_match` example is not a request: no capability"),
        ("{ capability = 'net.*' }", "a `not_match` example is not a request: a pattern is no"),
        ("{ capability = 'net.read', host = 'a:1' }", "a `not_match` example has a `host` that no"),
        ("{ capability = 'net.read', hots = 'a' }", "`not_match`: unknown field `hots`"),
        ("{ host = 'good.org' }", "`not_match`: missing field `capability`"),
        ("'net.read'", "`not_match`: invalid type: string \"net.read\", expected a table such as"),
    ] {
        let text = with(&format!("match = [{bad}]\nnot_match = [{good}, {not_match}]"));
        check(&text, &[&format!("policy.toml:6: rule `a`: {fault}")]);
    }
}

#[test]
fn an_allowed_program_is_named_by_its_whole_path() {
    let with = |lines: &str, argv: &str| {
        let matching = format!("match = [{{ capability = 'shell.run', argv = [{argv}] }}]");
        rule(&format!(
            "id = 'a'\n{lines}\n{matching}\nnot_match = [{{ capability = 'run.start' }}]"
        ))
    };
    let fault = "policy.toml:1: rule `a`: an `allow` over `shell.run` needs `argv`";
    check(&with("allow = ['shell.run']", "'/usr/bin/true'"), &[fault]);
    check(&with("allow = ['shell.*']", "'/usr/bin/true'"), &[fault]);
    let fault = "policy.toml:1: rule `a`: `report` could be any program of that name";
    check(&with("allow = ['shell.run']\nargv = ['report']", "'/bin/report'"), &[fault]);
    check(&with("deny = ['shell.run']\nargv = ['report']", "'/bin/report'"), &[]);
    let fault = "policy.toml:5: rule `a`: a `match` example has a `argv` that no rule can judge";
    check(&with("deny = ['shell.run']\nargv = ['report']", "'report'"), &[fault]);
    check(&with("allow = ['shell.run']\nargv = ['/bin/report']", "'/bin/report'"), &[]);
}

#[test]
fn a_misspelt_class_is_not_also_a_failing_example() {
    let text = rule("id = 'a'\ndeny = ['net.raed']\nmatch = [{ capability = 'net.read' }]");
    check(
        &text,
        &[
            "policy.toml:1: rule `a`: it has no `not_match` example",
            "policy.toml:3: rule `a`: `deny`: no capability is called `net.raed`",
        ],
    );
}

#[test]
fn a_text_as_long_as_it_may_be_and_one_byte_more() {
    let with = |length: usize| {
        let agent = "a".repeat(length);
        rule(&format!(
            "id = 'a'\nask = ['net.read']\nprincipal = ['{agent}']\n\
            match = [{{ capability = 'net.read', principal = '{agent}' }}]\n\
            not_match = [{{ capability = 'net.read' }}]"
        ))
    };
    check(&with(4_096), &[]);
    check(
        &with(4_097),
        &["policy.toml:4: rule `a`: `principal`: a text of a rule has at most 4096"],
    );
}

#[test]
fn of_very_many_faults_only_the_number_is_told() {
    let all = |count| format!("rule = [{}]", "1,".repeat(count));
    assert_eq!(load(Posture::Staging, &all(1_000)).unwrap_err().len(), 1_000);
    let faults = load(Posture::Staging, &all(1_002)).unwrap_err();
    assert_eq!(faults.len(), 1_001);
    assert_eq!(faults[1_000].message, "there are 2 more faults: mend these first");
}
