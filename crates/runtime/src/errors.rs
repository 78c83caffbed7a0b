//! Errors of the inner layers as errors of the wire: a code, a message and a hint.

use api::{Code, Error};
use kernel::agent::Refusal;
use kernel::backend::{BackendKind, Invalid};
use kernel::{Actor, Role};

/// An error of the store.
pub fn store(error: store::Error) -> Error {
    use store::Error as Store;
    match &error {
        Store::DiskFull => {
            Error::new(Code::DiskFull, "the disk is full, nothing was changed")
                .hint("free some disk space and try again; reads still work")
        }
        Store::ReadOnly => Error::new(Code::ReadOnly, error)
            .hint("check the permissions of the data directory and of the files in it"),
        Store::Damaged(_) => Error::new(Code::LogDamaged, error).hint(
            "this command lost nothing; `midwatch ledger verify` shows where the damage is, \
             `midwatch up` checks the whole ledger and writes again once it is sound, and `midwatch \
             ledger rebuild --from-export` recreates the directory from exports",
        ),
        Store::TablesDamaged(_) => Error::new(Code::TablesDamaged, error).hint(
            "the ledger is not affected; `midwatch ledger rebuild` rebuilds the tables from it",
        ),
        Store::Rewound(_) => Error::new(Code::LogRewound, error).hint(
            "a failover or a restored copy has lost acknowledged entries; \
             compare `midwatch ledger verify` with a checkpoint that you kept, then start again",
        ),
        Store::Unreachable(_) => Error::new(Code::DatabaseAway, error)
            .hint("nothing was changed; check the database and `store.url`, then try again"),
        Store::InDoubt(_) => Error::new(Code::DatabaseAway, error)
            .hint("repeat it with the same idempotency key, or check first whether it took effect"),
        Store::WriteFailed(_) => Error::new(Code::DiskFailed, error)
            .hint("check the disk, then start again: the start checks for missing entries"),
        Store::NewerFormat { .. } => Error::new(Code::DataNewer, error)
            .hint("use the newer version of Midwatch, or another data directory"),
        Store::Failed(_) => Error::new(Code::Failed, error),
    }
}

/// A refusal of the kernel about an agent.
pub(crate) fn agent(refusal: Refusal) -> Error {
    match &refusal {
        Refusal::Exists(name) => Error::new(Code::Exists, &refusal)
            .hint(format!("change it with `midwatch agent edit {name}`, or choose another name")),
        Refusal::Unknown(_) => {
            Error::new(Code::NotFound, refusal).hint("`midwatch agent list` shows the agents")
        }
        Refusal::TierTooLow { .. } => {
            Error::new(Code::TierTooLow, refusal).hint("choose that tier or a higher one")
        }
        Refusal::NeedsApproval(_) => Error::new(Code::NotNow, refusal).hint(
            "start a run of one of its schedules with `midwatch run start`, and approve that",
        ),
        Refusal::RoleTooLow { .. } => too_low(&refusal),
        Refusal::Invalid(invalid) => self::invalid(invalid.clone()),
    }
}

