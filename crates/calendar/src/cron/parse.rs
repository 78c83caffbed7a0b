//! Parses an expression. The parser does not guess: it refuses an ambiguous text with a fix.

use super::days::{DayOfMonthField, DayOfWeekField};
use super::error::{InvalidCron, Problem};
use super::field::{Field, FieldName, YEAR_MAX, YEAR_MIN, Years};
use super::{Cron, EXPRESSION_BYTES_MAX, ParsedCron, Warning, warning};
use crate::text::truncate_for_message;

const QUOTED_BYTES_MAX: usize = 40;
/// The largest `n` of `L-n`.
const LAST_DAYS_MAX: u16 = 30;

/// An item of a field's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Range { first: u16, last: u16, step: u16, form: Form },
    FromLast(u16),
    LastWeekday,
    Nearest(u16),
    Nth { weekday: u16, nth: u16 },
    LastOf { weekday: u16 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Star,
    Range,
    Value,
}

pub(super) fn parse(text: &str) -> Result<ParsedCron, InvalidCron> {
    if EXPRESSION_BYTES_MAX < text.len() {
        return Err(whole_expression(Problem::TooLong(text.len()), None));
    }
    let upper = text.trim().to_ascii_uppercase();
    let upper = if upper.starts_with('@') { alias(&upper)? } else { &upper };
    let fields: Vec<&str> = upper.split_ascii_whitespace().collect();
    match *fields {
        [mi, h, d, mo, w] => build(["0", mi, h, d, mo, w, "*"]),
        [_, _, _, _, _, y] if is_year(y) => Err(whole_expression(
            Problem::YearWithoutSeconds,
            Some(format!("0 {}", fields.join(" "))),
        )),
        [s, mi, h, d, mo, w] => {
            let mut parsed = build([s, mi, h, d, mo, w, "*"])?;
            parsed.warnings.extend(with_minute_first([s, mi, h, d, mo, w]));
            Ok(parsed)
        }
        [s, mi, h, d, mo, w, y] => build([s, mi, h, d, mo, w, y]),
        // With four fields, usually the last star was forgotten.
        [_, _, _, _] => {
            Err(whole_expression(Problem::FieldCount(4), Some(format!("{} *", fields.join(" ")))))
        }
        _ => Err(whole_expression(Problem::FieldCount(fields.len()), None)),
    }
}

/// A warning about six fields that also make sense with the minute first and the seconds or the year last. With an hour in
/// the third field, the seconds are taken as meant to be first.
fn with_minute_first(fields: [&str; 6]) -> Option<Warning> {
    let [minute, hour, day, month, weekday, last] = fields;
    let five_fields = [minute, hour, day, month, weekday].join(" ");
    let has_seconds_last = parse_items(FieldName::Second, last).is_ok();
    let is_possible = day.starts_with(['*', '?'])
        && (last == "?" || has_seconds_last)
        && build(["0", minute, hour, day, month, weekday, "*"]).is_ok();
    is_possible.then(|| Warning::SecondsFirst {
        instead: match last {
            "*" | "?" | "0" | "00" => five_fields,
            seconds => format!("{seconds} {five_fields}"),
        },
    })
}

/// Parses plain weekdays to bits, with Sunday = bit 0.
pub(crate) fn parse_weekdays(text: &str) -> Result<u8, InvalidCron> {
    if EXPRESSION_BYTES_MAX < text.len() {
        return Err(whole_expression(Problem::TooLong(text.len()), None));
    }
    let days = DayOfWeekField::of(&parse_items(FieldName::DayOfWeek, &text.to_ascii_uppercase())?);
    match days.is_plain() {
        true => Ok(days.plain.bits as u8),
        false => {
            let problem = Problem::InvalidItem(quoted(text));
            Err(FieldParser::new(FieldName::DayOfWeek).error(problem, None))
        }
    }
}

fn whole_expression(problem: Problem, fix: Option<String>) -> InvalidCron {
    InvalidCron { field: None, problem, fix }
}

