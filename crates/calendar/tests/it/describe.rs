//! Descriptions of triggers: a table of phrases, and a test that no two meanings share one.

use std::collections::HashMap;

use calendar::{Calendar, Cron, Dst, Trigger, Weekdays};

use crate::support::{at, zone};

#[test]
fn cron_descriptions() {
    let table = [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0-59/5 * * * *", "every 5 minutes"),
        ("*/7 * * * *", "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour"),
        ("0 * * * *", "every hour"),
        ("*/60 * * * *", "every hour"),
        ("0 */2 * * *", "every 2 hours"),
        ("15 */2 * * *", "at minute 15 of every 2nd hour (0, 2, 4 …)"),
        ("15 */6 * * *", "at 00:15, 06:15, 12:15 and 18:15 every day"),
        ("*/10 */6 * * *", "every 10 minutes of hours 0, 6, 12 and 18"),
        ("5,35 * * * *", "at minutes 5 and 35 of every hour"),
        ("0 1-6 * * *", "at 01:00, 02:00, 03:00, 04:00, 05:00 and 06:00 every day"),
        ("0 1-7 * * *", "at minute 0 of hours 1 to 7"),
        ("0 9-17 * * *", "at minute 0 of hours 9 to 17"),
        ("*/5 9-17 * * MON-FRI", "every 5 minutes of hours 9 to 17 on Monday to Friday"),
        ("* * * * * *", "every second"),
        ("*/20 * * * * *", "every 20 seconds"),
        ("15 * * * * *", "at second 15 of every minute"),
        ("15 30 * * * *", "at second 15 of minute 30 of every hour"),
        ("* 5 * * * *", "every second of minute 5 of every hour"),
        ("* * 2 * * *", "every second of hour 2"),
        ("*/20 */15 3 * * *", "every 20 seconds of minutes 0, 15, 30 and 45 of hour 3"),
        ("*/20 */15 * * * *", "every 20 seconds of minutes 0, 15, 30 and 45 of every hour"),
        ("30 9 * * *", "at 09:30 every day"),
        ("15 30 9 * * *", "at 09:30:15 every day"),
        ("30 9 * * 1-5", "at 09:30 on Monday to Friday"),
        ("30 9 * * 6-7", "at 09:30 on Saturday and Sunday"),
        ("0,30 9,17 * * 0", "at 09:00, 09:30, 17:00 and 17:30 on Sunday"),
        ("0 0 13 * FRI", "at 00:00 on day 13 of the month or on Friday"),
        ("0 0 13 * +FRI", "at 00:00 on day 13 of the month, but only on Friday"),
        ("0 0 1,10-15 * *", "at 00:00 on days 1 and 10 to 15 of the month"),
        ("0 0 1-31 * FRI", "at 00:00 every day"),
        ("0 0 1-31 * +FRI", "at 00:00 on Friday"),
        ("0 0 L * *", "at 00:00 on the last day of the month"),
        ("0 0 L-1 * *", "at 00:00 on the day before the last day of the month"),
        ("0 0 L-2 * *", "at 00:00 on the day 2 days before the last day of the month"),
        ("0 0 LW * *", "at 00:00 on the last weekday of the month"),
        ("0 0 15W * *", "at 00:00 on the weekday nearest to day 15 of the month"),
        ("0 0 * * 2#3", "at 00:00 on the third Tuesday of the month"),
        ("0 0 * * 5L", "at 00:00 on the last Friday of the month"),
        ("0 0 29 2 *", "at 00:00 on day 29 of the month in February"),
        ("0 0 * 1-3,12 *", "at 00:00 every day in January to March and December"),
        ("* * * 6 *", "every minute in June"),
        ("0 15 10 * * * 2027", "at 10:15 every day in 2027"),
        ("0 15 10 1 * * 2027,2030-2033", "at 10:15 on day 1 of the month in 2027 and 2030 to 2033"),
    ];
    for (expression, expected) in table {
        assert_eq!(expression.parse::<Cron>().unwrap().describe(), expected, "{expression}");
    }
}

#[test]
fn descriptions_of_other_triggers() {
    let check = |trigger: Trigger, expected: &str| {
        let calendar = Calendar::new(trigger, zone("Europe/Berlin")).unwrap();
        assert_eq!(calendar.describe(), expected);
    };
    let every = "90s".parse().unwrap();
    let anchor_us = at("2026-07-01T09:00:00Z");
    check(Trigger::Once { at_us: anchor_us }, "once at 2026-07-01T11:00:00+02:00");
    check(Trigger::Interval { every, anchor_us: 0 }, "every 1 minute and 30 seconds");
    check(Trigger::Interval { every: "1h".parse().unwrap(), anchor_us: 0 }, "every hour");
    check(
        Trigger::Interval { every, anchor_us },
        "every 1 minute and 30 seconds from 2026-07-01T09:00:00Z",
    );
    let daily = |times: &str, weekdays| Trigger::Daily {
        times: times.parse().unwrap(),
        weekdays,
        dst: Dst::default(),
    };
    check(daily("17:30,09:00", Weekdays::ALL), "at 09:00 and 17:30 every day");
    check(daily("09:00:05", "fri-sun".parse().unwrap()), "at 09:00:05 on Friday to Sunday");
}

#[test]
fn same_description_means_same_slots() {
    let seconds = ["0", "*", "0,30", "7"];
    let minutes = ["*", "0", "*/15", "0,15,30,45", "*/2", "1-59/2", "*/7", "5", "10-20"];
    let hours = ["*", "*/2", "1-23/2", "*/6", "0", "9-17", "3,5"];
    let days = ["*", "1", "*/2", "1-31", "L,15W"];
    let weekdays = ["*", "1-5", "0-6", "+1-5", "1#2,1L", "*/2"];
    let mut seen: HashMap<String, (Vec<Option<i64>>, String)> = HashMap::new();
    let starts = ["2026-01-01T00:00:00Z", "2026-02-11T07:31:00Z", "2027-05-29T23:59:30Z"].map(at);
    for second in seconds {
        for (minute, hour) in minutes.iter().flat_map(|m| hours.iter().map(move |h| (m, h))) {
            for (day, weekday) in days.iter().flat_map(|d| weekdays.iter().map(move |w| (d, w))) {
                let text = format!("{second} {minute} {hour} {day} * {weekday}");
                let calendar = crate::support::cron(&text, "UTC");
                let mut slots = Vec::new();
                for start in starts {
                    slots.push(calendar.next_after(start));
                    slots.push(calendar.last_at_or_before(start));
                    slots.push(Some(
                        calendar.count_slots(start, start + 40 * 86_400_000_000) as i64
                    ));
                }
                let description = calendar.describe();
                let (expected, other) = seen
                    .entry(description.clone())
                    .or_insert_with(|| (slots.clone(), text.clone()));
                assert_eq!(&slots, expected, "{text} and {other}: {description}");
            }
        }
    }
    assert!(2000 < seen.len(), "{}", seen.len());
}
