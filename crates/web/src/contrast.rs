//! The contrast of the colours in the style sheet, by the formula of WCAG 2.

use std::collections::BTreeMap;

const STYLE: &str = include_str!("../assets/style.css");
/// Of text, and of marks that carry meaning.
const TEXT_MIN: f64 = 4.5;
const MARK_MIN: f64 = 3.0;

/// The colours by name: light, dark.
fn colours() -> BTreeMap<&'static str, [f64; 2]> {
    let mut colours = BTreeMap::new();
    for declaration in STYLE.split(';') {
        let Some((name, value)) =
            declaration.trim().rsplit_once("--").and_then(|(_, it)| it.split_once(": light-dark("))
        else {
            continue;
        };
        let (light, dark) = value.trim_end_matches(')').split_once(", ").unwrap();
        colours.insert(name, [luminance(light), luminance(dark)]);
    }
    colours
}

fn luminance(colour: &str) -> f64 {
    let digits = colour.strip_prefix('#').unwrap();
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&digits[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
}

fn check(pairs: &[(&str, &str)], min: f64) {
    let colours = colours();
    for (one, other) in pairs {
        for (theme, index) in [("light", 0), ("dark", 1)] {
            let (one_l, other_l) = (colours[one][index], colours[other][index]);
            let ratio = (one_l.max(other_l) + 0.05) / (one_l.min(other_l) + 0.05);
            assert!(min <= ratio, "{one} on {other}, {theme}: {ratio:.2}");
        }
    }
}

#[test]
fn text_can_be_read() {
    let grounds = ["bg", "surface", "sunken", "raised"];
    let texts = ["text", "muted", "accent"];
    let pairs: Vec<_> =
        texts.iter().flat_map(|text| grounds.map(|ground| (*text, ground))).collect();
    check(&pairs, TEXT_MIN);
    check(
        &[
            ("on-accent", "accent"),
            ("ok-text", "ok-tint"),
            ("live-text", "live-tint"),
            ("wait-text", "wait-tint"),
            ("fail-text", "fail-tint"),
            ("unknown-text", "unknown-tint"),
            ("skip-text", "skip-tint"),
            ("ice-text", "ice-tint"),
            ("fail-text", "surface"),
            ("wait-text", "surface"),
        ],
        TEXT_MIN,
    );
}

#[test]
fn marks_and_edges_can_be_seen() {
    let marks = ["ok", "live", "wait", "fail", "unknown", "skip", "edge", "accent"];
    check(&marks.map(|mark| (mark, "surface")), MARK_MIN);
}
