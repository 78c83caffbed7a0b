//! One form for each number in JSON that Midwatch passes on.
//!
//! Some readers of JSON keep every digit, others read each number as a double, and some tell `1.0` from `1`
//! or `-0` from `0`. So the value that a rule checks might not be the value that a tool gets, and documents with
//! the same meaning would have different hashes. [`canonicalize`] leaves one form: an integer without fraction,
//! exponent or negative zero, and any other number as the shortest text of its double. An integer that a
//! double cannot hold exactly is refused.
//!
//! This is for documents whose fields Midwatch does not know. A field with a type of its own needs no such
//! limit.

use serde_json::{Number, Value};

use crate::{Code, Error};

/// The largest integer such that a double tells it from its neighbours: 2^53 - 1.
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// Rewrites every number of a document in its one form.
///
/// ```
/// let mut document = serde_json::json!({"a": [1.0, -0.0, 1e2, 0.50]});
/// api::numbers::canonicalize(&mut document)?;
/// assert_eq!(document.to_string(), r#"{"a":[1,0,100,0.5]}"#);
/// assert!(api::numbers::canonicalize(&mut 9_007_199_254_740_993_u64.into()).is_err());
/// # Ok::<(), api::Error>(())
/// ```
pub fn canonicalize(document: &mut Value) -> Result<(), Error> {
    match document {
        Value::Number(number) => {
            *number = canonical(number)?;
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(canonicalize),
        Value::Object(fields) => fields.values_mut().try_for_each(canonicalize),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

fn canonical(number: &Number) -> Result<Number, Error> {
    let integer = match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer,
        (None, Some(double)) if double.fract() != 0.0 => return Ok(number.clone()),
        (None, Some(double)) => whole(double),
        // Not a double: there is no such number without the feature `arbitrary_precision`.
        (None, None) => return Err(ambiguous(number)),
    };
    match integer.unsigned_abs() <= INTEGER_MAX {
        true => Ok(integer.into()),
        false => Err(ambiguous(number)),
    }
}

/// A double without fraction as an integer. One out of range becomes the nearest, which is out of our range too.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
const fn whole(double: f64) -> i64 {
    double as i64
}

fn ambiguous(number: &Number) -> Error {
    let what = format!(
        "the number `{number}` is an integer beyond ±{INTEGER_MAX}, which some readers of JSON round"
    );
    Error::new(Code::InvalidInput, what).hint(format!("write it as a string: `\"{number}\"`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The canonical form, or `None` if the number is refused.
    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let mut document: Value = serde_json::from_str(&format!("{{\"a\":[{text}]}}")).unwrap();
        let found = canonicalize(&mut document).map(|()| document.to_string());
        let expected = expected.map(|number| format!("{{\"a\":[{number}]}}"));
        assert_eq!(found.ok(), expected, "{text}");
    }

    #[test]
    fn integers_have_one_form() {
        for (text, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("0e9", "0"),
            ("1e-400", "0"),
            ("1", "1"),
            ("1.0", "1"),
            ("1e2", "100"),
            ("100E-2", "1"),
            ("-7.000", "-7"),
            ("9007199254740991", "9007199254740991"),
            ("9007199254740991.0", "9007199254740991"),
            ("-9007199254740991", "-9007199254740991"),
            ("9007199254740991e0", "9007199254740991"),
            ("900719925474099.1e1", "9007199254740991"),
        ] {
            check(text, Some(expected));
        }
    }

    #[test]
    fn other_numbers_have_the_shortest_form_of_their_double() {
        for (text, expected) in [
            ("0.5", "0.5"),
            ("0.50", "0.5"),
            ("5e-1", "0.5"),
            ("-1.5", "-1.5"),
            ("0.1", "0.1"),
            ("0.10000000000000000555", "0.1"),
            ("1e-7", "1e-7"),
            ("0.0000001", "1e-7"),
            ("4503599627370495.5", "4503599627370495.5"),
        ] {
            check(text, Some(expected));
        }
    }

    #[test]
    fn integers_that_a_double_cannot_tell_apart_are_refused() {
        for text in [
            "9007199254740992",
            "9007199254740993",
            "-9007199254740992",
            "9007199254740992.0",
            "9007199254740991.7",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            "-9223372036854775809",
            "1e16",
            "1e300",
            "-1e300",
        ] {
            check(text, None);
        }
        let error = canonicalize(&mut 9_007_199_254_740_993_u64.into()).unwrap_err();
        assert!(error.message.contains("`9007199254740993`"), "{error}");
        assert_eq!(error.hint.as_deref(), Some("write it as a string: `\"9007199254740993\"`"));
    }

    #[test]
    fn a_number_beyond_all_doubles_is_no_json() {
        for text in ["1e400", "-1e400"] {
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
        }
    }
}
