//! What a posture expands to, what can be switched off of it, and what is looked at before the watch
//! starts. Whoever enforces something that is about trust reads it here, and whoever tells of it too.
//!
//! Flags take away from what the posture allows and never add to it, so no combination of both is less
//! safe than the posture alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::actor::{Actor, Role};
use crate::agent::{Agent, AgentName};
use crate::backend::{Backend, McpServer};
use crate::ruling::{Posture, Verdict};
use crate::time::Timestamp;
use crate::token::{self, Token};

/// Everything that is about trust, under a posture and its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// What is said of that of which no rule speaks.
    pub unmatched: Verdict,
    /// The role of the user of the machine, once somebody has a maintainer's token.
    pub local_role: Role,
    /// Whether the user of the machine approves without a token.
    pub local_approvals: bool,
    /// Whether every yes is signed by whoever says it, and nobody approves what they wrote.
    pub signed_approvals: bool,
    /// Whether files in the data directory approve.
    pub token_files: bool,
    /// Whether runs add schedules.
    pub schedules_by_runs: bool,
    /// Whether humans are called.
    pub notices: bool,
    /// Whether what they are told may go to another machine unencrypted.
    pub plain_notices: bool,
    /// How many people there must be who can approve: one more than an approval needs, where the one
    /// who asked must not be the one who answers.
    pub approvers_min: usize,
}

/// What can be switched while the watch is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    pub local_approvals: bool,
    pub token_files: bool,
    pub schedules_by_runs: bool,
    pub notices: bool,
}

/// Why something is not enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    ByPosture,
    /// That of this name.
    ByFlag(&'static str),
}

/// What is looked at before the watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Others can read the data, or change the orders.
    Files,
    /// The posture is laxer than the one in which the watch was last kept.
    StepDown,
    /// A secret is where agents can take it.
    Secrets,
    /// One secret serves two ends: whoever has it for the one can do the other.
    SharedSecrets,
    /// What is in memory may come to lie on the disk.
    CoreDumps,
    /// The rules have a fault.
    Orders,
    /// The key that signs the log is not there, or others can read it.
    Key,
    /// The data is of a newer version.
    Schema,
    /// The log is damaged, or shorter than it was.
    Log,
    /// The clock is behind the log.
    Clock,
    /// Too few people can approve.
    Approvers,
}

/// What follows when a check has found something, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consequence {
    /// It starts, and says so in the log.
    Warn,
    /// It does not start.
    Refuse,
}

/// Something that a check has found, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub check: Check,
    pub what: String,
    pub fix: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the user of the machine approves nothing here: a person comes with a token of their own")]
pub struct NotPersonal;

