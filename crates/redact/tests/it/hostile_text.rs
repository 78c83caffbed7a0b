//! Properties of redaction by pattern on hostile text.

use proptest::prelude::*;
use redact::{MARK, redact};

/// The parts of hostile texts.
const PIECES: &[&str] = &[
    "token",
    "password",
    "tokens",
    "Authorization",
    "Bearer",
    "Basic",
    "--token",
    "=",
    ":",
    "://",
    "http",
    "@",
    " ",
    "\n",
    "\"",
    "'",
    "`",
    "\\",
    "\\\"",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ".",
    "&",
    "<",
    "abc",
    "true",
    "123",
    "env:A",
    "file:/a",
    "sk-01234567",
    "eyJ0123456789.0123456789",
    "-----BEGIN PRIVATE KEY-----",
    "-----END",
    "-",
    "PRIVATE+KEY+",
    MARK,
    "\u{1b}[0m",
    "é",
    "Some",
    "AKIA0123456789AB",
    "user:pw@",
];

fn hostile() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn redacting_again_changes_nothing(text in hostile()) {
        let once = redact(&text).into_owned();
        let twice = redact(&once).into_owned();
        prop_assert_eq!(twice, once, "{}", text);
    }

    #[test]
    fn visible_text_is_unchanged(text in hostile()) {
        let once = redact(&text);
        let mut rest = text.as_str();
        for visible in once.split(MARK) {
            // Quotation marks around the mark may be new.
            let visible = visible.trim_matches(['"', '\'', '`', '\\']);
            let start = rest.find(visible);
            prop_assert!(start.is_some(), "{:?} became {:?}", text, once);
            rest = &rest[start.unwrap() + visible.len()..];
        }
    }

    #[test]
    fn planted_secret_is_redacted(
        value in "[A-Za-z0-9_][A-Za-z0-9+_~!%^*-]{5,40}",
        before in "[a-z ,.{(]{0,20}",
        after in "[a-z ,.})]{0,20}",
    ) {
        prop_assume!(!before.contains(&value) && !after.contains(&value));
        for carrier in [
            "password=@", "token: @", "\"api_key\":\"@\"", "\"secret\": \"@\"", "https://u:@@host/",
            "Authorization: Bearer @", "Authorization: @", "Bearer x@", "--passwd @", "credential='@'",
            "{\\\"token\\\":\\\"@\\\"}", "PRIVATE+KEY+@", "token=Some(\"@\")", "sk-01234567@",
        ] {
            let text = format!("{before} {} {after}", carrier.replacen('@', &value, 1));
            prop_assert!(!redact(&text).contains(&value), "{} became {}", text, redact(&text));
        }
    }
}

/// Long texts, on which an expression that backtracks would not finish.
fn check_long(pieces: &[&str], bytes: usize) {
    let unit = pieces.concat();
    let text = unit.repeat(bytes.div_ceil(unit.len()));
    let once = redact(&text).into_owned();
    assert_eq!(redact(&once), once, "{pieces:?}: {} bytes", text.len());
}

#[test]
fn long_hostile_text_is_redacted_completely() {
    for piece in PIECES {
        check_long(&[piece], 128 * 1024);
        PIECES.iter().for_each(|other| check_long(&[piece, other], 8 * 1024));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn long_random_hostile_text_is_redacted_completely(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 3..8),
    ) {
        check_long(&pieces, 16 * 1024);
    }
}
