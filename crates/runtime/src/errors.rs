//! What the inner layers say, in the words and codes of the wire.

use api::{Code, Error};
use kernel::agent::Refusal;
use kernel::backend::{BackendKind, Invalid};
use kernel::{Actor, Role};

/// A store that could not do its work.
pub fn store(error: store::Error) -> Error {
    use store::Error as Store;
    match &error {
        Store::Full => {
            Error::new(Code::DiskFull, "there is no room left on the disk, nothing was changed")
                .hint("make room and try again; reading goes on meanwhile")
        }
        Store::ReadOnly => Error::new(Code::ReadOnly, error)
            .hint("check the permissions of the data directory and of the files in it"),
        Store::Damaged(_) => Error::new(Code::LogDamaged, error).hint(
            "nothing was lost by this command; `midwatch ledger verify` shows where the damage is, \
             `midwatch up` checks the whole log and writes again once it is sound, and `midwatch \
             ledger rebuild --from-export` recreates the directory from exports",
        ),
        Store::Tables(_) => Error::new(Code::TablesDamaged, error).hint(
            "the log is not concerned; `midwatch ledger rebuild` makes the tables anew from it",
        ),
        Store::Rewound(_) => Error::new(Code::LogRewound, error).hint(
            "a failover or a restored copy has lost what was acknowledged; \
             compare `midwatch ledger verify` with a checkpoint that you kept, then start again",
        ),
        Store::Unreachable(_) => Error::new(Code::DatabaseAway, error)
            .hint("nothing was changed; check the database and `store.url`, then try again"),
        Store::InDoubt(_) => Error::new(Code::DatabaseAway, error)
            .hint("ask again with the same idempotency key, or look before you repeat it"),
        Store::Stopped(_) => Error::new(Code::DiskFailed, error)
            .hint("check the disk, then start again: what was acknowledged is looked for then"),
        Store::Newer { .. } => Error::new(Code::DataNewer, error)
            .hint("use the newer program, or another data directory"),
        Store::Failed(_) => Error::new(Code::Failed, error),
    }
}

/// A command about an agent that the kernel refused.
pub(crate) fn agent(refusal: Refusal) -> Error {
    match &refusal {
        Refusal::Exists(name) => Error::new(Code::Exists, &refusal)
            .hint(format!("change it with `midwatch agent edit {name}`, or choose another name")),
        Refusal::Unknown(_) => {
            Error::new(Code::NotFound, refusal).hint("`midwatch agent list` shows the agents")
        }
        Refusal::TierTooLow { .. } => {
            Error::new(Code::TierTooLow, refusal).hint("a tier may be higher than that, not lower")
        }
        Refusal::ReachesOutside(_) => Error::new(Code::NotNow, refusal)
            .hint("start a run of a schedule for it with `midwatch run start`, and approve that"),
        Refusal::RoleTooLow { .. } => role(&refusal),
        Refusal::Invalid(invalid) => self::invalid(invalid.clone()),
    }
}

