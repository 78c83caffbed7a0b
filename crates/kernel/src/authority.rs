//! The authority of the watch: whether it may begin anything, and what of that without asking.
//!
//! A human takes it away at once (`freeze`) and gives it back (`thaw`). By itself it decays: it is a
//! lease. When no human has decided anything for so long everything is asked, and later nothing begins
//! any more, until somebody renews it. It is one row, and every commit that begins a run depends on it.
//!
//! A lease counts by the clock and by the log, and has run out when it has by one of them: a clock that is set
//! back does not revive it, and one that was ahead when it was renewed does not make it longer.

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Role};
use crate::ruling::Posture;
use crate::schedule::{Refusal, check_note};
use crate::time::{Now, Timestamp};
use crate::watch::{ClockAnomaly, Started};

/// A human who decides often renews the lease this often …
const RENEW_EVERY_US: i64 = 3_600_000_000;
/// … or as often in its span, where that is short.
const RENEWALS_PER_SPAN: i64 = 6;
/// How long before a step people are warned, if that is not more than a quarter of its span.
const WARN_BEFORE_US: i64 = 2 * 86_400_000_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Authority {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Said>,
    /// The last time; absent before the watch was first kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed: Option<Said>,
    /// The last step that people were warned of since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warned: Option<Step>,
    /// In which the watch was last kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posture: Option<Posture>,
}

/// How long the authority lasts after it was renewed. Zero: for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Then everything is asked.
    pub ask_after_us: i64,
    /// Then nothing begins.
    pub pause_after_us: i64,
}

/// What is left of the authority, from most to least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// All that the standing orders allow.
    #[default]
    Full,
    /// What a human allows, case by case.
    Ask,
    /// Nothing.
    Paused,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Frozen(Said),
    Thawed(Said),
    Renewed(Said),
    Warned(Warned),
}

/// Who said so, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
    /// What the clock showed, if it was behind the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Timestamp>,
}

/// The lease runs low.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warned {
    pub step: Step,
    /// When that step is taken, unless somebody renews the lease.
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
    /// A human has decided something else.
    Attend {
        lease: Lease,
    },
}

/// Every rule about what people do to the authority. Nothing happens when it is so already.
///
/// ```
/// use kernel::authority::{Authority, Command, decide};
/// use kernel::{Actor, Now, RunId, Timestamp};
///
/// let now = Now::by_clock(Timestamp::from_micros(0));
/// let freeze = Command::Freeze { note: None };
/// let events = decide(&Authority::default(), &Actor::local_user(1000), freeze.clone(), now)?;
/// assert_eq!(events.len(), 1);
/// let run = Actor::of_run(&RunId::of(1));
/// assert!(decide(&Authority::default(), &run, freeze, now).is_err());
/// # Ok::<(), kernel::schedule::Refusal>(())
/// ```
pub fn decide(
    authority: &Authority,
    actor: &Actor,
    command: Command,
    now: Now,
) -> Result<Vec<Event>, Refusal> {
    // Towards safety everybody who may decide at all may go; back, only who answers for it.
    let needed = match command {
        Command::Freeze { .. } | Command::Renew { .. } | Command::Attend { .. } => Role::Operator,
        Command::Thaw { .. } => Role::Maintainer,
    };
    if actor.role < needed {
        return Err(Refusal::RoleTooLow { actor: actor.clone(), needed });
    }
    let said = |note: Option<String>| {
        check_note(note.as_deref())?;
        let clock = Some(now.clock).filter(|clock| *clock < now.latest);
        Ok::<Said, Refusal>(Said { by: actor.name.clone(), note, at: now.latest, clock })
    };
    Ok(match (command, &authority.frozen) {
        (Command::Freeze { note }, None) => vec![Event::Frozen(said(note)?)],
        (Command::Thaw { note }, Some(_)) => vec![Event::Thawed(said(note)?)],
        (Command::Renew { note }, _) => vec![Event::Renewed(said(note)?)],
        (Command::Attend { lease }, _) if authority.was_just_renewed(lease, now.clock) => {
            Vec::new()
        }
        (Command::Attend { .. }, _) => vec![Event::Renewed(said(None)?)],
        (Command::Freeze { .. }, Some(_)) | (Command::Thaw { .. }, None) => Vec::new(),
    })
}

/// The authority after a start. The lease begins when the watch is kept for the first time.
pub(crate) fn started(authority: Option<Authority>, started: &Started) -> Authority {
    let mut authority = authority.unwrap_or_default();
    if let Some(at) = started.lease_from {
        authority.renewed = Some(Said { by: Actor::system().name, note: None, at, clock: None });
    }
    if started.is_other_posture {
        authority.posture = started.posture.parse().ok();
    }
    authority
}

