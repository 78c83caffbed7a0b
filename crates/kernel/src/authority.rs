//! The authority of an installation: whether runs may start, and whether each needs approval.
//!
//! A human withdraws it with `freeze` and restores it with `thaw`. It is also a lease: if no human was active
//! for some time, every run needs approval, and later none starts until a human renews the lease. It is one
//! row, and every commit that starts a run depends on it.
//!
//! A lease is measured by the clock and by the newest instant in the ledger, and expires when either says so:
//! setting the clock back does not revive it, and a clock that was ahead at the renewal does not extend it.

use serde::{Deserialize, Serialize};

use crate::EventBody;
use crate::actor::{Actor, Role};
use crate::event::kinds;
use crate::installation::{self, ClockAnomaly, Started};
use crate::noun::{NounEvent, NounState};
use crate::posture::Posture;
use crate::principal::SYSTEM_NAME;
use crate::private_fields::{PrivateField, note};
use crate::schedule::{Refusal, check_note};
use crate::time::{Now, Timestamp};

/// Human activity renews the lease at most this often, or …
const RENEW_EVERY_US: i64 = 3_600_000_000;
/// A look renews it at most this often, or …
const RENEW_BY_LOOK_EVERY_US: i64 = 86_400_000_000;
/// … this many times in a short lease.
const RENEWALS_PER_SPAN: i64 = 6;
/// How long before the lease reaches its next state humans are warned, at most a quarter of the span.
const WARN_BEFORE_US: i64 = 2 * 86_400_000_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Authority {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Attribution>,
    /// The last renewal; absent before the daemon first started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed: Option<Attribution>,
    /// The last state that was warned of since the renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warned: Option<LeaseState>,
    /// The posture in which the daemon last ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posture: Option<Posture>,
}

/// How long the authority lasts after a renewal. Zero: for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Then every run needs approval.
    pub ask_after_us: i64,
    /// Then no run starts.
    pub pause_after_us: i64,
}

/// What the lease still allows, from most to least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseState {
    /// Everything that the policy allows.
    #[default]
    Full,
    /// Every run needs approval.
    Ask,
    /// No run starts.
    Paused,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Frozen(Attribution),
    Thawed(Attribution),
    Renewed(Attribution),
    Warned(Warned),
}

/// Who did something, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribution {
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
    /// The time of the clock, if it was behind the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Timestamp>,
}

/// The lease is about to reach a lower state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warned {
    #[serde(rename = "step")]
    pub state: LeaseState,
    /// When the lease reaches that state, unless it is renewed.
    pub from: Timestamp,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Freeze {
        note: Option<String>,
    },
    Thaw {
        note: Option<String>,
    },
    Renew {
        note: Option<String>,
    },
    /// A human made another decision, which also shows that they are present.
    RenewOnActivity {
        lease: Lease,
    },
    /// A human looked at the installation. It keeps a lease from expiring, but renews none that has expired: that
    /// releases runs, so it takes a decision.
    Look {
        lease: Lease,
    },
}

/// Decides a command about the authority. A command that would change nothing returns no events.
///
/// ```
/// use kernel::authority::{Authority, Command, decide};
/// use kernel::{Actor, Now, RunId, Timestamp};
///
/// let now = Now::from_clock(Timestamp::from_micros(0));
/// let freeze = Command::Freeze { note: None };
/// let events = decide(&Authority::default(), &Actor::local_user(1000), freeze.clone(), now)?;
/// assert_eq!(events.len(), 1);
/// let run = Actor::for_run(&RunId::of(1));
/// assert!(decide(&Authority::default(), &run, freeze, now).is_err());
/// # Ok::<(), kernel::schedule::Refusal>(())
/// ```
pub fn decide(
    authority: &Authority,
    actor: &Actor,
    command: Command,
    now: Now,
) -> Result<Vec<Event>, Refusal> {
    // Any operator may make the installation safer; only a maintainer may undo that.
    let needed = match command {
        Command::Freeze { .. }
        | Command::Renew { .. }
        | Command::RenewOnActivity { .. }
        | Command::Look { .. } => Role::Operator,
        Command::Thaw { .. } => Role::Maintainer,
    };
    if actor.role < needed {
        return Err(Refusal::RoleTooLow { actor: actor.clone(), needed });
    }
    let attribution = |note: Option<String>| {
        check_note(note.as_deref())?;
        let clock = Some(now.clock).filter(|clock| *clock < now.latest);
        Ok::<Attribution, Refusal>(Attribution {
            by: actor.name().to_owned(),
            note,
            at: now.latest,
            clock,
        })
    };
    Ok(match (command, &authority.frozen) {
        (Command::Freeze { note }, None) => vec![Event::Frozen(attribution(note)?)],
        (Command::Thaw { note }, Some(_)) => vec![Event::Thawed(attribution(note)?)],
        (Command::Renew { note }, _) => vec![Event::Renewed(attribution(note)?)],
        (Command::RenewOnActivity { lease }, _)
            if authority.was_renewed_within(lease.span_between(RENEW_EVERY_US), now.clock) =>
        {
            Vec::new()
        }
        (Command::Look { lease }, _) if !authority.is_renewed_by_look(lease, now) => Vec::new(),
        (Command::RenewOnActivity { .. } | Command::Look { .. }, _) => {
            vec![Event::Renewed(attribution(None)?)]
        }
        (Command::Freeze { .. }, Some(_)) | (Command::Thaw { .. }, None) => Vec::new(),
    })
}

