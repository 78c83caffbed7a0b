//! The one definition of every key. To add a key, add a row to [`KEYS`] and a field to `Config`.

use std::time::Duration;

use super::kind::{Kind, Raw};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// Whoever stops a watch does not wait for longer.
const DRAIN_MAX: Duration = Duration::from_secs(3_600);
/// A heartbeat that is rarer says nothing about an outage that matters.
const HEARTBEAT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

const BUDGET_MAX: u32 = 1_000_000_000;
const LEASE_MIN: Duration = Duration::from_secs(60 * 60);
const LEASE_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

pub(super) struct Key {
    /// `name` at the top of the file, or `section.name`.
    pub(super) path: &'static str,
    /// Sentences for the manual and the sample file.
    pub(super) doc: &'static str,
    pub(super) default: Raw<'static>,
    pub(super) kind: Kind,
}

pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    /// Whether a reload takes its keys up. Those of the others wait for a restart.
    pub(super) is_reread: bool,
}

/// Whether a reload takes a key up.
pub fn is_reread(path: &str) -> bool {
    let section = path.split_once('.').map_or("", |(section, _)| section);
    SECTIONS.iter().any(|it| it.name == section && it.is_reread)
}

impl Key {
    /// The section it belongs to; empty at the top of the file.
    pub(super) fn section(&self) -> &'static str {
        self.path.split_once('.').map_or("", |(section, _)| section)
    }

    pub(super) fn name(&self) -> &'static str {
        self.path.split_once('.').map_or(self.path, |(_, name)| name)
    }

    /// The environment variable that overrides it.
    pub(super) fn variable(&self) -> String {
        format!("MIDWATCH_{}", self.path.replace('.', "_").to_ascii_uppercase())
    }
}

pub(super) const SECTIONS: &[Section] = &[
    Section {
        name: "log",
        doc: "What Midwatch says about itself, on standard error and in `logs/midwatch.log` in \
              the data directory.",
        is_reread: false,
    },
    Section {
        name: "ledger",
        doc: "The signed log of everything that happened.",
        is_reread: false,
    },
    Section { name: "runs", doc: "What becomes of runs that are at work.", is_reread: false },
    Section {
        name: "lease",
        doc: "How long the watch goes on without a human. Deciding on an approval renews it, and so \
              does `midwatch lease renew`.",
        is_reread: true,
    },
    Section {
        name: "budget",
        doc: "The most runs that may begin in a day of UTC, and the tokens and the money after which none \
              does, beside what a schedule's own terms say. Of tier 0 runs are not counted, but what they \
              use and cost is.",
        is_reread: true,
    },
    Section {
        name: "approval",
        doc: "How much agents may ask of people, so that people go on reading what they are asked. A run \
              that may not ask ends, and its slot says so.",
        is_reread: true,
    },
    Section {
        name: "store",
        doc: "Where the data is kept: in a file of the data directory, unless a database is named. \
              `midwatch store copy` moves it from one to the other.",
        is_reread: false,
    },
    Section {
        name: "notice",
        doc: "How a human is called when a run waits for approval or fails for good, as \
              `docs/notices.md` describes. The daemon reads these keys when it starts.",
        is_reread: false,
    },
    Section {
        name: "http",
        doc: "Where programs on this machine reach the daemon over HTTP, as `docs/mcp.md` describes, and \
              people the pages of approvals (`docs/safety.md`). Nothing is told or done without a token.",
        is_reread: false,
    },
    Section {
        name: "feature_flags",
        doc: "Switches for what can be switched off while the watch is kept. They take away from what \
              the posture allows and never add to it; `midwatch status --capabilities` shows what is \
              left.",
        is_reread: true,
    },
];

