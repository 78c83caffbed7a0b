//! Schedules as promptyoself shows them. Pure.
//!
//! The name of a schedule holds what promptyoself knows of it and Midwatch does not: `promptyoself NUMBER: TEXT`, where
//! TEXT is the caller's trigger, and `promptyoself NUMBER (after SENT): TEXT` if an earlier installation had sent it SENT
//! times. Schedules without such a name have no number, so promptyoself does not show them.

use std::cmp::Ordering;

use api::{Action, Schedule, ScheduleAdd, ScheduleStatus, When};
use calendar::{END_US, Trigger, format_instant, parse_instant};
use kernel::schedule::NAME_CHARS_MAX;
use serde::Serialize;

use super::agents::Agents;
use super::register::{parse_cron, parse_interval, parse_time};

const NAME_PREFIX: &str = "promptyoself ";
/// Between the number and the count of prompts that were sent before an import.
const SENT_PREFIX: &str = " (after ";
/// Called by the schedule that reserves numbers, if someone resumes it.
const RESERVATION_TOOL: &str = "status_get";

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

/// The parts of the name of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NameParts<'a> {
    number: u64,
    /// How often the prompt was sent before it was imported.
    sent_before: u64,
    /// The caller's text of the trigger.
    value: Option<&'a str>,
}

/// The name of a schedule: its number, how often it was sent before it was imported, and the caller's text of the
/// trigger if it fits.
pub fn schedule_name(number: u64, sent_before: u64, value: &str) -> String {
    let sent = match sent_before {
        0 => String::new(),
        count => format!("{SENT_PREFIX}{count})"),
    };
    let name = format!("{NAME_PREFIX}{number}{sent}: {}", value.trim());
    match name.chars().count() <= NAME_CHARS_MAX && !name.chars().any(char::is_control) {
        true => name,
        false => format!("{NAME_PREFIX}{number}{sent}"),
    }
}

fn name_parts(name: &str) -> Option<NameParts<'_>> {
    let rest = name.strip_prefix(NAME_PREFIX)?;
    let (head, value) = match rest.split_once(':') {
        Some((head, value)) => (head, value.strip_prefix(' ')),
        None => (rest, None),
    };
    let (number, sent) = match head.split_once(SENT_PREFIX) {
        Some((number, sent)) => (number, sent.strip_suffix(')')?),
        None => (head, "0"),
    };
    let parse = |digits: &str| {
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    };
    Some(NameParts { number: parse(number)?, sent_before: parse(sent)?, value })
}

/// The number in the name of a schedule.
pub fn number_in_name(name: &str) -> Option<u64> {
    name_parts(name).map(|parts| parts.number)
}

/// A schedule that never runs. Its number is in use, so that neither it nor a lower one is given out to a new prompt.
pub fn reserve_number(number: u64) -> ScheduleAdd {
    ScheduleAdd {
        name: format!("{NAME_PREFIX}{number}: highest number of the imported database"),
        when: When { at: Some(format_instant(END_US)), ..When::default() },
        action: Action {
            tool: Some(RESERVATION_TOOL.to_owned()),
            payload: "{}".parse().ok(),
            ..Action::default()
        },
        paused: true,
        ..ScheduleAdd::default()
    }
}

/// Shown instead of the prompt of a sensitive schedule.
const SENSITIVE: &str = "(sensitive)";

/// Smallest derived number. Numbers below it are assigned in order; the others are hashes of an idempotency key, of
/// the name of an agent that does not see all schedules, or of a number in an imported promptyoself database.
pub const DERIVED_NUMBERS_START: u64 = 1 << 32;

/// The number after the highest assigned one.
pub fn next_free_number<'a>(names: impl Iterator<Item = &'a str>) -> u64 {
    let numbers = names.filter_map(number_in_name);
    let highest = numbers.filter(|number| *number < DERIVED_NUMBERS_START).max();
    highest.unwrap_or_default().saturating_add(1)
}

/// A schedule as an item of a list. `None` if it has no number or does not prompt an agent.
pub fn prompt_item(schedule: &Schedule, agents: &Agents) -> Option<PromptItem> {
    let agent = schedule.action.agent.as_deref()?;
    let NameParts { number, sent_before, value } = name_parts(&schedule.name)?;
    let (schedule_type, schedule_value) = trigger(schedule, value);
    Some(PromptItem {
        id: number,
        agent_id: agents.id_of_name(agent),
        prompt_text: schedule.action.prompt.clone().unwrap_or_else(|| SENSITIVE.to_owned()),
        schedule_type,
        schedule_value,
        next_run: schedule.next_run_at.clone(),
        active: schedule.status == ScheduleStatus::Active,
        created_at: schedule.created_at.clone(),
        last_run: schedule.last_run_at.clone(),
        max_repetitions: schedule.terms.max_fires.map(|max| max.saturating_add(sent_before)),
        repetition_count: schedule.fires.saturating_add(sent_before),
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
fn trigger(schedule: &Schedule, value: Option<&str>) -> (String, String) {
    let text_if = |is_same: &dyn Fn(&str) -> bool, default: String| {
        value.filter(|text| is_same(text)).map_or(default, str::to_owned)
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
        // Only an edit makes a trigger that promptyoself has no type for.
        Ok(Trigger::Daily { .. }) | Err(_) => ("cron".to_owned(), schedule.describe.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_the_number_and_the_trigger_text_if_it_fits() {
        assert_eq!(schedule_name(7, 0, " 5m "), "promptyoself 7: 5m");
        assert_eq!(schedule_name(7, 3, "5m"), "promptyoself 7 (after 3): 5m");
        assert_eq!(schedule_name(7, 0, &"x".repeat(NAME_CHARS_MAX)), "promptyoself 7");
        assert_eq!(schedule_name(7, 3, "a\nb"), "promptyoself 7 (after 3)");
        let parts = |number, sent_before, value| Some(NameParts { number, sent_before, value });
        for (name, expected) in [
            ("promptyoself 7: 5m", parts(7, 0, Some("5m"))),
            ("promptyoself 7", parts(7, 0, None)),
            ("promptyoself 7 (after 3): 0 9 * * *", parts(7, 3, Some("0 9 * * *"))),
            ("promptyoself 7 (after 3)", parts(7, 3, None)),
            ("promptyoself 0012: x: y", parts(12, 0, Some("x: y"))),
            ("promptyoself 7 (after )", None),
            ("promptyoself 7 (after x): 5m", None),
            ("promptyoself +7", None),
            ("promptyoself x", None),
            ("promptyoself ", None),
            ("standup", None),
        ] {
            assert_eq!(name_parts(name), expected, "{name}");
        }
    }

    #[test]
    fn a_reserved_number_is_not_given_out_again() {
        let reserved = reserve_number(12).name;
        assert_eq!(next_free_number(["promptyoself 3: 5m", &reserved, "x"].into_iter()), 13);
        let derived = schedule_name(DERIVED_NUMBERS_START, 0, "5m");
        assert_eq!(next_free_number([derived.as_str()].into_iter()), 1);
    }
}
