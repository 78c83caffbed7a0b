//! An agent: a registered name with the backend that executes its prompts and the tier of prompting it.
//!
//! [`decide`] holds every rule, [`apply`] holds none. A command that would change nothing is `Ok(None)`,
//! so repeating a registration returns the existing agent.
//! Invariant: an agent's tier is never below the minimum of its backend.

use std::fmt;
use std::ops::Not;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Role};
use crate::approval::{self, Decided};
use crate::backend::{Backend, BackendKind, Invalid, SecretRef, Settings, Tier};
use crate::budget::{self, Charge, Spent, Usage, run_deltas, spent_deltas};
use crate::counter::Counter;
use crate::event::kinds;
use crate::money::{Money, Price};
use crate::noun::{NounEvent, NounState};
use crate::principal::Principal;
use crate::schedule::{RaiseCounts, highest_raise};
use crate::time::Timestamp;
use crate::{EventBody, Noun, schedule};

pub const NAME_BYTES_MAX: usize = 64;
/// Consecutive denials after which no further approvals are requested for an agent.
pub const DENIALS_MAX: u32 = 10;
/// The index key of agents that reached [`DENIALS_MAX`].
pub const SILENCED: &str = "silenced";

/// The text of an author that is not known.
const UNKNOWN_AUTHOR: &str = "author:unknown";

/// Invariant: 1 to 64 of `a-z 0-9 - _ .`, starting with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct AgentName(String);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    pub name: AgentName,
    pub backend: Backend,
    pub tier: Tier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<SecretRef>,
    /// As declared by the operator; [`Agent::is_repeatable`] also considers the backend.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub repeatable: bool,
    #[serde(default, skip_serializing_if = "Price::is_free")]
    pub price: Price,
    /// Existing schedules that its runs added.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub schedules_made: u32,
    /// Approvals denied since the last one that was granted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub denials: u32,
    /// Schedules to which people gave tier 1. One that an agent or an assistant removed still counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub raised_to_1: u32,
    /// The same for tier 2.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub raised_to_2: u32,
    /// Everyone who registered or changed it, once each; empty if an older version recorded it. People are
    /// limited by their tokens, and no run may change an agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_by: Vec<Principal>,
    pub registered_at: Timestamp,
    pub changed_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Register(Register),
    Change(Change),
    /// Prompt it once, without a schedule.
    Test,
    Remove,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    pub backend: Backend,
    /// `None`: the default of the backend.
    pub tier: Option<Tier>,
    pub credential: Option<SecretRef>,
    /// A prompt may be executed twice without harm.
    pub repeatable: bool,
    pub price: Price,
}

/// The fields to change; `None` keeps the present value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub kind: Option<BackendKind>,
    /// If the kind stays, omitted settings keep their value.
    pub settings: Settings,
    pub tier: Option<Tier>,
    /// `Some(None)` removes the credential.
    pub credential: Option<Option<SecretRef>>,
    pub repeatable: Option<bool>,
    pub price: PriceChange,
}

/// The parts of a price to change. No part can be removed, only set to zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriceChange {
    pub input: Option<Money>,
    pub output: Option<Money>,
    pub run: Option<Money>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Registered(Definition),
    Changed(Definition),
    Tested(Tested),
    TestSpent(TestSpent),
    Removed(Removed),
}

/// The complete configuration of an agent as of this event, so `apply` has nothing to compute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    pub backend: Backend,
    pub tier: Tier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<SecretRef>,
    #[serde(default, skip_serializing_if = "Not::not")]
    pub repeatable: bool,
    #[serde(default, skip_serializing_if = "Price::is_free")]
    pub price: Price,
    /// Who registered or changed it. Older versions did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    pub at: Timestamp,
}

/// The agent is about to be prompted by `agent test`. Only the caller gets the output; it is not recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tested {
    /// The run counters that the test adds to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<Charge>,
    pub at: Timestamp,
}

/// The tokens and money that an `agent test` used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestSpent {
    pub spent: Spent,
    pub at: Timestamp,
}

