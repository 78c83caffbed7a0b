//! The posture, the trust settings it expands to, the flags that restrict them, and the startup checks.
//!
//! All code that enforces or reports a trust setting reads it here. Flags only take away from what the
//! posture allows, so no combination of both is less safe than the posture alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Role};
use crate::agent::{Agent, AgentName};
use crate::backend::{Backend, McpServer};
use crate::policy_decision::Verdict;
use crate::principal::Principal;
use crate::time::Timestamp;
use crate::token::{self, Token};

/// How strict an installation is: one setting from which all trust settings follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Posture {
    /// A request that no rule matches is denied.
    StrictProd,
    /// A request that no rule matches needs approval.
    #[default]
    Staging,
    /// Like staging, but notices may be sent unencrypted.
    Debug,
}

/// The trust settings that follow from a posture and its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The verdict when no rule matches.
    pub default_verdict: Verdict,
    /// The role of the local user, once a maintainer's token exists.
    pub local_role: Role,
    /// Whether the local user may approve without a token.
    pub local_approvals: bool,
    /// Whether each approver must sign, and authors cannot approve their own schedules.
    pub signed_approvals: bool,
    /// Whether files in the data directory can approve runs.
    pub token_files: bool,
    /// Whether runs may add schedules.
    pub schedules_by_runs: bool,
    /// Whether notices are sent.
    pub notices: bool,
    /// Whether notices may go to another machine unencrypted.
    pub plain_notices: bool,
    /// How many people must be able to approve: one more than an approval needs if authors cannot approve
    /// their own schedules.
    pub approvers_min: usize,
}

/// Switches that can be changed while the daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    pub local_approvals: bool,
    pub token_files: bool,
    pub schedules_by_runs: bool,
    pub notices: bool,
}

/// Why a switch is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisabledBy {
    Posture,
    /// The flag of this name.
    Flag(&'static str),
}

/// A clock that is this much ahead of the ledger is probably wrong.
const CLOCK_AHEAD_DAYS_MAX: i64 = 30;
const DAY_US: i64 = 86_400_000_000;
const FIX_CLOCK: &str =
    "set the clock; if it is right, start the daemon with `midwatch up --accept-clock`";

/// A check that runs before the daemon starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Other users can read the data, or change the rules.
    Files,
    /// The posture is less strict than the one in which the daemon last ran.
    PostureDowngrade,
    /// Agents can read a secret.
    Secrets,
    /// One secret has two purposes, so a holder for one can misuse it for the other.
    SharedSecrets,
    /// A core dump could write memory to disk.
    CoreDumps,
    /// The rules are invalid.
    Policy,
    /// The key that signs the ledger is missing, or other users can read it.
    Key,
    /// A newer version wrote the data.
    Schema,
    /// The ledger is damaged, or shorter than it was.
    Ledger,
    /// The clock is behind the ledger.
    Clock,
    /// The clock is so far ahead of the ledger that it is probably wrong.
    ClockAhead,
    /// Too few people can approve.
    Approvers,
    /// Too few people besides its authors can approve the runs of a schedule.
    ScheduleApprovers,
    /// An agent cannot write to its working directory.
    WorkingDirectories,
}

/// What a finding of a check leads to, from least to most strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consequence {
    /// The daemon starts and records a warning.
    Warn,
    /// The daemon does not start.
    Refuse,
}

/// A problem that a check found, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub check: Check,
    pub problem: String,
    pub fix: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the local user cannot approve here: approving needs a personal token")]
pub struct NotPersonal;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid posture `{0}`; use `strict-prod`, `staging` or `debug`")]
pub struct InvalidPosture(String);

impl Posture {
    /// Whether only a maintainer's token, not the user of the machine, may reload the configuration.
    pub const fn reload_needs_token(self) -> bool {
        matches!(self, Posture::StrictProd)
    }

    pub const ALL: [Posture; 3] = [Posture::Staging, Posture::StrictProd, Posture::Debug];