/// The authority after the clock was set.
pub(crate) fn clock_set(authority: Option<Authority>, anomaly: &ClockAnomaly) -> Option<Authority> {
    let mut authority = authority?;
    if let (Some(renewed), Some(from)) = (&mut authority.renewed, anomaly.lease_from) {
        renewed.clock = Some(from);
    }
    Some(authority)
}

/// Before each step people are warned, once.
pub fn warn(authority: &Authority, lease: Lease, now: Now) -> Option<Event> {
    let (_, step) = authority.next_warning(lease).filter(|(at, _)| *at <= now.clock)?;
    let from = authority.steps_at(lease, step)?;
    Some(Event::Warned(Warned { step, from, at: now.latest }))
}

/// The authority after an event.
pub fn apply(authority: Option<Authority>, event: &Event) -> Authority {
    let mut authority = authority.unwrap_or_default();
    match event {
        Event::Frozen(said) => authority.frozen = Some(said.clone()),
        Event::Thawed(_) => authority.frozen = None,
        Event::Renewed(said) => (authority.renewed, authority.warned) = (Some(said.clone()), None),
        Event::Warned(warned) => authority.warned = Some(warned.step),
    }
    authority
}

impl Authority {
    /// What is left of it.
    pub fn step(&self, lease: Lease, now: Now) -> Step {
        let has_come = |step: &Step| {
            let by_log = self.renewed.as_ref().and_then(|said| lease.ends(said.at, *step));
            self.steps_at(lease, *step).is_some_and(|at| at <= now.clock)
                || by_log.is_some_and(|at| at <= now.latest)
        };
        [Step::Paused, Step::Ask].into_iter().find(has_come).unwrap_or(Step::Full)
    }

    /// When a step is taken by the clock, unless somebody renews the lease.
    pub fn steps_at(&self, lease: Lease, step: Step) -> Option<Timestamp> {
        lease.ends(self.renewed_by_clock()?, step)
    }

    /// Whether the lease was renewed by a clock that was ahead of this one.
    pub(crate) fn is_ahead_of(&self, clock: Timestamp) -> bool {
        self.renewed_by_clock().is_some_and(|at| clock < at)
    }

    /// When people are to be warned next, and of what.
    pub fn next_warning(&self, lease: Lease) -> Option<(Timestamp, Step)> {
        let is_new = |step: &Step| self.warned.is_none_or(|warned| warned < *step);
        let warning = |step| {
            let before_us = WARN_BEFORE_US.min(lease.span_us(step)? / 4);
            Some((self.steps_at(lease, step)?.after_us(-before_us), step))
        };
        [Step::Ask, Step::Paused].into_iter().filter(is_new).filter_map(warning).min()
    }

    fn renewed_by_clock(&self) -> Option<Timestamp> {
        self.renewed.as_ref().map(|said| said.clock.unwrap_or(said.at))
    }

    /// So lately that another renewal would hardly make it longer.
    fn was_just_renewed(&self, lease: Lease, clock: Timestamp) -> bool {
        let is_just = |at: Timestamp| at <= clock && clock < at.after_us(lease.renew_every_us());
        self.renewed_by_clock().is_some_and(is_just)
    }
}

impl Lease {
    /// When a step is taken of a lease that begins then.
    fn ends(self, begins: Timestamp, step: Step) -> Option<Timestamp> {
        let span_us = self.span_us(step).filter(|span_us| 0 < *span_us)?;
        Some(begins.after_us(span_us))
    }

    fn renew_every_us(self) -> i64 {
        let spans = [self.ask_after_us, self.pause_after_us].into_iter().filter(|it| 0 < *it);
        spans.map(|span_us| span_us / RENEWALS_PER_SPAN).fold(RENEW_EVERY_US, i64::min)
    }

    fn span_us(self, step: Step) -> Option<i64> {
        match step {
            Step::Full => None,
            Step::Ask => Some(self.ask_after_us),
            Step::Paused => Some(self.pause_after_us),
        }
    }
}

impl Step {
    pub(crate) fn is_full(&self) -> bool {
        *self == Step::Full
    }

    pub const fn name(self) -> &'static str {
        match self {
            Step::Full => "full",
            Step::Ask => "ask",
            Step::Paused => "paused",
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
        Now::by_clock(at(us))
    }

    fn renewed(us: i64) -> Authority {
        let said = Said { by: "uid:1".into(), note: None, at: at(us), clock: None };
        Authority { renewed: Some(said), ..Authority::default() }
    }