fn alias(text: &str) -> Result<&'static str, InvalidCron> {
    match text {
        "@YEARLY" | "@ANNUALLY" => Ok("0 0 1 1 *"),
        "@MONTHLY" => Ok("0 0 1 * *"),
        "@WEEKLY" => Ok("0 0 * * 0"),
        "@DAILY" | "@MIDNIGHT" => Ok("0 0 * * *"),
        "@HOURLY" => Ok("0 * * * *"),
        "@REBOOT" => Err(whole_expression(Problem::Reboot, None)),
        _ if text.starts_with("@EVERY") => {
            let span = text.trim_start_matches("@EVERY").trim().to_ascii_lowercase();
            let fix = (!span.is_empty()).then(|| format!("every {}", quoted(&span)));
            Err(whole_expression(Problem::Every, fix))
        }
        _ => Err(whole_expression(Problem::UnknownAlias(quoted(&text.to_ascii_lowercase())), None)),
    }
}

fn build(
    [second, minute, hour, day, month, weekday, year]: [&str; 7],
) -> Result<ParsedCron, InvalidCron> {
    let (requires_both_days, weekday) = match weekday.strip_prefix('+') {
        Some("?") => {
            return Err(FieldParser::new(FieldName::DayOfWeek).error(Problem::QuestionMark, None));
        }
        Some(rest) => (true, rest),
        None => (false, weekday),
    };
    let seconds = parse_items(FieldName::Second, second)?;
    let minutes = parse_items(FieldName::Minute, minute)?;
    let hours = parse_items(FieldName::Hour, hour)?;
    let days = parse_items(FieldName::DayOfMonth, day)?;
    let months = parse_items(FieldName::Month, month)?;
    let weekdays = parse_items(FieldName::DayOfWeek, weekday)?;
    let mut years = Years::default();
    let year_items = parse_items(FieldName::Year, year)?;
    year_items.iter().flat_map(|item| item.values()).for_each(|year| years.insert(year));
    let cron = Cron {
        seconds: to_field(&seconds),
        minutes: to_field(&minutes),
        hours: to_field(&hours),
        days: DayOfMonthField::of(&days),
        months: to_field(&months),
        weekdays: DayOfWeekField::of(&weekdays),
        requires_both_days,
        years,
    };
    let times = [
        (FieldName::Second, seconds, second),
        (FieldName::Minute, minutes, minute),
        (FieldName::Hour, hours, hour),
    ];
    let [(_, seconds, _), (_, minutes, _), (_, hours, _)] = &times;
    let stars = warning::for_star(FieldName::Second, seconds, minutes)
        .or_else(|| warning::for_star(FieldName::Minute, minutes, hours));
    let of_times = times
        .iter()
        .flat_map(|(name, items, text)| warning::for_time_field(&cron, *name, items, text));
    let warnings =
        of_times.chain(stars).chain(warning::for_day_fields(&cron, day, weekday)).collect();
    Ok(ParsedCron { cron, warnings })
}

pub(super) fn to_field(items: &[Item]) -> Field {
    let values = items.iter().flat_map(|item| item.values());
    let bits = values.fold(0, |bits, value| bits | 1 << value);
    Field { bits, starts_with_star: starts_with_star(items) }
}

fn starts_with_star(items: &[Item]) -> bool {
    matches!(items.first(), Some(Item::Range { form: Form::Star, .. }))
}

impl Item {
    /// The values of a range; other items have none.
    pub(super) fn values(&self) -> impl Iterator<Item = u16> {
        let (first, last, step) = match self {
            Item::Range { first, last, step, .. } => (*first, *last, *step),
            _ => (1, 0, 1),
        };
        (first..=last).step_by(usize::from(step.max(1)))
    }
}

fn parse_items(name: FieldName, text: &str) -> Result<Vec<Item>, InvalidCron> {
    let parser = FieldParser::new(name);
    if text == "?" && name.is_day() {
        return Ok(vec![parser.star(1)]);
    }
    if text.contains('?') {
        let fix = Some("*".to_owned()).filter(|_| text == "?");
        return Err(parser.error(Problem::QuestionMark, fix));
    }
    if text.split(',').any(str::is_empty) {
        let rest: Vec<&str> = text.split(',').filter(|item| !item.is_empty()).collect();
        let fix = Some(rest.join(",")).filter(|fix| (1..=QUOTED_BYTES_MAX).contains(&fix.len()));
        return Err(parser.error(Problem::EmptyItem, fix));
    }
    text.split(',')
        .map(|item| parser.parse_item(item).map_err(|error| error.quoting(item)))
        .collect()
}

impl InvalidCron {
    /// Quotes the whole item, because a part of it may be empty or unclear.
    fn quoting(self, item: &str) -> InvalidCron {
        match self.problem {
            Problem::InvalidItem(_) => {
                InvalidCron { problem: Problem::InvalidItem(quoted(item)), ..self }
            }
            _ => self,
        }
    }

