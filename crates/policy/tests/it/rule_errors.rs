//! Invalid rules files and their error messages.

use kernel::posture::Posture;
use policy::{Rules, Source};

use crate::support::{load, rule, to_lines};

const EXAMPLES: &str =
    "match = [{ capability = 'net.read' }]\nnot_match = [{ capability = 'code.read' }]";

/// Checks the start of every error message of a text.
fn check(text: &str, expected: &[&str]) {
    let errors = load(Posture::Staging, text).err().unwrap_or_default();
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let same_count = lines.len() == expected.len();
    let same_starts = lines.iter().zip(expected).all(|(line, start)| line.starts_with(start));
    assert!(same_count && same_starts, "{text}\n{}", to_lines(&errors));
}

#[test]
fn invalid_toml_is_refused() {
    check("[[rule]]\nid = \n\n[[rule", &["policy.toml:2: invalid TOML", "policy.toml:4: "]);
    check("x = 1", &["policy.toml:1: unknown key `x`: a rules file contains only `[[rule]]`"]);
    check("[rule]\nid = 'a'", &["policy.toml:1: write `[[rule]]`"]);
    check("rule = [1]", &["policy.toml:1: a rule is a table"]);
}

#[test]
fn every_error_of_a_file_is_reported() {
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
            "policy.toml:4: rule `one`: `deny`: unknown capability `net.raed`: write `net.read`",
            "policy.toml:4: rule `one`: `deny`: `nett.*` is not in a known family of capabilities",
            "policy.toml:5: rule `one`: `agent` is an empty list",
            "policy.toml:6: rule `one`: unknown key `hots`: the keys of a rule are `id`, `deny`",
            "policy.toml:10: the rule has no `id`",
            "policy.toml:10: write exactly one of `deny`, `ask` and `allow`",
        ],
    );
}

#[test]
fn key_with_an_invalid_value_is_refused() {
    for (line, message) in [
        ("agent = 'ada'", "`agent` is a list: put brackets around it"),
        ("agent = [1]", "`agent`: its elements are strings: put quotes around each"),
        ("agent = ['']", "`agent`: an empty pattern matches nothing"),
        ("agent = ['a*b']", "`agent`: `a*b` has a `*` before its end"),
        ("principal = ['*a']", "`principal`: `*a` has a `*` before its end"),
        ("host = ['example.org:80']", "`host`: `example.org:80` is not a host pattern"),
        ("path = ['/srv/ad*']", "`path`: `/srv/ad*` is not a path pattern"),
        ("path = ['notes']", "`path`: `notes` is not a path pattern"),
        ("tier = [3]", "`tier`: a tier is 0, 1 or 2"),
        ("tier = ['1']", "`tier`: a tier is 0, 1 or 2"),
        ("posture = ['prod']", "`posture`: a posture is `strict-prod`, `staging` or `debug`"),
    ] {
        let text = rule(&format!("id = 'x'\ndeny = ['net.read']\n{line}"));
        let errors = load(Posture::Staging, &text).unwrap_err();
        let found = errors.iter().any(|it| it.line == Some(4) && it.message.starts_with(message));
        assert!(found, "{line}\n{}", to_lines(&errors));
    }
}

#[test]
fn id_is_plain_and_unique_in_its_source() {
    for id in ["", "A", "a b", "a/b", "@default", &"a".repeat(65)] {
        let text = rule(&format!("id = '{id}'\ndeny = ['net.read']\n{EXAMPLES}"));
        check(&text, &["policy.toml:2: an `id` has 1 to 64"]);
    }
    let text = rule(&format!("id = 'a'\ndeny = ['net.read']\n{EXAMPLES}"));
    check(&text.repeat(2), &["policy.toml:6: rule `a`: another rule has the id `a`: rename one"]);
    let same_name = [Source { name: "x", text: &text }, Source { name: "x", text: &text }];
    assert!(Rules::load(Posture::Staging, &same_name).is_err());
    let other_name = [Source { name: "x", text: &text }, Source { name: "y", text: &text }];
    assert!(Rules::load(Posture::Staging, &other_name).is_ok());
}

#[test]
fn source_cannot_have_the_name_of_the_baseline_or_a_builtin_reason() {
    for name in ["", "baseline", "@tier-2", "a/b", "a b", &"a".repeat(65)] {
        let errors = Rules::load(Posture::Staging, &[Source { name, text: "" }]).unwrap_err();
        assert!(errors[0].message.starts_with("the name of a rules file has"), "{name}");
    }
}

