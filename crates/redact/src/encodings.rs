//! The encodings in which a registered secret can appear: plain, escaped, base64, hex, URL.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// A shorter piece of base64 would match ordinary text.
const PIECE_BYTES_MIN: usize = 8;

/// All encodings of a secret, sorted and unique.
pub(crate) fn encodings(secret: &str) -> Vec<String> {
    let mut encodings = vec![secret.to_owned(), json_escaped(secret)];
    encodings.extend(base64_encodings(secret.as_bytes()));
    encodings.push(hex(secret.as_bytes(), digit_lower));
    encodings.push(hex(secret.as_bytes(), digit_upper));
    // Programs differ in the characters that they leave unescaped, and in the case of the digits.
    for kept in ["-_.~", "-_.~!*'()", "-_.*"] {
        for digit in [digit_lower, digit_upper] {
            let encoded = url_encoded(secret.as_bytes(), kept, digit);
            encodings.push(encoded.replace("%20", "+"));
            encodings.push(encoded);
        }
    }
    encodings.sort();
    encodings.dedup();
    encodings
}

/// The content of a JSON string, which is also that of a Rust string.
fn json_escaped(secret: &str) -> String {
    let quoted = serde_json::Value::from(secret).to_string();
    quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(&quoted).to_owned()
}

/// The base64 of the secret alone, and the part that depends on it alone in the base64 of a longer
/// text such as `user:secret`, for each of the three positions at which it can start.
fn base64_encodings(secret: &[u8]) -> Vec<String> {
    let mut encodings = vec![STANDARD_NO_PAD.encode(secret), URL_SAFE_NO_PAD.encode(secret)];
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend(secret);
        // A letter has six bits. Drop those that share bits with the text before or after.
        let first = (before * 8).div_ceil(6);
        let last = bytes.len() * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            let piece = encoded.get(first..last).unwrap_or_default();
            if PIECE_BYTES_MIN <= piece.len() {
                encodings.push(piece.to_owned());
            }
        }
    }
    encodings
}

fn hex(bytes: &[u8], digit: fn(u8) -> char) -> String {
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn url_encoded(bytes: &[u8], kept: &str, digit: fn(u8) -> char) -> String {
    let mut encoded = String::new();
    for byte in bytes {
        let letter = char::from(*byte);
        if letter.is_ascii_alphanumeric() || kept.contains(letter) {
            encoded.push(letter);
        } else {
            encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    encoded
}

fn digit_lower(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0')
}

fn digit_upper(nibble: u8) -> char {
    digit_lower(nibble).to_ascii_uppercase()
}
