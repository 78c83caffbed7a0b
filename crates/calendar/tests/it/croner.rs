//! Cross-check against the `croner` library.
//!
//! Not compared, because `croner` differs or does not support it: `L-n`, a stepped star beside a
//! restricted day, several fixed times in one gap, and gaps of a whole day.

use ::croner::parser::CronParser;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::support::{at, cron, next};

const TIMES: [&str; 8] =
    ["30 2", "0 0", "*/15 *", "0 */3", "7 9-17", "59 23", "5,25 11", "* 3-5/2"];
const DAYS: [&str; 14] = [
    "* * *",
    "13 * *",
    "1,15,31 * *",
    "L * *",
    "15W * *",
    "* 2 *",
    "29 2 *",
    "* * 1-5",
    "* * SUN",
    "* * 5#L",
    "* * 2#3",
    "13 * FRI",
    "1-7 * +MON",
    "* JAN,JUN 1,3",
];
const STARTS: [&str; 5] = [
    "2026-01-01T00:00:00Z",
    "2026-03-07T12:00:00Z",
    "2026-10-24T20:00:00Z",
    "2026-10-31T12:00:00Z",
    "2027-12-30T23:59:59Z",
];

#[test]
fn slots_match_those_of_croner() {
    for zone in ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu"] {
        let time_zone = TimeZone::get(zone).unwrap();
        for (time, days) in TIMES.iter().flat_map(|time| DAYS.map(|days| (time, days))) {
            let expression = format!("{time} {days}");
            let theirs = CronParser::new().parse(&expression).unwrap();
            for start in STARTS.map(at) {
                let after = Timestamp::from_microsecond(start).unwrap().to_zoned(time_zone.clone());
                let theirs: Vec<i64> = theirs
                    .iter_after(after)
                    .take(5)
                    .map(|at| at.timestamp().as_microsecond())
                    .collect();
                assert_eq!(next(&cron(&expression, zone), start, 5), theirs, "{expression} {zone}");
            }
        }
    }
}