/// Why a command was refused. Nothing was recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("agent `{0}` is already registered with other settings")]
    Exists(AgentName),
    #[error("agent `{0}` does not exist")]
    Unknown(AgentName),
    #[error("agent `{0}` has tier 2 and can only be prompted with an approval")]
    NeedsApproval(AgentName),
    #[error("an agent with backend `{kind}` cannot have tier {tier}: the minimum is {min}")]
    TierTooLow { kind: BackendKind, tier: Tier, min: Tier },
    #[error("this needs the role `{}`, but `{}` has the role `{}`", needed.name(), actor.name(), actor.role.name())]
    RoleTooLow { actor: Actor, needed: Role },
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid agent name")]
pub struct InvalidName(String);

/// Decides a command about the agent `name`; `agent` is its present state, if it exists.
///
/// ```
/// use kernel::agent::{AgentName, Command, Event, Register, apply, decide};
/// use kernel::backend::{Backend, Tier};
/// use kernel::{Actor, Timestamp};
///
/// let name: AgentName = "ada".parse()?;
/// let (now, actor) = (Timestamp::from_micros(0), Actor::local_user(1000));
/// let backend = Backend::Builtin { script: None };
/// let price = Default::default();
/// let ada = Register { backend, tier: None, credential: None, repeatable: false, price };
/// let register = || Command::Register(ada.clone());
/// let event = decide(&name, None, now, &actor, register())?.ok_or("no event")?;
/// assert!(matches!(event, Event::Registered(_)));
///
/// let agent = apply(&name, None, &event).ok_or("no agent")?;
/// assert_eq!(agent.tier, Tier::ReadOnly);
/// assert_eq!(decide(&name, Some(&agent), now, &actor, register())?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn decide(
    name: &AgentName,
    agent: Option<&Agent>,
    now: Timestamp,
    actor: &Actor,
    command: Command,
) -> Result<Option<Event>, Refusal> {
    if actor.role < Role::Operator {
        return Err(Refusal::RoleTooLow { actor: actor.clone(), needed: Role::Operator });
    }
    match (agent, command) {
        (None, Command::Register(register)) => {
            Ok(Some(Event::Registered(register.into_definition(actor, now)?)))
        }
        (Some(agent), Command::Register(register)) => {
            let wanted = register.into_definition(actor, now)?;
            match agent.has_definition(&wanted) {
                true => Ok(None),
                false => Err(Refusal::Exists(name.clone())),
            }
        }
        (Some(agent), Command::Change(change)) => {
            let wanted = change.into_definition(agent, actor, now)?;
            match agent.has_definition(&wanted) {
                true => Ok(None),
                false => Ok(Some(Event::Changed(wanted))),
            }
        }
        (Some(agent), Command::Test) if agent.tier == Tier::External => {
            Err(Refusal::NeedsApproval(name.clone()))
        }
        (Some(agent), Command::Test) => {
            let charge = budget::charge_for(Some(name), agent.tier, now);
            Ok(Some(Event::Tested(Tested { charge, at: now })))
        }
        (Some(_), Command::Remove) => Ok(Some(Event::Removed(Removed { at: now }))),
        (None, Command::Change(_) | Command::Test | Command::Remove) => {
            Err(Refusal::Unknown(name.clone()))
        }
    }
}

/// The event that records what a test used, unless it used nothing.
pub fn test_spent_event(agent: &Agent, usage: Option<Usage>, now: Timestamp) -> Option<Event> {
    let cost = agent.price.cost(usage.unwrap_or_default());
    let (name, day) = (agent.name.clone(), budget::day(now));
    let spent = Spent { agent: name, schedule: None, day, usage, cost };
    let has_used_something = usage.is_some() || !cost.is_zero();
    has_used_something.then_some(Event::TestSpent(TestSpent { spent, at: now }))
}

