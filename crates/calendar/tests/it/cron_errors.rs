//! Invalid expressions, their messages, and that the suggested fix is valid; warnings; canonical text.

use calendar::cron::Warning;
use calendar::{Cron, Hint};

fn check(expression: &str, expected: &str) {
    let message = expression.parse::<Cron>().map_err(|error| error.to_string());
    assert_eq!(message.err().as_deref(), Some(expected), "{expression}");
}

/// Puts each text in place of `_`. Checks the message, and that the fix is accepted in its place.
fn check_field(pattern: &str, table: &[(&str, &str, Option<&str>)]) {
    for (text, reason, fix) in table {
        let error = pattern.replace('_', text).parse::<Cron>().unwrap_err();
        assert_eq!(error.fix.as_deref(), *fix, "{text}");
        let hint = fix.map_or(String::new(), |fix| format!(": write `{fix}`"));
        let message = error.to_string();
        assert!(message.ends_with(&format!("{reason}{hint}")), "{text}: {message}");
        if let Some(fix) = fix {
            let fixed = pattern.replace('_', fix).parse::<Cron>();
            assert!(fixed.is_ok(), "{text} → {fix}: {fixed:?}");
        }
    }
}

#[test]
fn invalid_minutes_and_hours() {
    check_field(
        "_ * * * *",
        &[
            ("5/15", "`5/15` has a step without `*` or a range", Some("5-59/15")),
            ("*/0", "`*/0` has a step of zero", Some("*")),
            ("1-9/0", "`1-9/0` has a step of zero", Some("1-9")),
            ("60", "`60` is not within 0 to 59", Some("0")),
            ("61", "`61` is not within 0 to 59", None),
            ("1,,2", "a list item is empty", Some("1,2")),
            (",1", "a list item is empty", Some("1")),
            ("1,", "a list item is empty", Some("1")),
            (",", "a list item is empty", None),
            ("?", "`?` must be alone, in day-of-month or day-of-week", Some("*")),
            ("MON", "`MON` belongs in the day-of-week field", None),
            ("feb", "`FEB` belongs in the month field", None),
            ("L", "`L` belongs in the day-of-month field", None),
            ("2#3", "`2#3` belongs in the day-of-week field", None),
            ("-5", "`-5` is not valid", None),
            ("1-", "`1-` is not valid", None),
            ("1-2-3", "`1-2-3` is not valid", None),
            ("1/2/3", "`1/2/3` is not valid", None),
            ("*/", "`*/` is not valid", None),
            ("**", "`**` is not valid", None),
            ("*-5", "`*-5` is not valid", None),
            ("+5", "`+5` is not valid", None),
            ("1.5", "`1.5` is not valid", None),
            ("٣", "`٣` is not valid", None),
            ("99999999999999999999", "`99999999999999999999` is not within 0 to 59", None),
        ],
    );
    check_field(
        "0 _ * * *",
        &[
            ("22-2", "`22-2` runs backwards", Some("22-23,0-2")),
            ("5-4", "`5-4` runs backwards", Some("5-23,0-4")),
            ("22-0", "`22-0` runs backwards", Some("22-23,0")),
            ("23-1", "`23-1` runs backwards", Some("23,0-1")),
            ("22-4/2", "`22-4/2` runs backwards", Some("22,0,2,4")),
            ("1,22-2", "`22-2` runs backwards", Some("22-23,0-2")),
            ("24", "`24` is not within 0 to 23", Some("0")),
        ],
    );
    // The end of the range is invalid, not the range.
    check("0 0-24 * * *", "in the hour field, `24` is not within 0 to 23: write `23`");
    check(
        "*/90 * * * *",
        "in the minute field, `*/90` has a step above 60, so it matches only one value; an \
         interval trigger has no such limit",
    );
    assert!("*/60 */24 */31 */12 */7".parse::<Cron>().is_ok());
    for one_past in ["*/61 * * * *", "0 */25 * * *", "0 0 */32 * *", "0 0 * */13 *", "0 0 * * */8"]
    {
        assert!(one_past.parse::<Cron>().is_err(), "{one_past}");
    }
}

