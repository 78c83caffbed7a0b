//! Every metric. The order is that of the scrape and of the documentation.

use crate::definition::{Definition, Label};

const SECOND: u64 = 1_000_000;
const MILLISECOND: u64 = 1_000;

const LATENESS_BOUNDS: &[u64] = &[
    MILLISECOND,
    5 * MILLISECOND,
    25 * MILLISECOND,
    100 * MILLISECOND,
    250 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
    2_500 * MILLISECOND,
    5 * SECOND,
    15 * SECOND,
    60 * SECOND,
    300 * SECOND,
];
const DURATION_BOUNDS: &[u64] = &[
    100 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
    5 * SECOND,
    15 * SECOND,
    60 * SECOND,
    300 * SECOND,
    900 * SECOND,
    3_600 * SECOND,
];
const WAIT_BOUNDS: &[u64] = &[
    10 * SECOND,
    60 * SECOND,
    300 * SECOND,
    900 * SECOND,
    3_600 * SECOND,
    14_400 * SECOND,
    43_200 * SECOND,
    86_400 * SECOND,
];
const CALL_BOUNDS: &[u64] = &[
    MILLISECOND,
    5 * MILLISECOND,
    25 * MILLISECOND,
    100 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
    5 * SECOND,
    30 * SECOND,
];
const COMMIT_BOUNDS: &[u64] = &[
    500,
    MILLISECOND,
    2_500,
    5 * MILLISECOND,
    10 * MILLISECOND,
    25 * MILLISECOND,
    50 * MILLISECOND,
    100 * MILLISECOND,
    250 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
];
const BATCH_BOUNDS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 4_096];

/// What is not known: the tier of a run that ended before it was decided, the backend of an agent that was removed.
pub const UNKNOWN: &str = "unknown";
/// The backend of a run that calls a tool of Midwatch.
pub const TOOL: &str = "tool";

pub const DISPOSITION: Label = Label {
    name: "disposition",
    values: &[
        "ran",
        "ran_late",
        "failed",
        "unknown",
        "cancelled",
        "coalesced",
        "skipped_overlap",
        "skipped_missed",
        "skipped_paused",
        "skipped_budget",
        "skipped_policy",
        "skipped_lease",
        "skipped_dependency",
        "skipped_full",
        "superseded",
    ],
};
pub const TRIGGER: Label = Label {
    name: "trigger",
    values: &["slot", "catch_up", "buffer", "manual", "after", "event", "backfill"],
};
pub const STAGE: Label = Label { name: "stage", values: &["decided", "started"] };
pub const QUEUE_KIND: Label = Label { name: "queue_kind", values: &["agent", "tool"] };
pub const OUTCOME: Label =
    Label { name: "outcome", values: &["done", "failed", "cancelled", "unknown"] };
pub const BACKEND: Label = Label {
    name: "backend",
    values: &[
        "builtin",
        "command",
        "letta",
        "openai",
        "anthropic",
        "webhook",
        "mcp",
        TOOL,
        UNKNOWN,
    ],
};
pub const TIER: Label = Label { name: "tier", values: &["0", "1", "2", UNKNOWN] };
pub const STATE: Label =
    Label { name: "state", values: &["queued", "waiting_permission", "running", "unknown"] };
pub const RESULT: Label = Label {
    name: "result",
    values: &[
        "approved",
        "denied",
        "expired",
        "revoked",
        "changed",
        "unsigned",
        "run_ended",
        "not_needed",
        "lease_renewed",
    ],
};
pub const VERDICT: Label = Label { name: "verdict", values: &["allow", "ask", "deny"] };
pub const POSTURE: Label = Label { name: "posture", values: &["strict-prod", "staging", "debug"] };
pub const SCOPE_KIND: Label = Label { name: "scope_kind", values: &["installation"] };
pub const UNIT: Label = Label { name: "unit", values: &["runs", "tokens", "money"] };
pub const TOOL_CLASS: Label = Label { name: "tool_class", values: &["read", "change"] };
pub const CALL_OUTCOME: Label = Label { name: "outcome", values: &["ok", "error"] };
pub const ENGINE: Label = Label { name: "engine", values: &["sqlite", "postgres", "memory"] };
pub const CHANNEL: Label = Label { name: "channel", values: &["command", "url"] };
pub const DELIVERY: Label = Label { name: "outcome", values: &["delivered", "failed"] };
pub const VERSION: Label = Label { name: "version", values: &[] };