/// The agent after an event.
pub fn apply(name: &AgentName, agent: Option<Agent>, event: &Event) -> Option<Agent> {
    match event {
        Event::Registered(definition) => {
            let changed_by = definition.by.iter().cloned().collect();
            Some(Agent { changed_by, ..definition.to_agent(name, definition.at) })
        }
        Event::Changed(definition) => {
            let registered_at = agent.as_ref().map_or(definition.at, |agent| agent.registered_at);
            let count = |read: fn(&Agent) -> u32| agent.as_ref().map_or(0, read);
            let schedules_made = count(|agent| agent.schedules_made);
            let (raised_to_1, raised_to_2) =
                (count(|agent| agent.raised_to_1), count(|agent| agent.raised_to_2));
            let changed_by =
                add_editor(agent.map(|agent| agent.changed_by), definition.by.as_ref());
            let agent = definition.to_agent(name, registered_at);
            Some(Agent { schedules_made, raised_to_1, raised_to_2, changed_by, ..agent })
        }
        Event::Tested(_) | Event::TestSpent(_) => agent,
        Event::Removed(_) => None,
    }
}

/// Adds an editor. An empty list has an author too, but an older version did not record them.
fn add_editor(editors: Option<Vec<Principal>>, editor: Option<&Principal>) -> Vec<Principal> {
    let mut editors = editors.unwrap_or_default();
    let Some(editor) = editor else { return editors };
    if editors.is_empty() {
        editors.push(unknown_author());
    }
    if !editors.contains(editor) {
        editors.push(editor.clone());
    }
    editors
}

/// Stands for the author of an agent that an older version registered. It identifies no person.
fn unknown_author() -> Principal {
    Principal::parse(UNKNOWN_AUTHOR)
}

/// The agent after one of its runs added a schedule, after such a schedule was removed, or after a person
/// raised or lowered the tier of one of its schedules.
fn apply_schedule_event(agent: Option<Agent>, event: &schedule::Event) -> Option<Agent> {
    let mut agent = agent?;
    if event.adding_agent() == Some(&agent.name) {
        agent.schedules_made = match event {
            schedule::Event::Added(_) => agent.schedules_made.saturating_add(1),
            schedule::Event::Removed(_) => agent.schedules_made.saturating_sub(1),
            _ => agent.schedules_made,
        };
    }
    let counts = RaiseCounts { to_1: &mut agent.raised_to_1, to_2: &mut agent.raised_to_2 };
    counts.count(event, |raise| raise.is_of_agent(&agent.name));
    Some(agent)
}

/// The agent after an approval of one of its runs was decided.
fn apply_approval_event(agent: Option<Agent>, event: &approval::Event) -> Option<Agent> {
    let agent = agent?;
    let denials = match event {
        approval::Event::Decided(Decided { streak: Some(streak), .. }) => streak.denials,
        _ => agent.denials,
    };
    Some(Agent { denials, ..agent })
}

impl NounState for Agent {
    type Id = AgentName;
    const OBJECTS_MAX: i64 = 10_000;

    fn apply(_: &str, agent: Option<Agent>, body: &EventBody) -> Option<Agent> {
        match body {
            EventBody::Agent(name, event) => apply(name, agent, event),
            EventBody::Approval(_, event) => apply_approval_event(agent, event),
            EventBody::Schedule(_, event) => apply_schedule_event(agent, event),
            _ => agent,
        }
    }

    fn index_key(&self) -> Option<String> {
        self.is_silenced().then(|| SILENCED.to_owned())
    }
}

kinds! {
    Event:
    "agent.registered" 1 Registered;
    "agent.changed" 1 Changed;
    "agent.removed" 1 Removed;
    "agent.tested" 1 Tested;
    "agent.answered" 1 TestSpent;
}

impl NounEvent for Event {
    type State = Agent;

    fn counter_deltas(&self) -> Vec<(Counter, i64)> {
        match self {
            Event::Registered(_) => vec![(Counter::Objects(Noun::Agent), 1)],
            Event::Removed(_) => vec![(Counter::Objects(Noun::Agent), -1)],
            Event::Tested(tested) => run_deltas(tested.charge.as_ref(), 1),
            Event::TestSpent(test) => spent_deltas(Some(&test.spent)),
            Event::Changed(_) => Vec::new(),
        }
    }
}

