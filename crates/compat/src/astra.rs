//! Schedules in the words of Astra: their ids, names and expressions.
//!
//! An id of Astra is the hash of what a schedule said first, and stays when the schedule is changed. It is
//! kept in the name of the schedule, so that it needs no place of its own. A schedule that Astra knows
//! nothing of is known by its own id, which has the same form.

use std::fmt::Write;

use api::{Code, Error, Schedule};
use calendar::{Calendar, Cron, Dst, START_US, Trigger};
use kernel::schedule::NAME_CHARS_MAX;
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

const CRON_FIELDS_WITH_SECONDS: usize = 6;
const ID_PREFIX: &str = "sch_";
const ID_DIGITS: usize = 8;
/// Exponents of ten between which Python writes a number without one.
const PLAIN_EXPONENTS: std::ops::Range<i32> = -4..16;

/// The id of a schedule that says this.
pub fn id(name: &str, cron: &str, tool: &str, payload: &Value) -> String {
    let mut text = format!("{name}:{cron}:{tool}:");
    write_value(payload, &mut text);
    format!("{ID_PREFIX}{}", short_hash(&text))
}

/// The first digits of the hash of a text.
pub fn short_hash(text: &str) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(text.as_bytes()).iter().take(ID_DIGITS / 2) {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The name of a schedule that Astra knows by an id.
pub fn named(name: &str, id: &str) -> Result<String, Error> {
    let named = format!("{name} ({id})");
    let most = NAME_CHARS_MAX.saturating_sub(id.len() + " ()".len());
    match named.chars().count() <= NAME_CHARS_MAX {
        true => Ok(named),
        false => {
            let what = format!("a name has at most {most} characters");
            Err(Error::new(Code::InvalidInput, what).hint("give a shorter one"))
        }
    }
}

/// What a schedule was called, and the id that Astra knows it by.
pub fn known(schedule: &Schedule) -> (&str, &str) {
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

/// An expression in our order, if it ever comes true.
pub fn cron(text: &str) -> Result<String, Error> {
    let invalid = |why: &dyn std::fmt::Display| {
        let what = format!("Invalid cron expression '{text}': {why}");
        Error::new(Code::InvalidInput, what).hint(
            "give five fields in UTC: minute, hour, day of month, month, day of week; a sixth and last one \
             has the seconds",
        )
    };
    let ours = seconds_first(text);
    let expression = Cron::parse(&ours).map_err(|why| invalid(&why))?.cron;
    let zone = "UTC".parse().map_err(|why| invalid(&why))?;
    let trigger = Trigger::Cron { expression, dst: Dst::default() };
    let calendar = Calendar::new(trigger, zone).map_err(|why| invalid(&why))?;
    match calendar.next_after(START_US) {
        Some(_) => Ok(ours),
        None => Err(invalid(&"it never comes true")),
    }
}

/// Astra has the seconds last. Five fields are never taken for six.
pub fn seconds_first(cron: &str) -> String {
    rotated(cron, |fields| fields.rotate_right(1))
}

/// The way back.
pub fn seconds_last(cron: &str) -> String {
    rotated(cron, |fields| fields.rotate_left(1))
}

fn rotated(cron: &str, rotate: impl Fn(&mut [&str])) -> String {
    let mut fields: Vec<&str> = cron.split_whitespace().collect();
    if fields.len() == CRON_FIELDS_WITH_SECONDS {
        rotate(&mut fields);
    }
    fields.join(" ")
}

/// As Python writes JSON with its keys in order.
fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { ", " });
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => write_fields(fields, out),
    }
}

fn write_fields(fields: &Map<String, Value>, out: &mut String) {
    let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    out.push('{');
    for (place, (name, value)) in fields.into_iter().enumerate() {
        out.push_str(if place == 0 { "" } else { ", " });
        write_text(name, out);
        out.push_str(": ");
        write_value(value, out);
    }
    out.push('}');
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

fn write_number(number: &Number, out: &mut String) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => write_float(float, out),
        None => {
            let _ = write!(out, "{number}");
        }
    }
}

/// The shortest digits that say it, and an exponent of two digits at least where there is one.
fn write_float(float: f64, out: &mut String) {
    let short = format!("{float:e}");
    let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let _ = match PLAIN_EXPONENTS.contains(&exponent) {
        true if float.fract() == 0.0 => write!(out, "{float:.1}"),
        true => write!(out, "{float}"),
        false => {
            let sign = if exponent < 0 { '-' } else { '+' };
            write!(out, "{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_those_of_the_earlier_program() {
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
            assert_eq!(id(name, cron, tool, &payload), expected, "{payload}");
        }
    }

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        for (text, expected) in [
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("-1.5e300", "-1.5e+300"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("123456789.125", "123456789.125"),
            ("-0.0", "-0.0"),
            ("18446744073709551615", "18446744073709551615"),
        ] {
            let mut out = String::new();
            write_value(&serde_json::from_str(text).unwrap(), &mut out);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn seconds_come_first_and_five_fields_are_not_six() {
        for (theirs, ours) in
            [("0 */6 * * *", "0 */6 * * *"), ("0 9 * * 1 30", "30 0 9 * * 1"), ("@daily", "@daily")]
        {
            assert_eq!(seconds_first(theirs), ours);
            assert_eq!(seconds_last(ours), theirs);
            assert_eq!(cron(theirs).unwrap(), ours);
        }
        for never in ["0 0 31 2 *", "61 * * * *", "bad", "", "0 0 9 * * 1 2 3", "0 9 * * 1 61"] {
            let said = cron(never).unwrap_err().message;
            assert!(said.starts_with(&format!("Invalid cron expression '{never}': ")), "{said}");
        }
    }

    #[test]
    fn a_name_holds_the_id_and_has_room_for_it() {
        assert_eq!(named("n", "sch_17a4943d").unwrap(), "n (sch_17a4943d)");
        let most = NAME_CHARS_MAX - 15;
        assert!(named(&"é".repeat(most), "sch_17a4943d").is_ok());
        assert!(named(&"é".repeat(most + 1), "sch_17a4943d").is_err());
    }
}