#[test]
fn invalid_days_and_months() {
    check_field(
        "0 0 _ * *",
        &[
            ("0", "`0` is not within 1 to 31", None),
            ("32", "`32` is not within 1 to 31", None),
            ("L-0", "`0` is not within 1 to 30", Some("L")),
            ("L-31", "`31` is not within 1 to 30", Some("L-30")),
            ("0W", "`0` is not within 1 to 31", None),
            ("32W", "`32` is not within 1 to 31", None),
            ("1-5W", "`1-5W` is not valid", None),
            ("W", "`W` is not valid", None),
            ("L/2", "`L/2` has a step without `*` or a range", Some("L")),
            ("1,?", "`?` must be alone, in day-of-month or day-of-week", None),
            ("MON", "`MON` belongs in the day-of-week field", None),
            ("25-5", "`25-5` runs backwards", Some("25-31,1-5")),
        ],
    );
    check_field(
        "0 0 * _ *",
        &[
            ("0", "`0` is not within 1 to 12", None),
            ("13", "`13` is not within 1 to 12", None),
            ("NOV-FEB", "`NOV-FEB` runs backwards", Some("NOV-DEC,JAN-FEB")),
            ("JAN/3", "`JAN/3` has a step without `*` or a range", Some("JAN-DEC/3")),
            ("JANUARY", "`JANUARY` is not valid", None),
        ],
    );
    check_field(
        "0 0 * * _",
        &[
            ("8", "`8` is not within 0 to 7", None),
            ("FRI-TUE", "`FRI-TUE` runs backwards", Some("FRI-SUN,MON-TUE")),
            ("5-1", "`5-1` runs backwards", Some("5-7,1")),
            ("6-0", "`6-0` runs backwards", Some("6-7")),
            ("7-2", "`7-2` runs backwards", Some("0-2")),
            ("MON#0", "`0` is not within 1 to 5", None),
            ("MON#6", "`6` is not within 1 to 5", None),
            ("#2", "`#2` is not valid", None),
            ("1-5#2", "`1-5#2` is not valid", None),
            ("L", "`L` needs a weekday before it here, as in `FRIL`", None),
            ("15W", "`15W` belongs in the day-of-month field", None),
            ("+?", "`?` must be alone, in day-of-month or day-of-week", None),
            ("++1", "`+1` is not valid", None),
        ],
    );
}

#[test]
fn invalid_whole_expressions() {
    let fields = "an expression has 5 fields (minute hour day-of-month month day-of-week), 6 with \
                  seconds first or 7 with the year last, not";
    check("", &format!("{fields} 0"));
    check("* * *", &format!("{fields} 3"));
    check("0 9 * *", &format!("{fields} 4: write `0 9 * * *`"));
    check("* * * * * * * *", &format!("{fields} 8"));
    check("0 0 1 1 * 2027", "a year needs 7 fields, with seconds first: write `0 0 0 1 1 * 2027`");
    check("0 0 0 1 1 * 1969", "in the year field, `1969` is not within 1970 to 2199");
    check("0 0 0 1 1 * 2200", "in the year field, `2200` is not within 1970 to 2199");
    check("@reboot", "`@reboot` is not supported: use an event trigger");
    check("@every 5m", "`@every` is an interval, not a cron expression: write `every 5m`");
    check(
        "@fortnightly",
        "unknown alias `@fortnightly`: use @yearly, @annually, @monthly, @weekly, @daily, @midnight \
         or @hourly",
    );
    assert!("@daily UTC".parse::<Cron>().is_err());
    assert!("  @Daily ".parse::<Cron>().is_ok());
    assert!("\t0  9 * * MON ".parse::<Cron>().is_ok());
}

#[test]
fn reason_and_hint_are_separate() {
    let check = |expression: &str, reason: &str, hint: &str| {
        let error = expression.parse::<Cron>().unwrap_err();
        assert_eq!((error.reason().as_str(), error.hint().as_str()), (reason, hint));
    };
    check("0 22-2 * * *", "in the hour field, `22-2` runs backwards", "write `22-23,0-2`");
    check(
        "99 * * * *",
        "in the minute field, `99` is not within 0 to 59",
        "the minute field takes 0 to 59, as in `0,30`, `10-20` or `*/15`",
    );
    check(
        "@reboot",
        "`@reboot` is not supported: use an event trigger",
        "write an expression such as `30 9 * * MON-FRI`",
    );
}