impl Register {
    fn into_definition(self, actor: &Actor, at: Timestamp) -> Result<Definition, Refusal> {
        let Register { backend, tier, credential, repeatable, price } = self;
        let kind = backend.kind();
        let tier = tier.unwrap_or(kind.tier_default());
        let min = kind.tier_min();
        if tier < min {
            return Err(Refusal::TierTooLow { kind, tier, min });
        }
        let by = Some(actor.principal().clone());
        Ok(Definition { backend, tier, credential, repeatable, price, by, at })
    }
}

impl Change {
    /// A new kind of backend resets the tier to its default and `repeatable` to false; the same kind
    /// keeps both. The price is always kept, so no agent becomes free unnoticed.
    fn into_definition(
        self,
        agent: &Agent,
        actor: &Actor,
        now: Timestamp,
    ) -> Result<Definition, Refusal> {
        let kind = self.kind.unwrap_or(agent.backend.kind());
        let kept = (kind == agent.backend.kind()).then_some(agent.tier);
        let settings = match kept {
            Some(_) => self.settings.merged_over(agent.backend.settings()),
            None => self.settings,
        };
        let backend = Backend::parse(kind, settings)?;
        let credential = self.credential.unwrap_or_else(|| agent.credential.clone());
        let repeatable = self.repeatable.unwrap_or(agent.repeatable && kept.is_some());
        let (tier, price) = (self.tier.or(kept), self.price.over(agent.price));
        Register { backend, tier, credential, repeatable, price }.into_definition(actor, now)
    }
}

impl PriceChange {
    fn over(self, price: Price) -> Price {
        Price {
            input: self.input.unwrap_or(price.input),
            output: self.output.unwrap_or(price.output),
            run: self.run.unwrap_or(price.run),
        }
    }
}

impl Agent {
    /// The highest tier that people gave one of its schedules.
    pub fn raised_tier(&self) -> Option<Tier> {
        highest_raise(self.raised_to_1, self.raised_to_2)
    }

    /// Everyone who registered or changed it, as people where they are known.
    pub fn authors(&self) -> Vec<Principal> {
        match self.changed_by.is_empty() {
            true => vec![unknown_author()],
            false => self.changed_by.iter().map(Principal::responsible_person).collect(),
        }
    }

    /// Whether no more approvals are requested for it, because too many were denied in a row.
    pub fn is_silenced(&self) -> bool {
        DENIALS_MAX <= self.denials
    }

    /// Whether a prompt may be executed twice without harm. The builtin echo always may; a scripted
    /// builtin stands in for another agent, so its declaration decides.
    pub fn is_repeatable(&self) -> bool {
        self.repeatable || self.backend == Backend::Builtin { script: None }
    }

    /// How long one attempt may take.
    pub fn time_limit(&self) -> Duration {
        self.backend.time_limit().duration()
    }

    fn has_definition(&self, wanted: &Definition) -> bool {
        self.backend == wanted.backend
            && self.tier == wanted.tier
            && self.credential == wanted.credential
            && self.repeatable == wanted.repeatable
            && self.price == wanted.price
    }
}

impl Definition {
    fn to_agent(&self, name: &AgentName, registered_at: Timestamp) -> Agent {
        Agent {
            name: name.clone(),
            backend: self.backend.clone(),
            tier: self.tier,
            credential: self.credential.clone(),
            repeatable: self.repeatable,
            price: self.price,
            schedules_made: 0,
            denials: 0,
            raised_to_1: 0,
            raised_to_2: 0,
            changed_by: Vec::new(),
            registered_at,
            changed_at: self.at,
        }
    }
}

impl AgentName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<AgentName, InvalidName> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let fits = text.len() <= NAME_BYTES_MAX
            && text.starts_with(is_plain)
            && text.chars().all(|c| is_plain(c) || matches!(c, '-' | '_' | '.'));
        match fits {
            true => Ok(AgentName(text.to_owned())),
            false => Err(InvalidName(text.chars().take(NAME_BYTES_MAX + 1).collect())),
        }
    }
}