#[test]
fn rule_without_examples_is_refused() {
    check(
        &rule("id = 'a'\ndeny = ['net.read']"),
        &[
            "policy.toml:1: rule `a`: the rule has no `match` example",
            "policy.toml:1: rule `a`: the rule has no `not_match`",
        ],
    );
    check(&rule("id = 'a'\ndeny = ['*']\nmatch = [{ capability = 'net.read' }]"), &[]);
}

#[test]
fn example_that_the_rule_contradicts_is_refused() {
    let with = |examples: &str| {
        rule(&format!("id = 'a'\ndeny = ['net.*']\nhost = ['evil.org']\n{examples}"))
    };
    let bad = "{ capability = 'net.read', host = 'evil.org' }";
    let good = "{ capability = 'net.read', host = 'good.org' }";
    check(&with(&format!("match = [{bad}]\nnot_match = [{good}]")), &[]);
    check(
        &with(&format!("match = [{good}]\nnot_match = [{bad}]")),
        &[
            "policy.toml:5: rule `a`: the rule does not match its `match` example `net.read good.org`",
            "policy.toml:6: rule `a`: the rule matches its `not_match` example `net.read evil.org`",
        ],
    );
    for (not_match, message) in [
        (
            "{ capability = 'net.read' }",
            "the rule has a condition on a field that its `not_match` example",
        ),
        (
            "{ capability = 'net.raed' }",
            "the capability of a `not_match` example is not valid: unknown capability",
        ),
        (
            "{ capability = 'net.*' }",
            "the capability of a `not_match` example is not valid: it is a pattern",
        ),
        (
            "{ capability = 'net.read', host = 'a:1' }",
            "a `not_match` example has an invalid `host`",
        ),
        ("{ capability = 'net.read', hots = 'a' }", "`not_match`: unknown field `hots`"),
        ("{ host = 'good.org' }", "`not_match`: missing field `capability`"),
        ("'net.read'", "`not_match`: invalid type: string \"net.read\", expected a table such as"),
    ] {
        let text = with(&format!("match = [{bad}]\nnot_match = [{good}, {not_match}]"));
        check(&text, &[&format!("policy.toml:6: rule `a`: {message}")]);
    }
}

#[test]
fn allowed_program_needs_an_absolute_path() {
    let with = |lines: &str, argv: &str| {
        let matching = format!("match = [{{ capability = 'shell.run', argv = [{argv}] }}]");
        rule(&format!(
            "id = 'a'\n{lines}\n{matching}\nnot_match = [{{ capability = 'run.start' }}]"
        ))
    };
    let error = "policy.toml:1: rule `a`: an `allow` over `shell.run` needs `argv`";
    check(&with("allow = ['shell.run']", "'/usr/bin/true'"), &[error]);
    check(&with("allow = ['shell.*']", "'/usr/bin/true'"), &[error]);
    let error = "policy.toml:1: rule `a`: `report` matches any program with that name";
    check(&with("allow = ['shell.run']\nargv = ['report']", "'/bin/report'"), &[error]);
    check(&with("deny = ['shell.run']\nargv = ['report']", "'/bin/report'"), &[]);
    let error = "policy.toml:5: rule `a`: a `match` example has an invalid `argv`";
    check(&with("deny = ['shell.run']\nargv = ['report']", "'report'"), &[error]);
    check(&with("allow = ['shell.run']\nargv = ['/bin/report']", "'/bin/report'"), &[]);
}

#[test]
fn misspelt_capability_does_not_also_report_a_failing_example() {
    let text = rule("id = 'a'\ndeny = ['net.raed']\nmatch = [{ capability = 'net.read' }]");
    check(
        &text,
        &[
            "policy.toml:1: rule `a`: the rule has no `not_match` example",
            "policy.toml:3: rule `a`: `deny`: unknown capability `net.raed`",
        ],
    );
}

#[test]
fn string_length_limit() {
    let with = |length: usize| {
        let agent = "a".repeat(length);
        rule(&format!(
            "id = 'a'\nask = ['net.read']\nprincipal = ['{agent}']\n\
            match = [{{ capability = 'net.read', principal = '{agent}' }}]\n\
            not_match = [{{ capability = 'net.read' }}]"
        ))
    };
    check(&with(4_096), &[]);
    check(&with(4_097), &["policy.toml:4: rule `a`: `principal`: a string has at most 4096"]);
}

#[test]
fn errors_beyond_the_limit_are_counted() {
    let all = |count| format!("rule = [{}]", "1,".repeat(count));
    assert_eq!(load(Posture::Staging, &all(1_000)).unwrap_err().len(), 1_000);
    let errors = load(Posture::Staging, &all(1_002)).unwrap_err();
    assert_eq!(errors.len(), 1_001);
    assert_eq!(errors[1_000].message, "2 more errors: fix these first");
}