    /// All names and aliases.
    pub const NAMES: [(&str, Posture); 5] = [
        ("staging", Posture::Staging),
        ("strict-prod", Posture::StrictProd),
        ("debug", Posture::Debug),
        ("supervised", Posture::Staging),
        ("unattended", Posture::StrictProd),
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Posture::StrictProd => "strict-prod",
            Posture::Staging => "staging",
            Posture::Debug => "debug",
        }
    }

    /// The table of trust settings.
    pub const fn trust(self) -> Trust {
        match self {
            Posture::StrictProd => Trust {
                default_verdict: Verdict::Deny,
                local_role: Role::Operator,
                local_approvals: false,
                signed_approvals: true,
                token_files: false,
                schedules_by_runs: true,
                notices: true,
                plain_notices: false,
                approvers_min: 2,
            },
            Posture::Staging => Trust {
                default_verdict: Verdict::Ask,
                local_role: Role::Maintainer,
                local_approvals: true,
                signed_approvals: false,
                token_files: true,
                schedules_by_runs: true,
                notices: true,
                plain_notices: false,
                approvers_min: 1,
            },
            Posture::Debug => Trust { plain_notices: true, ..Posture::Staging.trust() },
        }
    }
}

impl fmt::Display for Posture {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Posture {
    type Err = InvalidPosture;

    /// Parses a name or alias.
    fn from_str(word: &str) -> Result<Posture, InvalidPosture> {
        let found = Posture::NAMES.into_iter().find(|(name, _)| *name == word);
        found
            .map(|(_, posture)| posture)
            .ok_or_else(|| InvalidPosture(word.chars().take(80).collect()))
    }
}

impl Trust {
    /// Restricts the settings by the flags.
    #[must_use]
    pub const fn restricted_by(self, flags: Flags) -> Trust {
        Trust {
            local_approvals: self.local_approvals && flags.local_approvals,
            // A token file is written by the local user.
            token_files: self.token_files && flags.token_files && flags.local_approvals,
            schedules_by_runs: self.schedules_by_runs && flags.schedules_by_runs,
            notices: self.notices && flags.notices,
            ..self
        }
    }

    /// Checks that a caller may submit an approval. Where approvals are signed, any caller may submit one,
    /// because the signer counts.
    ///
    /// ```
    /// use kernel::Actor;
    /// use kernel::posture::Flags;
    /// use kernel::posture::Posture;
    ///
    /// let staging = Posture::Staging.trust();
    /// assert!(staging.check_may_approve(&Actor::local_user(1000)).is_ok());
    /// let personal = staging.restricted_by(Flags { local_approvals: false, ..Flags::default() });
    /// assert!(personal.check_may_approve(&Actor::local_user(1000)).is_err());
    /// ```
    pub fn check_may_approve(self, actor: &Actor) -> Result<(), NotPersonal> {
        let needs_token = match actor.principal() {
            Principal::User(_) | Principal::Unrecognized(_) => true,
            // A person has one. The others are refused by their role, which is checked later.
            Principal::Person(_) | Principal::Assistant(_) | Principal::System => false,
            Principal::Agent(_) | Principal::Run(_) | Principal::UnknownRun => false,
            Principal::ToolCall(_) | Principal::Schedule(_) | Principal::UnknownClient => false,
        };
        match self.local_approvals || self.signed_approvals || !needs_token {
            true => Ok(()),
            false => Err(NotPersonal),
        }
    }

    /// Whether the holder of this token can approve. Where approvals are signed, the token needs a key.
    pub fn can_token_approve(self, token: &Token) -> bool {
        let is_approver = token.revoked.is_none() && Role::Operator <= token.role;
        is_approver && (token.key.is_some() || !self.signed_approvals)
    }

    /// The names of the switches that are off, though they are on by default.
    pub(crate) fn disabled_switches(self) -> Vec<String> {
        let off = self.switches(Posture::Debug).into_iter().filter(|(_, why)| why.is_some());
        off.map(|(name, _)| name.to_owned()).filter(|name| !is_opt_in(name)).collect()
    }

