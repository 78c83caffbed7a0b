//! The forms in which a known secret may appear: as it is, escaped, base64, hex, URL-encoded.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// A shorter piece of base64 would be found in ordinary text.
const PIECE_BYTES_MIN: usize = 8;

/// All forms of `secret`, without repetition.
pub(super) fn forms(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned(), escaped(secret)];
    forms.extend(base64_forms(secret.as_bytes()));
    forms.push(hex(secret.as_bytes(), digit_lower));
    forms.push(hex(secret.as_bytes(), digit_upper));
    // What programs leave unescaped differs, and so does the case of the digits.
    for kept in ["-_.~", "-_.~!*'()", "-_.*"] {
        for digit in [digit_lower, digit_upper] {
            let encoded = url_encoded(secret.as_bytes(), kept, digit);
            forms.push(encoded.replace("%20", "+"));
            forms.push(encoded);
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

/// As JSON and Rust write it within quotes.
fn escaped(secret: &str) -> String {
    let quoted = serde_json::Value::from(secret).to_string();
    quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(&quoted).to_owned()
}

/// Encoded alone, and as it looks within the encoding of a longer text, such as `user:secret`: the
/// letters that depend on the secret alone, for each of the three positions it can begin at.
fn base64_forms(secret: &[u8]) -> Vec<String> {
    let mut forms = vec![STANDARD_NO_PAD.encode(secret), URL_SAFE_NO_PAD.encode(secret)];
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend(secret);
        // Six bits per letter: drop those that share bits with what stands before and behind.
        let first = (before * 8).div_ceil(6);
        let last = bytes.len() * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            let piece = encoded.get(first..last).unwrap_or_default();
            if PIECE_BYTES_MIN <= piece.len() {
                forms.push(piece.to_owned());
            }
        }
    }
    forms
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