/// A refusal of the kernel about a schedule.
pub(crate) fn schedule(refusal: kernel::schedule::Refusal) -> Error {
    use kernel::schedule::Refusal as Schedule;
    let with_code = |code| Error::new(code, &refusal);
    match &refusal {
        Schedule::Unknown(_) => {
            with_code(Code::NotFound).hint("`midwatch schedule list` shows the schedules")
        }
        Schedule::Taken(_) => with_code(Code::Busy).hint("try again: the schedule gets another id"),
        Schedule::UnknownAgent(name) => with_code(Code::NotFound).hint(format!(
            "register it with `midwatch agent add {name} --backend KIND`; `midwatch agent list` shows the agents"
        )),
        Schedule::NeverFires(_) => with_code(Code::InvalidInput)
            .hint("`midwatch schedule next` shows when a trigger fires; check `start_at` and `end_at` too"),
        Schedule::TierTooLow { .. } => with_code(Code::TierTooLow).hint("omit --tier, or raise it"),
        Schedule::PromptVisible(agent) => with_code(Code::InvalidInput).hint(format!(
            "`midwatch agent edit {agent} --prompt-as stdin`, or omit --sensitive"
        )),
        Schedule::LoosensLimits => with_code(Code::HumanNeeded)
            .hint("keep the limits, or ask a person to change them with `midwatch schedule edit`"),
        Schedule::Invalid { hint, .. } => with_code(Code::InvalidInput).hint(hint),
        Schedule::AlreadyFired(run) => with_code(Code::KeyTaken)
            .hint(format!("`midwatch run show {run}` shows it; a new key starts another run")),
        Schedule::RunIsLive(run) => with_code(Code::NotNow)
            .hint(format!("wait for it, or cancel it with `midwatch run cancel {run}`")),
        Schedule::OutOfBudget(_) => {
            with_code(Code::BudgetExhausted).hint("it may run again after midnight UTC")
        }
        Schedule::Cycle(_) | Schedule::ChainTooLong => with_code(Code::InvalidInput)
            .hint("`midwatch schedule show` lists the schedules that depend on one"),
        Schedule::TooManyDependents(_) => with_code(Code::LimitReached)
            .hint("let some of them fire after another schedule, or on an event"),
        Schedule::HasDependents(dependent) => with_code(Code::NotNow).hint(format!(
            "remove `{dependent}` first, or give it another trigger with `midwatch schedule edit`"
        )),
        Schedule::BackfillRunning(_) => with_code(Code::NotNow).hint(
            "wait until it is done, or skip the rest with `midwatch schedule backfill --end`",
        ),
        Schedule::NothingToBackfill => with_code(Code::InvalidInput)
            .hint("only past slots of a schedule with a timed trigger can be backfilled"),
        Schedule::BackfillTooLong(_) => with_code(Code::LimitReached).hint("choose a shorter range"),
        Schedule::RunNotRunning(_) | Schedule::AddedByAgentSchedule(_) => with_code(Code::NotNow)
            .hint("ask a person to add the schedule"),
        Schedule::RunsMayNotAdd => with_code(Code::SwitchedOff)
            .hint("ask a person to do it; `feature_flags.schedules_by_runs` switches it on"),
        Schedule::RunAddedTooMany => {
            with_code(Code::LimitReached).hint("ask a person to add the others")
        }
        Schedule::AgentAddedTooMany(_) => with_code(Code::LimitReached)
            .hint("`midwatch schedule list` shows them; remove some"),
        Schedule::AgentAddsToolCall(_) => with_code(Code::RoleTooLow).hint("ask a person to do it"),
        Schedule::ToolCallAddsToolCall => with_code(Code::RoleTooLow)
            .hint("let it add a schedule that prompts an agent, or ask a person to do it"),
        Schedule::OtherAgent(_) => with_code(Code::RoleTooLow)
            .hint("ask a person to do it, or to add a rule that allows `schedule.create`"),
        Schedule::RoleTooLow { .. } => too_low(&refusal),
    }
}

/// A refusal of the kernel about a run.
pub(crate) fn run(refusal: kernel::run::Refusal) -> Error {
    use kernel::run::Refusal as Run;
    match refusal {
        Run::Unknown(_) => {
            Error::new(Code::NotFound, refusal).hint("`midwatch run list` shows the runs")
        }
        Run::Wrong { ref id, state, .. } => {
            let hint = match state {
                "unknown" => format!(
                    "record its outcome with `midwatch run settle {id} --as done|failed`; a failed run can be \
                     retried"
                ),
                _ => format!("`midwatch run show {id}` shows its state"),
            };
            Error::new(Code::NotNow, refusal).hint(hint)
        }
        Run::Stale(_) => Error::new(Code::Stale, refusal),
        Run::Schedule(refusal) => schedule(refusal),
    }
}

/// An approval without a personal token.
pub(crate) fn not_personal(refusal: kernel::posture::NotPersonal) -> Error {
    Error::new(Code::RoleTooLow, refusal).hint(
        "a maintainer creates one with `midwatch token create --role operator`; set it as \
         MIDWATCH_TOKEN",
    )
}

/// A refusal of the kernel about an approval.
pub(crate) fn approval(refusal: kernel::approval::Refusal) -> Error {
    use kernel::approval::Refusal as Approval;
    match refusal {
        Approval::Unknown(_) => {
            Error::new(Code::NotFound, refusal).hint("`midwatch approval list` shows the approvals")
        }
        Approval::Closed { .. } => Error::new(Code::NotNow, refusal)
            .hint("nothing was changed; if the run is still needed, retry it"),
        Approval::PlanMismatch(ref id) => {
            let hint = format!("check it again with `midwatch approval show {id}`");
            Error::new(Code::NotNow, refusal).hint(hint)
        }
        Approval::NotSigned(ref id) => {
            let hint = format!(
                "sign it with `midwatch approval sign` on the machine that has your key, then pass the signature: \
                 `midwatch approval approve {id} --signature mws_…`"
            );
            Error::new(Code::SignatureNeeded, refusal).hint(hint)
        }
        Approval::Author { .. } => Error::new(Code::RoleTooLow, refusal)
            .hint("ask an approver who did not write it; you can still deny it"),
        Approval::NotPersonal(_) => Error::new(Code::RoleTooLow, refusal).hint(
            "a maintainer creates one with `midwatch token create --role operator`; set it as \
             MIDWATCH_TOKEN",
        ),
        Approval::PolicyChanged(_) => Error::new(Code::NotNow, refusal).hint(
            "deny it, and request a new approval by the active rules with `midwatch run retry`",
        ),
        Approval::Frozen => {
            Error::new(Code::NotNow, refusal).hint("deny it, or run `midwatch thaw` first")
        }
        Approval::RoleTooLow { .. } => Error::new(Code::RoleTooLow, refusal)
            .hint("agents and runs cannot decide approvals; ask a person"),
        Approval::Schedule(refusal) => schedule(refusal),
    }
}