    /// Every switch by name, with the reason if it is off.
    pub fn switches(self, posture: Posture) -> [(&'static str, Option<DisabledBy>); 4] {
        let most = posture.trust();
        let off = |flag, is_on, may_be| match (is_on, may_be) {
            (true, _) => None,
            (false, true) => Some(DisabledBy::Flag(flag)),
            (false, false) => Some(DisabledBy::Posture),
        };
        let switch = |name, is_on, may_be| (name, off(name, is_on, may_be));
        let local = off("local_approvals", self.local_approvals, most.local_approvals);
        let files = off("token_files", self.token_files, most.token_files);
        [
            ("local_approvals", local),
            ("token_files", files.and(local.or(files))),
            switch("schedules_by_runs", self.schedules_by_runs, most.schedules_by_runs),
            switch("notices", self.notices, most.notices),
        ]
    }
}

/// Whether a switch is off unless its flag is on.
pub fn is_opt_in(switch: &str) -> bool {
    let by_default = Posture::Debug.trust().restricted_by(Flags::default());
    by_default.switches(Posture::Debug).iter().any(|(name, off)| *name == switch && off.is_some())
}

impl Default for Flags {
    fn default() -> Flags {
        Flags { local_approvals: true, token_files: false, schedules_by_runs: true, notices: true }
    }
}

impl Check {
    /// In the order in which they run.
    pub const ALL: [Check; 14] = [
        Check::Files,
        Check::Secrets,
        Check::SharedSecrets,
        Check::CoreDumps,
        Check::Policy,
        Check::Schema,
        Check::Key,
        Check::Ledger,
        Check::PostureDowngrade,
        Check::Clock,
        Check::ClockAhead,
        Check::Approvers,
        Check::ScheduleApprovers,
        Check::WorkingDirectories,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Check::Files => "files",
            Check::PostureDowngrade => "posture",
            Check::Secrets => "secrets",
            Check::SharedSecrets => "shared secrets",
            Check::CoreDumps => "core dumps",
            Check::Policy => "policy",
            Check::Key => "signing key",
            Check::Schema => "schema",
            Check::Ledger => "ledger",
            Check::Clock => "clock",
            Check::ClockAhead => "clock ahead",
            Check::Approvers => "approvers",
            Check::ScheduleApprovers => "schedule approvers",
            Check::WorkingDirectories => "agent directories",
        }
    }

