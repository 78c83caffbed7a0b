//! Describes an expression in English. Exactness comes first: a phrase is used only if it says
//! exactly what the expression matches.

use super::Cron;
use super::days::{DayOfMonthField, DayOfWeekField, bits};
use super::field::{Field, FieldName, Years, runs, sort_from_monday};

/// Up to this many times of day are listed.
const TIMES_LISTED_MAX: usize = 6;
/// Up to this many evenly spaced minutes or hours are listed.
const VALUES_LISTED_MAX: u16 = 4;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 8] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];

pub(super) fn describe(cron: &Cron) -> String {
    let times = time_list(cron);
    let every_day = if times.is_some() { "every day" } else { "" };
    let days = days(cron).unwrap_or_else(|| every_day.to_owned());
    let parts =
        [times.unwrap_or_else(|| clock(cron)), days, months(cron.months), years(cron.years)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// `at 09:30 and 17:30`; `None` if there are too many.
fn time_list(cron: &Cron) -> Option<String> {
    let [hours, minutes, seconds] = [cron.hours, cron.minutes, cron.seconds].map(Field::values);
    if TIMES_LISTED_MAX < hours.len() * minutes.len() * seconds.len() {
        return None;
    }
    let mut times = Vec::new();
    for hour in &hours {
        for minute in &minutes {
            for second in &seconds {
                times.push(match cron.seconds == Field::only(0) {
                    true => format!("{hour:02}:{minute:02}"),
                    false => format!("{hour:02}:{minute:02}:{second:02}"),
                });
            }
        }
    }
    Some(format!("at {}", join_with_and(&times)))
}

/// `every 5 minutes of hours 9 to 17`: the finest field first, then each coarser one that restricts it.
fn clock(cron: &Cron) -> String {
    let zero = |field: Field| field.bits == 1;
    let (seconds, minutes, hours) = (cron.seconds, cron.minutes, cron.hours);
    let (second, minute, hour) = (FieldName::Second, FieldName::Minute, FieldName::Hour);
    let whole_hours = even_step(hours, hour).is_some();
    let fields: &[(Field, FieldName)] = match (zero(seconds), zero(minutes)) {
        (true, true) if whole_hours => &[(hours, hour)],
        (true, _) => &[(minutes, minute), (hours, hour)],
        (false, _) => &[(seconds, second), (minutes, minute), (hours, hour)],
    };
    let mut text = String::new();
    // Listed seconds or minutes need an `of …` after them.
    let mut needs_of = false;
    for (position, (field, name)) in fields.iter().enumerate() {
        let unit = unit(*name);
        let step = even_step(*field, *name);
        let long = step.filter(|step| step * VALUES_LISTED_MAX < name.len());
        let phrase = match (position, step, long) {
            (0, Some(1), _) => format!("every {unit}"),
            (0, Some(step), _) => format!("every {step} {unit}s"),
            (0, None, _) => format!("at {}", numbered(*field, unit)),
            (_, Some(1), _) if needs_of => format!(" of every {unit}"),
            (_, Some(1), _) => String::new(),
            (_, _, Some(step)) => {
                format!(" of every {} {unit} (0, {step}, {} …)", ordinal(step), 2 * step)
            }
            (_, _, None) => format!(" of {}", numbered(*field, unit)),
        };
        needs_of = step.is_none() || (0 < position && step != Some(1));
        text.push_str(&phrase);
    }
    text
}

/// The step of a field that starts at 0 and divides its range evenly: only then `every n` is exact.
fn even_step(field: Field, name: FieldName) -> Option<u16> {
    field.step(name).filter(|step| name.len().is_multiple_of(*step) && *step < name.len())
}

fn unit(name: FieldName) -> &'static str {
    match name {
        FieldName::Second => "second",
        FieldName::Minute => "minute",
        _ => "hour",
    }
}

fn numbered(field: Field, unit: &str) -> String {
    let values = field.values();
    let plural = if values.len() == 1 { "" } else { "s" };
    format!("{unit}{plural} {}", ranges(&values, |value| value.to_string()))
}

/// `None` if every day matches.
fn days(cron: &Cron) -> Option<String> {
    let every = cron.days.plain.is_full(FieldName::DayOfMonth);
    let every_weekday = cron.weekdays.plain.is_full(FieldName::DayOfWeek);
    let (days, weekdays) = (month_days(&cron.days), week_days(&cron.weekdays));
    match (every, every_weekday) {
        (true, true) => None,
        (true, false) | (false, true) if cron.matches_either_day() => None,
        (true, false) => Some(format!("on {weekdays}")),
        (false, true) => Some(format!("on {days}")),
        (false, false) if cron.matches_either_day() => Some(format!("on {days} or on {weekdays}")),
        (false, false) => Some(format!("on {days}, but only on {weekdays}")),
    }
}

fn month_days(days: &DayOfMonthField) -> String {
    let values = days.plain.values();
    let plain = (!values.is_empty()).then(|| {
        let plural = if values.len() == 1 { "" } else { "s" };
        format!("day{plural} {}", ranges(&values, |day| day.to_string()))
    });
    let last = bits(days.from_last).map(|back| match back {
        0 => "the last day".to_owned(),
        1 => "the day before the last day".to_owned(),
        back => format!("the day {back} days before the last day"),
    });
    let nearest = bits(days.nearest).map(|day| format!("the weekday nearest to day {day}"));
    let last_weekday = days.last_weekday.then(|| "the last weekday".to_owned());
    let all: Vec<String> =
        plain.into_iter().chain(last).chain(nearest).chain(last_weekday).collect();
    format!("{} of the month", join_with_and(&all))
}

fn week_days(days: &DayOfWeekField) -> String {
    let plain = (days.plain.bits != 0).then(|| weekday_list(days.plain.bits as u32));
    let counted = ORDINALS.into_iter().zip(days.nth).chain([("last", days.last)]);
    let counted = counted.flat_map(|(count, weekdays)| {
        bits(weekdays).map(move |day| format!("the {count} {} of the month", name(&WEEKDAYS, day)))
    });
    join_with_and(&plain.into_iter().chain(counted).collect::<Vec<_>>())
}

/// `Monday to Friday`, from bits with Sunday = bit 0.
pub(crate) fn weekday_list(weekdays: u32) -> String {
    let mut days: Vec<u16> = bits(weekdays).map(|day| day as u16).collect();
    sort_from_monday(&mut days);
    ranges(&days, |day| name(&WEEKDAYS, u32::from(day)).to_owned())
}

fn months(months: Field) -> String {
    let text = |month: u16| name(&MONTHS, u32::from(month) - 1).to_owned();
    match months.is_full(FieldName::Month) {
        true => String::new(),
        false => format!("in {}", ranges(&months.values(), text)),
    }
}

fn years(years: Years) -> String {
    match years == Years::all() {
        true => String::new(),
        false => format!("in {}", ranges(&years.values(), |year| year.to_string())),
    }
}

fn name(names: &[&'static str], position: u32) -> &'static str {
    names.get(position as usize).copied().unwrap_or_default()
}

fn ordinal(number: u16) -> String {
    match number {
        2 => "2nd".to_owned(),
        3 => "3rd".to_owned(),
        number => format!("{number}th"),
    }
}

fn ranges(values: &[u16], text: impl Fn(u16) -> String) -> String {
    let runs = runs(values).into_iter().map(|(first, last)| match first == last {
        true => text(first),
        false => format!("{} to {}", text(first), text(last)),
    });
    join_with_and(&runs.collect::<Vec<_>>())
}

/// `a, b and c`.
pub(crate) fn join_with_and(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