    #[test]
    fn authority_steps_down_day_by_day_and_only_a_renewal_brings_it_back() {
        for (day, us, step) in [
            (0, 0, Step::Full),
            (14, -1, Step::Full),
            (14, 0, Step::Ask),
            (28, -1, Step::Ask),
            (28, 0, Step::Paused),
            (10_000, 0, Step::Paused),
            // A clock that was set back takes nothing away.
            (-5, 0, Step::Full),
        ] {
            assert_eq!(renewed(0).step(LEASE, now(day * DAY + us)), step, "{day} {us}");
        }
        let by = Actor::local_user(1);
        let now = now(40 * DAY);
        let events = decide(&renewed(0), &by, Command::Attend { lease: LEASE }, now).unwrap();
        assert_eq!(events.len(), 1);
        let after = apply(Some(renewed(0)), &events[0]);
        assert_eq!(after.step(LEASE, now), Step::Full);
        // Who decides a hundred times an hour renews it once.
        assert_eq!(
            decide(&after, &by, Command::Attend { lease: LEASE }, Now::by_clock(at(40 * DAY + 1)))
                .unwrap(),
            []
        );
    }

    #[test]
    fn whoever_answers_again_and_again_keeps_a_short_lease_too() {
        const MINUTE: i64 = 60_000_000;
        let by = Actor::local_user(1);
        for (ask_after, every) in [(60, 10), (90, 15), (6 * 60, 60), (14 * 24 * 60, 60), (0, 60)] {
            let lease = Lease { ask_after_us: ask_after * MINUTE, pause_after_us: 0 };
            let attend = |minute: i64| {
                let command = Command::Attend { lease };
                decide(&renewed(0), &by, command, now(minute * MINUTE)).unwrap().len()
            };
            assert_eq!((attend(every - 1), attend(every)), (0, 1), "{ask_after}");
        }
    }

    #[test]
    fn a_lease_ends_by_the_log_though_the_clock_was_set_back() {
        let back = Now { clock: at(-DAY), latest: at(28 * DAY) };
        assert_eq!(renewed(0).step(LEASE, back), Step::Paused);
        // What is renewed then lasts as long as ever, though the time of the log stands still.
        let events =
            decide(&renewed(0), &Actor::local_user(1), Command::Attend { lease: LEASE }, back)
                .unwrap();
        let after = apply(Some(renewed(0)), &events[0]);
        for (day, step) in [(-1, Step::Full), (12, Step::Full), (13, Step::Ask), (27, Step::Paused)]
        {
            let later = Now { clock: at(day * DAY), latest: at(28 * DAY) };
            assert_eq!(after.step(LEASE, later), step, "{day}");
        }
    }

    #[test]
    fn a_lease_that_was_renewed_by_a_clock_ahead_is_no_longer_than_others() {
        let year = 365 * DAY;
        let ahead = renewed(year);
        let anomaly = ClockAnomaly::of(at(year), at(0), &ahead).unwrap();
        let after = clock_set(Some(ahead), &anomaly).unwrap();
        for (day, step) in [(0, Step::Full), (14, Step::Ask), (28, Step::Paused)] {
            let later = Now { clock: at(day * DAY), latest: at(year) };
            assert_eq!(after.step(LEASE, later), step, "{day}");
        }
        // One that was renewed by a clock that was right stays as it was.
        let anomaly = ClockAnomaly::of(at(year), at(DAY), &renewed(0)).unwrap();
        assert_eq!(anomaly.lease_from, None);
    }

    #[test]
    fn a_span_of_zero_never_ends() {
        let far = now(100_000 * DAY);
        assert_eq!(renewed(0).step(Lease::default(), far), Step::Full);
        let asks = Lease { pause_after_us: 0, ..LEASE };
        assert_eq!(renewed(0).step(asks, far), Step::Ask);
        assert_eq!(renewed(0).next_warning(Lease::default()), None);
    }

    #[test]
    fn people_are_warned_once_before_each_step() {
        let mut authority = renewed(0);
        let mut warned = Vec::new();
        for hour in 0..24 * 40 {
            let Some(event) = warn(&authority, LEASE, now(hour * DAY / 24)) else { continue };
            authority = apply(Some(authority), &event);
            if let Event::Warned(Warned { step, from, .. }) = event {
                warned.push((hour / 24, step, from));
            }
        }
        assert_eq!(warned, [(12, Step::Ask, at(14 * DAY)), (26, Step::Paused, at(28 * DAY))]);
    }

    #[test]
    fn who_may_do_what() {
        use Role::{Maintainer, Observer, Operator, Runner};
        let frozen = Authority { frozen: renewed(0).renewed, ..Authority::default() };
        let note = || None;
        for (command, least) in [
            (Command::Freeze { note: note() }, Operator),
            (Command::Thaw { note: note() }, Maintainer),
            (Command::Renew { note: note() }, Operator),
            (Command::Attend { lease: LEASE }, Operator),
        ] {
            for role in [Observer, Runner, Operator, Maintainer] {
                let actor = Actor { name: "it".into(), role };
                let decided = decide(&frozen, &actor, command.clone(), now(0));
                assert_eq!(decided.is_ok(), least <= role, "{command:?} {role:?}");
            }
        }
    }

    #[test]
    fn what_is_so_already_changes_nothing() {
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
