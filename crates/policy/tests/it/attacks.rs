//! Attacks on the rules, each named after its id in the list of attacks.

use kernel::backend::Tier;
use kernel::policy_decision::{Request, Verdict};
use kernel::posture::Posture;
use policy::{FILE_BYTES_MAX, RULES_MAX, Rules, Source, capability};

use crate::support::{at_path, check, load, program, prompt, request, rule, rules, to_host};

const ALLOW_ADA: &str = "
[[rule]]
id = 'ada'
allow = ['agent.prompt']
agent = ['ada']
principal = ['somebody']
match = [{ capability = 'agent.prompt', agent = 'ada' }]
not_match = [{ capability = 'agent.prompt', agent = 'eve' }]
";

const ALLOW_REPORT_TEST: &str = "
[[rule]]
id = 'report-test'
allow = ['shell.run']
argv = ['/usr/bin/report', 'test']
match = [{ capability = 'shell.run', argv = ['/usr/bin/report', 'test'] }]
not_match = [{ capability = 'shell.run', argv = ['/usr/bin/report', 'run'] }]
";

#[test]
fn a_wide_deny_beats_a_narrow_allow() {
    let deny = rule("id = 'all'\ndeny = ['*']\nmatch = [{ capability = 'agent.prompt' }]");
    check(&rules(&format!("{ALLOW_ADA}{deny}")), &prompt("ada"), Verdict::Deny, "policy.toml/all");
    check(&rules(ALLOW_ADA), &prompt("ada"), Verdict::Allow, "baseline/agents");
}

#[test]
fn a_wide_ask_beats_a_narrow_allow() {
    let ask = rule("id = 'all'\nask = ['*']\nmatch = [{ capability = 'agent.prompt' }]");
    check(&rules(&format!("{ask}{ALLOW_ADA}")), &prompt("ada"), Verdict::Ask, "policy.toml/all");
}

#[test]
fn a_rule_that_cannot_be_evaluated_refuses_the_load_or_denies() {
    let bad = ALLOW_ADA.replace("['ada']", "['a*a']");
    assert!(load(Posture::Staging, &bad).is_err());
    for verdict in ["deny", "ask"] {
        let text = rule(&format!(
            "id = 'x'\n{verdict} = ['net.*']\nhost = ['evil.org']\n\
             match = [{{ capability = 'net.read', host = 'evil.org' }}]\n\
             not_match = [{{ capability = 'net.read', host = 'good.org' }}]"
        ));
        let rules = rules(&text);
        check(&rules, &request("net.read"), Verdict::Deny, "@error:policy.toml/x");
        check(&rules, &to_host("good.org"), Verdict::Ask, "baseline/outside");
    }
}

#[test]
fn an_allow_that_cannot_be_evaluated_allows_nothing() {
    let text = rule(
        "id = 'x'\nallow = ['secret.use', 'run.start']\nresource = ['a']\n\
         match = [{ capability = 'run.start', resource = 'a' }]\n\
         not_match = [{ capability = 'run.start' }]",
    );
    let rules = load(Posture::StrictProd, &text).unwrap();
    check(&rules, &request("secret.use"), Verdict::Deny, "@default");
}

#[test]
fn an_unknown_capability_counts_as_external() {
    for name in ["rocket.launch", "", "Agent.prompt", "agent.prompt ", "filesystem.delete"] {
        let claimed = Request { tier: Tier::ReadOnly, ..request(name) };
        let decision = Rules::baseline(Posture::Staging).decide(&claimed);
        assert_eq!(decision.verdict, Verdict::Ask, "{name}");
        assert!(decision.rules.contains(&"@tier-2".to_owned()), "{name}");
        let strict = Rules::baseline(Posture::StrictProd).decide(&claimed);
        assert_eq!(strict.verdict, Verdict::Deny, "{name}");
    }
    let family = "id = 'x'\nallow = ['memory.*']\nmatch = [{ capability = 'memory.read' }]\n\
                  not_match = [{ capability = 'code.read' }]";
    check(&rules(&rule(family)), &request("memory.erase"), Verdict::Ask, "@tier-2");
}