impl AsRef<str> for AgentName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> String {
        name.0
    }
}

impl TryFrom<String> for AgentName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<AgentName, InvalidName> {
        text.parse()
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> AgentName {
        "ada".parse().unwrap()
    }

    fn backend(kind: BackendKind) -> Backend {
        let settings = match kind {
            BackendKind::Builtin => Settings::default(),
            BackendKind::Command | BackendKind::Mcp => {
                Settings { argv: vec!["run".into()], ..Settings::default() }
            }
            BackendKind::Letta => Settings { remote_id: Some("a-1".into()), ..Settings::default() },
            BackendKind::Openai | BackendKind::Anthropic => {
                Settings { model: Some("m".into()), ..Settings::default() }
            }
            BackendKind::Webhook => {
                Settings { url: Some("http://x".into()), ..Settings::default() }
            }
        };
        Backend::parse(kind, settings).unwrap()
    }

    fn register(kind: BackendKind, tier: Option<u8>) -> Command {
        let tier = tier.map(|number| Tier::try_from(number).unwrap());
        let backend = backend(kind);
        let (credential, repeatable, price) = (None, false, Price::default());
        Command::Register(Register { backend, tier, credential, repeatable, price })
    }

    fn change(kind: Option<BackendKind>, tier: Option<u8>) -> Command {
        let tier = tier.map(|number| Tier::try_from(number).unwrap());
        let settings = kind.map(|kind| backend(kind).settings()).unwrap_or_default();
        Command::Change(Change { kind, settings, tier, ..Change::default() })
    }

    fn set_repeatable(repeatable: bool) -> Command {
        Command::Change(Change { repeatable: Some(repeatable), ..Change::default() })
    }

    /// A story: each command with the agent after it ("kind tier registered changed", plus "repeatable"),
    /// or the refusal.
    fn check(role: Role, story: &[(Command, &str)]) {
        let actor = Actor::token_holder("caller".parse().unwrap(), role);
        let mut agent = None;
        for (second, (command, expected)) in story.iter().enumerate() {
            let now = Timestamp::from_micros(second as i64);
            let result = match decide(&name(), agent.as_ref(), now, &actor, command.clone()) {
                Ok(Some(event)) => {
                    agent = apply(&name(), agent, &event);
                    describe(agent.as_ref())
                }
                Ok(None) => "no change".to_owned(),
                Err(refusal) => refusal.to_string(),
            };
            assert_eq!(&result, expected, "step {second}: {command:?}");
        }
    }

    fn describe(agent: Option<&Agent>) -> String {
        agent.map_or("none".to_owned(), |agent| {
            let (kind, tier) = (agent.backend.kind(), agent.tier);
            let (from, to) = (agent.registered_at.as_micros(), agent.changed_at.as_micros());
            let repeatable = if agent.repeatable { " repeatable" } else { "" };
            format!("{kind} {tier} {from} {to}{repeatable}")
        })
    }

    #[test]
    fn an_agent_is_registered_changed_and_removed() {
        use BackendKind::*;
        check(
            Role::Operator,
            &[
                (super::Command::Test, "agent `ada` does not exist"),
                (super::Command::Remove, "agent `ada` does not exist"),
                (register(Letta, None), "letta 1 2 2"),
                (super::Command::Test, "letta 1 2 2"),
                (register(Letta, Some(2)), "agent `ada` is already registered with other settings"),
                (change(None, Some(2)), "letta 2 2 5"),
                (change(Some(Letta), None), "no change"),
                (change(Some(Builtin), None), "builtin 0 2 7"),
                (super::Command::Remove, "none"),
                (register(Mcp, None), "mcp 2 9 9"),
                (
                    super::Command::Test,
                    "agent `ada` has tier 2 and can only be prompted with an approval",
                ),
            ],
        );
    }

