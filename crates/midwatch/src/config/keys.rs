//! The one table of all keys. To add a key, add a row to [`KEYS`] and a field to `Config`.

use std::time::Duration;

use super::kind::{Field, Kind, Ranged};
use super::raw::Raw;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// The longest useful wait for a daemon to stop.
const DRAIN_MAX: Duration = Duration::from_secs(3_600);
/// A rarer heartbeat would not show an outage that matters.
const HEARTBEAT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

const BUDGET_MAX: u32 = 1_000_000_000;
const LEASE_MIN: Duration = Duration::from_secs(60 * 60);
const LEASE_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Shorter, and a file could be gone before a person has seen it.
const AGE_MIN: Duration = Duration::from_secs(60 * 60);
const AGE_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
const BYTES_MAX: u64 = 1 << 50;

pub(super) struct Key {
    /// `name` at the top of the file, or `section.name`.
    pub(super) path: &'static str,
    /// Sentences for the manual and the sample file.
    pub(super) doc: &'static str,
    pub(super) default: Raw<'static>,
    pub(super) kind: &'static dyn Kind,
}

pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    /// Whether a reload applies its keys. Keys of other sections need a restart.
    pub(super) is_reloadable: bool,
}

/// Whether a reload applies a key.
pub fn is_reloadable(path: &str) -> bool {
    let section = path.split_once('.').map_or("", |(section, _)| section);
    SECTIONS.iter().any(|it| it.name == section && it.is_reloadable)
}

impl Key {
    /// The section of the key; empty at the top of the file.
    pub(super) fn section(&self) -> &'static str {
        self.path.split_once('.').map_or("", |(section, _)| section)
    }

    pub(super) fn name(&self) -> &'static str {
        self.path.split_once('.').map_or(self.path, |(_, name)| name)
    }

    /// The environment variable that overrides the key.
    pub(super) fn variable(&self) -> String {
        format!("MIDWATCH_{}", self.path.replace('.', "_").to_ascii_uppercase())
    }
}

pub(super) const SECTIONS: &[Section] = &[
    Section {
        name: "log",
        doc: "The daemon's own log, on stderr and in `logs/midwatch.log` in the data \
              directory.",
        is_reloadable: false,
    },
    Section {
        name: "ledger",
        doc: "The signed ledger of everything that happened.",
        is_reloadable: false,
    },
    Section {
        name: "runs",
        doc: "What happens to running runs when the daemon stops.",
        is_reloadable: false,
    },
    Section {
        name: "lease",
        doc: "How long Midwatch runs without a human. A command that you run in a terminal, \
              the page of an approval and `midwatch lease renew` renew the lease.",
        is_reloadable: true,
    },
    Section {
        name: "budget",
        doc: "The most runs that may start in a UTC day, and the most tokens and money \
              that they may use, in addition to the terms of each schedule. Tier-0 runs do \
              not count as runs; their tokens and cost do.",
        is_reloadable: true,
    },
    Section {
        name: "approval",
        doc: "How many approvals agents may request, so that people can still review them. \
              A run that may not request one ends, and its slot records why.",
        is_reloadable: true,
    },
    Section {
        name: "retention",
        doc: "How long files are kept, and how much space they may take; see \
              `docs/retention.md`. The daemon removes what is beyond a limit once a day, the \
              oldest first; `midwatch cleanup` does it at once. The ledger is kept for ever.",
        is_reloadable: true,
    },
    Section {
        name: "store",
        doc: "Where the data is stored: in a file in the data directory, or in a database. \
              `midwatch store copy` moves it from one to the other.",
        is_reloadable: false,
    },
    Section {
        name: "notice",
        doc: "How to notify a human when a run waits for approval or fails for good; see \
              `docs/notices.md`. `midwatch notice test` tries the channels.",
        is_reloadable: true,
    },
    Section {
        name: "http",
        doc: "The HTTP server for programs on this machine (`docs/mcp.md`) and for the \
              approval pages (`docs/safety.md`). Every request needs a token.",
        is_reloadable: false,
    },
    Section {
        name: "feature_flags",
        doc: "Switches that turn features off while the daemon runs. They restrict what \
              the posture allows and never extend it; `midwatch status --capabilities` \
              shows what is enabled.",
        is_reloadable: true,
    },
];