    pub const fn consequence(self, posture: Posture) -> Consequence {
        use Consequence::{Refuse, Warn};
        let (strict, staging, debug) = match self {
            Check::Files | Check::Policy | Check::Key | Check::Schema => (Refuse, Refuse, Refuse),
            Check::PostureDowngrade | Check::ClockAhead => (Refuse, Refuse, Refuse),
            Check::Secrets | Check::SharedSecrets => (Refuse, Refuse, Warn),
            Check::CoreDumps | Check::Ledger | Check::Clock | Check::Approvers => {
                (Refuse, Warn, Warn)
            }
            // The other schedules run.
            Check::ScheduleApprovers => (Warn, Warn, Warn),
            Check::WorkingDirectories => (Warn, Warn, Warn),
        };
        match posture {
            Posture::StrictProd => strict,
            Posture::Staging => staging,
            Posture::Debug => debug,
        }
    }
}

impl Finding {
    pub fn new(check: Check, problem: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { check, problem: problem.into(), fix: fix.into() }
    }
}

/// The posture that is effective once a maintainer has a token: the last one in which the daemon ran, if the
/// configured one would raise the role of the local user. Otherwise editing the configuration would give the
/// local user a maintainer's role.
pub fn effective_posture(configured: Posture, last: Option<Posture>) -> Posture {
    let has_lower_local_role =
        |last: &Posture| last.trust().local_role < configured.trust().local_role;
    last.filter(has_lower_local_role).unwrap_or(configured)
}

/// Finds a configured posture that is less strict than the effective one.
pub fn check_posture(configured: Posture, effective: Posture) -> Option<Finding> {
    (configured != effective).then(|| {
        let what = format!(
            "the daemon last ran with posture `{effective}`; only a maintainer can lower it to `{configured}`"
        );
        let fix = "restore `posture`; or have a maintainer revoke the tokens of all maintainers \
                   with `midwatch token revoke`, then start the daemon";
        Finding::new(Check::PostureDowngrade, what, fix)
    })
}

/// Finds too few approvers: `people` have a token, the local user may count as one more, and a rule needs up
/// to `persons` of them.
pub fn check_approvers(trust: Trust, people: usize, persons: u8) -> Option<Finding> {
    let is_local = trust.local_approvals && persons <= 1;
    let found = people + usize::from(is_local);
    let needed = trust.approvers_min + usize::from(persons.saturating_sub(1));
    (found < needed).then(|| {
        let what = format!("{found} of {needed} required approvers are set up");
        Finding::new(Check::Approvers, what, how_to_add_approver(trust))
    })
}

/// How to add a person who can approve.
pub(crate) fn how_to_add_approver(trust: Trust) -> String {
    let (key, how) = match trust.signed_approvals {
        true => (" --key KEY", "; each approver creates a key with `midwatch approval key NAME`"),
        false => ("", ""),
    };
    format!(
        "add one with `midwatch token create --name NAME --role operator{key}`, which also works while no \
         daemon runs{how}"
    )
}

/// Finds a clock that is behind the last entry of the ledger, or so far ahead of it that it is probably wrong: entries with
/// its time would pause the installation until that time has come.
pub fn check_clock(now: Timestamp, last: Timestamp) -> Option<Finding> {
    check_clock_ahead(now, last).or_else(|| check_clock_behind(now, last))
}

/// Finds a clock that is so far ahead of the last entry of the ledger, or of the time that is known otherwise, that it is
/// probably wrong.
pub fn check_clock_ahead(now: Timestamp, last: Timestamp) -> Option<Finding> {
    let ahead_days = now.as_micros().saturating_sub(last.as_micros()) / DAY_US;
    (CLOCK_AHEAD_DAYS_MAX <= ahead_days).then(|| {
        let what = format!("the clock is {ahead_days} days ahead of the last entry of the ledger");
        Finding::new(Check::ClockAhead, what, FIX_CLOCK)
    })
}

fn check_clock_behind(now: Timestamp, last: Timestamp) -> Option<Finding> {
    let behind = last.as_micros().saturating_sub(now.as_micros());
    (0 < behind).then(|| {
        let what = format!(
            "the clock is {} s behind the last entry of the ledger",
            (behind as u64).div_ceil(1_000_000)
        );
        Finding::new(Check::Clock, what, FIX_CLOCK)
    })
}

/// Finds an agent whose program gets a secret of Midwatch: one of the `variables` that hold them, or a token
/// among its arguments.
pub fn check_secrets(agent: &Agent, variables: &[String]) -> Option<Finding> {
    let (argv, env) = match &agent.backend {
        Backend::Command(program) => (program.argv.as_slice(), program.env.as_slice()),
        Backend::Mcp(McpServer::Argv(argv)) => (argv.as_slice(), &[][..]),
        Backend::Builtin { .. } | Backend::Letta { .. } | Backend::Openai { .. } => return None,
        Backend::Anthropic { .. } | Backend::Webhook { .. } => return None,
        Backend::Mcp(McpServer::Url(_)) => return None,
    };
    let name = &agent.name;
    let edit = format!("change it with `midwatch agent edit {name}`");
    let secret_variable =
        env.iter().find(|it| variables.iter().any(|secret| secret == it.as_str()));
    if let Some(variable) = secret_variable {
        let what = format!(
            "agent `{name}` gets `{}`, which holds a secret of Midwatch",
            variable.as_str()
        );
        return Some(Finding::new(Check::Secrets, what, edit));
    }
    argv.iter().any(|word| token::contains_secret(word)).then(|| {
        let what = format!("the arguments of agent `{name}` contain a token");
        Finding::new(Check::Secrets, what, format!("{edit}; revoke that token"))
    })
}

/// The purpose of a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// An access token of this person.
    Token(String),
    /// The secret that this configuration key names.
    Key(&'static str),
    /// The credential of this agent.
    Agent(AgentName),
}

/// Finds secrets with more than one purpose, given each purpose with the hash of its secret. Several agents
/// may share a credential.
pub fn check_shared_secrets(secrets: &[(Purpose, String)]) -> Vec<Finding> {
    let mut purposes_of: BTreeMap<&str, BTreeSet<&Purpose>> = BTreeMap::new();
    for (purpose, hash) in secrets {
        purposes_of.entry(hash).or_default().insert(purpose);
    }
    let is_agent = |it: &&Purpose| matches!(it, Purpose::Agent(_));
    let shared = purposes_of.into_values().filter(|it| 1 < it.len() && !it.iter().all(is_agent));
    let finding = |purposes: BTreeSet<&Purpose>| {
        let is_token = purposes.iter().any(|it| matches!(it, Purpose::Token(_)));
        let named: Vec<String> = purposes.iter().map(ToString::to_string).collect();
        let what = format!("one secret is used as {}", named.join(" and "));
        let fix = match is_token {
            true => "use another secret there, and revoke the token with `midwatch token revoke`",
            false => "give each a secret of its own",
        };
        Finding::new(Check::SharedSecrets, what, fix)
    };
    shared.map(finding).collect()
}

impl fmt::Display for Purpose {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Purpose::Token(name) => write!(out, "a token of {name}"),
            Purpose::Key(key) => write!(out, "`{key}`"),
            Purpose::Agent(name) => write!(out, "the credential of agent `{name}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Check::*;
    use super::Consequence::*;
    use super::*;

    const ALL_OFF: Flags = Flags {
        local_approvals: false,
        token_files: false,
        schedules_by_runs: false,
        notices: false,
    };

    #[test]
    fn postures_expand_to_their_trust_settings() {
        let check = |posture: Posture, unmatched, local_role, local, plain, approvers| {
            let trust = posture.trust();
            let found = (trust.default_verdict, trust.local_role, trust.local_approvals);
            assert_eq!(found, (unmatched, local_role, local), "{posture}");
            assert_eq!((trust.plain_notices, trust.approvers_min), (plain, approvers), "{posture}");
            assert!(trust.schedules_by_runs && trust.notices, "{posture}");
            assert_eq!((trust.signed_approvals, trust.token_files), (!local, local), "{posture}");
        };
        check(Posture::StrictProd, Verdict::Deny, Role::Operator, false, false, 2);
        check(Posture::Staging, Verdict::Ask, Role::Maintainer, true, false, 1);
        check(Posture::Debug, Verdict::Ask, Role::Maintainer, true, true, 1);
        assert_eq!(Posture::default(), Posture::Staging);
    }

    #[test]
    fn flags_only_restrict_the_posture() {
        for posture in Posture::ALL {
            let most = posture.trust();
            let all_on = Flags { token_files: true, ..Flags::default() };
            assert_eq!(most.restricted_by(all_on), most, "{posture}");
            let least = most.restricted_by(ALL_OFF);
            assert!(!least.local_approvals && !least.schedules_by_runs && !least.notices);
            assert!(!least.token_files);
            // No flag changes the other settings.
            let kept = Trust {
                local_approvals: most.local_approvals,
                token_files: most.token_files,
                schedules_by_runs: most.schedules_by_runs,
                notices: most.notices,
                ..least
            };
            assert_eq!(kept, most, "{posture}");
        }
    }

    #[test]
    fn token_files_need_local_approvals() {
        for (local_approvals, token_files) in [(true, true), (true, false), (false, true)] {
            let flags = Flags { local_approvals, token_files, ..Flags::default() };
            let left = Posture::Staging.trust().restricted_by(flags);
            assert_eq!(left.token_files, local_approvals && token_files, "{flags:?}");
        }
    }

    #[test]
    fn switches_report_why_they_are_off() {
        let off = |posture: Posture, flags| {
            posture.trust().restricted_by(flags).switches(posture).map(|(_, off)| off)
        };
        let all_on = Flags { token_files: true, ..Flags::default() };
        assert_eq!(off(Posture::Staging, all_on), [None; 4]);
        let by_flags = ["local_approvals", "local_approvals", "schedules_by_runs", "notices"];
        assert_eq!(off(Posture::Staging, ALL_OFF), by_flags.map(|it| Some(DisabledBy::Flag(it))));
        let by_flag = Some(DisabledBy::Flag("token_files"));
        assert_eq!(off(Posture::Staging, Flags::default()), [None, by_flag, None, None]);
        let strict = [Some(DisabledBy::Posture), Some(DisabledBy::Posture), None, None];
        assert_eq!(off(Posture::StrictProd, Flags::default()), strict);
        let names = Posture::Staging.trust().switches(Posture::Staging).map(|(name, _)| name);
        assert_eq!(names, ["local_approvals", "token_files", "schedules_by_runs", "notices"]);
    }

    #[test]
    fn a_token_can_approve_in_every_posture() {
        let ada = Actor::token_holder("ada".parse().unwrap(), Role::Operator);
        for posture in Posture::ALL {
            let trust = posture.trust();
            assert_eq!(trust.restricted_by(ALL_OFF).check_may_approve(&ada), Ok(()), "{posture}");
            let local = Actor::local_user(1000);
            assert_eq!(trust.check_may_approve(&local), Ok(()), "{posture}");
            // Any caller may submit a signed approval.
            let is_signed = posture == Posture::StrictProd;
            assert_eq!(
                trust.restricted_by(ALL_OFF).check_may_approve(&local).is_ok(),
                is_signed,
                "{posture}"
            );
        }
    }

    #[test]
    fn checks_have_a_consequence_per_posture() {
        for (check, expected) in [
            (Files, [Refuse, Refuse, Refuse]),
            (Secrets, [Refuse, Refuse, Warn]),
            (SharedSecrets, [Refuse, Refuse, Warn]),
            (CoreDumps, [Refuse, Warn, Warn]),
            (Policy, [Refuse, Refuse, Refuse]),
            (Schema, [Refuse, Refuse, Refuse]),
            (Key, [Refuse, Refuse, Refuse]),
            (Ledger, [Refuse, Warn, Warn]),
            (PostureDowngrade, [Refuse, Refuse, Refuse]),
            (Clock, [Refuse, Warn, Warn]),
            (Approvers, [Refuse, Warn, Warn]),
        ] {
            let postures = [Posture::StrictProd, Posture::Staging, Posture::Debug];
            assert_eq!(postures.map(|it| check.consequence(it)), expected, "{}", check.name());
            assert!(Check::ALL.contains(&check));
        }
    }

    #[test]
    fn secrets_with_two_purposes_are_found() {
        let check = |secrets: &[(Purpose, &str)], expected: &[&str]| {
            let secrets: Vec<(Purpose, String)> =
                secrets.iter().map(|(it, hash)| (it.clone(), (*hash).to_owned())).collect();
            let found = check_shared_secrets(&secrets).into_iter().map(|it| it.problem);
            assert_eq!(found.collect::<Vec<_>>(), expected);
        };
        let agent = |name: &str| Purpose::Agent(name.parse().unwrap());
        let (olga, notice) = (Purpose::Token("olga".into()), Purpose::Key("notice.token"));
        check(&[], &[]);
        check(&[(olga.clone(), "1"), (notice.clone(), "2"), (agent("ada"), "3")], &[]);
        check(&[(agent("ada"), "1"), (agent("bob"), "1")], &[]);
        let shared = "one secret is used as a token of olga and `notice.token`";
        check(&[(notice.clone(), "1"), (olga.clone(), "1")], &[shared]);
        let shared = "one secret is used as a token of olga and the credential of agent `ada`";
        check(&[(agent("ada"), "1"), (olga, "1"), (agent("bob"), "2")], &[shared]);
        let shared = "one secret is used as `notice.token` and the credential of agent `ada`";
        check(&[(agent("ada"), "1"), (notice, "1")], &[shared]);
    }

    #[test]
    fn too_few_approvers_are_found() {
        let check = |trust: Trust, people, persons, expected: Option<&str>| {
            let found = check_approvers(trust, people, persons);
            assert_eq!(found.as_ref().map(|it| it.problem.as_str()), expected);
            let mentions_key =
                found.is_none_or(|it| it.fix.contains("--key") == trust.signed_approvals);
            assert!(mentions_key, "{expected:?}");
        };
        let strict = Posture::StrictProd.trust();
        check(strict, 0, 1, Some("0 of 2 required approvers are set up"));
        check(strict, 1, 1, Some("1 of 2 required approvers are set up"));
        check(strict, 2, 1, None);
        // One of them could be the author.
        check(strict, 2, 2, Some("2 of 3 required approvers are set up"));
        check(strict, 3, 2, None);
        // The local user counts where local approvals are on.
        let staging = Posture::Staging.trust();
        check(staging, 0, 1, None);
        check(staging.restricted_by(ALL_OFF), 0, 1, Some("0 of 1 required approvers are set up"));
        check(staging.restricted_by(ALL_OFF), 1, 1, None);
        check(staging, 1, 2, Some("1 of 2 required approvers are set up"));
        check(staging, 2, 2, None);
    }

    #[test]
    fn approving_needs_an_operator_token_and_a_key_if_signed() {
        let token = |role: &str, key: Option<&str>| -> Token {
            let hash = "ab".repeat(32);
            serde_json::from_value(serde_json::json!({"name": "ada", "role": role, "hash": hash, "key": key, "created_by": "uid:1", "created_at": 0})).unwrap()
        };
        for (role, key, expected) in [
            ("operator", Some("ada+1+a"), [true, true, true]),
            ("operator", None, [false, true, true]),
            ("maintainer", None, [false, true, true]),
            ("runner", None, [false; 3]),
            ("observer", None, [false; 3]),
        ] {
            let found = [Posture::StrictProd, Posture::Staging, Posture::Debug]
                .map(|it| it.trust().can_token_approve(&token(role, key)));
            assert_eq!(found, expected, "{role} {key:?}");
        }
    }

    #[test]
    fn effective_posture_never_raises_the_local_role() {
        use Posture::{Debug, Staging, StrictProd};
        for (configured, last, expected) in [
            (Staging, Some(StrictProd), StrictProd),
            (Debug, Some(StrictProd), StrictProd),
            (StrictProd, Some(StrictProd), StrictProd),
            (StrictProd, Some(Debug), StrictProd),
            (StrictProd, None, StrictProd),
            (Debug, None, Debug),
            // The local user is a maintainer in both.
            (Debug, Some(Staging), Debug),
            (Staging, Some(Debug), Staging),
        ] {
            let found = effective_posture(configured, last);
            assert_eq!(found, expected, "{configured} {last:?}");
            assert_eq!(check_posture(configured, found).is_some(), configured != expected);
        }
    }

    #[test]
    fn a_clock_behind_the_ledger_is_found() {
        let at = Timestamp::from_micros;
        assert_eq!(check_clock(at(5), at(5)), None);
        assert_eq!(check_clock(at(6), at(5)), None);
        assert_eq!(check_clock(at(5 + 30 * DAY_US - 1), at(5)), None);
        let ahead = check_clock(at(5 + 30 * DAY_US), at(5)).unwrap();
        assert_eq!(ahead.check, Check::ClockAhead);
        assert!(Posture::ALL.iter().all(|it| ahead.check.consequence(*it) == Consequence::Refuse));
        let behind = check_clock(at(0), at(1_000_001)).unwrap();
        assert_eq!(behind.problem, "the clock is 2 s behind the last entry of the ledger");
    }

    #[test]
    fn agents_with_a_secret_of_midwatch_are_found() {
        let check = |backend: serde_json::Value, expected: Option<&str>| {
            let agent = serde_json::json!({"name": "ada", "backend": backend, "tier": 1, "registered_at": 0, "changed_at": 0});
            let agent: Agent = serde_json::from_value(agent).unwrap();
            let variables = ["MIDWATCH_TOKEN".to_owned(), "PASSWORD".to_owned()];
            let found = check_secrets(&agent, &variables).map(|it| it.problem);
            assert_eq!(found.as_deref(), expected, "{agent:?}");
        };
        let program = |argv: &[&str], env: &[&str]| serde_json::json!({"kind": "command", "argv": argv, "env": env});
        let secret = format!("--token=mwt_{}", "0".repeat(64));
        check(program(&["/bin/true"], &["LANG"]), None);
        let in_environment = "agent `ada` gets `PASSWORD`, which holds a secret of Midwatch";
        check(program(&["/bin/true"], &["LANG", "PASSWORD"]), Some(in_environment));
        let in_arguments = "the arguments of agent `ada` contain a token";
        check(program(&["/bin/true", &secret], &[]), Some(in_arguments));
        check(serde_json::json!({"kind": "mcp", "argv": ["x", secret]}), Some(in_arguments));
        check(serde_json::json!({"kind": "builtin"}), None);
    }
}