macro_rules! definitions {
    ($($(#[$doc:meta])* $constant:ident = $definition:expr;)*) => {
        $($(#[$doc])* pub const $constant: Definition = $definition;)*

        /// Every metric.
        pub const DEFINITIONS: &[Definition] = &[$($constant),*];
    };
}

definitions! {
    SLOTS = Definition::counter(
        "midwatch_slots_total",
        &[DISPOSITION, TRIGGER],
        "Slots that got their final disposition. `trigger` is what created the slot.",
    );
    SLOT_LATENESS = Definition::histogram(
        "midwatch_slot_lateness_seconds",
        LATENESS_BOUNDS,
        &[STAGE],
        "How late slots of the calendar are: `decided` from the due time to the decision, `started` from there to the start of the first attempt. Slots that were caught up after a downtime are left out.",
    ).in_millionths();
    SLOT_OVERDUE_OLDEST = Definition::gauge(
        "midwatch_slot_overdue_oldest_seconds",
        &[],
        "How long the longest overdue schedule has waited for a decision; 0 if none is overdue.",
    );
    QUEUE_DEPTH = Definition::gauge(
        "midwatch_queue_depth",
        &[QUEUE_KIND],
        "Queued runs that wait for a permit, by what they do: prompt an agent, or call a tool.",
    );
    QUEUE_OLDEST = Definition::gauge(
        "midwatch_queue_oldest_seconds",
        &[QUEUE_KIND],
        "How long the oldest run at the front of a queue has waited; 0 if no run waits.",
    );
    RUNS = Definition::counter(
        "midwatch_runs_total",
        &[OUTCOME, BACKEND, TIER],
        "Runs that ended. A run that is retried by hand ends again.",
    );
    RUNS_LIVE = Definition::gauge(
        "midwatch_runs",
        &[STATE],
        "Runs that have not ended, and those whose outcome a person must settle (`unknown`). At most 1,000 are counted.",
    );
    RUN_DURATION = Definition::histogram(
        "midwatch_run_duration_seconds",
        DURATION_BOUNDS,
        &[OUTCOME, BACKEND, TIER],
        "How long the last attempt of a run took.",
    ).in_millionths();
    APPROVALS = Definition::counter(
        "midwatch_approvals_total",
        &[RESULT],
        "Approvals that were decided, or lapsed for the reason that `result` names.",
    );
    APPROVALS_PENDING = Definition::gauge(
        "midwatch_approvals_pending",
        &[TIER],
        "Approvals that wait for a person. At most 1,000 are counted.",
    );
    APPROVAL_OLDEST = Definition::gauge(
        "midwatch_approval_oldest_seconds",
        &[TIER],
        "How long the oldest pending approval has waited; 0 if none is pending. It expires after 24 hours.",
    );
    APPROVAL_WAIT = Definition::histogram(
        "midwatch_approval_wait_seconds",
        WAIT_BOUNDS,
        &[TIER],
        "How long approvals waited for their decision.",
    ).in_millionths();
    POLICY_DECISIONS = Definition::counter(
        "midwatch_policy_decisions_total",
        &[VERDICT, POSTURE],
        "Recorded decisions of the policy about the start of a run.",
    );
    BUDGET_USED = Definition::gauge(
        "midwatch_budget_used_ratio",
        &[SCOPE_KIND, UNIT],
        "The share of the day's budget that is used or reserved, for each budget that has a limit.",
    );
    TOKENS = Definition::counter(
        "midwatch_tokens_total",
        &[BACKEND],
        "Tokens that models have read and written, as their backends report them.",
    );
    MONEY = Definition::counter(
        "midwatch_money_total",
        &[BACKEND],
        "Cost of attempts by the prices of their agents, in the currency of the prices.",
    ).in_millionths();
    TOOL_CALLS = Definition::counter(
        "midwatch_tool_calls_total",
        &[TOOL_CLASS, CALL_OUTCOME],
        "Calls of the tools of Midwatch. `change` is a tool that may change something.",
    );
    TOOL_CALL = Definition::histogram(
        "midwatch_tool_call_seconds",
        CALL_BOUNDS,
        &[TOOL_CLASS, CALL_OUTCOME],
        "How long the request of a tool call took.",
    ).in_millionths();
    LEASE_NEXT_STEP = Definition::gauge(
        "midwatch_lease_next_step_seconds",
        &[],
        "Time until the lease reaches its next step, unless a person is active; 0 after the last. Absent without a lease.",
    );
    FROZEN = Definition::gauge(
        "midwatch_frozen",
        &[],
        "1 while the installation is frozen, else 0.",
    );
    LOG_ENTRIES = Definition::counter(
        "midwatch_log_entries_total",
        &[],
        "Entries of the ledger.",
    );
    LOG_CHECK = Definition::gauge(
        "midwatch_log_check_ok",
        &[],
        "0 if the ledger is known to be damaged or its last check failed, else 1.",
    );
    CHECKPOINT_AGE = Definition::gauge(
        "midwatch_checkpoint_age_seconds",
        &[],
        "Age of the newest entry that a signed checkpoint covers. Absent before the first checkpoint.",
    );
    CHECKPOINT_COPY = Definition::gauge(
        "midwatch_checkpoint_copy_ok",
        &[],
        "1 if the last checkpoint reached the copy elsewhere, else 0. Absent without `ledger.checkpoint_copy`.",
    );
    STORE_COMMIT = Definition::histogram(
        "midwatch_store_commit_seconds",
        COMMIT_BOUNDS,
        &[ENGINE],
        "How long a commit takes, from its request until it is on disk.",
    ).in_millionths();
    STORE_BATCH = Definition::histogram(
        "midwatch_store_commit_batch",
        BATCH_BOUNDS,
        &[ENGINE],
        "Commits that were written to disk together.",
    );
    NOTICES = Definition::counter(
        "midwatch_notices_total",
        &[CHANNEL, DELIVERY],
        "Attempts to deliver a notice.",
    );
    BUILD_INFO = Definition::gauge(
        "midwatch_build_info",
        &[VERSION, POSTURE],
        "Always 1; its labels are the version and the posture of the daemon.",
    );
}
