//! Calendar expressions of systemd (`OnCalendar=`), as cron expressions. Pure.
//!
//! An expression is `WEEKDAYS DATE TIME ZONE`, of which each part may be missing. Unlike in cron, a day must match both
//! its weekday and its date.

use super::super::LeftOut;

/// Expressions with a name.
const SHORTHANDS: [(&[&str], &str); 8] = [
    (&["minutely"], "*-*-* *:*:00"),
    (&["hourly"], "*-*-* *:00:00"),
    (&["daily"], "*-*-* 00:00:00"),
    (&["weekly"], "Mon *-*-* 00:00:00"),
    (&["monthly"], "*-*-01 00:00:00"),
    (&["quarterly"], "*-01,04,07,10-01 00:00:00"),
    (&["semiannually", "semi-annually", "biannually", "bi-annually"], "*-01,07-01 00:00:00"),
    (&["yearly", "annually", "anually"], "*-01-01 00:00:00"),
];
const WEEKDAYS: [(&str, &str); 7] = [
    ("monday", "MON"),
    ("tuesday", "TUE"),
    ("wednesday", "WED"),
    ("thursday", "THU"),
    ("friday", "FRI"),
    ("saturday", "SAT"),
    ("sunday", "SUN"),
];
/// The first and last year that cron expressions have here.
const YEARS: Range = Range { first: 1970, last: 2199 };
const MONTHS: Range = Range { first: 1, last: 12 };
const DAYS: Range = Range { first: 1, last: 31 };
const HOURS: Range = Range { first: 0, last: 23 };
const SIXTIETHS: Range = Range { first: 0, last: 59 };

/// The values of a component.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u16,
    last: u16,
}

/// An item of a component's list.
#[derive(Clone, Copy, Debug)]
struct Item {
    first: u16,
    last: Option<u16>,
    step: Option<u16>,
}

/// An expression with seconds and years.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CalendarExpression {
    pub cron: String,
    /// The zone that the expression names.
    pub zone: Option<String>,
}

pub(super) fn parse(text: &str) -> Result<CalendarExpression, LeftOut> {
    let invalid = || {
        LeftOut::new(
            format!("`OnCalendar={text}` cannot be read"),
            "`systemd-analyze calendar` explains an expression; add it with `midwatch schedule add --cron`",
        )
    };
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let zone = take_zone(&mut words);
    let is_shorthand = |names: &[&str]| {
        let [word] = words.as_slice() else { return false };
        names.iter().any(|name| name.eq_ignore_ascii_case(word))
    };
    if let Some((_, full)) = SHORTHANDS.iter().find(|(names, _)| is_shorthand(names)) {
        words = full.split(' ').collect();
    }
    let mut words = words.into_iter().peekable();
    let weekdays = words.next_if(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()));
    let weekdays =
        weekdays.map(parse_weekdays).unwrap_or(Some("*".to_owned())).ok_or_else(invalid)?;
    let is_date = |word: &&str| !word.contains(':') && word.contains(['-', '~']);
    let date = words.next_if(is_date).unwrap_or("*-*-*");
    let time = words.next().unwrap_or("00:00:00");
    if words.next().is_some() || text.trim().is_empty() {
        return Err(invalid());
    }
    let (year, month, day) = parse_date(date).ok_or_else(invalid)?;
    let (hour, minute, second) = parse_time(time).ok_or_else(invalid)?;
    let both = if day != "*" && weekdays != "*" { "+" } else { "" };
    let cron = format!("{second} {minute} {hour} {day} {month} {both}{weekdays} {year}");
    Ok(CalendarExpression { cron, zone })
}

/// The last word, if it is a zone: `UTC`, or a name such as `Europe/Berlin`.
fn take_zone(words: &mut Vec<&str>) -> Option<String> {
    let last = *words.last().filter(|_| 1 < words.len())?;
    let has_area = last.starts_with(|c: char| c.is_ascii_uppercase()) && last.contains('/');
    if last != "UTC" && !has_area {
        return None;
    }
    words.pop();
    Some(last.to_owned())
}