/// A tool's own claim is only the tier of the request, which can raise the tier but not lower it.
#[test]
fn a_claim_to_only_read_does_not_lower_the_tier() {
    let fetch = "id = 'x'\nallow = ['net.*']\nmatch = [{ capability = 'net.write' }]\n\
                 not_match = [{ capability = 'code.read' }]";
    let rules = load(Posture::StrictProd, &rule(fetch)).unwrap();
    for tier in [Tier::ReadOnly, Tier::LocalWrite, Tier::External] {
        let claimed = Request { tier, ..request("net.write") };
        check(&rules, &claimed, Verdict::Ask, "@tier-2");
    }
    for capability in capability::ALL {
        for claim in [Tier::ReadOnly, Tier::LocalWrite, Tier::External] {
            let claimed = Request { tier: claim, ..at_path(capability.name, "/srv/ada/notes") };
            let decision = Rules::baseline(Posture::Staging).decide(&claimed);
            let is_external = capability.tier.max(claim) == Tier::External;
            assert_eq!(decision.rules.contains(&"@tier-2".to_owned()), is_external, "{claimed:?}");
        }
    }
}

#[test]
fn shell_text_in_a_token_is_not_the_token() {
    let rules = rules(ALLOW_REPORT_TEST);
    let matched = |argv: &[&str]| {
        rules.decide(&program(argv)).rules.contains(&"policy.toml/report-test".to_owned())
    };
    assert!(matched(&["/usr/bin/report", "test"]));
    assert!(matched(&["/usr/bin/report", "test", "--locked"]));
    for chain in [";", "&&", "||", "|", "&", "\n", "$(id)", "`id`", "<(id)", ">(id)", "{a,b}", " "]
    {
        for separator in ["", " "] {
            assert!(
                !matched(&["/usr/bin/report", &format!("test{separator}{chain} id")]),
                "{chain}"
            );
            assert!(!matched(&[&format!("/usr/bin/report{separator}{chain}"), "test"]), "{chain}");
            assert!(!matched(&[&format!("/usr/bin/report test{separator}{chain} id")]), "{chain}");
        }
        // A separate token is a literal argument: no shell interprets it, and `shell.run` needs
        // approval anyway.
        let literal = rules.decide(&program(&["/usr/bin/report", "test", chain, "id"]));
        assert_eq!(literal.verdict, Verdict::Ask, "{chain}");
    }
    // A program without an absolute path is unknown.
    for program in ["report", "./report", "", "/usr/bin/../bin/report", "~/report"] {
        check(&rules, &self::program(&[program, "test"]), Verdict::Deny, "@error:argv");
    }
    assert!(!matched(&["/tmp/report", "test"]));
}

#[test]
fn a_program_denied_by_name_is_denied_in_every_directory() {
    let text = rule(
        "id = 'rm'\ndeny = ['shell.run']\nargv = ['rm']\n\
         match = [{ capability = 'shell.run', argv = ['/bin/rm', 'x'] }]\n\
         not_match = [{ capability = 'shell.run', argv = ['/bin/rmdir', 'x'] }]",
    );
    for path in ["/bin/rm", "/usr//bin/rm", "/tmp/x/rm"] {
        check(&rules(&text), &program(&[path, "-rf"]), Verdict::Deny, "policy.toml/rm");
    }
}