    /// Replaces the fix: the number after `L-` has other limits than the field.
    fn with_last_days_fix(self, days: &str) -> InvalidCron {
        let fix = match self.problem {
            Problem::OutOfRange { .. } if days.trim_start_matches('0').is_empty() => {
                Some("L".to_owned())
            }
            Problem::OutOfRange { .. } => Some(format!("L-{LAST_DAYS_MAX}")),
            _ => None,
        };
        InvalidCron { fix, ..self }
    }
}

/// The parser of one field.
#[derive(Clone, Copy)]
struct FieldParser {
    name: FieldName,
}

impl FieldParser {
    fn new(name: FieldName) -> FieldParser {
        FieldParser { name }
    }

    fn error(self, problem: Problem, fix: Option<String>) -> InvalidCron {
        InvalidCron { field: Some(self.name), problem, fix }
    }

    fn star(self, step: u16) -> Item {
        Item::Range { first: self.name.min(), last: self.name.max(), step, form: Form::Star }
    }

    fn parse_item(self, text: &str) -> Result<Item, InvalidCron> {
        let (body, step) = match text.split_once('/') {
            Some((body, step)) => (body, Some(step)),
            None => (text, None),
        };
        let special = match self.name {
            FieldName::DayOfMonth => self.parse_month_day(body)?,
            FieldName::DayOfWeek => self.parse_weekday(body)?,
            _ => None,
        };
        match (special, step) {
            (Some(item), None) => Ok(item),
            (Some(_), Some(_)) => {
                Err(self.error(Problem::StepWithoutRange(quoted(text)), Some(body.to_owned())))
            }
            (None, _) => self.parse_range(text, body, step),
        }
    }

    /// `L`, `L-n`, `LW` and `nW`.
    fn parse_month_day(self, text: &str) -> Result<Option<Item>, InvalidCron> {
        if text == "L" {
            return Ok(Some(Item::FromLast(0)));
        }
        if text == "LW" {
            return Ok(Some(Item::LastWeekday));
        }
        if let Some(days) = text.strip_prefix("L-") {
            let back = self.parse_number(days, 1, LAST_DAYS_MAX);
            let back = back.map_err(|error| error.with_last_days_fix(days))?;
            return Ok(Some(Item::FromLast(back)));
        }
        match text.strip_suffix('W').filter(|day| is_number(day)) {
            Some(day) => Ok(Some(Item::Nearest(self.parse_number(day, 1, 31)?))),
            None => Ok(None),
        }
    }

    /// `d#n`, `d#L` and `dL`.
    fn parse_weekday(self, text: &str) -> Result<Option<Item>, InvalidCron> {
        if text == "L" {
            return Err(self.error(Problem::LastWithoutWeekday, None));
        }
        if let Some((day, nth)) = text.split_once('#') {
            let weekday = self.parse_value(day)? % 7;
            return match nth {
                "L" => Ok(Some(Item::LastOf { weekday })),
                nth => Ok(Some(Item::Nth { weekday, nth: self.parse_number(nth, 1, 5)? })),
            };
        }
        match text.strip_suffix('L') {
            Some(day) => Ok(Some(Item::LastOf { weekday: self.parse_value(day)? % 7 })),
            None => Ok(None),
        }
    }

    fn parse_range(self, text: &str, body: &str, step: Option<&str>) -> Result<Item, InvalidCron> {
        let (first, last, form) = match body.split_once('-') {
            _ if body == "*" => (self.name.min(), self.name.max(), Form::Star),
            Some((first, last)) => {
                let (first, last) = self.parse_bounds(first, last)?;
                (first, last, Form::Range)
            }
            None => {
                let value = self.parse_value(body)?;
                (value, value, Form::Value)
            }
        };
        let by_name = body.starts_with(|c: char| c.is_ascii_alphabetic());
        let step = match step {
            Some(step) => self.parse_step(text, body, step)?,
            None => 1,
        };
        if form == Form::Value && body != text {
            let end = self.write_value(self.name.max(), by_name);
            let fix = format!("{body}-{end}/{step}");
            return Err(self.error(Problem::StepWithoutRange(quoted(text)), Some(fix)));
        }
        if last < first {
            let fix = self.split_inverted(first, last, step, by_name);
            return Err(self.error(Problem::Inverted(quoted(text)), Some(fix)));
        }
        Ok(Item::Range { first, last, step, form })
    }

