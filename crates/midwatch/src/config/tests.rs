//! Loading whole files and environments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

const DAY: Duration = Duration::from_secs(86_400);

const FILE: &str = "midwatch.toml";

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, Error> {
    let pairs = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    Config::load(Some((Path::new(FILE), text)), &pairs.collect())
}

fn defaults() -> Config {
    Config::load(None, &BTreeMap::new()).unwrap().config
}

/// Checks the printed error with its excerpt and hint.
fn check_error(text: &str, variables: &[(&str, &str)], expected: &str) {
    let error = load(text, variables).expect_err(text);
    let mut found = error.to_string();
    for part in [error.excerpt, error.hint.map(|hint| format!("hint: {hint}"))] {
        found.extend(part.map(|part| format!("\n{part}")));
    }
    assert_eq!(found, expected, "{text}");
}

#[test]
fn money_is_written_as_exact_text() {
    let money = |text: &str| {
        let loaded = load(&format!("[budget]\nmoney = {text}\n"), &[]);
        loaded.map(|it| it.config.budget.money.as_micros()).map_err(|error| error.to_string())
    };
    assert_eq!(money("\"5.00\""), Ok(5_000_000));
    assert_eq!(money("\"0.000001\""), Ok(1));
    assert_eq!(money("\"0\""), Ok(0));
    assert_eq!(money("\"100000000\""), Ok(100_000_000_000_000));
    for wrong in [
        "\"100000000.000001\"",
        "\"1e9\"",
        "\"-1\"",
        "\"0.0000001\"",
        "\"NaN\"",
        "\"\"",
        "\" 5\"",
        "5",
        "5.00",
        "-1",
        "true",
        "[\"5\"]",
    ] {
        let error = money(wrong).unwrap_err();
        assert!(error.contains("`budget.money` must be an amount of money"), "{wrong}: {error}");
    }
    let loaded = load("", &[("MIDWATCH_BUDGET_MONEY_PER_AGENT", "2.5")]).unwrap();
    assert_eq!(loaded.config.budget.money_per_agent.as_micros(), 2_500_000);
    assert!(load("", &[("MIDWATCH_BUDGET_MONEY", "1e9")]).is_err());
}

#[test]
fn defaults_are_as_documented() {
    let expected = Config {
        posture: Posture::Staging,
        log: Log { level: Level::Info, file_bytes_max: 10 << 20, files_max: 5 },
        ledger: Ledger { checkpoint_copy: None, heartbeat: Duration::from_secs(60) },
        runs: Runs { drain: Duration::from_secs(300) },
        lease: Lease { ask_after: DAY * 14, pause_after: DAY * 28 },
        budget: Budget {
            runs: 50_000,
            runs_per_agent: 10_000,
            tokens: 50_000_000,
            tokens_per_agent: 10_000_000,
            money: "20".parse().unwrap(),
            money_per_agent: "10".parse().unwrap(),
            changes_per_agent: 10_000,
            bytes_per_agent: 100_000_000,
        },
        approval: Approval {
            pending_per_agent: 5,
            asks_per_agent: 20,
            denied_for: Duration::from_secs(20 * 3_600),
        },
        retention: Retention::default(),
        store: Storage { url: None, password: None, ca_file: None },
        notice: Notice { command: Vec::new(), url: None, token: None },
        http: Http { listen: Some(([127, 0, 0, 1], 7400).into()), toolsets: Vec::new() },
        feature_flags: Flags::default(),
    };
    assert_eq!(defaults(), expected);
    assert_eq!(load("", &[]).unwrap().config, expected);
}

#[test]
fn sample_loads_to_the_defaults_as_is_and_uncommented() {
    let sample = sample();
    assert_eq!(load(&sample, &[]).unwrap().config, defaults());
    let uncommented = sample.replace("\n#", "\n").replace("\n ", "\n# ");
    let loaded = load(&uncommented, &[]).unwrap();
    assert_eq!(loaded.config, defaults());
    for value in loaded.values {
        assert!(matches!(value.origin, Origin::File { .. }), "{}", value.key);
    }
}