/// A command about a schedule that the kernel refused.
pub(crate) fn schedule(refusal: kernel::schedule::Refusal) -> Error {
    use kernel::schedule::Refusal as Schedule;
    let says = |code| Error::new(code, &refusal);
    match &refusal {
        Schedule::Unknown(_) => {
            says(Code::NotFound).hint("`midwatch schedule list` shows the schedules")
        }
        Schedule::Taken(_) => says(Code::Busy).hint("try again: it gets another id"),
        Schedule::UnknownAgent(name) => says(Code::NotFound).hint(format!(
            "register it with `midwatch agent add {name} --backend KIND`; `midwatch agent list` shows the agents"
        )),
        Schedule::NeverFires(_) => says(Code::InvalidInput)
            .hint("`midwatch schedule next` with its trigger shows when it would; a start or an end may leave nothing of that"),
        Schedule::TierTooLow { .. } => says(Code::TierTooLow).hint("leave --tier away, or raise it"),
        Schedule::Shown(agent) => says(Code::InvalidInput).hint(format!(
            "`midwatch agent edit {agent} --prompt-as stdin`, or leave --sensitive away"
        )),
        Schedule::Looser => says(Code::HumanNeeded)
            .hint("leave those as they are, or ask a human to change them with `midwatch schedule edit`"),
        Schedule::Invalid { hint, .. } => says(Code::InvalidInput).hint(hint),
        Schedule::Fired(run) => says(Code::KeyTaken)
            .hint(format!("`midwatch run show {run}` shows it; a new key starts another")),
        Schedule::Live(run) => says(Code::NotNow)
            .hint(format!("wait for it, or stop it with `midwatch run cancel {run}`")),
        Schedule::OutOfBudget(_) => {
            says(Code::BudgetExhausted).hint("it may run again after midnight UTC")
        }
        Schedule::Cycle(_) | Schedule::ChainTooLong => says(Code::InvalidInput)
            .hint("`midwatch schedule show` says which schedules follow one"),
        Schedule::TooManyFollowers(_) => says(Code::LimitReached)
            .hint("let some of them follow another one, or wait for an event"),
        Schedule::Followed(follower) => says(Code::NotNow).hint(format!(
            "remove `{follower}` first, or give it another trigger with `midwatch schedule edit`"
        )),
        Schedule::Backfilling(_) => says(Code::NotNow).hint(
            "wait until that is done, or leave out the rest with `midwatch schedule backfill --end`",
        ),
        Schedule::NothingToBackfill => says(Code::InvalidInput)
            .hint("only slots of the past can be run, of a schedule that goes by the time"),
        Schedule::BackfillTooLong(_) => says(Code::LimitReached).hint("give a shorter time"),
        Schedule::NotAtWork(_) | Schedule::MadeByMade(_) => says(Code::NotNow)
            .hint("leave it to a human to add the schedule"),
        Schedule::NotByRuns => says(Code::SwitchedOff)
            .hint("leave it to a human; `feature_flags.schedules_by_runs` switches it on"),
        Schedule::MadeByRun => {
            says(Code::LimitReached).hint("leave it to a human to add the others")
        }
        Schedule::MadeByAgent(_) => says(Code::LimitReached)
            .hint("`midwatch schedule list` shows them; remove those that are not needed"),
        Schedule::CallByAgent(_) => says(Code::RoleTooLow).hint("leave it to a human"),
        Schedule::CallByCall => says(Code::RoleTooLow)
            .hint("let it add a schedule that prompts an agent, or leave it to a human"),
        Schedule::OtherAgent(_) => says(Code::RoleTooLow)
            .hint("leave it to a human, or to a rule of theirs that allows `schedule.create`"),
        Schedule::RoleTooLow { .. } => role(&refusal),
    }
}

/// A command about a run that the kernel refused.
pub(crate) fn run(refusal: kernel::run::Refusal) -> Error {
    use kernel::run::Refusal as Run;
    match refusal {
        Run::Unknown(_) => {
            Error::new(Code::NotFound, refusal).hint("`midwatch run list` shows the runs")
        }
        Run::Wrong { ref id, state, .. } => {
            let hint = match state {
                "unknown" => format!(
                    "say how it ended with `midwatch run settle {id} --as done|failed`; one that failed can be \
                     tried again"
                ),
                _ => format!("`midwatch run show {id}` shows how it stands"),
            };
            Error::new(Code::NotNow, refusal).hint(hint)
        }
        Run::Stale(_) => Error::new(Code::Stale, refusal),
        Run::Schedule(refusal) => schedule(refusal),
    }
}

/// An approval by somebody of whom nothing is known but the user of the machine.
pub(crate) fn not_personal(refusal: kernel::posture::NotPersonal) -> Error {
    Error::new(Code::RoleTooLow, refusal).hint(
        "a maintainer gives you one with `midwatch token create --role operator`; give it in \
         MIDWATCH_TOKEN",
    )
}

/// An answer to a question that the kernel refused.
pub(crate) fn approval(refusal: kernel::approval::Refusal) -> Error {
    use kernel::approval::Refusal as Approval;
    match refusal {
        Approval::Unknown(_) => {
            Error::new(Code::NotFound, refusal).hint("`midwatch approval list` shows the approvals")
        }
        Approval::Over { .. } => Error::new(Code::NotNow, refusal)
            .hint("nothing was changed; a run that still has to be done can be tried again"),
        Approval::OtherPlan(ref id) => {
            let hint = format!("look at it again with `midwatch approval show {id}`");
            Error::new(Code::NotNow, refusal).hint(hint)
        }
        Approval::NotSigned(ref id) => {
            let hint = format!(
                "sign it where your key is, with `midwatch approval sign`, and bring the signature: \
                 `midwatch approval approve {id} --signature mws_…`"
            );
            Error::new(Code::SignatureNeeded, refusal).hint(hint)
        }
        Approval::Author { .. } => Error::new(Code::RoleTooLow, refusal)
            .hint("ask somebody who had no hand in it; you can still deny it"),
        Approval::NotPersonal(_) => Error::new(Code::RoleTooLow, refusal).hint(
            "a maintainer gives you one with `midwatch token create --role operator`; give \
                   it in MIDWATCH_TOKEN",
        ),
        Approval::OtherRules(_) => Error::new(Code::NotNow, refusal).hint(
            "deny it, and let its run ask again with `midwatch run retry`: then the rules in force are \
             asked",
        ),
        Approval::Frozen => Error::new(Code::NotNow, refusal)
            .hint("deny it, or give the watch its authority back with `midwatch thaw` first"),
        Approval::RoleTooLow { .. } => Error::new(Code::RoleTooLow, refusal)
            .hint("no agent and no run can answer; ask a human"),
        Approval::Schedule(refusal) => schedule(refusal),
    }
}

