//! JSON exactly as Python's `json.dumps(value, sort_keys=True)` prints it: Astra's schedule ids are hashes of that text.

use std::fmt::Write;

use serde_json::{Map, Number, Value};

/// Exponents of ten for which Python prints a float without an exponent.
const PLAIN_EXPONENTS: std::ops::Range<i32> = -4..16;

/// Appends `value` as `json.dumps(value, sort_keys=True)` prints it.
pub(super) fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
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
    for (index, (name, value)) in fields.into_iter().enumerate() {
        out.push_str(if index == 0 { "" } else { ", " });
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

/// The shortest digits that read back as the same number; an exponent has at least two digits.
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
    use super::*;

    #[test]
    fn numbers_have_the_form_that_python_prints() {
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
}