/// The authority after the daemon started. The first start begins the lease.
fn apply_started(authority: Option<Authority>, started: &Started) -> Authority {
    let mut authority = authority.unwrap_or_default();
    if let Some(at) = started.lease_from {
        authority.renewed =
            Some(Attribution { by: SYSTEM_NAME.to_owned(), note: None, at, clock: None });
    }
    if started.is_other_posture {
        authority.posture = started.posture.parse().ok();
    }
    authority
}

/// The authority after the clock was set.
fn apply_clock_anomaly(authority: Option<Authority>, anomaly: &ClockAnomaly) -> Option<Authority> {
    let mut authority = authority?;
    if let Some(renewed) = &mut authority.renewed {
        renewed.clock = anomaly.lease_from.or(renewed.clock);
        // The time of the ledger does not count any more, neither for the lease nor against it.
        if anomaly.is_accepted {
            renewed.at = renewed.clock.take().unwrap_or(renewed.at);
        }
    }
    Some(authority)
}

/// Returns a warning if the lease is about to reach a lower state, once for each state.
pub fn decide_warning(authority: &Authority, lease: Lease, now: Now) -> Option<Event> {
    let (_, state) = authority.next_warning(lease).filter(|(at, _)| *at <= now.clock)?;
    let from = authority.lease_state_starts_at(lease, state)?;
    Some(Event::Warned(Warned { state, from, at: now.latest }))
}

/// The authority after an event.
pub fn apply(authority: Option<Authority>, event: &Event) -> Authority {
    let mut authority = authority.unwrap_or_default();
    match event {
        Event::Frozen(attribution) => authority.frozen = Some(attribution.clone()),
        Event::Thawed(_) => authority.frozen = None,
        Event::Renewed(attribution) => {
            (authority.renewed, authority.warned) = (Some(attribution.clone()), None)
        }
        Event::Warned(warned) => authority.warned = Some(warned.state),
    }
    authority
}

impl NounState for Authority {
    /// The instance of the installation.
    type Id = str;

    fn apply(_: &str, authority: Option<Authority>, body: &EventBody) -> Option<Authority> {
        match body {
            EventBody::Authority(_, event) => Some(apply(authority, event)),
            EventBody::Installation(_, installation::Event::Started(started)) => {
                Some(apply_started(authority, started))
            }
            EventBody::Installation(_, installation::Event::ClockAnomaly(anomaly)) => {
                apply_clock_anomaly(authority, anomaly)
            }
            _ => authority,
        }
    }
}

kinds! {
    Event:
    "authority.frozen" 1 Frozen;
    "authority.thawed" 1 Thawed;
    "authority.renewed" 1 Renewed;
    "authority.warned" 1 Warned;
}

impl NounEvent for Event {
    type State = Authority;

    fn private_fields_mut(&mut self) -> Vec<PrivateField<'_>> {
        match self {
            Event::Frozen(attribution)
            | Event::Thawed(attribution)
            | Event::Renewed(attribution) => note(&mut attribution.note),
            Event::Warned(_) => Vec::new(),
        }
    }
}

