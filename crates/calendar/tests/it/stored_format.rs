//! The stored form of triggers: ledgers contain these texts, so they must stay readable.

use calendar::{Calendar, InvalidTrigger, Trigger};

use crate::support::zone;

#[test]
fn stored_triggers_round_trip() {
    for json in [
        r#"{"kind":"once","at_us":1750000000000000}"#,
        r#"{"kind":"interval","every":"1h30m","anchor_us":0}"#,
        r#"{"kind":"daily","times":["09:00","17:30:15"],"weekdays":"MON-FRI"}"#,
        r#"{"kind":"daily","times":["09:00"],"weekdays":"MON-SUN","dst":{"gap":"skip"}}"#,
        r#"{"kind":"cron","expression":"30 9 * * MON-FRI"}"#,
        r#"{"kind":"cron","expression":"0 0 13 * +FRI","dst":{"gap":"run_after","fold":"first"}}"#,
        r#"{"kind":"cron","expression":"* * * * *","dst":{"gap":"shift","fold":"second"}}"#,
        r#"{"kind":"cron","expression":"* * * * *","dst":{"fold":"both"}}"#,
    ] {
        let trigger: Trigger = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&trigger).unwrap(), json);
    }
    assert_eq!(serde_json::to_string(&zone("europe/berlin")).unwrap(), "\"Europe/Berlin\"");
}

#[test]
fn equivalent_spellings_parse_to_the_same_trigger() {
    let read = |json: &str| serde_json::from_str::<Trigger>(json).unwrap();
    assert_eq!(
        read(r#"{"kind":"cron","expression":"0 9 * * 1-5","dst":{}}"#),
        read(r#"{"kind":"cron","expression":"0 9 * * mon-fri"}"#)
    );
    assert_eq!(
        read(r#"{"kind":"daily","times":["17:00","09:00"]}"#),
        read(r#"{"kind":"daily","times":["09:00","17:00","09:00"],"weekdays":"*"}"#)
    );
}

#[test]
fn invalid_stored_triggers_are_refused() {
    for json in [
        r#"{"kind":"once"}"#,
        r#"{"kind":"once","at_us":1,"zone":"UTC"}"#,
        r#"{"kind":"interval","every":"0s","anchor_us":0}"#,
        r#"{"kind":"interval","every":60,"anchor_us":0}"#,
        r#"{"kind":"daily","times":[]}"#,
        r#"{"kind":"daily","times":["25:00"]}"#,
        r#"{"kind":"daily","times":["09:00"],"weekdays":""}"#,
        r#"{"kind":"cron","expression":"0 22-2 * * *"}"#,
        r#"{"kind":"cron","expression":"* * * * *","dst":{"gap":"maybe"}}"#,
        r#"{"kind":"cron","expression":"* * * * *","dst":{"gaps":"skip"}}"#,
        r#"{"kind":"cron","expression":"* * * * *","tz":"UTC"}"#,
        r#"{"kind":"event"}"#,
        r#"{"at_us":1}"#,
    ] {
        assert!(serde_json::from_str::<Trigger>(json).is_err(), "{json}");
    }
    assert!(serde_json::from_str::<calendar::Zone>("\"Mars/Base\"").is_err());
}

#[test]
fn calendar_refuses_invalid_triggers() {
    let check = |trigger: Trigger, expected: Result<(), InvalidTrigger>| {
        assert_eq!(Calendar::new(trigger, zone("UTC")).map(|_| ()), expected);
    };
    let (second, too_short) = ("1s".parse().unwrap(), "999ms".parse().unwrap());
    check(Trigger::Interval { every: second, anchor_us: 0 }, Ok(()));
    check(
        Trigger::Interval { every: too_short, anchor_us: 0 },
        Err(InvalidTrigger::TooOften(too_short)),
    );
    for (instant, is_good) in [
        (0, true),
        (-1, false),
        (calendar::END_US, true),
        (calendar::END_US + 1, false),
        (i64::MIN, false),
    ] {
        let expected = if is_good { Ok(()) } else { Err(InvalidTrigger::OutOfRange(instant)) };
        check(Trigger::Once { at_us: instant }, expected.clone());
        check(Trigger::Interval { every: second, anchor_us: instant }, expected);
    }
    let end = Trigger::Interval { every: second, anchor_us: calendar::END_US - 1 };
    let end = Calendar::new(end, zone("UTC")).unwrap();
    assert_eq!(end.next_after(0), Some(calendar::END_US - 1));
    assert_eq!(end.next_after(calendar::END_US - 1), None);
    assert_eq!([end.next_after(i64::MAX), end.last_at_or_before(i64::MIN)], [None, None]);
    assert_eq!(end.count_slots(i64::MIN, i64::MAX), 1);
}