impl Posture {
    /// The one table.
    pub const fn trust(self) -> Trust {
        match self {
            Posture::StrictProd => Trust {
                unmatched: Verdict::Deny,
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
                unmatched: Verdict::Ask,
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

impl Trust {
    /// What is left of it.
    #[must_use]
    pub const fn with(self, flags: Flags) -> Trust {
        Trust {
            local_approvals: self.local_approvals && flags.local_approvals,
            // Whoever writes a file is the user of the machine.
            token_files: self.token_files && flags.token_files && flags.local_approvals,
            schedules_by_runs: self.schedules_by_runs && flags.schedules_by_runs,
            notices: self.notices && flags.notices,
            ..self
        }
    }

    /// Whether somebody may approve by the way on which they came. Anybody brings what others have signed.
    ///
    /// ```
    /// use kernel::Actor;
    /// use kernel::posture::Flags;
    /// use kernel::ruling::Posture;
    ///
    /// let staging = Posture::Staging.trust();
    /// assert!(staging.lets_approve(&Actor::local_user(1000)).is_ok());
    /// let personal = staging.with(Flags { local_approvals: false, ..Flags::default() });
    /// assert!(personal.lets_approve(&Actor::local_user(1000)).is_err());
    /// ```
    pub fn lets_approve(self, actor: &Actor) -> Result<(), NotPersonal> {
        match self.local_approvals || self.signed_approvals || !actor.is_local_user() {
            true => Ok(()),
            false => Err(NotPersonal),
        }
    }

    /// Whether somebody can approve with this token. Where that is signed, it takes a key.
    pub fn lets_token_approve(self, token: &Token) -> bool {
        let is_let_in = token.revoked.is_none() && Role::Operator <= token.role;
        is_let_in && (token.key.is_some() || !self.signed_approvals)
    }

    /// What can be switched and is off.
    pub(crate) fn off(self) -> Vec<String> {
        let off = self.switches(Posture::Debug).into_iter().filter(|(_, why)| why.is_some());
        off.map(|(name, _)| name.to_owned()).collect()
    }

    /// What can be switched, by name, and why it is off, if it is.
    pub fn switches(self, posture: Posture) -> [(&'static str, Option<Off>); 4] {
        let most = posture.trust();
        let off = |flag, is_on, may_be| match (is_on, may_be) {
            (true, _) => None,
            (false, true) => Some(Off::ByFlag(flag)),
            (false, false) => Some(Off::ByPosture),
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

impl Default for Flags {
    fn default() -> Flags {
        Flags { local_approvals: true, token_files: true, schedules_by_runs: true, notices: true }
    }
}

impl Check {
    /// In the order in which they are looked at.
    pub const ALL: [Check; 11] = [
        Check::Files,
        Check::Secrets,
        Check::SharedSecrets,
        Check::CoreDumps,
        Check::Orders,
        Check::Schema,
        Check::Key,
        Check::Log,
        Check::StepDown,
        Check::Clock,
        Check::Approvers,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Check::Files => "files",
            Check::StepDown => "posture",
            Check::Secrets => "secrets",
            Check::SharedSecrets => "shared secrets",
            Check::CoreDumps => "core dumps",
            Check::Orders => "orders",
            Check::Key => "signing key",
            Check::Schema => "schema",
            Check::Log => "log",
            Check::Clock => "clock",
            Check::Approvers => "approvers",
        }
    }

    pub const fn consequence(self, posture: Posture) -> Consequence {
        use Consequence::{Refuse, Warn};
        let (strict, staging, debug) = match self {
            Check::Files | Check::Orders | Check::Key | Check::Schema | Check::StepDown => {
                (Refuse, Refuse, Refuse)
            }
            Check::Secrets | Check::SharedSecrets => (Refuse, Refuse, Warn),
            Check::CoreDumps | Check::Log | Check::Clock | Check::Approvers => (Refuse, Warn, Warn),
        };
        match posture {
            Posture::StrictProd => strict,
            Posture::Staging => staging,
            Posture::Debug => debug,
        }
    }
}

impl Finding {
    pub fn new(check: Check, what: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { check, what: what.into(), fix: fix.into() }
    }
}

/// The posture that holds where a maintainer has a token: no laxer one than the last in which the watch was kept.
/// Otherwise whoever brings the configuration would give the user of the machine a maintainer's role.
pub fn holds(configured: Posture, last: Option<Posture>) -> Posture {
    let gives_less = |last: &Posture| last.trust().local_role < configured.trust().local_role;
    last.filter(gives_less).unwrap_or(configured)
}

/// Whether the watch would be kept in a laxer posture than the one that holds.
pub fn check_posture(configured: Posture, holds: Posture) -> Option<Finding> {
    (configured != holds).then(|| {
        let what = format!(
            "the watch was last kept in `{holds}`, and only a maintainer can let it be `{configured}`"
        );
        let fix = "set `posture` as it was; or let a maintainer take their tokens from all maintainers, \
                   with `midwatch token revoke`, and start it then";
        Finding::new(Check::StepDown, what, fix)
    })
}

/// Whether enough people can approve: `people` with a token, and perhaps the user of the machine, where a rule
/// wants up to `persons` of them.
pub fn check_approvers(trust: Trust, people: usize, persons: u8) -> Option<Finding> {
    let is_local = trust.local_approvals && persons <= 1;
    let found = people + usize::from(is_local);
    let needed = trust.approvers_min + usize::from(persons.saturating_sub(1));
    (found < needed).then(|| {
        let people = match found {
            0 => "nobody".to_owned(),
            1 => "1 person".to_owned(),
            more => format!("{more} people"),
        };
        let what = format!("{people} can approve, and at least {needed} must");
        let (key, how) = match trust.signed_approvals {
            true => (" --key KEY", "; `midwatch approval key NAME` makes the key, where they sign"),
            false => ("", ""),
        };
        let fix = format!(
            "`midwatch token create --name NAME --role operator{key}` gives one out, also while no \
             daemon runs{how}"
        );
        Finding::new(Check::Approvers, what, fix)
    })
}

/// Whether the clock is behind the last entry of the log.
pub fn check_clock(now: Timestamp, last: Timestamp) -> Option<Finding> {
    let behind = last.as_micros().saturating_sub(now.as_micros());
    (0 < behind).then(|| {
        let what = format!(
            "the clock is {} s behind the last entry of the log",
            (behind as u64).div_ceil(1_000_000)
        );
        Finding::new(Check::Clock, what, "set the clock, or wait until it has caught up")
    })
}

/// Whether a program that an agent starts is given a secret of the watch: one of the variables that hold
/// them, or a token among its words.
pub fn check_secrets(agent: &Agent, variables: &[String]) -> Option<Finding> {
    let (argv, env) = match &agent.backend {
        Backend::Command(program) => (program.argv.as_slice(), program.env.as_slice()),
        Backend::Mcp(McpServer::Argv(argv)) => (argv.as_slice(), &[][..]),
        Backend::Builtin { .. } | Backend::Letta { .. } | Backend::Openai { .. } => return None,
        Backend::Anthropic { .. } | Backend::Webhook { .. } => return None,
        Backend::Mcp(McpServer::Url(_)) => return None,
    };
    let name = &agent.name;
    let edit = format!("`midwatch agent edit {name}` changes it");
    let given = env.iter().find(|it| variables.iter().any(|secret| secret == it.as_str()));
    if let Some(variable) = given {
        let what =
            format!("agent `{name}` is given `{}`, which is for the watch", variable.as_str());
        return Some(Finding::new(Check::Secrets, what, edit));
    }
    argv.iter().any(|word| token::is_in(word)).then(|| {
        let what = format!("a token stands among the arguments of agent `{name}`");
        Finding::new(Check::Secrets, what, format!("{edit}; revoke that token"))
    })
}

/// What a secret is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// It lets a person in.
    Token(String),
    /// A key of the configuration names it.
    Key(&'static str),
    /// It is sent to where this agent is.
    Agent(AgentName),
}

/// Whether a secret is for more than one thing, by what it is for and the hash of each. Agents of one server
/// have the same.
pub fn check_shared_secrets(secrets: &[(Purpose, String)]) -> Vec<Finding> {
    let mut ends: BTreeMap<&str, BTreeSet<&Purpose>> = BTreeMap::new();
    for (purpose, hash) in secrets {
        ends.entry(hash).or_default().insert(purpose);
    }
    let is_agent = |it: &&Purpose| matches!(it, Purpose::Agent(_));
    let shared = ends.into_values().filter(|it| 1 < it.len() && !it.iter().all(is_agent));
    let finding = |purposes: BTreeSet<&Purpose>| {
        let is_token = purposes.iter().any(|it| matches!(it, Purpose::Token(_)));
        let named: Vec<String> = purposes.iter().map(ToString::to_string).collect();
        let what = format!("one secret is {}", named.join(" and "));
        let fix = match is_token {
            true => {
                "put a secret of its own where that one is, and `midwatch token revoke` the token"
            }
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

    const NONE: Flags = Flags {
        local_approvals: false,
        token_files: false,
        schedules_by_runs: false,
        notices: false,
    };

    #[test]
    fn what_each_posture_expands_to() {
        let check = |posture: Posture, unmatched, local_role, local, plain, approvers| {
            let trust = posture.trust();
            let found = (trust.unmatched, trust.local_role, trust.local_approvals);
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
    fn flags_take_away_and_never_add() {
        for posture in Posture::ALL {
            let most = posture.trust();
            assert_eq!(most.with(Flags::default()), most, "{posture}");
            let least = most.with(NONE);
            assert!(!least.local_approvals && !least.schedules_by_runs && !least.notices);
            assert!(!least.token_files);
            // Whatever else is about trust is the posture's alone.
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
    fn a_file_approves_only_where_the_user_of_the_machine_does() {
        for (local_approvals, token_files) in [(true, true), (true, false), (false, true)] {
            let flags = Flags { local_approvals, token_files, ..Flags::default() };
            let left = Posture::Staging.trust().with(flags);
            assert_eq!(left.token_files, local_approvals && token_files, "{flags:?}");
        }
    }

    #[test]
    fn what_is_off_says_by_what() {
        let off = |posture: Posture, flags| {
            posture.trust().with(flags).switches(posture).map(|(_, off)| off)
        };
        assert_eq!(off(Posture::Staging, Flags::default()), [None; 4]);
        let by_flags = ["local_approvals", "local_approvals", "schedules_by_runs", "notices"];
        assert_eq!(off(Posture::Staging, NONE), by_flags.map(|it| Some(Off::ByFlag(it))));
        let no_files = Flags { token_files: false, ..Flags::default() };
        let by_flag = Some(Off::ByFlag("token_files"));
        assert_eq!(off(Posture::Staging, no_files), [None, by_flag, None, None]);
        let strict = [Some(Off::ByPosture), Some(Off::ByPosture), None, None];
        assert_eq!(off(Posture::StrictProd, Flags::default()), strict);
        let names = Posture::Staging.trust().switches(Posture::Staging).map(|(name, _)| name);
        assert_eq!(names, ["local_approvals", "token_files", "schedules_by_runs", "notices"]);
    }

    #[test]
    fn a_person_with_a_token_approves_in_every_posture() {
        let ada = Actor { name: "ada".into(), role: Role::Operator };
        for posture in Posture::ALL {
            let trust = posture.trust();
            assert_eq!(trust.with(NONE).lets_approve(&ada), Ok(()), "{posture}");
            let local = Actor::local_user(1000);
            assert_eq!(trust.lets_approve(&local), Ok(()), "{posture}");
            // Where it is signed, anybody brings it.
            let is_signed = posture == Posture::StrictProd;
            assert_eq!(trust.with(NONE).lets_approve(&local).is_ok(), is_signed, "{posture}");
        }
    }

    #[test]
    fn what_follows_from_each_check() {
        for (check, expected) in [
            (Files, [Refuse, Refuse, Refuse]),
            (Secrets, [Refuse, Refuse, Warn]),
            (SharedSecrets, [Refuse, Refuse, Warn]),
            (CoreDumps, [Refuse, Warn, Warn]),
            (Orders, [Refuse, Refuse, Refuse]),
            (Schema, [Refuse, Refuse, Refuse]),
            (Key, [Refuse, Refuse, Refuse]),
            (Log, [Refuse, Warn, Warn]),
            (StepDown, [Refuse, Refuse, Refuse]),
            (Clock, [Refuse, Warn, Warn]),
            (Approvers, [Refuse, Warn, Warn]),
        ] {
            let postures = [Posture::StrictProd, Posture::Staging, Posture::Debug];
            assert_eq!(postures.map(|it| check.consequence(it)), expected, "{}", check.name());
            assert!(Check::ALL.contains(&check));
        }
    }

    #[test]
    fn a_secret_serves_one_end() {
        let check = |secrets: &[(Purpose, &str)], expected: &[&str]| {
            let secrets: Vec<(Purpose, String)> =
                secrets.iter().map(|(it, hash)| (it.clone(), (*hash).to_owned())).collect();
            let found = check_shared_secrets(&secrets).into_iter().map(|it| it.what);
            assert_eq!(found.collect::<Vec<_>>(), expected);
        };
        let agent = |name: &str| Purpose::Agent(name.parse().unwrap());
        let (olga, notice) = (Purpose::Token("olga".into()), Purpose::Key("notice.token"));
        check(&[], &[]);
        check(&[(olga.clone(), "1"), (notice.clone(), "2"), (agent("ada"), "3")], &[]);
        check(&[(agent("ada"), "1"), (agent("bob"), "1")], &[]);
        let said = "one secret is a token of olga and `notice.token`";
        check(&[(notice.clone(), "1"), (olga.clone(), "1")], &[said]);
        let said = "one secret is a token of olga and the credential of agent `ada`";
        check(&[(agent("ada"), "1"), (olga, "1"), (agent("bob"), "2")], &[said]);
        let said = "one secret is `notice.token` and the credential of agent `ada`";
        check(&[(agent("ada"), "1"), (notice, "1")], &[said]);
    }

    #[test]
    fn how_many_people_can_approve() {
        let check = |trust: Trust, people, persons, expected: Option<&str>| {
            let found = check_approvers(trust, people, persons);
            assert_eq!(found.as_ref().map(|it| it.what.as_str()), expected);
            let is_told = found.is_none_or(|it| it.fix.contains("--key") == trust.signed_approvals);
            assert!(is_told, "{expected:?}");
        };
        let strict = Posture::StrictProd.trust();
        check(strict, 0, 1, Some("nobody can approve, and at least 2 must"));
        check(strict, 1, 1, Some("1 person can approve, and at least 2 must"));
        check(strict, 2, 1, None);
        // The author is one of them.
        check(strict, 2, 2, Some("2 people can approve, and at least 3 must"));
        check(strict, 3, 2, None);
        // The user of the machine is somebody, where they may.
        let staging = Posture::Staging.trust();
        check(staging, 0, 1, None);
        check(staging.with(NONE), 0, 1, Some("nobody can approve, and at least 1 must"));
        check(staging.with(NONE), 1, 1, None);
        check(staging, 1, 2, Some("1 person can approve, and at least 2 must"));
        check(staging, 2, 2, None);
    }

    #[test]
    fn who_can_approve_with_a_token() {
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
                .map(|it| it.trust().lets_token_approve(&token(role, key)));
            assert_eq!(found, expected, "{role} {key:?}");
        }
    }

    #[test]
    fn no_laxer_posture_holds_than_the_last() {
        use Posture::{Debug, Staging, StrictProd};
        for (configured, last, expected) in [
            (Staging, Some(StrictProd), StrictProd),
            (Debug, Some(StrictProd), StrictProd),
            (StrictProd, Some(StrictProd), StrictProd),
            (StrictProd, Some(Debug), StrictProd),
            (StrictProd, None, StrictProd),
            (Debug, None, Debug),
            // The user of the machine is a maintainer in both.
            (Debug, Some(Staging), Debug),
            (Staging, Some(Debug), Staging),
        ] {
            let found = holds(configured, last);
            assert_eq!(found, expected, "{configured} {last:?}");
            assert_eq!(check_posture(configured, found).is_some(), configured != expected);
        }
    }

    #[test]
    fn a_clock_may_not_be_behind_the_log() {
        let at = Timestamp::from_micros;
        assert_eq!(check_clock(at(5), at(5)), None);
        assert_eq!(check_clock(at(6), at(5)), None);
        let behind = check_clock(at(0), at(1_000_001)).unwrap();
        assert_eq!(behind.what, "the clock is 2 s behind the last entry of the log");
    }

    #[test]
    fn no_agent_is_given_a_secret_of_the_watch() {
        let check = |backend: serde_json::Value, expected: Option<&str>| {
            let agent = serde_json::json!({"name": "ada", "backend": backend, "tier": 1, "registered_at": 0, "changed_at": 0});
            let agent: Agent = serde_json::from_value(agent).unwrap();
            let variables = ["MIDWATCH_TOKEN".to_owned(), "PASSWORD".to_owned()];
            let found = check_secrets(&agent, &variables).map(|it| it.what);
            assert_eq!(found.as_deref(), expected, "{agent:?}");
        };
        let program = |argv: &[&str], env: &[&str]| serde_json::json!({"kind": "command", "argv": argv, "env": env});
        let secret = format!("--token=mwt_{}", "0".repeat(64));
        check(program(&["/bin/true"], &["LANG"]), None);
        let given = "agent `ada` is given `PASSWORD`, which is for the watch";
        check(program(&["/bin/true"], &["LANG", "PASSWORD"]), Some(given));
        let argued = "a token stands among the arguments of agent `ada`";
        check(program(&["/bin/true", &secret], &[]), Some(argued));
        check(serde_json::json!({"kind": "mcp", "argv": ["x", secret]}), Some(argued));
        check(serde_json::json!({"kind": "builtin"}), None);
    }
}