pub(super) const KEYS: &[Key] = &[
    Key {
        path: "posture",
        doc: "How strictly agents are controlled: the built-in rules, and what happens \
              when no rule matches (`strict-prod` denies, `staging` and `debug` ask). \
              `unattended` and `supervised` are aliases of `strict-prod` and `staging`.",
        default: Raw::text("staging"),
        kind: &Field(|config| &mut config.posture),
    },
    Key {
        path: "log.level",
        doc: "How much is logged. Commands other than the daemon log only warnings and \
              errors, unless `MIDWATCH_LOG_LEVEL` sets another level. If this key is not set, \
              the daemon prints only those to a terminal, and everything to its log file.",
        default: Raw::text("info"),
        kind: &Field(|config| &mut config.log.level),
    },
    Key {
        path: "log.file_bytes_max",
        doc: "Size at which the log file is rotated: `midwatch.log` becomes \
              `midwatch.log.1`, and so on.",
        default: Raw::text("10MiB"),
        kind: &Ranged {
            field: |config| &mut config.log.file_bytes_max,
            min: 64 * KIB,
            max: 4 * GIB,
        },
    },
    Key {
        path: "log.files_max",
        doc: "Number of rotated log files to keep.",
        default: Raw::Integer(5),
        kind: &Ranged { field: |config| &mut config.log.files_max, min: 1, max: 100 },
    },
    Key {
        path: "ledger.checkpoint_copy",
        doc: "A file outside the data directory to which every signed checkpoint is also \
              appended, so that replacing the whole directory is noticed. Empty: none.",
        default: Raw::text(""),
        kind: &Field(|config| &mut config.ledger.checkpoint_copy),
    },
    Key {
        path: "ledger.heartbeat",
        doc: "Span after which the ledger records that the daemon is alive, so that \
              outages are visible. `0s`: never.",
        default: Raw::text("60s"),
        kind: &Ranged {
            field: |config| &mut config.ledger.heartbeat,
            min: Duration::from_secs(1),
            max: HEARTBEAT_MAX,
        },
    },
    Key {
        path: "runs.drain",
        doc: "How long runs may continue after the daemon is told to stop; then they are \
              cut off. `0s`: not at all.",
        default: Raw::text("5m"),
        kind: &Ranged {
            field: |config| &mut config.runs.drain,
            min: Duration::from_millis(1),
            max: DRAIN_MAX,
        },
    },
    Key {
        path: "lease.ask_after",
        doc: "Span without a human after which every run needs approval. `0s`: never.",
        default: Raw::text("14d"),
        kind: &Ranged {
            field: |config| &mut config.lease.ask_after,
            min: LEASE_MIN,
            max: LEASE_MAX,
        },
    },
    Key {
        path: "lease.pause_after",
        doc: "Span without a human after which no run starts; longer than \
              `lease.ask_after`. `0s`: never.",
        default: Raw::text("28d"),
        kind: &Ranged {
            field: |config| &mut config.lease.pause_after,
            min: LEASE_MIN,
            max: LEASE_MAX,
        },
    },
    Key {
        path: "budget.runs",
        doc: "Runs of all agents. `0`: no limit.",
        default: Raw::Integer(50_000),
        kind: &Ranged { field: |config| &mut config.budget.runs, min: 0, max: BUDGET_MAX },
    },
    Key {
        path: "budget.runs_per_agent",
        doc: "Runs of each agent. `0`: no limit.",
        default: Raw::Integer(10_000),
        kind: &Ranged {
            field: |config| &mut config.budget.runs_per_agent,
            min: 0,
            max: BUDGET_MAX,
        },
    },
    Key {
        path: "budget.tokens",
        doc: "Tokens of all agents, input and output, as reported by their backends. A run \
              that has started continues. `0`: no limit.",
        default: Raw::Integer(50_000_000),
        kind: &Ranged { field: |config| &mut config.budget.tokens, min: 0, max: BUDGET_MAX },
    },
    Key {
        path: "budget.tokens_per_agent",
        doc: "Tokens of each agent. `0`: no limit.",
        default: Raw::Integer(10_000_000),
        kind: &Ranged {
            field: |config| &mut config.budget.tokens_per_agent,
            min: 0,
            max: BUDGET_MAX,
        },
    },
    Key {
        path: "budget.money",
        doc: "Cost of all agents, in quotes, in the currency of the prices that you give \
              agents (`midwatch agent add --price-input`, `--price-output`, \
              `--price-run`). An agent without a price costs nothing and is not limited by \
              this. `\"0\"`: no limit.",
        default: Raw::text("20.00"),
        kind: &Field(|config| &mut config.budget.money),
    },
    Key {
        path: "budget.money_per_agent",
        doc: "Cost of each agent. `\"0\"`: no limit.",
        default: Raw::text("10.00"),
        kind: &Field(|config| &mut config.budget.money_per_agent),
    },
    Key {
        path: "budget.changes_per_agent",
        doc: "Entries that the requests of each agent and each MCP client add to the ledger. \
              `0`: no limit.",
        default: Raw::Integer(10_000),
        kind: &Ranged {
            field: |config| &mut config.budget.changes_per_agent,
            min: 0,
            max: BUDGET_MAX,
        },
    },
    Key {
        path: "budget.bytes_per_agent",
        doc: "Bytes of these entries. `0`: no limit.",
        default: Raw::Integer(100_000_000),
        kind: &Ranged {
            field: |config| &mut config.budget.bytes_per_agent,
            min: 0,
            max: BUDGET_MAX,
        },
    },
    Key {
        path: "approval.pending_per_agent",
        doc: "Pending approvals of one agent. `0`: no limit.",
        default: Raw::Integer(5),
        kind: &Ranged {
            field: |config| &mut config.approval.pending_per_agent,
            min: 0,
            max: BUDGET_MAX,
        },
    },
    Key {
        path: "approval.asks_per_agent",
        doc: "Approval requests of one agent in a UTC day. `0`: no limit.",
        default: Raw::Integer(20),
        kind: &Ranged {
            field: |config| &mut config.approval.asks_per_agent,
            min: 0,
            max: BUDGET_MAX,
        },
    },
    Key {
        path: "approval.denied_for",
        doc: "Span in which a denied approval is not requested again: runs that would \
              request the same end at once. A run that a human starts requests it anyway. \
              `0s`: always request it.",
        default: Raw::text("20h"),
        kind: &Ranged {
            field: |config| &mut config.approval.denied_for,
            min: Duration::from_secs(1),
            max: LEASE_MAX,
        },
    },
    Key {
        path: "retention.outputs_age",
        doc: "Age at which the output file of an ended run is removed. `0s`: never.",
        default: Raw::text("90d"),
        kind: &Ranged {
            field: |config| &mut config.retention.outputs_age,
            min: AGE_MIN,
            max: AGE_MAX,
        },
    },
    Key {
        path: "retention.outputs_bytes",
        doc: "Space for all output files. `0B`: no limit.",
        default: Raw::text("10GiB"),
        kind: &Ranged {
            field: |config| &mut config.retention.outputs_bytes,
            min: 0,
            max: BYTES_MAX,
        },
    },
    Key {
        path: "retention.logs_age",
        doc: "Age at which a rotated log file is removed; `log.files_max` limits their number. \
              `0s`: never.",
        default: Raw::text("90d"),
        kind: &Ranged {
            field: |config| &mut config.retention.logs_age,
            min: AGE_MIN,
            max: AGE_MAX,
        },
    },
    Key {
        path: "retention.exports_age",
        doc: "Age, from the end of its month on, at which an exported month is removed; its \
              signed manifest is kept. `0s`: never.",
        default: Raw::text("0s"),
        kind: &Ranged {
            field: |config| &mut config.retention.exports_age,
            min: AGE_MIN,
            max: AGE_MAX,
        },
    },
    Key {
        path: "retention.exports_bytes",
        doc: "Space for all exported months before the present one. `0B`: no limit.",
        default: Raw::text("0B"),
        kind: &Ranged {
            field: |config| &mut config.retention.exports_bytes,
            min: 0,
            max: BYTES_MAX,
        },
    },
    Key {
        path: "retention.responses_age",
        doc: "Age at which the stored answer to an idempotency key is removed: a request that \
              is repeated later counts as new. `0s`: never.",
        default: Raw::text("7d"),
        kind: &Ranged {
            field: |config| &mut config.retention.responses_age,
            min: AGE_MIN,
            max: AGE_MAX,
        },
    },
    Key {
        path: "store.url",
        doc: "A PostgreSQL database to store the data in, such as \
              `postgres://midwatch@db.example/midwatch`. Connections to another machine \
              are always encrypted. Empty: none.",
        default: Raw::text(""),
        kind: &Field(|config| &mut config.store.url),
    },
    Key {
        path: "store.password",
        doc: "Where to find the password of the database: `env:NAME` or \
              `file:/absolute/path`. It is sent by SCRAM only (`scram-sha-256` in the server's \
              `pg_hba.conf`). Empty: no password.",
        default: Raw::text(""),
        kind: &Field(|config| &mut config.store.password),
    },
    Key {
        path: "store.ca_file",
        doc: "A file of certificates (PEM) to verify the certificate of the database with. \
              Empty: those of the system.",
        default: Raw::text(""),
        kind: &Field(|config| &mut config.store.ca_file),
    },
    Key {
        path: "notice.command",
        doc: "A program to start without a shell, with the notice as JSON on its stdin, \
              such as `[\"/usr/local/bin/page-me\", \"--urgent\"]`. It gets `HOME`, `LANG`, \
              `PATH` and `TZ` of the environment, and 30 seconds. Empty: none.",
        default: Raw::List(Vec::new()),
        kind: &Field(|config| &mut config.notice.command),
    },
    Key {
        path: "notice.url",
        doc: "Where to send the same JSON by HTTP POST, such as \
              `https://ntfy.example.com/my-watch`. `http` is for this machine only, unless \
              the posture is `debug`. Empty: nowhere.",
        default: Raw::text(""),
        kind: &Field(|config| &mut config.notice.url),
    },
    Key {
        path: "notice.token",
        doc: "Where to find the token to send to `notice.url` as `Authorization: Bearer`: \
              `env:NAME` or `file:/absolute/path`. Empty: no token.",
        default: Raw::text(""),
        kind: &Field(|config| &mut config.notice.token),
    },
    Key {
        path: "http.listen",
        doc: "The address to listen on, on this machine only. Port 0: any free port. \
              Empty: HTTP is off. If the default port is taken, HTTP is off.",
        default: Raw::text("127.0.0.1:7400"),
        kind: &Field(|config| &mut config.http.listen),
    },
    Key {
        path: "http.toolsets",
        doc: "The toolsets that `/mcp` offers, such as `[\"core\", \"schedule\", \"run\"]`; \
              `docs/mcp-tools.md` lists them all. Empty: the default toolsets.",
        default: Raw::List(Vec::new()),
        kind: &Field(|config| &mut config.http.toolsets),
    },
    Key {
        path: "feature_flags.local_approvals",
        doc: "Whether the user of the machine may approve runs without a token. Never in \
              `strict-prod`. Off: not in the other postures either, nor by a file.",
        default: Raw::Boolean(true),
        kind: &Field(|config| &mut config.feature_flags.local_approvals),
    },
    Key {
        path: "feature_flags.token_files",
        doc: "Whether a file `approvals/pending/SCHEDULE.token` in the data directory \
              approves the next run of a schedule; see `docs/safety.md`. Every program \
              that runs as the same user can write one, including an agent. Never in \
              `strict-prod`.",
        default: Raw::Boolean(false),
        kind: &Field(|config| &mut config.feature_flags.token_files),
    },
    Key {
        path: "feature_flags.schedules_by_runs",
        doc: "Whether a program that a run has started may add schedules.",
        default: Raw::Boolean(true),
        kind: &Field(|config| &mut config.feature_flags.schedules_by_runs),
    },
    Key {
        path: "feature_flags.notices",
        doc: "Whether notices are sent through the channels of `[notice]`. When it is \
              turned on again, notices that still apply are sent.",
        default: Raw::Boolean(true),
        kind: &Field(|config| &mut config.feature_flags.notices),
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
            assert!(seen.insert(key.path.to_owned()), "duplicate {}", key.path);
            assert!(seen.insert(key.variable()), "duplicate {}", key.variable());
            assert!(!RESERVED.contains(&key.variable().as_str()), "{} is reserved", key.variable());
            let is_its_section = |section: &Section| section.name == key.section();
            assert!(
                key.section().is_empty() || SECTIONS.iter().any(is_its_section),
                "{}",
                key.path
            );
            assert!(key.doc.ends_with('.'), "{}: its doc must end with a full stop", key.path);
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
    fn keys_are_grouped_by_section_in_order() {
        let order: Vec<&str> = KEYS.iter().map(Key::section).collect();
        let mut once = order.clone();
        once.dedup();
        let sections = SECTIONS.iter().map(|section| section.name);
        assert_eq!(once, std::iter::once("").chain(sections).collect::<Vec<_>>());
    }
}
