//! Schedules as promptyoself shows them. Pure.
//!
//! The name of a registered schedule is `promptyoself NUMBER: TEXT`, where TEXT is the caller's trigger. Every other
//! schedule that prompts an agent is shown, too; its number is made from its id.

use std::cmp::Ordering;

use api::{Schedule, ScheduleStatus};
use calendar::{Trigger, format_instant, parse_instant};
use kernel::schedule::NAME_CHARS_MAX;
use serde::Serialize;

use super::agents::Agents;
use super::register::{parse_cron, parse_interval, parse_time};

const NAME_PREFIX: &str = "promptyoself ";
/// Digits of an id that are read as a number. Every id has as many.
const ID_DIGITS: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PromptItem {
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

/// The name of a schedule: its number, and the caller's text of the trigger if it fits.
pub fn schedule_name(number: u64, value: &str) -> String {
    let name = format!("{NAME_PREFIX}{number}: {}", value.trim());
    match name.chars().count() <= NAME_CHARS_MAX && !name.chars().any(char::is_control) {
        true => name,
        false => format!("{NAME_PREFIX}{number}"),
    }
}

/// The number in the name of a registered schedule.
pub fn number_in_name(name: &str) -> Option<u64> {
    let rest = name.strip_prefix(NAME_PREFIX)?;
    let digits = rest.split_once(':').map_or(rest, |(digits, _)| digits);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// The number of any schedule.
pub fn schedule_number(schedule: &Schedule) -> u64 {
    let digits = || schedule.id.split_once('_')?.1.get(..ID_DIGITS);
    let from_id = || digits().and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number_in_name(&schedule.name).or_else(from_id).unwrap_or_default()
}

/// Shown instead of the prompt of a sensitive schedule.
const SENSITIVE: &str = "(sensitive)";

/// Smallest derived number. Numbers below it are assigned in order; the others are hashes of an idempotency key, of
/// the name of an agent that does not see all schedules, or of a number in an imported promptyoself database.
pub const DERIVED_NUMBERS_START: u64 = 1 << 32;

/// The number after the highest assigned one.
pub fn next_free_number(schedules: &[Schedule]) -> u64 {
    let numbers = schedules.iter().filter_map(|schedule| number_in_name(&schedule.name));
    numbers
        .filter(|number| *number < DERIVED_NUMBERS_START)
        .max()
        .unwrap_or_default()
        .saturating_add(1)
}

/// A schedule as an item of a list. `None` if it does not prompt an agent.
pub fn prompt_item(schedule: &Schedule, agents: &Agents) -> Option<PromptItem> {
    let agent = schedule.action.agent.as_deref()?;
    let (schedule_type, schedule_value) = trigger(schedule);
    Some(PromptItem {
        id: schedule_number(schedule),
        agent_id: agents.id_of_name(agent),
        prompt_text: schedule.action.prompt.clone().unwrap_or_else(|| SENSITIVE.to_owned()),
        schedule_type,
        schedule_value,
        next_run: schedule.next_run_at.clone(),
        active: schedule.status == ScheduleStatus::Active,
        created_at: schedule.created_at.clone(),
        last_run: schedule.last_run_at.clone(),
        max_repetitions: schedule.terms.max_fires,
        repetition_count: schedule.fires,
    })
}

/// Orders by next run; items without one come last.
pub fn by_next_run(one: &PromptItem, other: &PromptItem) -> Ordering {
    let instant = |item: &PromptItem| {
        let at = item.next_run.as_deref().and_then(|text| parse_instant(text, None).ok());
        (at.unwrap_or(i64::MAX), item.id)
    };
    instant(one).cmp(&instant(other))
}

/// The type and value of the trigger. The value is the caller's text if it still means the same: the trigger may have
/// been edited since.
fn trigger(schedule: &Schedule) -> (String, String) {
    let text = schedule.name.strip_prefix(NAME_PREFIX).and_then(|rest| rest.split_once(": "));
    let text = text.map(|(_, text)| text.to_owned());
    let text_if = |is_same: &dyn Fn(&str) -> bool, value: String| {
        text.clone().filter(|text| is_same(text)).unwrap_or(value)
    };
    match serde_json::from_value(schedule.trigger.clone()) {
        Ok(Trigger::Once { at_us }) => {
            let is_same = |text: &str| parse_time(text).is_ok_and(|text_us| text_us == at_us);
            ("once".to_owned(), text_if(&is_same, format_instant(at_us)))
        }
        Ok(Trigger::Interval { every, .. }) => {
            let is_same = |text: &str| parse_interval(text) == Some(every);
            ("interval".to_owned(), text_if(&is_same, every.to_string()))
        }
        Ok(Trigger::Cron { expression, .. }) => {
            let is_same = |text: &str| parse_cron(text).as_ref() == Some(&expression);
            ("cron".to_owned(), text_if(&is_same, expression.to_string()))
        }
        // promptyoself has no such type.
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
    fn a_name_holds_the_number_and_the_trigger_text_if_it_fits() {
        assert_eq!(schedule_name(7, " 5m "), "promptyoself 7: 5m");
        assert_eq!(schedule_name(7, &"x".repeat(NAME_CHARS_MAX)), "promptyoself 7");
        assert_eq!(schedule_name(7, "a\nb"), "promptyoself 7");
        for (name, expected) in [
            ("promptyoself 7: 5m", Some(7)),
            ("promptyoself 7", Some(7)),
            ("promptyoself 0012: x: y", Some(12)),
            ("promptyoself +7", None),
            ("promptyoself x", None),
            ("promptyoself ", None),
            ("standup", None),
        ] {
            assert_eq!(number_in_name(name), expected, "{name}");
        }
    }
}