impl Authority {
    /// What the lease allows now.
    pub fn lease_state(&self, lease: Lease, now: Now) -> LeaseState {
        let is_reached = |state: &LeaseState| {
            let by_ledger = self
                .renewed
                .as_ref()
                .and_then(|attribution| lease.state_starts_at(attribution.at, *state));
            self.lease_state_starts_at(lease, *state).is_some_and(|at| at <= now.clock)
                || by_ledger.is_some_and(|at| at <= now.latest)
        };
        [LeaseState::Paused, LeaseState::Ask]
            .into_iter()
            .find(is_reached)
            .unwrap_or(LeaseState::Full)
    }

    /// When the lease reaches a state by the clock, unless it is renewed.
    pub fn lease_state_starts_at(&self, lease: Lease, state: LeaseState) -> Option<Timestamp> {
        lease.state_starts_at(self.renewed_by_clock()?, state)
    }

    /// Whether the recorded renewal is later than this clock.
    pub(crate) fn was_renewed_after(&self, clock: Timestamp) -> bool {
        self.renewed_by_clock().is_some_and(|at| clock < at)
    }

    /// When the next warning is due, and of which state.
    pub fn next_warning(&self, lease: Lease) -> Option<(Timestamp, LeaseState)> {
        let is_new = |state: &LeaseState| self.warned.is_none_or(|warned| warned < *state);
        let warning = |state| {
            let before_us = WARN_BEFORE_US.min(lease.span_us(state)? / 4);
            Some((self.lease_state_starts_at(lease, state)?.after_us(-before_us), state))
        };
        [LeaseState::Ask, LeaseState::Paused].into_iter().filter(is_new).filter_map(warning).min()
    }

    fn renewed_by_clock(&self) -> Option<Timestamp> {
        self.renewed.as_ref().map(|attribution| attribution.clock.unwrap_or(attribution.at))
    }

    /// Whether the last renewal is so recent that another would hardly extend it.
    fn was_renewed_within(&self, span_us: i64, clock: Timestamp) -> bool {
        let is_recent = |at: Timestamp| at <= clock && clock < at.after_us(span_us);
        self.renewed_by_clock().is_some_and(is_recent)
    }

    /// Whether a look renews the lease: it has begun, can expire and has not, and the last renewal is some time ago.
    fn is_renewed_by_look(&self, lease: Lease, now: Now) -> bool {
        self.renewed.is_some()
            && lease != Lease::default()
            && self.lease_state(lease, now).is_full()
            && !self.was_renewed_within(lease.span_between(RENEW_BY_LOOK_EVERY_US), now.clock)
    }
}

impl Lease {
    /// When a lease that was renewed at `renewed_at` reaches a state.
    fn state_starts_at(self, renewed_at: Timestamp, state: LeaseState) -> Option<Timestamp> {
        let span_us = self.span_us(state).filter(|span_us| 0 < *span_us)?;
        Some(renewed_at.after_us(span_us))
    }

    /// The time between two renewals by activity: at most `span_us_max`, and less in a short lease.
    fn span_between(self, span_us_max: i64) -> i64 {
        let spans = [self.ask_after_us, self.pause_after_us].into_iter().filter(|it| 0 < *it);
        spans.map(|span_us| span_us / RENEWALS_PER_SPAN).fold(span_us_max, i64::min)
    }

    fn span_us(self, state: LeaseState) -> Option<i64> {
        match state {
            LeaseState::Full => None,
            LeaseState::Ask => Some(self.ask_after_us),
            LeaseState::Paused => Some(self.pause_after_us),
        }
    }
}

impl LeaseState {
    pub(crate) fn is_full(&self) -> bool {
        *self == LeaseState::Full
    }

