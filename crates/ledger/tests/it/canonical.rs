//! Canonical JSON against the vectors of RFC 8785 and another implementation.

use ledger::{INTEGER_MAX, canonical_json};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;

fn check(input: &str, expected: &str) {
    let value: Value = serde_json::from_str(input).unwrap();
    assert_eq!(String::from_utf8(canonical_json(&value).unwrap()).unwrap(), expected);
}

/// The examples of the RFC and its test suite that have no fractions.
#[test]
fn matches_rfc_8785_vectors() {
    check(
        r#"{ "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false] }"#,
        r#"{"literals":[null,true,false],"string":"€$\u000f\nA'B\"\\\\\"/"}"#,
    );
    check(
        r#"{ "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
             "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
             "\u00f6": "Latin Small Letter O With Diaeresis" }"#,
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
         \"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\
         \"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    );
    check(r#"[ 56, { "d": true, "10": null, "1": [ ] } ]"#, r#"[56,{"1":[],"10":null,"d":true}]"#);
    check(
        r#"{ "1": {"f": {"f": "hi","F": 5} ,"\n": 56}, "10": { }, "": "empty", "a": { },
             "111": [ {"e": "yes","E": "no" } ], "A": { } }"#,
        r#"{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}"#,
    );
    check(
        r#"{ "peach": "This sorting order", "péché": "is wrong according to French",
             "pêche": "but canonicalization MUST", "sin": "ignore locale" }"#,
        r#"{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}"#,
    );
    check(r#"{"Unnormalized Unicode":"A\u030a"}"#, "{\"Unnormalized Unicode\":\"A\u{30a}\"}");
}

fn any_value() -> impl Strategy<Value = Value> {
    let max = INTEGER_MAX as i64;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-max..=max).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::from),
            btree_map(any_key(), inner, 0..8).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// Keys that differ late, need escapes, or sort differently in UTF-16 than in UTF-8.
fn any_key() -> impl Strategy<Value = String> {
    prop_oneof!["[ab\\\\\"\n\u{7f}é€\u{fb33}😀]{0,4}", any::<String>()]
}

proptest! {
    #[test]
    fn agrees_with_another_implementation(value in any_value()) {
        let theirs = serde_json_canonicalizer::to_vec(&value).unwrap();
        prop_assert_eq!(canonical_json(&value).unwrap(), theirs);
    }
}