/// A refusal of the kernel about a token.
pub(crate) fn token(refusal: kernel::token::Refusal) -> Error {
    use kernel::token::Refusal as Token;
    match refusal {
        Token::Unknown(_) => {
            Error::new(Code::NotFound, refusal).hint("`midwatch token list` shows the tokens")
        }
        Token::RoleTooLow { .. } => too_low(&refusal),
        Token::RoleNotAllowed(_) => Error::new(Code::InvalidInput, refusal),
        Token::KeyNotAllowed(_) => {
            Error::new(Code::InvalidInput, refusal).hint("omit the key, or choose another role")
        }
        Token::AgentAndApprover { .. } => Error::new(Code::Exists, refusal)
            .hint("choose another name; `midwatch token list` shows the tokens"),
        Token::Note(refusal) => schedule(refusal),
    }
}

/// A refusal of a request for which the kernel has no rule.
pub(crate) fn role_too_low(actor: &Actor, needed: Role) -> Error {
    too_low(&kernel::token::Refusal::RoleTooLow { actor: actor.clone(), needed })
}

fn too_low(refusal: &impl std::fmt::Display) -> Error {
    Error::new(Code::RoleTooLow, refusal)
        .hint("ask a person with that role, or set a token with that role as MIDWATCH_TOKEN")
}

/// Invalid settings of a backend.
pub(crate) fn invalid(invalid: Invalid) -> Error {
    let kinds = BackendKind::ALL.map(BackendKind::name).join(", ");
    let hint = match &invalid {
        Invalid::Kind(_) => format!("the backends are {kinds}"),
        Invalid::Tier(_) => "a tier is 0 (read-only), 1 (local write) or 2 (external)".to_owned(),
        Invalid::Secret => {
            "write `env:NAME` or `file:/absolute/path`; the secret itself is never stored"
                .to_owned()
        }
        Invalid::Missing { kind, .. } | Invalid::Unsupported { kind, .. } => {
            format!("backend `{kind}` takes {}", settings_of(*kind))
        }
        Invalid::Url(_) => {
            "write a url as `https://host/path`, and pass a secret with --credential".to_owned()
        }
        Invalid::Path => "write an absolute path, like `/srv/work`".to_owned(),
        Invalid::Variable => {
            "write the name, like `--env API_KEY`; the value comes from the environment of the \
             daemon and is never stored"
                .to_owned()
        }
        Invalid::SelectsCode(_) => {
            "pass it to the program as an argument, or set it in a script of your own".to_owned()
        }
        Invalid::Reserved(_) => {
            "omit it: in a run, a program calls Midwatch in the name of that run".to_owned()
        }
        Invalid::Variables => "name only those that the program needs".to_owned(),
        Invalid::PromptAs(_) => "a prompt is passed as `stdin` or as `argument`".to_owned(),
        Invalid::PromptArgument => "use `--prompt-as argument`, or omit it".to_owned(),
        Invalid::Api(_) => {
            "`rest` is the V1 server of Letta, `openai` its App Server with --openai-api".to_owned()
        }
        Invalid::Sending(_) => {
            "a prompt is sent with `wait`, `stream` or, to the V1 server, `background`".to_owned()
        }
        Invalid::NoBackground => "use `--send stream`, or omit it".to_owned(),
        Invalid::TimeLimit(_) => "write a duration like `90s`, `10m` or `24h`".to_owned(),
        Invalid::TooLong { .. } => "choose a shorter one".to_owned(),
        Invalid::Unprintable { .. } => "use printable text".to_owned(),
    };
    Error::new(Code::InvalidInput, invalid).hint(hint)
}

fn settings_of(kind: BackendKind) -> &'static str {
    match kind {
        BackendKind::Builtin => "only --script",
        BackendKind::Command => {
            "a program and its arguments after `--`, and --cwd, --env, --prompt-as and --time-limit"
        }
        BackendKind::Letta => {
            "--remote-id, --url (default http://localhost:8283), and --api, --send, --time-limit \
             and --allow-private"
        }
        BackendKind::Openai | BackendKind::Anthropic => {
            "--model, and --url if it is not the default"
        }
        BackendKind::Webhook => "--url, and --time-limit and --allow-private",
        BackendKind::Mcp => "--url, or a program and its arguments after `--`",
    }
}

/// A failure that a correct program never has.
pub(crate) fn internal(what: impl std::fmt::Display) -> Error {
    Error::new(Code::Failed, what)
}
