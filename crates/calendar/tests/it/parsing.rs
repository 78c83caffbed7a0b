//! Parsing of zones, instants, times of day and weekdays.

use calendar::{InvalidInstant, TIMES_MAX, TimeOfDay, Times, Weekdays, Zone};
use calendar::{format_instant, parse_instant, tzdata_version};

use crate::support::{at, zone};

#[test]
fn zone_names_ignore_case() {
    assert_eq!(zone("europe/BERLIN").name(), "Europe/Berlin");
    assert_eq!(zone("UTC").to_string(), "UTC");
    assert_eq!(zone("utc"), zone("UTC"));
    assert_ne!(zone("Etc/UTC"), zone("UTC"));
    assert!(500 < Zone::names().filter(|name| name.parse::<Zone>().is_ok()).count());
    assert!(Zone::names().all(|name| name.parse::<Zone>().is_ok_and(|zone| zone.name() == name)));
    let version = tzdata_version();
    assert!(version.len() == 5 && version.starts_with("20"), "{version}");
}

#[test]
fn unknown_zones_are_refused_with_a_suggestion() {
    let check = |name: &str, expected: &str| {
        assert_eq!(name.parse::<Zone>().unwrap_err().to_string(), expected);
    };
    let plain = ": use an IANA name such as `Europe/Berlin` or `UTC`";
    check("berlin", "unknown time zone `berlin`: did you mean `Europe/Berlin`?");
    check("new york", "unknown time zone `new york`: did you mean `America/New_York`?");
    for name in ["", "+02:00", "UTC+2", "local", "Mars/Olympus", "!", "日本"] {
        check(name, &format!("unknown time zone `{name}`{plain}"));
    }
    let long = "x".repeat(10_000);
    check(&long, &format!("unknown time zone `{}…`{plain}", "x".repeat(32)));
}

#[test]
fn misspelt_zone_suggests_the_nearest_one() {
    for (name, expected) in [
        ("Europe/Berln", "Europe/Berlin"),
        ("Europe/Berlin ", "Europe/Berlin"),
        ("Europ/Paris", "Europe/Paris"),
        ("Berlni", "Europe/Berlin"),
        ("America/NewYork", "America/New_York"),
        ("america/los angelos", "America/Los_Angeles"),
        ("Germany/Berlin", "Europe/Berlin"),
        ("Asia/Calcuta", "Asia/Calcutta"),
        ("Pacific/Aukland", "Pacific/Auckland"),
    ] {
        assert_eq!(name.parse::<Zone>().unwrap_err().similar, [expected], "{name}");
    }
}

#[test]
fn wall_time_has_the_offset_of_its_instant() {
    let check = |zone_name: &str, instant: &str, expected: &str| {
        assert_eq!(zone(zone_name).wall_time(at(instant)).to_string(), expected);
    };
    check("America/New_York", "2026-03-08T06:59:59Z", "2026-03-08T01:59:59-05:00");
    check("America/New_York", "2026-03-08T07:00:00Z", "2026-03-08T03:00:00-04:00");
    check("America/New_York", "2026-11-01T06:00:00.5Z", "2026-11-01T01:00:00.5-05:00");
    check("Asia/Kathmandu", "2026-01-01T00:00:00Z", "2026-01-01T05:45:00+05:45");
    check("Africa/Monrovia", "1970-06-01T00:00:00Z", "1970-05-31T23:15:30-00:44:30");
    check("Europe/Berlin", "2199-07-01T00:00:00Z", "2199-07-01T02:00:00+02:00");
    check("UTC", "1970-01-01T00:00:00.000001Z", "1970-01-01T00:00:00.000001+00:00");
    let new_york = zone("America/New_York");
    let [first, second] =
        ["2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z"].map(|text| new_york.wall_time(at(text)));
    assert!(second < first && second.local_us() < first.local_us(), "the clock goes back");
}

