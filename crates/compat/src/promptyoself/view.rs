//! Schedules as promptyoself shows them. Pure.
//!
//! A schedule that was registered here has its number in its name, and the text of the caller that said
//! when. Every other schedule that prompts an agent is shown as well: its number is that of its id.

use std::cmp::Ordering;

use api::Schedule;
use calendar::{Trigger, format_instant, parse_instant};
use kernel::schedule::NAME_CHARS_MAX;
use serde::Serialize;

use super::agents::Agents;
use super::register::{cron, interval, time};

const NAME: &str = "promptyoself ";
/// Digits of an id that make a number: as many as every id has.
const ID_DIGITS: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    pub id: u64,
    pub agent_id: String,
    pub prompt_text: String,
    pub schedule_type: String,
    pub schedule_value: String,
    pub next_run: Option<String>,
    pub active: bool,
    pub created_at: String,
    pub last_run: Option<String>,
    pub max_repetitions: Option<u64>,
    pub repetition_count: u64,
}

/// The name of a schedule: its number, and when it is due in the caller's words if they fit.
pub fn name(number: u64, value: &str) -> String {
    let name = format!("{NAME}{number}: {}", value.trim());
    match name.chars().count() <= NAME_CHARS_MAX && !name.chars().any(char::is_control) {
        true => name,
        false => format!("{NAME}{number}"),
    }
}

/// The number in a name, if it was given here.
pub fn number_in(name: &str) -> Option<u64> {
    let rest = name.strip_prefix(NAME)?;
    let digits = rest.split_once(':').map_or(rest, |(digits, _)| digits);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

pub fn number(schedule: &Schedule) -> u64 {
    let digits = || schedule.id.split_once('_')?.1.get(..ID_DIGITS);
    let of_id = || digits().and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number_in(&schedule.name).or_else(of_id).unwrap_or_default()
}

/// What is shown in the place of a prompt that is not.
const SENSITIVE: &str = "(sensitive)";

/// Numbers from here on are not given one after the other: they follow from the key of a caller, from the
/// name of an agent that does not see them all, or from a number in a table of the earlier program.
pub const DERIVED_FROM: u64 = 1 << 32;

/// The first number that none of these has.
pub fn free_number(schedules: &[Schedule]) -> u64 {
    let numbers = schedules.iter().filter_map(|schedule| number_in(&schedule.name));
    numbers.filter(|number| *number < DERIVED_FROM).max().unwrap_or_default().saturating_add(1)
}

/// What is shown of a schedule, if it prompts an agent.
pub fn item(schedule: &Schedule, agents: &Agents) -> Option<Item> {
    let agent = schedule.action.agent.as_deref()?;
    let (schedule_type, schedule_value) = trigger(schedule);
    Some(Item {
        id: number(schedule),
        agent_id: agents.id_of(agent),
        prompt_text: schedule.action.prompt.clone().unwrap_or_else(|| SENSITIVE.to_owned()),
        schedule_type,
        schedule_value,
        next_run: schedule.next_run_at.clone(),
        active: schedule.status == "active",
        created_at: schedule.created_at.clone(),
        last_run: schedule.last_run_at.clone(),
        max_repetitions: schedule.terms.max_fires,
        repetition_count: schedule.fires,
    })
}

/// The next one first; those that have none come last.
pub fn by_next_run(one: &Item, other: &Item) -> Ordering {
    let instant = |item: &Item| {
        let at = item.next_run.as_deref().and_then(|text| parse_instant(text, None).ok());
        (at.unwrap_or(i64::MAX), item.id)
    };
    instant(one).cmp(&instant(other))
}

/// What the caller said, as long as that is what counts; it may have been changed elsewhere.
fn trigger(schedule: &Schedule) -> (String, String) {
    let said = schedule.name.strip_prefix(NAME).and_then(|rest| rest.split_once(": "));
    let said = said.map(|(_, said)| said.to_owned());
    let or = |means: &dyn Fn(&str) -> bool, value: String| {
        said.clone().filter(|said| means(said)).unwrap_or(value)
    };
    match serde_json::from_value(schedule.trigger.clone()) {
        Ok(Trigger::Once { at_us }) => {
            let means = |said: &str| time(said).is_ok_and(|said_us| said_us == at_us);
            ("once".to_owned(), or(&means, format_instant(at_us)))
        }
        Ok(Trigger::Interval { every, .. }) => {
            let means = |said: &str| interval(said) == Some(every);
            ("interval".to_owned(), or(&means, every.to_string()))
        }
        Ok(Trigger::Cron { expression, .. }) => {
            let means = |said: &str| cron(said).as_ref() == Some(&expression);
            ("cron".to_owned(), or(&means, expression.to_string()))
        }
        // What promptyoself has no word for.
        Ok(Trigger::Daily { .. }) | Err(_) => {
            let kind = schedule.trigger.get("kind").and_then(serde_json::Value::as_str);
            (kind.unwrap_or("other").to_owned(), schedule.describe.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_the_number_and_the_words_if_they_fit() {
        assert_eq!(name(7, " 5m "), "promptyoself 7: 5m");
        assert_eq!(name(7, &"x".repeat(NAME_CHARS_MAX)), "promptyoself 7");
        assert_eq!(name(7, "a\nb"), "promptyoself 7");
        for (name, expected) in [
            ("promptyoself 7: 5m", Some(7)),
            ("promptyoself 7", Some(7)),
            ("promptyoself 0012: x: y", Some(12)),
            ("promptyoself +7", None),
            ("promptyoself x", None),
            ("promptyoself ", None),
            ("standup", None),
        ] {
            assert_eq!(number_in(name), expected, "{name}");
        }
    }
}
