//! Money: what runs cost, to the millionth, in the currency of the operator's prices and budgets.
//!
//! An amount is parsed from decimal text and stored as a whole number of millionths, never as a binary
//! fraction. A cost is rounded up, so the counted cost is never below the real one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::budget::Usage;

const MICROS: i64 = 1_000_000;
const DECIMALS_MAX: usize = 6;
const WHOLE_MAX: i64 = 100_000_000;

/// Invariant: from 0 to [`Money::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Money(i64);

/// The price of an agent, as an operator sets it: no backend reports prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Price {
    /// For a million input tokens.
    #[serde(skip_serializing_if = "Money::is_zero")]
    pub input: Money,
    /// For a million output tokens.
    #[serde(skip_serializing_if = "Money::is_zero")]
    pub output: Money,
    /// For each attempt, whatever it uses.
    #[serde(skip_serializing_if = "Money::is_zero")]
    pub run: Money,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid amount `{0}`")]
pub struct InvalidMoney(String);

impl InvalidMoney {
    pub const HINT: &'static str = "write it with digits and at most six decimals, such as `5.00` or \
                                    `0.15`; the maximum is 100000000";
}

impl Money {
    pub const ZERO: Money = Money(0);
    pub const MAX: Money = Money(WHOLE_MAX * MICROS);

    /// `None` if the number of millionths is out of range.
    pub const fn from_micros(micros: i64) -> Option<Money> {
        match 0 <= micros && micros <= Money::MAX.0 {
            true => Some(Money(micros)),
            false => None,
        }
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub fn saturating_add(self, other: Money) -> Money {
        Money((self.0 + other.0).min(Money::MAX.0))
    }
}

impl Price {
    pub fn is_free(&self) -> bool {
        *self == Price::default()
    }

    /// Whether an attempt costs the same whatever it uses.
    pub(crate) fn is_flat(&self) -> bool {
        self.input.is_zero() && self.output.is_zero()
    }

    /// The cost of an attempt with this usage.
    ///
    /// ```
    /// use kernel::budget::Usage;
    /// use kernel::money::{Money, Price};
    ///
    /// let price = Price { input: "3".parse()?, output: "15".parse()?, run: Money::ZERO };
    /// let usage = Usage { input_tokens: 1_000, output_tokens: 100 };
    /// assert_eq!(price.cost(usage).to_string(), "0.0045");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cost(&self, usage: Usage) -> Money {
        let of = |tokens: u32, price: Money| i128::from(tokens) * i128::from(price.0);
        let used = of(usage.input_tokens, self.input) + of(usage.output_tokens, self.output);
        let whole = i128::from(MICROS);
        let used = (used + whole - 1) / whole;
        let used = i64::try_from(used).unwrap_or(i64::MAX).min(Money::MAX.0);
        Money(used).saturating_add(self.run)
    }
}

impl FromStr for Money {
    type Err = InvalidMoney;

    /// Digits with an optional point and up to six decimals. No sign, exponent or surrounding space.
    fn from_str(text: &str) -> Result<Money, InvalidMoney> {
        let invalid = || InvalidMoney(text.chars().take(40).collect());
        let (whole, decimals) = match text.split_once('.') {
            Some((_, "")) => return Err(invalid()),
            Some(parts) => parts,
            None => (text, ""),
        };
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(decimals) {
            return Err(invalid());
        }
        if DECIMALS_MAX < decimals.len() {
            return Err(invalid());
        }
        let whole: i64 = whole.parse().map_err(|_| invalid())?;
        let decimals: i64 = format!("{decimals:0<6}").parse().map_err(|_| invalid())?;
        let micros = whole.checked_mul(MICROS).and_then(|whole| whole.checked_add(decimals));
        micros.and_then(Money::from_micros).ok_or_else(invalid)
    }
}

/// With two decimals, and up to six where they are not zero.
impl fmt::Display for Money {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / MICROS, self.0 % MICROS);
        let two_decimals = text.len().saturating_sub(DECIMALS_MAX - 2);
        let (short, rest) = text.split_at_checked(two_decimals).unwrap_or((&text, ""));
        write!(out, "{short}{}", rest.trim_end_matches('0'))
    }
}

impl From<Money> for String {
    fn from(money: Money) -> String {
        money.to_string()
    }
}

impl TryFrom<String> for Money {
    type Error = InvalidMoney;

    fn try_from(text: String) -> Result<Money, InvalidMoney> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_parse_exactly_and_print_with_at_least_two_decimals() {
        for (text, micros, written) in [
            ("0", 0, "0.00"),
            ("0.00", 0, "0.00"),
            ("5", 5_000_000, "5.00"),
            ("5.00", 5_000_000, "5.00"),
            ("0.1", 100_000, "0.10"),
            ("0.15", 150_000, "0.15"),
            ("0.075", 75_000, "0.075"),
            ("0.000001", 1, "0.000001"),
            ("1.000010", 1_000_010, "1.00001"),
            ("007", 7_000_000, "7.00"),
            ("99999999.999999", 99_999_999_999_999, "99999999.999999"),
            ("100000000", 100_000_000_000_000, "100000000.00"),
        ] {
            let money: Money = text.parse().unwrap();
            assert_eq!((money.as_micros(), money.to_string().as_str()), (micros, written));
            assert_eq!(written.parse(), Ok(money));
        }
    }

    #[test]
    fn invalid_amounts_are_refused() {
        for text in [
            "",
            ".",
            "5.",
            ".5",
            "-1",
            "+1",
            "1e9",
            "1E9",
            "NaN",
            "inf",
            "0x10",
            " 1",
            "1 ",
            "1,5",
            "1_000",
            "1.2.3",
            "1.-5",
            "$5",
            "٣",
            "0.0000001",
            "1.0000000",
            "100000000.000001",
            "100000001",
            "9223372036854775807",
            "99999999999999999999999999",
            "1\n",
        ] {
            assert!(text.parse::<Money>().is_err(), "{text}");
            let json = serde_json::to_string(text).unwrap();
            assert!(serde_json::from_str::<Money>(&json).is_err(), "{text}");
        }
        // A JSON number would be parsed as a binary fraction.
        assert!(serde_json::from_str::<Money>("1.5").is_err());
        assert_eq!(Money::from_micros(-1), None);
        assert_eq!(Money::from_micros(Money::MAX.as_micros() + 1), None);
        assert_eq!(Money::MAX.saturating_add(Money(1)), Money::MAX);
    }

    #[test]
    fn cost_is_exact_and_rounded_up() {
        let check = |[input, output, run]: [&str; 3], (read, written), expected: &str| {
            let [input, output, run] = [input, output, run].map(|text| text.parse().unwrap());
            let usage = Usage { input_tokens: read, output_tokens: written };
            assert_eq!(Price { input, output, run }.cost(usage).to_string(), expected);
        };
        check(["3", "15", "0"], (1_000_000, 1_000_000), "18.00");
        check(["3", "15", "0"], (0, 0), "0.00");
        check(["3", "15", "0.02"], (0, 0), "0.02");
        check(["0", "0", "0.02"], (9, 9), "0.02");
        // A cost below a millionth is rounded up to one.
        check(["0.000001", "0", "0"], (1, 0), "0.000001");
        check(["0.5", "0.5", "0"], (1, 1), "0.000001");
        check(["0.5", "0.5", "0"], (1, 2), "0.000002");
        check(["100000000", "100000000", "100000000"], (u32::MAX, u32::MAX), "100000000.00");
    }
}
