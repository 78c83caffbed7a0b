//! Astra: its schedule ids, names and cron expressions, and how it shows schedules and runs.
//!
//! Astra's id of a schedule is a hash of the schedule's first definition and stays when the schedule is changed. It is
//! stored as a suffix of the schedule's name: `NAME (sch_…)`. A schedule that was not created through Astra goes
//! by its own id, which has the same form.

pub mod executions;
mod python_json;
pub mod schedules;

use std::fmt::Write;

use api::{Code, Error, Schedule};
use calendar::{Calendar, Cron, Dst, START_US, Trigger};
use kernel::schedule::NAME_CHARS_MAX;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::cron::seconds_first;
use python_json::write_value;

const ID_PREFIX: &str = "sch_";
const ID_DIGITS: usize = 8;

/// Astra's id for a schedule with this first definition.
pub fn schedule_id(name: &str, cron: &str, tool: &str, payload: &Value) -> String {
    let mut text = format!("{name}:{cron}:{tool}:");
    write_value(payload, &mut text);
    format!("{ID_PREFIX}{}", short_hash(&text))
}

/// The first eight hex digits of the SHA-256 of a text.
pub fn short_hash(text: &str) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(text.as_bytes()).iter().take(ID_DIGITS / 2) {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The stored name of a schedule: Astra's name for it, followed by Astra's id.
pub fn name_with_id(name: &str, id: &str) -> Result<String, Error> {
    let stored = format!("{name} ({id})");
    let most = NAME_CHARS_MAX.saturating_sub(id.len() + " ()".len());
    match stored.chars().count() <= NAME_CHARS_MAX {
        true => Ok(stored),
        false => {
            let what = format!("the name is longer than {most} characters");
            Err(Error::new(Code::InvalidInput, what).hint("use a shorter name"))
        }
    }
}

/// Astra's name and id of a schedule.
pub fn name_and_id(schedule: &Schedule) -> (&str, &str) {
    let parts = || {
        let (name, id) = schedule.name.strip_suffix(')')?.rsplit_once(" (")?;
        is_id(id).then_some((name, id))
    };
    parts().unwrap_or((&schedule.name, &schedule.id))
}

fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix(ID_PREFIX).unwrap_or_default();
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digits.len() == ID_DIGITS && digits.bytes().all(is_digit)
}

/// An expression of Astra's with the seconds moved to the front, if it is valid and ever fires.
pub fn to_native_cron(text: &str) -> Result<String, Error> {
    let invalid = |why: &dyn std::fmt::Display| {
        let what = format!("Invalid cron expression '{text}': {why}");
        Error::new(Code::InvalidInput, what).hint(
            "write five fields in UTC: minute, hour, day of month, month, day of week; an optional sixth field \
             is the seconds",
        )
    };
    let native = seconds_first(text);
    let expression = Cron::parse(&native).map_err(|why| invalid(&why))?.cron;
    let zone = "UTC".parse().map_err(|why| invalid(&why))?;
    let trigger = Trigger::Cron { expression, dst: Dst::default() };
    let calendar = Calendar::new(trigger, zone).map_err(|why| invalid(&why))?;
    match calendar.next_after(START_US) {
        Some(_) => Ok(native),
        None => Err(invalid(&"it never fires")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schedule_ids_match_those_of_astra() {
        let numbers = r#"{"f":1.0,"g":1e20,"h":1e-7,"i":10000000000000000}"#;
        for (name, cron, tool, payload, expected) in [
            (
                "autonomous_coding",
                "0 */6 * * *",
                "execute_goal",
                json!({"goal_source": "top_desire"}),
                "sch_3b936120",
            ),
            ("n", "* * * * *", "t", json!({}), "sch_17a4943d"),
            ("n", "* * * * *", "t", json!({"b": 1, "a": "é"}), "sch_a9c0dbb9"),
            (
                "n",
                "* * * * *",
                "t",
                json!({"x": [1, 2.5, true, null], "y": {"k": "v"}}),
                "sch_5a85689f",
            ),
            ("😀", "@daily", "t", json!({"s": "😀\u{7f}/\"\\\n"}), "sch_3b92d6e8"),
            ("n", "* * * * *", "t", serde_json::from_str(numbers).unwrap(), "sch_97116799"),
        ] {
            assert_eq!(schedule_id(name, cron, tool, &payload), expected, "{payload}");
        }
    }

    #[test]
    fn cron_seconds_move_to_the_front_and_five_fields_stay() {
        for (astra, native) in
            [("0 */6 * * *", "0 */6 * * *"), ("0 9 * * 1 30", "30 0 9 * * 1"), ("@daily", "@daily")]
        {
            assert_eq!(to_native_cron(astra).unwrap(), native);
        }
        for invalid in ["0 0 31 2 *", "61 * * * *", "bad", "", "0 0 9 * * 1 2 3", "0 9 * * 1 61"] {
            let message = to_native_cron(invalid).unwrap_err().message;
            assert!(
                message.starts_with(&format!("Invalid cron expression '{invalid}': ")),
                "{message}"
            );
        }
    }

    #[test]
    fn the_id_is_a_suffix_of_the_name_and_counts_towards_its_limit() {
        assert_eq!(name_with_id("n", "sch_17a4943d").unwrap(), "n (sch_17a4943d)");
        let most = NAME_CHARS_MAX - 15;
        assert!(name_with_id(&"é".repeat(most), "sch_17a4943d").is_ok());
        assert!(name_with_id(&"é".repeat(most + 1), "sch_17a4943d").is_err());
    }
}