#[test]
fn programs_that_run_programs_are_never_allowed_by_a_rule() {
    for argv in [
        &["/usr/bin/env"][..],
        &["/usr/bin/env", "PATH=/tmp"],
        &["/usr/bin/timeout", "5"],
        &["/usr/bin/xargs"],
        &["/usr/bin/find", ".", "-exec"],
        &["/usr/bin/awk"],
        &["/usr/bin/gawk", "-f"],
        &["/usr/bin/tar", "--to-command"],
        &["/usr/bin/ssh", "-o"],
        &["/bin/sh", "-c"],
        &["/bin/bash"],
        &["/bin/dash"],
        &["/bin/zsh"],
        &["/usr/bin/python3.12", "-m"],
        &["/usr/bin/perl"],
        &["/usr/bin/ruby3.1"],
        &["/usr/bin/node"],
        &["/usr/bin/nice"],
        &["/usr/bin/sudo"],
        &["/usr/bin/git", "-c"],
        &["/usr/bin/make"],
        &["sh"],
    ] {
        let tokens: Vec<String> = argv.iter().map(|token| format!("'{token}'")).collect();
        let tokens = tokens.join(", ");
        let whole = tokens.replacen("'sh'", "'/usr/local/bin/sh'", 1);
        let text = |verdict: &str| {
            rule(&format!(
                "id = 'x'\n{verdict} = ['shell.run']\nargv = [{tokens}]\n\
                 match = [{{ capability = 'shell.run', argv = [{whole}, 'x'] }}]\n\
                 not_match = [{{ capability = 'shell.run', argv = ['/usr/bin/true'] }}]"
            ))
        };
        let errors = load(Posture::Staging, &text("allow")).unwrap_err();
        assert!(errors[0].message.contains("can run any other program"), "{argv:?} {errors:?}");
        assert!(load(Posture::Staging, &text("ask")).is_ok(), "{argv:?}");
    }
}

/// Every spelling of a protected name needs approval; similar names do not.
#[test]
fn a_write_to_a_protected_path_is_asked_whatever_the_rules_say() {
    let allow = "id = 'all'\nallow = ['filesystem.*', 'code.*']\n\
                 match = [{ capability = 'filesystem.write' }]\n\
                 not_match = [{ capability = 'net.read' }]";
    let rules = rules(&rule(allow)).with_protected_directory("/srv/watch/share/midwatch");
    let is_protected = |capability: &str, path: &str| {
        let decision = rules.decide(&at_path(capability, path));
        let is_protected = decision.rules.contains(&"@protected".to_owned());
        assert!(!is_protected || decision.verdict == Verdict::Ask, "{path} {decision:?}");
        is_protected
    };
    for path in [
        "policy.toml",
        "midwatch.toml",
        "MIDWATCH.TOML",
        "policy.toml.",
        "policy.toml ",
        "midwatch.db-wal",
        "sealing.key",
        "signing.key",
        ".git",
        ".git/config",
        ".GIT/config",
        ".Git/hooks/x",
        ".git./x",
        ".git /x",
        ".git...  /x",
        ".g\u{200c}it/config",
        ".gi\u{feff}t",
        "\u{200b}.git",
        ".git::$INDEX_ALLOCATION/config",
        ".git:x",
        "a\\.git\\config",
        "git~1/config",
        "GIT~1",
        "cargo~1.tom",
        "sub/.git/config",
        ".gitmodules",
        ".gitattributes",
        ".gitconfig",
        ".config/git/config",
        ".Config/Git/x",
        "Cargo.toml",
        "CARGO.TOML",
        "build.rs",
        ".cargo/config.toml",
        "rust-toolchain.toml",
        "Ma\u{212a}efile",
        "makefile",
        "package.json",
        "pac\u{212a}age.json",
        "conftest.py",
        "pyproject.toml",
        ".envrc",
        ".bashrc",
        ".zshenv",
        ".vscode/tasks.json",
        ".idea/x",
        ".devcontainer/devcontainer.json",
        ".husky/pre-commit",
        ".pre-commit-config.yaml",
        "lefthook.yml",
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".yarn/x",
        ".mvn/x",
        "bunfig.toml",
        ".bazelrc",
        "gradle/wrapper/gradle-wrapper.properties",
        ".github/workflows/ci.yml",
        ".GitHub/Workflows/new/one.yml",
        ".gitlab-ci.yml",
        ".circleci/config.yml",
        "Jenkinsfile",
        ".mcp.json",
        ".claude/settings.json",
        "AGENTS.md",
        "vite.config.ts",
        "build.gradle.kts",
        ".\u{17f}sh/config",
    ] {
        for capability in ["filesystem.write", "code.write"] {
            assert!(is_protected(capability, &format!("/srv/ada/{path}")), "{capability} {path:?}");
        }
        assert!(!is_protected("filesystem.read", &format!("/srv/ada/{path}")), "{path:?}");
    }
    // Everything in Midwatch's data directory, in any spelling.
    for path in ["node", "exports/x", "new"] {
        let spellings = ["/srv/watch/share/midwatch", "/srv/Watch//SHARE/midwatch."];
        assert!(
            spellings.iter().all(|it| is_protected("filesystem.write", &format!("{it}/{path}")))
        );
    }
    // The path is unknown.
    check(&rules, &request("filesystem.write"), Verdict::Ask, "@protected");
    for path in ["/srv/ada/../.git/x", "/srv/./.git", "policy.toml", ""] {
        check(&rules, &at_path("filesystem.write", path), Verdict::Deny, "@error:path");
    }
    for path in [
        "notes",
        "git",
        "dotgit/x",
        ".github/ISSUE_TEMPLATE.md",
        "my-policy.toml",
        "package.json5",
        "src/build.rs.md",
        "workflows/x",
        "config/git",
        "build/x",
        "workspace/x",
        "a~b",
        "backup-of-me~12",
        "Cargo.lock",
        ".gitignore",
    ] {
        let request = at_path("filesystem.write", &format!("/srv/ada/{path}"));
        check(&rules, &request, Verdict::Allow, "baseline/local-work");
    }
}

