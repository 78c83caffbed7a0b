//! How far each person has seen what happened. `status` reports the failures after that position.
//!
//! The position is an instant, and one row per person keeps it. It is never later than the moment at which it was set, so it
//! hides no failure that is still to come; set to an earlier instant, it only shows more.

use serde::{Deserialize, Serialize};

use crate::EventBody;
use crate::actor::{Actor, Role};
use crate::event::kinds;
use crate::noun::{NounEvent, NounState};
use crate::time::Timestamp;

/// The position of one person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// The person has seen what happened up to this instant.
    pub until: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Marked(Marked),
}

/// A person has seen what happened up to an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marked {
    pub until: Timestamp,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("this needs the role `{}`, but `{}` has the role `{}`", needed.name(), actor.name(), actor.role.name())]
    RoleTooLow { actor: Actor, needed: Role },
}

/// Decides that the actor has seen what happened up to an instant, or up to now if that is earlier. Returns `None` if it is
/// the position already. Agents and assistants are below operator and have no position.
pub fn decide(
    seen: Option<&Seen>,
    actor: &Actor,
    until: Timestamp,
    now: Timestamp,
) -> Result<Option<Event>, Refusal> {
    let needed = Role::Operator;
    if actor.role < needed {
        return Err(Refusal::RoleTooLow { actor: actor.clone(), needed });
    }
    let until = until.min(now);
    let is_same = seen.is_some_and(|seen| seen.until == until);
    Ok((!is_same).then_some(Event::Marked(Marked { until, at: now })))
}

impl NounState for Seen {
    /// The text of the principal.
    type Id = str;

    fn apply(_: &str, seen: Option<Seen>, body: &EventBody) -> Option<Seen> {
        match body {
            EventBody::Seen(_, Event::Marked(marked)) => Some(Seen { until: marked.until }),
            _ => seen,
        }
    }
}

kinds! {
    Event:
    "seen.marked" 1 Marked;
}

impl NounEvent for Event {
    type State = Seen;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunId;

    #[test]
    fn position_is_never_in_the_future() {
        let at = Timestamp::from_micros;
        let person = Actor::local_user(1000);
        let check = |seen: Option<i64>, until: i64, expected: Option<i64>| {
            let seen = seen.map(|until| Seen { until: at(until) });
            let decided = decide(seen.as_ref(), &person, at(until), at(100)).unwrap();
            let marked =
                expected.map(|until| Event::Marked(Marked { until: at(until), at: at(100) }));
            assert_eq!(decided, marked, "{seen:?} {until}");
        };
        check(None, 50, Some(50));
        check(None, 100, Some(100));
        check(None, 101, Some(100));
        check(Some(50), 50, None);
        check(Some(50), 60, Some(60));
        // A position by a clock that was ahead is corrected.
        check(Some(500), 100, Some(100));
    }

    #[test]
    fn programs_have_no_position() {
        let at = Timestamp::from_micros(1);
        let assistant = Actor::local_user(1000).into_assistant();
        let observer = Actor::token_holder("eve".parse().unwrap(), Role::Observer);
        for actor in [assistant, observer, Actor::for_run(&RunId::of(1)), Actor::for_unknown_run()]
        {
            assert!(decide(None, &actor, at, at).is_err(), "{actor:?}");
        }
    }
}