pub(super) const KEYS: &[Key] = &[
    Key {
        path: "posture",
        doc: "How strictly agents are held: which rules the standing orders begin with, and what is \
              done about that of which no rule speaks (`strict-prod` denies it, `staging` and \
              `debug` ask). `unattended` and `supervised` are other words for `strict-prod` and \
              `staging`.",
        default: Raw::text("staging"),
        kind: Kind::Posture(|config| &mut config.posture),
    },
    Key {
        path: "log.level",
        doc: "How much is logged. Short-lived commands log warnings and errors only, unless \
              `MIDWATCH_LOG_LEVEL` asks for another level.",
        default: Raw::text("info"),
        kind: Kind::Level(|config| &mut config.log.level),
    },
    Key {
        path: "log.file_bytes_max",
        doc: "Size at which the log file is rotated: `midwatch.log` becomes `midwatch.log.1`, and \
              so on.",
        default: Raw::text("10MiB"),
        kind: Kind::Bytes {
            field: |config| &mut config.log.file_bytes_max,
            min: 64 * KIB,
            max: 4 * GIB,
        },
    },
    Key {
        path: "log.files_max",
        doc: "Rotated log files that are kept beside the current one.",
        default: Raw::Integer(5),
        kind: Kind::Count { field: |config| &mut config.log.files_max, min: 1, max: 100 },
    },
    Key {
        path: "ledger.checkpoint_copy",
        doc: "A file outside the data directory to which every signed checkpoint is appended as \
              well, so that replacing the whole directory does not go unnoticed. Empty: none.",
        default: Raw::text(""),
        kind: Kind::File(|config| &mut config.ledger.checkpoint_copy),
    },
    Key {
        path: "ledger.heartbeat",
        doc: "Span after which the ledger records that the watch is alive, so that silence is \
              visible. `0s` turns it off.",
        default: Raw::text("60s"),
        kind: Kind::Span {
            field: |config| &mut config.ledger.heartbeat,
            min: Duration::from_secs(1),
            max: HEARTBEAT_MAX,
        },
    },
    Key {
        path: "runs.drain",
        doc: "Span for which runs may go on when the watch is told to stop; then they are stopped. \
              `0s`: at once.",
        default: Raw::text("5s"),
        kind: Kind::Span {
            field: |config| &mut config.runs.drain,
            min: Duration::from_millis(1),
            max: DRAIN_MAX,
        },
    },
    Key {
        path: "lease.ask_after",
        doc: "Span without a human after which every run asks for approval. `0s`: never.",
        default: Raw::text("14d"),
        kind: Kind::Span {
            field: |config| &mut config.lease.ask_after,
            min: LEASE_MIN,
            max: LEASE_MAX,
        },
    },
    Key {
        path: "lease.pause_after",
        doc: "Span without a human after which no run begins any more; longer than \
              `lease.ask_after`. `0s`: never.",
        default: Raw::text("28d"),
        kind: Kind::Span {
            field: |config| &mut config.lease.pause_after,
            min: LEASE_MIN,
            max: LEASE_MAX,
        },
    },
    Key {
        path: "budget.runs",
        doc: "Of all agents together. `0`: as many as there are.",
        default: Raw::Integer(50_000),
        kind: Kind::Count { field: |config| &mut config.budget.runs, min: 0, max: BUDGET_MAX },
    },
    Key {
        path: "budget.runs_per_agent",
        doc: "Of each agent. `0`: as many as there are.",
        default: Raw::Integer(10_000),
        kind: Kind::Count {
            field: |config| &mut config.budget.runs_per_agent,
            min: 0,
            max: BUDGET_MAX,
        },
    },
    Key {
        path: "budget.tokens",
        doc: "Tokens of all agents together that backends have told of, read and written. A run that has \
              begun goes on. `0`: as many as there are.",
        default: Raw::Integer(50_000_000),
        kind: Kind::Count { field: |config| &mut config.budget.tokens, min: 0, max: BUDGET_MAX },
    },
    Key {
        path: "budget.tokens_per_agent",
        doc: "Of each agent. `0`: as many as there are.",
        default: Raw::Integer(10_000_000),
        kind: Kind::Count {
            field: |config| &mut config.budget.tokens_per_agent,
            min: 0,
            max: BUDGET_MAX,
        },
    },
    Key {
        path: "budget.money",
        doc: "What all agents together may cost, in quotes, in the currency in which you give agents their \
              prices (`midwatch agent add --price-input`, `--price-output`, `--price-run`). An agent \
              without a price costs nothing, and is not kept from anything by this. `\"0\"`: as much as \
              there is.",
        default: Raw::text("20.00"),
        kind: Kind::Money(|config| &mut config.budget.money),
    },
    Key {
        path: "budget.money_per_agent",
        doc: "Of each agent. `\"0\"`: as much as there is.",
        default: Raw::text("10.00"),
        kind: Kind::Money(|config| &mut config.budget.money_per_agent),
    },
    Key {
        path: "approval.pending_per_agent",
        doc: "Questions about one agent that wait for an answer at a time. `0`: as many as there are.",
        default: Raw::Integer(5),
        kind: Kind::Count {
            field: |config| &mut config.approval.pending_per_agent,
            min: 0,
            max: BUDGET_MAX,
        },
    },
    Key {
        path: "approval.asks_per_agent",
        doc: "Questions about one agent in a day of UTC. `0`: as many as there are.",
        default: Raw::Integer(20),
        kind: Kind::Count {
            field: |config| &mut config.approval.asks_per_agent,
            min: 0,
            max: BUDGET_MAX,
        },
    },
    Key {
        path: "approval.denied_for",
        doc: "Span in which nobody is asked again what they have denied: runs that would ask the same \
              end at once. A run that somebody starts by hand asks all the same. `0s`: it is always \
              asked.",
        default: Raw::text("20h"),
        kind: Kind::Span {
            field: |config| &mut config.approval.denied_for,
            min: Duration::from_secs(1),
            max: LEASE_MAX,
        },
    },
    Key {
        path: "store.url",
        doc: "A PostgreSQL database that holds the data instead of a file, such as \
              `postgres://midwatch@db.example/midwatch`. A database on another machine is reached \
              encrypted, unless the url ends in `?sslmode=disable`. Empty: none.",
        default: Raw::text(""),
        kind: Kind::Database(|config| &mut config.store.url),
    },
    Key {
        path: "store.password",
        doc: "Where the password of the database is found: `env:NAME` or `file:/absolute/path`. \
              Empty: none is sent.",
        default: Raw::text(""),
        kind: Kind::Secret(|config| &mut config.store.password),
    },
    Key {
        path: "store.ca_file",
        doc: "A file of certificates (PEM) against which the database's certificate is checked. \
              Empty: those of the system.",
        default: Raw::text(""),
        kind: Kind::File(|config| &mut config.store.ca_file),
    },
    Key {
        path: "notice.command",
        doc: "A program that is started without a shell, with what there is to tell as JSON on its \
              standard input, such as `[\"/usr/local/bin/page-me\", \"--urgent\"]`. It sees `HOME`, \
              `LANG`, `PATH` and `TZ` of the environment, and may take 30 seconds. Empty: none.",
        default: Raw::List(Vec::new()),
        kind: Kind::Argv(|config| &mut config.notice.command),
    },
    Key {
        path: "notice.url",
        doc: "Where the same JSON is sent by HTTP POST, such as `https://ntfy.example.com/my-watch`. \
              `http` is for this machine only, unless the posture is `debug`. Empty: nowhere.",
        default: Raw::text(""),
        kind: Kind::Url(|config| &mut config.notice.url),
    },
    Key {
        path: "notice.token",
        doc: "Where the token is found that is sent along to `notice.url` as `Authorization: Bearer`: \
              `env:NAME` or `file:/absolute/path`. Empty: none is sent.",
        default: Raw::text(""),
        kind: Kind::Secret(|config| &mut config.notice.token),
    },
    Key {
        path: "http.listen",
        doc: "The address, on this machine only; empty for none. Port 0 is any that is free. If nobody says \
              where and the port is taken, the daemon goes on without.",
        default: Raw::text("127.0.0.1:7400"),
        kind: Kind::Listen(|config| &mut config.http.listen),
    },
    Key {
        path: "http.toolsets",
        doc: "Which tools `/mcp` offers, by group, such as `[\"core\", \"schedule\", \"run\"]`; \
              `docs/mcp-tools.md` has them all. Empty: those that are on unless others are chosen.",
        default: Raw::List(Vec::new()),
        kind: Kind::Toolsets(|config| &mut config.http.toolsets),
    },
    Key {
        path: "feature_flags.local_approvals",
        doc: "Whether the user of the machine approves runs without a token. `strict-prod` never lets \
              them; switched off, nobody does in the other postures either, nor does a file.",
        default: Raw::Boolean(true),
        kind: Kind::Flag(|config| &mut config.feature_flags.local_approvals),
    },
    Key {
        path: "feature_flags.token_files",
        doc: "Whether a file `approvals/pending/SCHEDULE.token` in the data directory approves the next \
              run of a schedule, as `docs/safety.md` describes. Whatever runs as the same user can write \
              one. In `strict-prod` none ever does.",
        default: Raw::Boolean(true),
        kind: Kind::Flag(|config| &mut config.feature_flags.token_files),
    },
    Key {
        path: "feature_flags.schedules_by_runs",
        doc: "Whether a program that a run has started may add schedules.",
        default: Raw::Boolean(true),
        kind: Kind::Flag(|config| &mut config.feature_flags.schedules_by_runs),
    },
    Key {
        path: "feature_flags.notices",
        doc: "Whether humans are called, by whatever `[notice]` names. What still needs one when it is \
              switched on again is told then.",
        default: Raw::Boolean(true),
        kind: Kind::Flag(|config| &mut config.feature_flags.notices),
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::variables::RESERVED;
    use super::*;

    #[test]
    fn keys_sections_and_variables_are_distinct() {
        let mut seen = BTreeSet::new();
        for key in KEYS {
            assert!(seen.insert(key.path.to_owned()), "{} twice", key.path);
            assert!(seen.insert(key.variable()), "{} twice", key.variable());
            assert!(!RESERVED.contains(&key.variable().as_str()), "{} is reserved", key.variable());
            let known = |section: &Section| section.name == key.section();
            assert!(key.section().is_empty() || SECTIONS.iter().any(known), "{}", key.path);
            assert!(key.doc.ends_with('.'), "{}: its doc is not a sentence", key.path);
        }
        for section in SECTIONS {
            assert!(
                KEYS.iter().any(|key| key.section() == section.name),
                "{} is empty",
                section.name
            );
        }
    }

    #[test]
    fn a_section_stands_together() {
        let order: Vec<&str> = KEYS.iter().map(Key::section).collect();
        let mut once = order.clone();
        once.dedup();
        let sections = SECTIONS.iter().map(|section| section.name);
        assert_eq!(once, std::iter::once("").chain(sections).collect::<Vec<_>>());
    }
}