/// `Mon..Fri,Sun`; ranges do not run past Sunday.
fn parse_weekdays(text: &str) -> Option<String> {
    let day = |name: &str| {
        let name = name.to_ascii_lowercase();
        let is_day =
            |(full, short): &(&str, &str)| *full == name || short.to_ascii_lowercase() == name;
        WEEKDAYS.iter().position(is_day)
    };
    let items = text.trim_end_matches(',').split(',').map(|item| {
        let (first, last) =
            item.split_once("..").or_else(|| item.split_once('-')).unwrap_or((item, item));
        let (first, last) = (day(first)?, day(last)?);
        let names = WEEKDAYS.get(first..=last)?.iter().map(|(_, short)| *short);
        Some(names.collect::<Vec<_>>().join(",")).filter(|names| !names.is_empty())
    });
    Some(items.collect::<Option<Vec<_>>>()?.join(","))
}

/// Year, month and day, as fields of cron.
fn parse_date(text: &str) -> Option<(String, String, String)> {
    let (head, day) = match text.split_once('~') {
        Some((head, days)) => (head, days_from_end(days)?),
        None => {
            let (head, days) = text.rsplit_once('-')?;
            (head, field(days, DAYS)?)
        }
    };
    let (year, month) = head.rsplit_once('-').unwrap_or(("*", head));
    let year = match year.parse::<u16>() {
        // Two digits are years from 1970 to 2069.
        Ok(short @ 0..=69) => (2000 + short).to_string(),
        Ok(short @ 70..=99) => (1900 + short).to_string(),
        _ => field(year, YEARS)?,
    };
    Some((year, field(month, MONTHS)?, day))
}

/// Hour, minute and second, as fields of cron. Fractions of a second are refused.
fn parse_time(text: &str) -> Option<(String, String, String)> {
    let mut parts = text.split(':');
    let (hour, minute) = (parts.next()?, parts.next()?);
    let second = parts.next().unwrap_or("00");
    if parts.next().is_some() {
        return None;
    }
    Some((field(hour, HOURS)?, field(minute, SIXTIETHS)?, field(second, SIXTIETHS)?))
}

/// The days `~3`, `~1..3` or `~7/1`, counted from the end of the month.
fn days_from_end(text: &str) -> Option<String> {
    if text == "*" {
        return Some("*".to_owned());
    }
    let mut days: Vec<u16> = Vec::new();
    for item in text.split(',').map(Item::parse) {
        let Item { first, last, step } = item?;
        let steps = usize::from(step.unwrap_or(1));
        match last {
            _ if !DAYS.contains(first, last.unwrap_or(first)) => return None,
            Some(last) => days.extend((first..=last).step_by(steps)),
            None if step.is_none() => days.push(first),
            // Without an end, the steps go on to the last day, of which there must be one.
            None if first <= step? => return None,
            None => days.extend((1..=first).rev().step_by(steps)),
        }
    }
    days.sort_unstable();
    days.dedup();
    let names = days.iter().rev().map(|day| match day {
        1 => "L".to_owned(),
        day => format!("L-{}", day - 1),
    });
    Some(names.collect::<Vec<_>>().join(","))
}

/// A list of values, ranges and steps, as a field of cron.
fn field(text: &str, range: Range) -> Option<String> {
    if text == "*" {
        return Some("*".to_owned());
    }
    let items = text.split(',').map(|item| {
        let Item { first, last, step } = Item::parse(item)?;
        // Without an end, the steps go on to the end of the range, and there must be one.
        let last = match (last, step) {
            (Some(last), _) => last,
            (None, Some(step)) if range.last < first.checked_add(step)? => return None,
            (None, Some(_)) => range.last,
            (None, None) => first,
        };
        if !range.contains(first, last) {
            return None;
        }
        Some(match step {
            _ if first == last => first.to_string(),
            Some(step) if last - first < step => first.to_string(),
            None | Some(1) => format!("{first}-{last}"),
            Some(step) if first == range.first && last == range.last => format!("*/{step}"),
            Some(step) => format!("{first}-{last}/{step}"),
        })
    });
    Some(items.collect::<Option<Vec<_>>>()?.join(","))
}