/// A command about a token that the kernel refused.
pub(crate) fn token(refusal: kernel::token::Refusal) -> Error {
    use kernel::token::Refusal as Token;
    match refusal {
        Token::Unknown(_) => {
            Error::new(Code::NotFound, refusal).hint("`midwatch token list` shows the tokens")
        }
        Token::RoleTooLow { .. } => role(&refusal),
        Token::Role(_) => Error::new(Code::InvalidInput, refusal),
        Token::NoKeyFor(_) => {
            Error::new(Code::InvalidInput, refusal).hint("leave the key away, or give another role")
        }
        Token::TwoKinds { .. } => Error::new(Code::Exists, refusal)
            .hint("choose another name; `midwatch token list` shows the tokens"),
        Token::Note(refusal) => schedule(refusal),
    }
}

/// What a request needs that no noun has a rule for.
pub(crate) fn role_too_low(actor: &Actor, needed: Role) -> Error {
    role(&kernel::token::Refusal::RoleTooLow { actor: actor.clone(), needed })
}

fn role(refusal: &impl std::fmt::Display) -> Error {
    Error::new(Code::RoleTooLow, refusal)
        .hint("ask somebody with that role, or come with their token in MIDWATCH_TOKEN")
}

/// Settings that make no backend.
pub(crate) fn invalid(invalid: Invalid) -> Error {
    let kinds = BackendKind::ALL.map(BackendKind::name).join(", ");
    let hint = match &invalid {
        Invalid::Kind(_) => format!("the backends are {kinds}"),
        Invalid::Tier(_) => "a tier is 0 (read-only), 1 (local write) or 2 (external)".to_owned(),
        Invalid::Secret => {
            "give `env:NAME` or `file:/absolute/path`; the secret itself is never stored".to_owned()
        }
        Invalid::Missing { kind, .. } | Invalid::Superfluous { kind, .. } => {
            format!("backend `{kind}` takes {}", takes(*kind))
        }
        Invalid::Url(_) => {
            "a url is like `https://host/path`; a secret is given with --credential".to_owned()
        }
        Invalid::Path => "give it from the root on, like `/srv/work`".to_owned(),
        Invalid::Variable => {
            "give the name, like `--env API_KEY`; the value is taken from the environment of the \
             daemon and is never stored"
                .to_owned()
        }
        Invalid::Steering(_) => {
            "give the program what it needs as arguments, or let a script of yours set it"
                .to_owned()
        }
        Invalid::Own(_) => {
            "leave it away: what a program asks of Midwatch in a run, it asks in the name of that run"
                .to_owned()
        }
        Invalid::Variables => "name those that the program needs".to_owned(),
        Invalid::PromptAs(_) => "a prompt is given as `stdin` or as `argument`".to_owned(),
        Invalid::PromptArgument => "say `--prompt-as argument`, or leave it out".to_owned(),
        Invalid::Api(_) => {
            "`rest` is the V1 server of Letta, `openai` its App Server with --openai-api".to_owned()
        }
        Invalid::Sending(_) => {
            "a prompt is sent with `wait`, `stream` or, to the V1 server, `background`".to_owned()
        }
        Invalid::NoBackground => "give `--send stream`, or leave it out".to_owned(),
        Invalid::TimeLimit(_) => "give a time like `90s`, `10m` or `24h`".to_owned(),
        Invalid::TooLong { .. } => "give a shorter one".to_owned(),
        Invalid::Unprintable { .. } => "give printable text".to_owned(),
    };
    Error::new(Code::InvalidInput, invalid).hint(hint)
}

fn takes(kind: BackendKind) -> &'static str {
    match kind {
        BackendKind::Builtin => "no settings but --script",
        BackendKind::Command => {
            "a program and its arguments after `--`, and --cwd, --env, --prompt-as and --time-limit"
        }
        BackendKind::Letta => {
            "--remote-id, --url unless it is http://localhost:8283, and --api, --send, --time-limit \
             and --allow-private"
        }
        BackendKind::Openai | BackendKind::Anthropic => {
            "--model, and --url unless it is the usual one"
        }
        BackendKind::Webhook => "--url, and --time-limit and --allow-private",
        BackendKind::Mcp => "--url, or a program and its arguments after `--`",
    }
}

/// Something that must not happen, said as an error all the same.
pub(crate) fn internal(what: impl std::fmt::Display) -> Error {
    Error::new(Code::Failed, what)
}