    #[test]
    fn repeatable_is_reset_when_the_backend_kind_changes() {
        use BackendKind::*;
        check(
            Role::Operator,
            &[
                (register(Letta, None), "letta 1 0 0"),
                (set_repeatable(false), "no change"),
                (set_repeatable(true), "letta 1 0 2 repeatable"),
                (register(Letta, None), "agent `ada` is already registered with other settings"),
                (change(None, Some(2)), "letta 2 0 4 repeatable"),
                (change(Some(Command), None), "command 1 0 5"),
                (set_repeatable(true), "command 1 0 6 repeatable"),
                (set_repeatable(false), "command 1 0 7"),
            ],
        );
    }

    #[test]
    fn price_changes_by_part_and_survives_a_backend_change() {
        let parsed = |text: &str| Some(text.parse().unwrap());
        let priced = |price| Command::Change(Change { price, ..Change::default() });
        let story = [
            (register(BackendKind::Letta, None), "0.00 0.00 0.00"),
            (
                priced(PriceChange { input: parsed("3"), ..PriceChange::default() }),
                "3.00 0.00 0.00",
            ),
            (
                priced(PriceChange { run: parsed("0.01"), ..PriceChange::default() }),
                "3.00 0.00 0.01",
            ),
            (change(Some(BackendKind::Command), None), "3.00 0.00 0.01"),
            (
                priced(PriceChange { input: parsed("0"), ..PriceChange::default() }),
                "0.00 0.00 0.01",
            ),
        ];
        let actor = Actor::token_holder("caller".parse().unwrap(), Role::Operator);
        let mut agent = None;
        for (command, expected) in story {
            let event = decide(&name(), agent.as_ref(), Timestamp::from_micros(0), &actor, command);
            agent = apply(&name(), agent, &event.unwrap().unwrap());
            let Price { input, output, run } = agent.as_ref().unwrap().price;
            assert_eq!(format!("{input} {output} {run}"), expected);
        }
        // Registering with another price is refused: the definitions differ.
        let again = decide(
            &name(),
            agent.as_ref(),
            Timestamp::from_micros(0),
            &actor,
            register(BackendKind::Command, None),
        );
        assert_eq!(again, Err(Refusal::Exists(name())));
    }

    /// Each command with who gives it, and the authors after it.
    #[test]
    fn an_agent_remembers_everyone_who_registered_or_changed_it() {
        let story = [
            ("eve", register(BackendKind::Letta, None), "eve"),
            ("bob", change(None, Some(2)), "eve, bob"),
            ("eve", change(None, Some(1)), "eve, bob"),
            // It changes nothing, so ada is no author.
            ("ada", change(None, Some(1)), "eve, bob"),
            ("uid:7", super::Command::Test, "eve, bob"),
            ("uid:7", set_repeatable(true), "eve, bob, uid:7"),
            ("ada", super::Command::Remove, "none"),
            ("ada", register(BackendKind::Letta, None), "ada"),
        ];
        let authors = |agent: Option<&Agent>| {
            let names = |agent: &Agent| agent.authors().iter().map(ToString::to_string).collect();
            agent.map_or(vec!["none".to_owned()], names).join(", ")
        };
        let now = Timestamp::from_micros(0);
        let mut agent = None;
        for (by, command, expected) in story {
            let actor = Actor::new(Principal::parse(by), Role::Operator);
            if let Some(event) = decide(&name(), agent.as_ref(), now, &actor, command).unwrap() {
                agent = apply(&name(), agent, &event);
            }
            assert_eq!(authors(agent.as_ref()), expected);
        }
        // An older version did not record who registered it.
        agent.as_mut().unwrap().changed_by.clear();
        assert_eq!(authors(agent.as_ref()), "author:unknown");
        let actor = Actor::new(Principal::parse("eve"), Role::Operator);
        let event = decide(&name(), agent.as_ref(), now, &actor, change(None, Some(2)));
        agent = apply(&name(), agent, &event.unwrap().unwrap());
        assert_eq!(authors(agent.as_ref()), "author:unknown, eve");
    }