#[test]
fn instants_are_parsed() {
    let berlin = zone("Europe/Berlin");
    for (text, expected) in [
        ("2026-07-01T09:00:00Z", "2026-07-01T09:00:00Z"),
        ("2026-07-01T09:00Z", "2026-07-01T09:00:00Z"),
        ("2026-07-01t09:00:00z", "2026-07-01T09:00:00Z"),
        ("2026-07-01 09:00:00+02:00", "2026-07-01T07:00:00Z"),
        ("2026-07-01T09:00:00-03:30", "2026-07-01T12:30:00Z"),
        ("2026-07-01T09:00:00.25Z", "2026-07-01T09:00:00.25Z"),
        ("2026-07-01T09:00:00", "2026-07-01T07:00:00Z"),
        ("2026-07-01 09:00", "2026-07-01T07:00:00Z"),
        ("2026-12-01 09:00", "2026-12-01T08:00:00Z"),
        ("2199-12-31T23:59:59.999999Z", "2199-12-31T23:59:59.999999Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ] {
        assert_eq!(parse_instant(text, Some(&berlin)).map(format_instant).as_deref(), Ok(expected));
    }
}

#[test]
fn invalid_instants_are_refused() {
    let check = |text: &str, expected: InvalidInstant| {
        assert_eq!(parse_instant(text, None), Err(expected), "{text}");
    };
    for text in [
        "",
        "now",
        "2026-07-01",
        "09:00",
        "2026-7-1T09:00Z",
        "2026-02-29T09:00Z",
        "2026-07-01T24:00Z",
        "2026-07-01T09:60Z",
        "2026-07-01T23:59:60Z",
        "2026-07-01T09Z",
        "2026-07-01T09:00:00.1234567Z",
        "2026-07-01T09:00.5Z",
        "2026-07-01T09:00:00+2",
        "2026-07-01T09:00:00Z+02:00",
        "2026-07-01T09:00:00+24:00",
        "2026-07-01T09:00:00[UTC]",
        "+2026-07-01T09:00Z",
        "2026-07-01T09:00:00.Z",
    ] {
        check(text, InvalidInstant::Malformed(text.into()));
    }
    for text in ["1969-12-31T23:59:59Z", "2200-01-01T00:00:00Z", "1970-01-01T00:00:00+00:01"] {
        check(text, InvalidInstant::OutOfRange(text.into()));
    }
    check("2026-07-01T09:00:00", InvalidInstant::NoZone("2026-07-01T09:00:00".into()));
}

#[test]
fn skipped_and_repeated_wall_times_are_refused_with_candidates() {
    let check = |zone_name: &str, text: &str, expected: &str, candidates: [&str; 2]| {
        let error = parse_instant(text, Some(&zone(zone_name))).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.candidates_us(), candidates.map(at));
    };
    check(
        "America/New_York",
        "2026-03-08T02:30:00",
        "in America/New_York the clock skips `2026-03-08T02:30:00`: use `2026-03-08T07:00:00Z` \
         (2026-03-08T03:00:00-04:00) or `2026-03-08T07:30:00Z` (2026-03-08T03:30:00-04:00)",
        ["2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z"],
    );
    check(
        "America/New_York",
        "2026-11-01 01:30",
        "in America/New_York the clock shows `2026-11-01 01:30` twice: use `2026-11-01T05:30:00Z` \
         (2026-11-01T01:30:00-04:00) or `2026-11-01T06:30:00Z` (2026-11-01T01:30:00-05:00)",
        ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"],
    );
    check(
        "Pacific/Apia",
        "2011-12-30 12:00",
        "in Pacific/Apia the clock skips `2011-12-30 12:00`: use `2011-12-30T10:00:00Z` \
         (2011-12-31T00:00:00+14:00) or `2011-12-30T22:00:00Z` (2011-12-31T12:00:00+14:00)",
        ["2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"],
    );
    // A gap and a fold include their start and exclude their end.
    let new_york = zone("America/New_York");
    for (text, is_refused) in [
        ("2026-03-08T01:59:59.999999", false),
        ("2026-03-08T02:00:00", true),
        ("2026-03-08T02:59:59.999999", true),
        ("2026-03-08T03:00:00", false),
        ("2026-11-01T00:59:59", false),
        ("2026-11-01T01:00:00", true),
        ("2026-11-01T01:59:59", true),
        ("2026-11-01T02:00:00", false),
    ] {
        assert_eq!(parse_instant(text, Some(&new_york)).is_err(), is_refused, "{text}");
    }
}

#[test]
fn times_of_day_are_sorted_and_unique() {
    let times: Times = "17:30, 09:00,09:00:00".parse().unwrap();
    let texts: Vec<String> = times.iter().map(|time| time.to_string()).collect();
    assert_eq!(texts, ["09:00", "17:30"]);
    assert_eq!("23:59:59".parse::<TimeOfDay>().unwrap().to_string(), "23:59:59");
    for text in ["", "9:00", "24:00", "09:60", "09:00:60", "09", "09:00pm", "09:00,", "09:00:00:00"]
    {
        assert!(text.parse::<Times>().is_err(), "{text}");
    }
    let many = |count: usize| {
        let times: Vec<String> =
            (0..count).map(|n| format!("{:02}:{:02}", n / 60, n % 60)).collect();
        times.join(",").parse::<Times>()
    };
    assert!(many(TIMES_MAX).is_ok());
    let error = many(TIMES_MAX + 1).unwrap_err().to_string();
    assert_eq!(error, "101 times of day: 1 to 100 are allowed");
}

#[test]
fn weekdays_are_parsed_and_printed() {
    for (text, expected) in [
        ("mon-fri", "MON-FRI"),
        ("sat,Sun", "SAT,SUN"),
        ("*", "MON-SUN"),
        ("0,6,5", "FRI-SUN"),
        ("1,3", "MON,WED"),
    ] {
        assert_eq!(text.parse::<Weekdays>().unwrap().to_string(), expected);
    }
    for text in ["", "fri-mon", "2#3", "MON,5L", "monday", "8", "+1"] {
        assert!(text.parse::<Weekdays>().is_err(), "{text}");
    }
}