#[test]
fn rule_count_limit() {
    let text = |range: std::ops::Range<usize>| -> String {
        let one = |number| {
            rule(&format!(
                "id = 'r{number}'\ndeny = ['net.*']\nhost = ['h{number}.org']\n\
                 match = [{{ capability = 'net.read', host = 'h{number}.org' }}]\n\
                 not_match = [{{ capability = 'code.read' }}]"
            ))
        };
        range.map(one).collect()
    };
    let third = RULES_MAX / 3;
    let (a, b) = (text(0..third), text(third..2 * third));
    let (c, d) = (text(2 * third..RULES_MAX), text(RULES_MAX..RULES_MAX + 1));
    let source = |name, text| Source { name, text };
    let most = [source("a", a.as_str()), source("b", &b), source("c", &c)];
    let rules = Rules::load(Posture::Staging, &most).unwrap();
    check(&rules, &to_host("h9999.org"), Verdict::Deny, "c/r9999");
    check(&rules, &to_host("h10000.org"), Verdict::Ask, "baseline/outside");
    // Bounded time: one pass over the rules per request.
    let request = to_host("h9999.org");
    assert!((0..1_000).all(|_| rules.decide(&request).verdict == Verdict::Deny));

    let more = [most[0], most[1], most[2], source("d", &d)];
    let errors = Rules::load(Posture::Staging, &more).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].message, "more than 10000 rules: remove some");
}

#[test]
fn file_size_limit() {
    let largest = "#".repeat(FILE_BYTES_MAX);
    assert!(load(Posture::Staging, &largest).is_ok());
    let errors = load(Posture::Staging, &format!("{largest}#")).unwrap_err();
    assert!(errors[0].message.starts_with("the file has 1048577 bytes"), "{errors:?}");
}

#[test]
fn deeply_nested_and_long_texts_are_refused() {
    for text in [
        format!("rule = {}", "[".repeat(100_000)),
        format!("[[rule]]\nagent = {}1{}", "[".repeat(5_000), "]".repeat(5_000)),
        format!("a{} = 1", ".a".repeat(100_000)),
        rule(&format!("id = 'x'\ndeny = ['{}']", "net.*".repeat(100_000))),
    ] {
        assert!(load(Posture::Staging, &text).is_err());
    }
}