    #[test]
    fn builtin_echo_is_always_repeatable() {
        let definition = |kind, settings| Definition {
            backend: Backend::parse(kind, settings).unwrap(),
            tier: Tier::LocalWrite,
            credential: None,
            repeatable: false,
            price: Price::default(),
            by: None,
            at: Timestamp::from_micros(0),
        };
        let now = Timestamp::from_micros(0);
        let echo = definition(BackendKind::Builtin, Settings::default());
        assert!(echo.to_agent(&name(), now).is_repeatable());
        let script = Settings { script: Some("/answers.toml".into()), ..Settings::default() };
        let mut script = definition(BackendKind::Builtin, script);
        assert!(!script.to_agent(&name(), now).is_repeatable());
        script.repeatable = true;
        assert!(script.to_agent(&name(), now).is_repeatable());
    }

    #[test]
    fn tier_defaults_by_backend_and_cannot_go_below_its_minimum() {
        use BackendKind::*;
        let table =
            [(Builtin, 0, 0), (Command, 1, 1), (Letta, 1, 1), (Openai, 1, 1), (Anthropic, 1, 1)];
        for (kind, default, min) in table.into_iter().chain([(Webhook, 2, 1), (Mcp, 2, 1)]) {
            check(Role::Operator, &[(register(kind, None), &format!("{kind} {default} 0 0"))]);
            for tier in 0..=2 {
                let expected = match min <= tier {
                    true => format!("{kind} {tier} 0 0"),
                    false => format!(
                        "an agent with backend `{kind}` cannot have tier {tier}: the minimum is {min}"
                    ),
                };
                check(Role::Operator, &[(register(kind, Some(tier)), &expected)]);
            }
        }
    }

    #[test]
    fn registering_requires_operator() {
        for (role, may) in [
            (Role::Observer, false),
            (Role::Runner, false),
            (Role::Operator, true),
            (Role::Maintainer, true),
        ] {
            let refused = format!(
                "this needs the role `operator`, but `caller` has the role `{}`",
                role.name()
            );
            let expected = if may { "builtin 0 0 0" } else { refused.as_str() };
            check(role, &[(register(BackendKind::Builtin, None), expected)]);
        }
    }

    #[test]
    fn agent_names_are_restricted_to_plain_characters() {
        for good in ["a", "ada-2", "9.x_y", &"n".repeat(NAME_BYTES_MAX)] {
            assert!(good.parse::<AgentName>().is_ok(), "{good}");
        }
        for bad in ["", "-a", ".a", "Ada", "a b", "ä", "a/b", &"n".repeat(NAME_BYTES_MAX + 1)] {
            assert!(bad.parse::<AgentName>().is_err(), "{bad}");
        }
    }

    /// Also, replaying the events of each sequence gives the same agent.
    #[test]
    fn every_short_command_sequence_keeps_the_tier_minimum() {
        use BackendKind::*;
        let commands = [
            register(Builtin, None),
            register(Webhook, Some(1)),
            change(Some(Command), None),
            change(None, Some(0)),
            change(None, Some(2)),
            super::Command::Remove,
        ];
        let actor = Actor::token_holder("caller".parse().unwrap(), Role::Operator);
        let mut stories: Vec<(Option<Agent>, Vec<Event>)> = vec![(None, Vec::new())];
        for depth in 0..8_i64 {
            let now = Timestamp::from_micros(depth);
            let mut longer = Vec::new();
            for (agent, events) in &stories {
                for command in &commands {
                    let Ok(Some(event)) =
                        decide(&name(), agent.as_ref(), now, &actor, command.clone())
                    else {
                        continue;
                    };
                    let after = apply(&name(), agent.clone(), &event);
                    if let Some(agent) = &after {
                        assert!(agent.backend.kind().tier_min() <= agent.tier, "{events:?}");
                    }
                    let mut events = events.clone();
                    events.push(event);
                    let replayed =
                        events.iter().fold(None, |agent, event| apply(&name(), agent, event));
                    assert_eq!(replayed, after);
                    longer.push((after, events));
                }
            }
            stories = longer;
        }
        assert!(!stories.is_empty());
    }
}