#[test]
fn environment_overrides_file_and_file_overrides_default() {
    let text =
        "\u{feff}posture = \"unattended\"\r\n\r\n[log]\r\nlevel = \"debug\"\r\nfiles_max = 7\r\n";
    let variables = [
        ("MIDWATCH_LOG_LEVEL", "trace"),
        ("MIDWATCH_LOG_FILE_BYTES_MAX", "1048576"),
        ("MIDWATCH_LEDGER_CHECKPOINT_COPY", "/mnt/copy"),
        ("MIDWATCH_FEATURE_FLAGS_LOCAL_APPROVALS", "1"),
        ("MIDWATCH_FEATURE_FLAGS_NOTICES", "false"),
        ("MIDWATCH_LOG_LEVLE", "x"),
        ("MIDWATCH_DATA", "/data"),
    ];
    let loaded = load(text, &variables).unwrap();
    let config = &loaded.config;
    assert_eq!(config.posture, Posture::StrictProd);
    assert_eq!(config.log, Log { level: Level::Trace, file_bytes_max: 1 << 20, files_max: 7 });
    assert_eq!(config.ledger.checkpoint_copy, Some(PathBuf::from("/mnt/copy")));
    assert_eq!(config.feature_flags, Flags { notices: false, ..Flags::default() });
    let shown = loaded.values.iter().map(|it| format!("{} = {} ({})", it.key, it.value, it.origin));
    let expected = [
        "posture = \"strict-prod\" (midwatch.toml:1)",
        "log.level = \"trace\" (MIDWATCH_LOG_LEVEL)",
        "log.file_bytes_max = 1048576 (MIDWATCH_LOG_FILE_BYTES_MAX)",
        "log.files_max = 7 (midwatch.toml:5)",
        "ledger.checkpoint_copy = \"/mnt/copy\" (MIDWATCH_LEDGER_CHECKPOINT_COPY)",
        "ledger.heartbeat = \"60s\" (default)",
        "runs.drain = \"5m\" (default)",
        "lease.ask_after = \"14d\" (default)",
        "lease.pause_after = \"28d\" (default)",
        "budget.runs = 50000 (default)",
        "budget.runs_per_agent = 10000 (default)",
        "budget.tokens = 50000000 (default)",
        "budget.tokens_per_agent = 10000000 (default)",
        "budget.money = \"20.00\" (default)",
        "budget.money_per_agent = \"10.00\" (default)",
        "budget.changes_per_agent = 10000 (default)",
        "budget.bytes_per_agent = 100000000 (default)",
        "approval.pending_per_agent = 5 (default)",
        "approval.asks_per_agent = 20 (default)",
        "approval.denied_for = \"20h\" (default)",
        "retention.outputs_age = \"90d\" (default)",
        "retention.outputs_bytes = \"10GiB\" (default)",
        "retention.logs_age = \"90d\" (default)",
        "retention.exports_age = \"0s\" (default)",
        "retention.exports_bytes = \"0B\" (default)",
        "retention.responses_age = \"7d\" (default)",
        "store.url = \"\" (default)",
        "store.password = \"\" (default)",
        "store.ca_file = \"\" (default)",
        "notice.command = [] (default)",
        "notice.url = \"\" (default)",
        "notice.token = \"\" (default)",
        "http.listen = \"127.0.0.1:7400\" (default)",
        "http.toolsets = [] (default)",
        "feature_flags.local_approvals = true (MIDWATCH_FEATURE_FLAGS_LOCAL_APPROVALS)",
        "feature_flags.token_files = false (default)",
        "feature_flags.schedules_by_runs = true (default)",
        "feature_flags.notices = false (MIDWATCH_FEATURE_FLAGS_NOTICES)",
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    assert_eq!(loaded.warnings.len(), 1);
}

#[test]
fn dotted_keys_and_inline_tables_are_sections() {
    let expected = Log { level: Level::Warn, ..defaults().log };
    assert_eq!(load("log.level = \"warn\"", &[]).unwrap().config.log, expected);
    assert_eq!(load("log = { level = \"warn\" }", &[]).unwrap().config.log, expected);
    assert_eq!(load("[log]\n[ledger]\n", &[]).unwrap().config, defaults());
}

#[test]
fn aliases_are_resolved_and_secrets_redacted() {
    let text = "posture = \"supervised\"\n[ledger]\ncheckpoint_copy = \"/mnt/sk-0123456789\"\n";
    let values = load(text, &[]).unwrap().values;
    assert_eq!(values[0].value, Setting::Text("staging".to_owned()));
    assert_eq!(values[4].value, Setting::Text("/mnt/sk-[redacted]".to_owned()));
}

#[test]
fn unknown_keys_and_sections_have_a_hint() {
    check_error(
        "# x\n[log]\n  levl = \"info\"\n",
        &[],
        "midwatch.toml:3:3: unknown key `log.levl`\n  |\n3 |   levl = \"info\"\n  |   ^^^^\n\
         hint: did you mean `log.level`?",
    );
    check_error(
        "[logs]\nlevel = \"info\"",
        &[],
        "midwatch.toml:1:2: unknown section `logs`\n  |\n1 | [logs]\n  |  ^^^^\n\
         hint: did you mean `log`?",
    );
    check_error(
        "level = \"info\"",
        &[],
        "midwatch.toml:1:1: unknown key `level`\n  |\n1 | level = \"info\"\n  | ^^^^^\n\
         hint: did you mean `log.level`?",
    );
    check_error(
        "[log]\nposture = \"debug\"",
        &[],
        "midwatch.toml:2:1: unknown key `log.posture`\n  |\n2 | posture = \"debug\"\n  | ^^^^^^^\n\
         hint: `posture` belongs at the top of the file, above the first section",
    );
    check_error(
        "[ledger]\ncolour = 1",
        &[],
        "midwatch.toml:2:1: unknown key `ledger.colour`\n  |\n2 | colour = 1\n  | ^^^^^^\n\
         hint: the keys here are `ledger.checkpoint_copy`, `ledger.heartbeat`",
    );
    check_error(
        "[xyzzy]",
        &[],
        "midwatch.toml:1:2: unknown section `xyzzy`\n  |\n1 | [xyzzy]\n  |  ^^^^^\n\
         hint: the sections are `log`, `ledger`, `runs`, `lease`, `budget`, `approval`, `retention`, `store`, `notice`, `http`, `feature_flags`",
    );
    check_error(
        "api_token = \"hunter22\"",
        &[],
        "midwatch.toml:1:1: unknown key `api_token`\n  |\n1 | api_token = \"[redacted]\"\n  | ^^^^^^^^^\n\
         hint: the keys here are `posture`",
    );
}

#[test]
fn wrong_types_and_values_have_a_hint() {
    let check = |text: &str, variables: &[(&str, &str)], expected: &str| {
        let error = load(text, variables).expect_err(text);
        let hint = error.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        assert_eq!(format!("{error}{hint}"), expected, "{text}");
    };
    check(
        "posture = \"stagging\"",
        &[],
        "midwatch.toml:1:11: `posture` must be one of `staging`, `strict-prod`, `debug`, not \
         `stagging` (did you mean `staging`?)",
    );
    check(
        "posture = true",
        &[],
        "midwatch.toml:1:11: `posture` must be one of `staging`, `strict-prod`, `debug`, not `true`",
    );
    check(
        "[log]\nlevel = [\"info\"]",
        &[],
        "midwatch.toml:2:9: `log.level` must be one of `error`, `warn`, `info`, `debug`, `trace`, \
         not a list",
    );
    check(
        "[log]\nfile_bytes_max = \"10M\"",
        &[],
        "midwatch.toml:2:18: `log.file_bytes_max` must be a size from 64KiB to 4GiB, not `10M` \
         (write a size with its unit, such as `10MiB` or `500kB`)",
    );
    check(
        "[log]\nfiles_max = \"5\"",
        &[],
        "midwatch.toml:2:13: `log.files_max` must be a whole number from 1 to 100, not `5` \
         (write it without quotes)",
    );
    check(
        "[log]\nfiles_max = 5.0",
        &[],
        "midwatch.toml:2:13: `log.files_max` must be a whole number from 1 to 100, not a fraction",
    );
    check(
        "[log]\nfiles_max = 99999999999999999999999999999999999999999999",
        &[],
        "midwatch.toml:2:13: `log.files_max` must be a whole number from 1 to 100, not such a \
         large number",
    );
    check(
        "[ledger]\ncheckpoint_copy = \"~/copy\"",
        &[],
        "midwatch.toml:2:19: `ledger.checkpoint_copy` must be the absolute path of a file, or \
         empty, not `~/copy` (relative paths and `~` depend on who starts the daemon, and from \
         where)",
    );
    check(
        "[ledger]\nheartbeat = \"1\"",
        &[],
        "midwatch.toml:2:13: `ledger.heartbeat` must be a span from 1s to 1d, or 0s, not `1` \
         (write a span with its unit, such as `90s`, `5m` or `1h30m`)",
    );
    check(
        "[feature_flags]\nnotices = \"true\"",
        &[],
        "midwatch.toml:2:11: `feature_flags.notices` must be true or false, not `true` \
         (write it without quotes)",
    );
    check(
        "log = 3",
        &[],
        "midwatch.toml:1:1: `log` is a section, not `3` (write `[log]` on a separate line, \
         and its keys below it)",
    );
    check(
        "[[log]]\nlevel = \"info\"",
        &[],
        "midwatch.toml:1:3: `log` is a section, not a list (write `[log]` on a separate line, \
         and its keys below it)",
    );
    check(
        "[posture]\n",
        &[],
        "midwatch.toml:1:1: `posture` must be one of `staging`, `strict-prod`, `debug`, not a \
         section",
    );
    check(
        "",
        &[("MIDWATCH_LOG_LEVEL", "")],
        "`MIDWATCH_LOG_LEVEL` must be one of `error`, `warn`, `info`, `debug`, `trace`, not empty",
    );
    check(
        "",
        &[("MIDWATCH_FEATURE_FLAGS_NOTICES", "yes")],
        "`MIDWATCH_FEATURE_FLAGS_NOTICES` must be true or false, not `yes`",
    );
}

#[test]
fn command_is_a_list_in_file_and_environment() {
    let argv = |text: &str, variables: &[(&str, &str)]| {
        load(text, variables).map(|loaded| loaded.config.notice.command)
    };
    let words = ["page", "me now"].map(str::to_owned).to_vec();
    assert_eq!(argv("notice.command = [\"page\", 'me now']", &[]), Ok(words.clone()));
    let variable =
        |text| argv("notice.command = [\"other\"]", &[("MIDWATCH_NOTICE_COMMAND", text)]);
    assert_eq!(variable("[\"page\", \"me now\"]"), Ok(words));
    assert_eq!((variable("[]"), variable("")), (Ok(Vec::new()), Ok(Vec::new())));
    for text in ["page me", "[1]", "[\"\"]", "[\"a\\u0000\"]"] {
        assert!(variable(text).is_err(), "{text}");
    }
    for text in ["\"page me\"", "[\"\"]", "[\"page\", 1]", "[\"a\\u0000\"]", "true"] {
        let error = argv(&format!("notice.command = {text}"), &[]).unwrap_err();
        assert!(error.message.contains("a list of a program and its arguments"), "{error}");
    }
    let shown = load("notice.command = [\"page\", \"sk-0123456789\"]", &[]).unwrap().values;
    let shown = shown.iter().find(|value| value.key == "notice.command").unwrap();
    assert_eq!(shown.value.to_string(), "[\"page\", \"sk-[redacted]\"]");
}

#[test]
fn only_existing_toolsets_are_accepted() {
    let toolsets = |text: &str| {
        load(&format!("http.toolsets = {text}"), &[]).map(|loaded| loaded.config.http.toolsets)
    };
    assert_eq!(toolsets("[]").unwrap(), []);
    let chosen = toolsets("[\"core\", \"astra\"]").unwrap();
    assert_eq!(chosen, [mcp::Toolset::Core, mcp::Toolset::Astra]);
    for wrong in ["\"core\"", "[\"cores\"]", "[1]", "true"] {
        let error = toolsets(wrong).unwrap_err().to_string();
        assert!(error.contains("must be a list of toolsets, or empty"), "{error}");
    }
}

#[test]
fn http_listens_on_loopback_only() {
    let listen = |value: &str| load("", &[("MIDWATCH_HTTP_LISTEN", value)]);
    for loopback in ["127.0.0.1:0", "[::1]:7400", ""] {
        assert!(listen(loopback).is_ok(), "{loopback}");
    }
    let remote = ["0.0.0.0:7400", "[::]:7400", "192.168.1.2:7400", "127.0.0.2:7400"];
    for address in [&remote[..], &["[::ffff:127.0.0.1]:7400", "localhost:7400", "7400"]].concat() {
        let error = listen(address).unwrap_err().to_string();
        assert!(error.contains("must be a loopback address and a port"), "{address}: {error}");
    }
}

#[test]
fn notices_to_other_machines_must_be_encrypted() {
    let check = |url: &str, posture: &str, expected: Result<(), &str>| {
        let text = format!("posture = \"{posture}\"\nnotice.url = \"{url}\"");
        let found = load(&text, &[]).map(drop).map_err(|error| error.message);
        match expected {
            Ok(()) => assert_eq!(found, Ok(()), "{url}"),
            Err(what) => assert!(found.as_ref().is_err_and(|it| it.contains(what)), "{found:?}"),
        }
    };
    check("", "staging", Ok(()));
    check("https://ntfy.example.com/topic", "strict-prod", Ok(()));
    check("http://127.0.0.1:8080/topic", "strict-prod", Ok(()));
    check("http://[::1]:8080/", "staging", Ok(()));
    check("http://example.com/topic", "debug", Ok(()));
    check("http://example.com/topic", "staging", Err("without encryption"));
    check("http://example.com/topic", "strict-prod", Err("without encryption"));
    for url in ["ftp://example.com", "example.com", "https://me:hunter2@example.com", "http://[::1"]
    {
        check(url, "debug", Err("must be an `https` or `http` url"));
    }
    let error = load("", &[("MIDWATCH_NOTICE_URL", "http://example.com")]).unwrap_err();
    assert!(error.message.starts_with("`MIDWATCH_NOTICE_URL` goes to"), "{error}");
}

#[test]
fn refused_value_that_may_be_a_secret_is_not_repeated() {
    for (key, value) in [
        ("notice.token", "hunter22"),
        ("store.password", "hunter22"),
        ("notice.url", "https://me:hunter22@x"),
        ("notice.url", "https://me:hunter22/a@x"),
        ("notice.url", "https://me:a/hunter22@x"),
        ("notice.url", "https://me:hunter22\\a@x"),
        ("notice.url", "https://me%3Ahunter22%40x"),
        ("store.url", "postgres://me:hunter22@x/db"),
        ("store.url", "postgres://me:a/hunter22@x/db"),
        ("store.url", "postgres://me%3Ahunter22@x/db"),
        ("store.url", "postgres://x/db?password=hunter22"),
        ("store.url", "postgres:/me:hunter22@x/db"),
    ] {
        for text in [format!("{key} = '{value}'"), format!("{key} = '''\n{value}'''")] {
            let error = load(&text, &[]).unwrap_err();
            let shown = format!("{error} {:?} {:?}", error.excerpt, error.hint);
            assert!(shown.contains(key) && shown.contains("[redacted]"), "{value}: {shown}");
            assert!(error.hint.as_ref().is_some_and(|hint| !hint.is_empty()), "{value}: {shown}");
            assert!(!shown.contains("hunter22"), "{value}: {shown}");
        }
        let variable = format!("MIDWATCH_{}", key.to_uppercase().replace('.', "_"));
        let error = load("", &[(variable.as_str(), value)]).unwrap_err();
        let shown = format!("{error} {:?} {:?}", error.excerpt, error.hint);
        assert!(shown.contains(&variable) && !shown.contains("hunter22"), "{value}: {shown}");
    }
}

#[test]
fn values_at_the_limits_are_accepted_and_past_them_refused() {
    let fits = |text: &str| load(text, &[]).is_ok();
    for (key, inside, outside) in [
        ("log.files_max", ["1", "100"], ["0", "101"]),
        ("log.file_bytes_max", ["65536", "\"4GiB\""], ["65535", "4294967297"]),
        ("ledger.heartbeat", ["\"1s\"", "\"24h\""], ["\"999ms\"", "\"86401s\""]),
        ("runs.drain", ["\"0s\"", "\"1h\""], ["\"-1s\"", "\"3601s\""]),
    ] {
        inside.iter().for_each(|it| assert!(fits(&format!("{key} = {it}")), "{key} {it}"));
        outside.iter().for_each(|it| assert!(!fits(&format!("{key} = {it}")), "{key} {it}"));
    }
    assert!(fits("ledger.heartbeat = \"0s\""));
    assert!(fits(&"#".repeat(FILE_BYTES_MAX)));
    let error = load(&"#".repeat(FILE_BYTES_MAX + 1), &[]).unwrap_err();
    assert!(error.message.contains("larger than 1 MiB"), "{error}");
}

#[test]
fn pause_after_must_be_longer_than_ask_after() {
    for (ask, pause, fits) in [
        ("14d", "28d", true),
        ("14d", "14d", false),
        ("14d", "13d", false),
        ("14d", "0s", true),
        ("0s", "1d", true),
        ("0s", "0s", true),
    ] {
        let text = format!("[lease]\nask_after = \"{ask}\"\npause_after = \"{pause}\"");
        assert_eq!(load(&text, &[]).is_ok(), fits, "{text}");
    }
    let error = load("lease.ask_after = \"60d\"", &[]).unwrap_err();
    assert!(error.message.contains("is not longer than `lease.ask_after`"), "{error}");
}

#[test]
fn flag_follows_environment_then_file_then_default() {
    let check = |text: &str, variable: Option<&str>, expected: bool, origin: &str| {
        let variable = variable.map(|it| ("MIDWATCH_FEATURE_FLAGS_NOTICES", it));
        let loaded = load(text, variable.as_slice()).unwrap();
        assert_eq!(loaded.config.feature_flags.notices, expected, "{text} {variable:?}");
        let value = loaded.values.iter().find(|it| it.key == "feature_flags.notices").unwrap();
        assert_eq!((&value.value, &*value.origin.to_string()), (&Setting::Flag(expected), origin));
    };
    let (off, variable) = ("[feature_flags]\nnotices = false", "MIDWATCH_FEATURE_FLAGS_NOTICES");
    check("", None, true, "default");
    check(off, None, false, "midwatch.toml:2");
    check(off, Some("true"), true, variable);
    check("", Some("0"), false, variable);
}

#[test]
fn reload_applies_only_reloadable_sections() {
    for (key, expected) in [
        ("posture", false),
        ("log.level", false),
        ("ledger.heartbeat", false),
        ("lease.ask_after", true),
        ("budget.runs", true),
        ("store.url", false),
        ("notice.url", true),
        ("retention.outputs_age", true),
        ("http.listen", false),
        ("feature_flags.notices", true),
        ("nothing.known", false),
    ] {
        assert_eq!(is_reloadable(key), expected, "{key}");
    }
}

#[test]
fn syntax_errors_have_a_position() {
    let check = |text: &str, line: u32, column: u32| {
        let error = load(text, &[]).expect_err(text);
        assert_eq!((error.line, error.column), (Some(line), Some(column)), "{error}");
        assert!(error.message.starts_with("the file is not valid TOML: "), "{error}");
    };
    check("[log\nlevel = 1", 1, 5);
    check("posture = staging", 1, 11);
    check("posture = \"debug", 1, 17);
    check("posture = \"debug\"\nposture = \"debug\"", 2, 1);
    check("[log]\nlevel == 1", 2, 8);
    check("a = 1\rb = 2", 1, 7);
    check("a\0b = 1", 1, 2);
}

#[test]
fn first_fault_of_the_file_is_reported() {
    let check = |text: &str, line: u32| {
        assert_eq!(
            load(text, &[("MIDWATCH_POSTURE", "bad")]).unwrap_err().line,
            Some(line),
            "{text}"
        );
    };
    check("posture = 1\n[a]\n", 1);
    check("zebra = 1\nposture = 1\n", 1);
    check("[log]\nlevel = 1\n[a]\n", 2);
    check("[zebra]\n[log]\nlevel = 1\n", 1);
}

#[test]
fn unknown_variables_have_a_suggestion_and_secrets_that_the_file_names_are_known() {
    let text = "[store]\npassword = \"env:MIDWATCH_DB_PASSWORD\"\n";
    let names = [
        "MIDWATCH_CONFIG",
        "MIDWATCH_DATA",
        "MIDWATCH_DB_PASSWORD",
        "MIDWATCH_LOGLEVEL",
        "MIDWATCH_POSTUER",
        "MIDWATCH_TOKEN",
        "MIDWATCH_XYZZY",
        "PATH",
    ];
    let variables = names.map(|name| (name, "x"));
    let found: Vec<String> =
        load(text, &variables).unwrap().warnings.iter().map(ToString::to_string).collect();
    let expected = [
        "`MIDWATCH_LOGLEVEL` matches no key and is ignored; did you mean `MIDWATCH_LOG_LEVEL`?",
        "`MIDWATCH_POSTUER` matches no key and is ignored; did you mean `MIDWATCH_POSTURE`?",
        "`MIDWATCH_XYZZY` matches no key and is ignored",
    ];
    assert_eq!(found, expected);
}
