//! Bytes as lower-case hexadecimal digits. Upper case is refused, so each value has one text.

use std::fmt::{self, Write as _};

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hex<const N: usize>(pub(crate) [u8; N]);

impl<const N: usize> Hex<N> {
    pub(crate) fn parse(text: &str) -> Option<Hex<N>> {
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
        if pairs.len() != N {
            return None;
        }
        let mut bytes = [0; N];
        let mut bits = 0;
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let [high, low] = pair.map(digit_value);
            bits |= high | low; // Checked once at the end: no branch per digit.
            *byte = high << 4 | low;
        }
        (bits < NOT_A_DIGIT).then_some(Hex(bytes))
    }
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            f.write_char(to_digit(byte >> 4))?;
            f.write_char(to_digit(byte & 0xf))?;
        }
        Ok(())
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hex<N>, D::Error> {
        deserializer.deserialize_str(Visitor)
    }
}

struct Visitor<const N: usize>;

impl<const N: usize> de::Visitor<'_> for Visitor<N> {
    type Value = Hex<N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lower-case hexadecimal digits", N * 2)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Hex<N>, E> {
        Hex::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

/// Has a bit that no digit's value has, so it survives a bitwise or.
const NOT_A_DIGIT: u8 = 0x10;

fn digit_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => NOT_A_DIGIT,
    }
}

fn to_digit(value: u8) -> char {
    match value {
        0..=9 => char::from(b'0' + value),
        _ => char::from(b'a' + value - 10),
    }
}