impl Item {
    /// `5`, `5..9`, `5/2` or `5..9/2`.
    fn parse(text: &str) -> Option<Item> {
        let (values, step) = match text.split_once('/') {
            Some((values, step)) => (values, Some(number(step).filter(|step| 0 < *step)?)),
            None => (text, None),
        };
        let (first, last) = match values.split_once("..") {
            Some((first, last)) => (number(first)?, Some(number(last)?)),
            None => (number(values)?, None),
        };
        let is_forward = last.is_none_or(|last| first <= last);
        is_forward.then_some(Item { first, last, step })
    }
}

impl Range {
    fn contains(self, first: u16, last: u16) -> bool {
        self.first <= first && last <= self.last
    }
}

fn number(text: &str) -> Option<u16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use calendar::{Calendar, Cron, Dst, Trigger, format_instant, parse_instant};

    use super::*;

    /// Checks the expression and its next two times after 2026-11-18 12:00 UTC, which are those of
    /// `systemd-analyze calendar`.
    fn check(text: &str, cron: &str, times: &[&str]) {
        let found = parse(text).unwrap_or_else(|left_out| panic!("{text}: {left_out:?}"));
        assert_eq!(found.cron, cron, "{text}");
        let zone = found.zone.as_deref().unwrap_or("UTC").parse().unwrap();
        let expression =
            Cron::parse(&found.cron).unwrap_or_else(|why| panic!("{text}: {why}")).cron;
        let trigger = Trigger::Cron { expression, dst: Dst::default() };
        let calendar = Calendar::new(trigger, zone).unwrap();
        let now_us = parse_instant("2026-11-18T12:00:00Z", None).unwrap();
        let next: Vec<String> = calendar.slots_after(now_us).take(2).map(format_instant).collect();
        let times: Vec<String> = times.iter().map(|time| time.replace(' ', "T") + "Z").collect();
        assert_eq!(next, times, "{text}");
    }

    #[test]
    fn expressions_fire_when_systemd_says() {
        for (text, cron, times) in [
            ("minutely", "0 * * * * * *", ["2026-11-18 12:01:00", "2026-11-18 12:02:00"]),
            ("hourly", "0 0 * * * * *", ["2026-11-18 13:00:00", "2026-11-18 14:00:00"]),
            ("daily", "0 0 0 * * * *", ["2026-11-19 00:00:00", "2026-11-20 00:00:00"]),
            ("daily UTC", "0 0 0 * * * *", ["2026-11-19 00:00:00", "2026-11-20 00:00:00"]),
            ("Weekly", "0 0 0 * * MON *", ["2026-11-23 00:00:00", "2026-11-30 00:00:00"]),
            ("monthly", "0 0 0 1 * * *", ["2026-12-01 00:00:00", "2027-01-01 00:00:00"]),
            ("quarterly", "0 0 0 1 1,4,7,10 * *", ["2027-01-01 00:00:00", "2027-04-01 00:00:00"]),
            ("semiannually", "0 0 0 1 1,7 * *", ["2027-01-01 00:00:00", "2027-07-01 00:00:00"]),
            ("yearly", "0 0 0 1 1 * *", ["2027-01-01 00:00:00", "2028-01-01 00:00:00"]),
            (
                "Mon..Fri *-*-* 10:00",
                "0 0 10 * * MON,TUE,WED,THU,FRI *",
                ["2026-11-19 10:00:00", "2026-11-20 10:00:00"],
            ),
            (
                "Mon-Fri",
                "0 0 0 * * MON,TUE,WED,THU,FRI *",
                ["2026-11-19 00:00:00", "2026-11-20 00:00:00"],
            ),
            (
                "tue..thu,sat",
                "0 0 0 * * TUE,WED,THU,SAT *",
                ["2026-11-19 00:00:00", "2026-11-21 00:00:00"],
            ),
            ("Monday", "0 0 0 * * MON *", ["2026-11-23 00:00:00", "2026-11-30 00:00:00"]),
            (
                "Mon *-*-1..7 09:00",
                "0 0 9 1-7 * +MON *",
                ["2026-12-07 09:00:00", "2027-01-04 09:00:00"],
            ),
            ("*-*~03", "0 0 0 L-2 * * *", ["2026-11-28 00:00:00", "2026-12-29 00:00:00"]),
            ("*-*~5/2", "0 0 0 L-4,L-2,L * * *", ["2026-11-26 00:00:00", "2026-11-28 00:00:00"]),
            ("*-*~2..7/3", "0 0 0 L-4,L-1 * * *", ["2026-11-26 00:00:00", "2026-11-29 00:00:00"]),
            ("*-*~6/4", "0 0 0 L-5,L-1 * * *", ["2026-11-25 00:00:00", "2026-11-29 00:00:00"]),
            ("10/13:00", "0 0 10-23/13 * * * *", ["2026-11-18 23:00:00", "2026-11-19 10:00:00"]),
            ("*-02~1..3", "0 0 0 L-2,L-1,L 2 * *", ["2027-02-26 00:00:00", "2027-02-27 00:00:00"]),
            (
                "Mon *-05~07/1",
                "0 0 0 L-6,L-5,L-4,L-3,L-2,L-1,L 5 +MON *",
                ["2027-05-31 00:00:00", "2028-05-29 00:00:00"],
            ),
            ("*-*~*", "0 0 0 * * * *", ["2026-11-19 00:00:00", "2026-11-20 00:00:00"]),
            ("03-05", "0 0 0 5 3 * *", ["2027-03-05 00:00:00", "2028-03-05 00:00:00"]),
            ("10:20", "0 20 10 * * * *", ["2026-11-19 10:20:00", "2026-11-20 10:20:00"]),
            ("*:0/15", "0 */15 * * * * *", ["2026-11-18 12:15:00", "2026-11-18 12:30:00"]),
            ("*-*-* 0/6:30", "0 30 */6 * * * *", ["2026-11-18 12:30:00", "2026-11-18 18:30:00"]),
            ("*:5/20:30", "30 5-59/20 * * * * *", ["2026-11-18 12:05:30", "2026-11-18 12:25:30"]),
            ("1..5:00", "0 0 1-5 * * * *", ["2026-11-19 01:00:00", "2026-11-19 02:00:00"]),
            ("*-*-1/2", "0 0 0 */2 * * *", ["2026-11-19 00:00:00", "2026-11-21 00:00:00"]),
            ("*-1,7-1", "0 0 0 1 1,7 * *", ["2027-01-01 00:00:00", "2027-07-01 00:00:00"]),
            (
                "2030..2032-01-01",
                "0 0 0 1 1 * 2030-2032",
                ["2030-01-01 00:00:00", "2031-01-01 00:00:00"],
            ),
            (
                "*-*-* 03:00 Europe/Berlin",
                "0 0 3 * * * *",
                ["2026-11-19 02:00:00", "2026-11-20 02:00:00"],
            ),
        ] {
            check(text, cron, &times);
        }
        check("30-1-1", "0 0 0 1 1 * 2030", &["2030-01-01 00:00:00"]);
        check("2030-03-05 05:40", "0 40 5 5 3 * 2030", &["2030-03-05 05:40:00"]);
        check("99-1-1", "0 0 0 1 1 * 1999", &[]);
    }

    #[test]
    fn what_systemd_or_cron_cannot_read_is_left_out() {
        for text in [
            "",
            "UTC",
            "Sat..Mon",
            "9",
            "*-*-*/2",
            "*:*/7",
            "*-*-* 24:00",
            "*-13-1",
            "today",
            "Mon, Tue 10:00",
            "Mon..Wed,Fri/2",
            "*-*-*T10:00:00Z",
            "*:*:0/10.5",
            "10:00:00:00",
            "*-*~0",
            "5..1:00",
            "*:0/0",
            "10/14:00",
            "*-*-25/7",
            "*-*~7/7",
        ] {
            let reason = format!("`OnCalendar={text}` cannot be read");
            assert_eq!(parse(text).unwrap_err().reason, reason, "{text}");
        }
    }
}