    pub const fn name(self) -> &'static str {
        match self {
            LeaseState::Full => "full",
            LeaseState::Ask => "ask",
            LeaseState::Paused => "paused",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000;
    const LEASE: Lease = Lease { ask_after_us: 14 * DAY, pause_after_us: 28 * DAY };

    fn at(us: i64) -> Timestamp {
        Timestamp::from_micros(us)
    }

    fn now(us: i64) -> Now {
        Now::from_clock(at(us))
    }

    fn renewed(us: i64) -> Authority {
        let attribution = Attribution { by: "uid:1".into(), note: None, at: at(us), clock: None };
        Authority { renewed: Some(attribution), ..Authority::default() }
    }

    #[test]
    fn lease_decays_with_time_and_activity_renews_it() {
        for (day, us, state) in [
            (0, 0, LeaseState::Full),
            (14, -1, LeaseState::Full),
            (14, 0, LeaseState::Ask),
            (28, -1, LeaseState::Ask),
            (28, 0, LeaseState::Paused),
            (10_000, 0, LeaseState::Paused),
            // A clock that was set back does not shorten it.
            (-5, 0, LeaseState::Full),
        ] {
            assert_eq!(renewed(0).lease_state(LEASE, now(day * DAY + us)), state, "{day} {us}");
        }
        let by = Actor::local_user(1);
        let now = now(40 * DAY);
        let events =
            decide(&renewed(0), &by, Command::RenewOnActivity { lease: LEASE }, now).unwrap();
        assert_eq!(events.len(), 1);
        let after = apply(Some(renewed(0)), &events[0]);
        assert_eq!(after.lease_state(LEASE, now), LeaseState::Full);
        // Frequent activity renews it once an hour.
        assert_eq!(
            decide(
                &after,
                &by,
                Command::RenewOnActivity { lease: LEASE },
                Now::from_clock(at(40 * DAY + 1))
            )
            .unwrap(),
            []
        );
    }

    #[test]
    fn frequent_activity_renews_short_leases_in_time() {
        const MINUTE: i64 = 60_000_000;
        let by = Actor::local_user(1);
        for (ask_after, every) in [(60, 10), (90, 15), (6 * 60, 60), (14 * 24 * 60, 60), (0, 60)] {
            let lease = Lease { ask_after_us: ask_after * MINUTE, pause_after_us: 0 };
            let renewals = |minute: i64| {
                let command = Command::RenewOnActivity { lease };
                decide(&renewed(0), &by, command, now(minute * MINUTE)).unwrap().len()
            };
            assert_eq!((renewals(every - 1), renewals(every)), (0, 1), "{ask_after}");
        }
    }

    #[test]
    fn look_keeps_a_lease_but_does_not_revive_it() {
        let by = Actor::local_user(1);
        let renewals = |authority: &Authority, lease: Lease, us: i64| {
            decide(authority, &by, Command::Look { lease }, now(us)).unwrap().len()
        };
        for (us, expected) in [
            (0, 0),
            (DAY - 1, 0),
            (DAY, 1),
            (13 * DAY, 1),
            (14 * DAY - 1, 1),
            // An expired lease has parked runs, so a human confirms that they may start.
            (14 * DAY, 0),
            (28 * DAY, 0),
            (400 * DAY, 0),
        ] {
            assert_eq!(renewals(&renewed(0), LEASE, us), expected, "{us}");
        }
        // A short lease is renewed in time; one that never expires, or has not begun, is not renewed.
        let hour = Lease { ask_after_us: DAY / 24, pause_after_us: 0 };
        assert_eq!(renewals(&renewed(0), hour, DAY / 144 - 1), 0);
        assert_eq!(renewals(&renewed(0), hour, DAY / 144), 1);
        assert_eq!(renewals(&renewed(0), Lease::default(), 3 * DAY), 0);
        assert_eq!(renewals(&Authority::default(), LEASE, 3 * DAY), 0);
        // Nor by a clock that was set back before the last entry of the ledger.
        let back = Now { clock: at(2 * DAY), latest: at(14 * DAY) };
        assert_eq!(decide(&renewed(0), &by, Command::Look { lease: LEASE }, back).unwrap(), []);
    }

    #[test]
    fn lease_expires_by_ledger_time_when_the_clock_was_set_back() {
        let back = Now { clock: at(-DAY), latest: at(28 * DAY) };
        assert_eq!(renewed(0).lease_state(LEASE, back), LeaseState::Paused);
        // A renewal then lasts as long as usual, although the ledger time stands still.
        let events = decide(
            &renewed(0),
            &Actor::local_user(1),
            Command::RenewOnActivity { lease: LEASE },
            back,
        )
        .unwrap();
        let after = apply(Some(renewed(0)), &events[0]);
        for (day, state) in [
            (-1, LeaseState::Full),
            (12, LeaseState::Full),
            (13, LeaseState::Ask),
            (27, LeaseState::Paused),
        ] {
            let later = Now { clock: at(day * DAY), latest: at(28 * DAY) };
            assert_eq!(after.lease_state(LEASE, later), state, "{day}");
        }
    }

    #[test]
    fn renewal_by_a_clock_ahead_does_not_extend_the_lease() {
        let year = 365 * DAY;
        let ahead = renewed(year);
        let anomaly = ClockAnomaly::detect(at(year), at(0), &ahead).unwrap();
        let after = apply_clock_anomaly(Some(ahead), &anomaly).unwrap();
        for (day, state) in [(0, LeaseState::Full), (14, LeaseState::Ask), (28, LeaseState::Paused)]
        {
            let later = Now { clock: at(day * DAY), latest: at(year) };
            assert_eq!(after.lease_state(LEASE, later), state, "{day}");
        }
        // An accepted clock counts alone, so setting it back later does not revive the lease.
        let accepted = ClockAnomaly { is_accepted: true, ..anomaly };
        let after = apply_clock_anomaly(Some(renewed(year)), &accepted).unwrap();
        let back = Now { clock: at(DAY), latest: at(28 * DAY) };
        assert_eq!(after.lease_state(LEASE, back), LeaseState::Paused);
        // A lease that was renewed by a correct clock is unchanged.
        let anomaly = ClockAnomaly::detect(at(year), at(DAY), &renewed(0)).unwrap();
        assert_eq!(anomaly.lease_from, None);
    }

    #[test]
    fn a_span_of_zero_never_expires() {
        let far = now(100_000 * DAY);
        assert_eq!(renewed(0).lease_state(Lease::default(), far), LeaseState::Full);
        let asks = Lease { pause_after_us: 0, ..LEASE };
        assert_eq!(renewed(0).lease_state(asks, far), LeaseState::Ask);
        assert_eq!(renewed(0).next_warning(Lease::default()), None);
    }

    #[test]
    fn warns_once_before_each_lease_state() {
        let mut authority = renewed(0);
        let mut warned = Vec::new();
        for hour in 0..24 * 40 {
            let Some(event) = decide_warning(&authority, LEASE, now(hour * DAY / 24)) else {
                continue;
            };
            authority = apply(Some(authority), &event);
            if let Event::Warned(Warned { state, from, .. }) = event {
                warned.push((hour / 24, state, from));
            }
        }
        assert_eq!(
            warned,
            [(12, LeaseState::Ask, at(14 * DAY)), (26, LeaseState::Paused, at(28 * DAY))]
        );
    }

    #[test]
    fn commands_require_the_right_role() {
        use Role::{Maintainer, Observer, Operator, Runner};
        let frozen = Authority { frozen: renewed(0).renewed, ..Authority::default() };
        let note = || None;
        for (command, least) in [
            (Command::Freeze { note: note() }, Operator),
            (Command::Thaw { note: note() }, Maintainer),
            (Command::Renew { note: note() }, Operator),
            (Command::RenewOnActivity { lease: LEASE }, Operator),
            (Command::Look { lease: LEASE }, Operator),
        ] {
            for role in [Observer, Runner, Operator, Maintainer] {
                let actor = Actor::token_holder("caller".parse().unwrap(), role);
                let decided = decide(&frozen, &actor, command.clone(), now(0));
                assert_eq!(decided.is_ok(), least <= role, "{command:?} {role:?}");
            }
        }
    }

    #[test]
    fn repeated_freeze_or_thaw_returns_no_events() {
        let by = Actor::local_user(1);
        let freeze = Command::Freeze { note: None };
        let thaw = Command::Thaw { note: None };
        let open = Authority::default();
        assert_eq!(decide(&open, &by, thaw.clone(), now(0)).unwrap(), []);
        let [event] = &decide(&open, &by, freeze.clone(), now(0)).unwrap()[..] else {
            panic!("one event")
        };
        let frozen = apply(Some(open), event);
        assert_eq!(decide(&frozen, &by, freeze, now(1)).unwrap(), []);
        let [event] = &decide(&frozen, &by, thaw, now(1)).unwrap()[..] else { panic!("one event") };
        assert_eq!(apply(Some(frozen), event).frozen, None);
    }
}