    /// The first and last value of a range. `SUN` is 7 at its end and 0 at its start.
    fn parse_bounds(self, first: &str, last: &str) -> Result<(u16, u16), InvalidCron> {
        let max = || self.name.max().to_string();
        let to = self
            .parse_value(last)
            .map_err(|error| InvalidCron { fix: error.fix.map(|_| max()), ..error });
        let (from, to) = (self.parse_value(first)?, to?);
        let ends_on_sunday = self.name == FieldName::DayOfWeek && last == "SUN" && first != "SUN";
        Ok((from, if ends_on_sunday { 7 } else { to }))
    }

    fn parse_step(self, text: &str, body: &str, step: &str) -> Result<u16, InvalidCron> {
        if !is_number(step) {
            return Err(self.error(Problem::InvalidItem(quoted(text)), None));
        }
        let max = self.name.len();
        match step.parse::<u16>() {
            Ok(0) => Err(self.error(Problem::StepZero(quoted(text)), Some(body.to_owned()))),
            Ok(step) if step <= max => Ok(step),
            _ => Err(self.error(Problem::StepTooLarge { item: quoted(text), max }, None)),
        }
    }

    fn parse_value(self, text: &str) -> Result<u16, InvalidCron> {
        if let Some(value) = self.name.value_of(text) {
            return Ok(value);
        }
        if is_number(text) {
            return self.parse_number(text, self.name.min(), self.name.max_accepted());
        }
        let named_fields = [FieldName::Month, FieldName::DayOfWeek];
        let field = named_fields.into_iter().find(|field| field.value_of(text).is_some());
        let is_month_day = matches!(text, "L" | "LW") || text.ends_with('W');
        let field = field.or(is_month_day.then_some(FieldName::DayOfMonth));
        let field = field.or(text.contains('#').then_some(FieldName::DayOfWeek));
        match field.filter(|field| *field != self.name) {
            Some(field) => Err(self.error(Problem::WrongField { text: quoted(text), field }, None)),
            None => Err(self.error(Problem::InvalidItem(quoted(text)), None)),
        }
    }

    fn parse_number(self, text: &str, min: u16, max: u16) -> Result<u16, InvalidCron> {
        if !is_number(text) {
            return Err(self.error(Problem::InvalidItem(quoted(text)), None));
        }
        match text.parse::<u16>() {
            Ok(value) if (min..=max).contains(&value) => Ok(value),
            parsed => {
                // Hour 24 and minute 60 mean 0.
                let wraps = min == 0 && self.name != FieldName::DayOfWeek && parsed == Ok(max + 1);
                let fix = wraps.then(|| "0".to_owned());
                Err(self.error(Problem::OutOfRange { value: quoted(text), min, max }, fix))
            }
        }
    }

    /// Rewrites a range that wraps around the end of the field as ranges that do not.
    fn split_inverted(self, first: u16, last: u16, step: u16, by_name: bool) -> String {
        let is_week = self.name == FieldName::DayOfWeek;
        let (start, end) = if is_week { (1, 7) } else { (self.name.min(), self.name.max()) };
        if is_week && (first == 7 || last == 0) {
            let (first, last) = if first == 7 { (0, last) } else { (first, 7) };
            let step = if step == 1 { String::new() } else { format!("/{step}") };
            let [first, last] = [first, last].map(|value| self.write_value(value, by_name));
            return format!("{first}-{last}{step}");
        }
        if step == 1 {
            let run = |first: u16, last: u16| match first == last {
                true => self.write_value(first, by_name),
                false => {
                    format!(
                        "{}-{}",
                        self.write_value(first, by_name),
                        self.write_value(last, by_name)
                    )
                }
            };
            return format!("{},{}", run(first, end), run(start, last));
        }
        let values = (first..=end).chain(start..=last).step_by(usize::from(step));
        values.map(|value| self.write_value(value, by_name)).collect::<Vec<_>>().join(",")
    }

    fn write_value(self, value: u16, by_name: bool) -> String {
        if by_name { self.name.text_of(value) } else { value.to_string() }
    }
}

fn is_year(text: &str) -> bool {
    is_number(text) && text.parse().is_ok_and(|year| (YEAR_MIN..=YEAR_MAX).contains(&year))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn quoted(text: &str) -> String {
    truncate_for_message(text, QUOTED_BYTES_MAX)
}