#[test]
fn ambiguous_expressions_have_warnings() {
    let check = |expression: &str, expected: &[&str]| {
        let warnings = Cron::parse(expression).unwrap().warnings;
        let messages: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(messages, expected, "{expression}");
    };
    check(
        "0 0-23/2 * * *",
        &[
            "`0-23/2` in the hour field names fixed times, which run once when the clock goes back; \
           `*/2` follows elapsed time",
        ],
    );
    check(
        "0-59 5 * * *",
        &[
            "`0-59` in the minute field names fixed times, which run once when the clock goes back; \
           `*` follows elapsed time",
        ],
    );
    // The star in the hour decides, so the range changes nothing.
    check("0-59/5 * * * *", &[]);
    check("0 1-23/2 * * *", &[]);
    check("0 0,6,12,18 * * *", &[]);
    let stepped = "counts as a star, so a day must match both day fields; other programs run it when \
                   either matches";
    check("0 0 */2 * MON", &[&format!("`*/2` in the day-of-month field {stepped}")]);
    check("0 0 1 * */2", &[&format!("`*/2` in the day-of-week field {stepped}")]);
    check("0 0 */2 * +MON", &[]);
    check("0 0 */2 * *", &[]);
    check("0 0 */1 * MON", &[]);
    check("0 0 13 * FRI", &[]);
    check("0 0 1-8 * MON", &[]);
    check("0 0 1-7 * +MON", &[]);
    check("0 0 1-7 * MON-FRI", &[]);
    let either = "a day has to match only one of the day fields, so this fires on the days 8-14 and on every \
                  MON; for MON within those days, use `MON#2` in the day-of-week field";
    check("0 0 8-14 * MON", &[either]);
    let every = "`*` in the minute field fires 60 times per hour; `0` fires once";
    check("* 9 * * *", &[every]);
    check("* 9,17 * * MON", &[every]);
    let every = "`*` in the seconds field fires 60 times per minute; `0` fires once";
    check("* 30 9 * * *", &[every]);
    check("* 9-17 * * *", &[]);
    check("* * * * *", &[]);
    check("*/5 9 * * *", &[]);
    check(
        "*/7 * * * *",
        &["`*/7` in the minute field restarts every hour, so its steps are uneven"],
    );
    check("0 */5 * * *", &["`*/5` in the hour field restarts every day, so its steps are uneven"]);
    check("*/15 * * * *", &[]);
}

/// Other programs write the seconds last, or a year.
#[test]
fn six_fields_that_make_sense_with_the_minute_first_have_a_warning() {
    let check = |expression: &str, instead: Option<&str>| {
        let warnings = Cron::parse(expression).unwrap().warnings;
        let found = warnings.into_iter().find_map(|warning| match warning {
            Warning::SecondsFirst { instead } => Some(instead),
            _ => None,
        });
        assert_eq!(found.as_deref(), instead, "{expression}");
    };
    check("0 9 * * 1-5 *", Some("0 9 * * 1-5"));
    check("0 9 * * 1-5 ?", Some("0 9 * * 1-5"));
    check("0 9 * * * *", Some("0 9 * * *"));
    check("*/10 * * * * *", Some("*/10 * * * *"));
    check("0 9 * * 1 0", Some("0 9 * * 1"));
    check("0 9 */2 * 1 5", Some("5 0 9 */2 * 1"));
    // With the minute first, the hour, the weekday or the last field would be wrong.
    check("0 30 * * * *", None);
    check("0 9 * * 8 *", None);
    check("0 9 * * 1-5 MON", None);
    // An hour is where it belongs.
    check("0 0 9 * * *", None);
    check("0 30 9 * * MON-FRI", None);
    check("30 0 9 * * 1", None);
    // Only six fields are ambiguous.
    check("0 9 * * 1-5", None);
    check("0 9 * * 1-5 * *", None);
    let warning = Warning::SecondsFirst { instead: "0 9 * * 1-5".to_owned() };
    assert_eq!(
        warning.to_string(),
        "of six fields the first is the seconds; if the first is the minute, write `0 9 * * 1-5`"
    );
}

#[test]
fn each_meaning_has_one_canonical_text() {
    let table = [
        ("@hourly", "0 * * * *"),
        ("@weekly", "0 0 * * SUN"),
        ("0 0 * * 7", "0 0 * * SUN"),
        ("0 0 1 1 ?", "0 0 1 JAN *"),
        ("0 5,4,3 * * mon,Tue,3", "0 3-5 * * MON-WED"),
        ("0 0 9 * * 5-7 *", "0 9 * * FRI-SUN"),
        ("0,15,30,45 9 * * *", "0-45/15 9 * * *"),
        ("*/1 * * * *", "* * * * *"),
        ("*,5 * * * *", "* * * * *"),
        ("5,* * * * *", "0-59 * * * *"),
        ("*/40,20 * * * *", "*/20 * * * *"),
        ("*/20,7 * * * *", "*/20,7 * * * *"),
        ("0 0 * * +FRI", "0 0 * * FRI"),
        ("0 0 13 * +FRI", "0 0 13 * +FRI"),
        ("0 0 LW,L,15,3W,L-2 * 5L,FRI#L,mon#2", "0 0 15,L,L-2,3W,LW * MON#2,FRI#L"),
        ("0 0 0 1 1 * 2027", "0 0 0 1 JAN * 2027"),
        ("5 0 0 1 1 * 1970-2199", "5 0 0 1 JAN *"),
    ];
    for (text, expected) in table {
        let cron: Cron = text.parse().unwrap();
        assert_eq!(cron.to_string(), expected, "{text}");
        assert_eq!(expected.parse(), Ok(cron), "{text}");
    }
    // A range over the whole field is not a star.
    assert_ne!("* 1 * * *".parse::<Cron>(), "0-59 1 * * *".parse::<Cron>());
}
