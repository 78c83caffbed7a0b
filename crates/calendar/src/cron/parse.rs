//! From text to an expression. Nothing is guessed: what could mean two things is refused with the
//! text to write instead.

use super::days::{MonthDays, WeekDays};
use super::field::{Field, FieldName, YEAR_MAX, YEAR_MIN, Years};
use super::refusal::{Problem, Refusal};
use super::{Cron, EXPRESSION_BYTES_MAX, Parsed, warning};
use crate::text::shorten;

const SAID_BYTES_MAX: usize = 40;
/// Days before the last of a month.
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

pub(super) fn parse(text: &str) -> Result<Parsed, Refusal> {
    if EXPRESSION_BYTES_MAX < text.len() {
        return Err(whole(Problem::TooLong(text.len()), None));
    }
    let upper = text.trim().to_ascii_uppercase();
    let upper = if upper.starts_with('@') { alias(&upper)? } else { &upper };
    let fields: Vec<&str> = upper.split_ascii_whitespace().collect();
    match *fields {
        [mi, h, d, mo, w] => build(["0", mi, h, d, mo, w, "*"]),
        [_, _, _, _, _, y] if is_year(y) => {
            Err(whole(Problem::YearWithoutSeconds, Some(format!("0 {}", fields.join(" ")))))
        }
        [s, mi, h, d, mo, w] => build([s, mi, h, d, mo, w, "*"]),
        [s, mi, h, d, mo, w, y] => build([s, mi, h, d, mo, w, y]),
        // One short is mostly a forgotten last star.
        [_, _, _, _] => Err(whole(Problem::FieldCount(4), Some(format!("{} *", fields.join(" "))))),
        _ => Err(whole(Problem::FieldCount(fields.len()), None)),
    }
}

/// Plain weekdays only, as bits with Sunday = bit 0.
pub(crate) fn parse_weekdays(text: &str) -> Result<u8, Refusal> {
    if EXPRESSION_BYTES_MAX < text.len() {
        return Err(whole(Problem::TooLong(text.len()), None));
    }
    let days = WeekDays::of(&items(FieldName::DayOfWeek, &text.to_ascii_uppercase())?);
    match days.is_plain() {
        true => Ok(days.plain.bits as u8),
        false => {
            let problem = Problem::NotUnderstood(said(text));
            Err(At::new(FieldName::DayOfWeek).refuse(problem, None))
        }
    }
}

fn whole(problem: Problem, fix: Option<String>) -> Refusal {
    Refusal { field: None, problem, fix }
}

fn alias(text: &str) -> Result<&'static str, Refusal> {
    match text {
        "@YEARLY" | "@ANNUALLY" => Ok("0 0 1 1 *"),
        "@MONTHLY" => Ok("0 0 1 * *"),
        "@WEEKLY" => Ok("0 0 * * 0"),
        "@DAILY" | "@MIDNIGHT" => Ok("0 0 * * *"),
        "@HOURLY" => Ok("0 * * * *"),
        "@REBOOT" => Err(whole(Problem::Reboot, None)),
        _ if text.starts_with("@EVERY") => {
            let span = text.trim_start_matches("@EVERY").trim().to_ascii_lowercase();
            let fix = (!span.is_empty()).then(|| format!("every {}", said(&span)));
            Err(whole(Problem::Every, fix))
        }
        _ => Err(whole(Problem::UnknownAlias(said(&text.to_ascii_lowercase())), None)),
    }
}

fn build([second, minute, hour, day, month, weekday, year]: [&str; 7]) -> Result<Parsed, Refusal> {
    let (both, weekday) = match weekday.strip_prefix('+') {
        Some("?") => return Err(At::new(FieldName::DayOfWeek).refuse(Problem::QuestionMark, None)),
        Some(rest) => (true, rest),
        None => (false, weekday),
    };
    let seconds = items(FieldName::Second, second)?;
    let minutes = items(FieldName::Minute, minute)?;
    let hours = items(FieldName::Hour, hour)?;
    let days = items(FieldName::DayOfMonth, day)?;
    let months = items(FieldName::Month, month)?;
    let weekdays = items(FieldName::DayOfWeek, weekday)?;
    let mut years = Years::default();
    let year_items = items(FieldName::Year, year)?;
    year_items.iter().flat_map(|item| item.values()).for_each(|year| years.insert(year));
    let cron = Cron {
        seconds: field(&seconds),
        minutes: field(&minutes),
        hours: field(&hours),
        days: MonthDays::of(&days),
        months: field(&months),
        weekdays: WeekDays::of(&weekdays),
        both,
        years,
    };
    let times = [
        (FieldName::Second, seconds, second),
        (FieldName::Minute, minutes, minute),
        (FieldName::Hour, hours, hour),
    ];
    let [(_, seconds, _), (_, minutes, _), (_, hours, _)] = &times;
    let stars = warning::of_star(FieldName::Second, seconds, minutes)
        .or_else(|| warning::of_star(FieldName::Minute, minutes, hours));
    let of_times =
        times.iter().flat_map(|(name, items, text)| warning::of_time(&cron, *name, items, text));
    let warnings = of_times.chain(stars).chain(warning::of_days(&cron, day, weekday)).collect();
    Ok(Parsed { cron, warnings })
}

pub(super) fn field(items: &[Item]) -> Field {
    let values = items.iter().flat_map(|item| item.values());
    let bits = values.fold(0, |bits, value| bits | 1 << value);
    Field { bits, star: starts_with_star(items) }
}

fn starts_with_star(items: &[Item]) -> bool {
    matches!(items.first(), Some(Item::Range { form: Form::Star, .. }))
}

impl Item {
    /// The plain values of this item; an item of another kind has none.
    pub(super) fn values(&self) -> impl Iterator<Item = u16> {
        let (first, last, step) = match self {
            Item::Range { first, last, step, .. } => (*first, *last, *step),
            _ => (1, 0, 1),
        };
        (first..=last).step_by(usize::from(step.max(1)))
    }
}

fn items(name: FieldName, text: &str) -> Result<Vec<Item>, Refusal> {
    let at = At::new(name);
    if text == "?" && name.is_day() {
        return Ok(vec![at.star(1)]);
    }
    if text.contains('?') {
        let fix = Some("*".to_owned()).filter(|_| text == "?");
        return Err(at.refuse(Problem::QuestionMark, fix));
    }
    if text.split(',').any(str::is_empty) {
        let rest: Vec<&str> = text.split(',').filter(|item| !item.is_empty()).collect();
        let fix = Some(rest.join(",")).filter(|fix| (1..=SAID_BYTES_MAX).contains(&fix.len()));
        return Err(at.refuse(Problem::EmptyItem, fix));
    }
    text.split(',').map(|item| at.item(item).map_err(|refusal| refusal.about(item))).collect()
}

impl Refusal {
    /// A part alone may be empty or say little.
    fn about(self, item: &str) -> Refusal {
        match self.problem {
            Problem::NotUnderstood(_) => {
                Refusal { problem: Problem::NotUnderstood(said(item)), ..self }
            }
            _ => self,
        }
    }

    /// What the field takes is not what may come after `L-`.
    fn of_last_days(self, days: &str) -> Refusal {
        let fix = match self.problem {
            Problem::OutOfRange { .. } if days.trim_start_matches('0').is_empty() => {
                Some("L".to_owned())
            }
            Problem::OutOfRange { .. } => Some(format!("L-{LAST_DAYS_MAX}")),
            _ => None,
        };
        Refusal { fix, ..self }
    }
}

/// The parser of one field.
#[derive(Clone, Copy)]
struct At {
    name: FieldName,
}

impl At {
    fn new(name: FieldName) -> At {
        At { name }
    }

    fn refuse(self, problem: Problem, fix: Option<String>) -> Refusal {
        Refusal { field: Some(self.name), problem, fix }
    }

    fn star(self, step: u16) -> Item {
        Item::Range { first: self.name.min(), last: self.name.max(), step, form: Form::Star }
    }

    fn item(self, text: &str) -> Result<Item, Refusal> {
        let (body, step) = match text.split_once('/') {
            Some((body, step)) => (body, Some(step)),
            None => (text, None),
        };
        let special = match self.name {
            FieldName::DayOfMonth => self.month_day(body)?,
            FieldName::DayOfWeek => self.week_day(body)?,
            _ => None,
        };
        match (special, step) {
            (Some(item), None) => Ok(item),
            (Some(_), Some(_)) => {
                Err(self.refuse(Problem::StepWithoutRange(said(text)), Some(body.to_owned())))
            }
            (None, _) => self.range(text, body, step),
        }
    }

    /// `L`, `L-n`, `LW` and `nW`.
    fn month_day(self, text: &str) -> Result<Option<Item>, Refusal> {
        if text == "L" {
            return Ok(Some(Item::FromLast(0)));
        }
        if text == "LW" {
            return Ok(Some(Item::LastWeekday));
        }
        if let Some(days) = text.strip_prefix("L-") {
            let back = self.number(days, 1, LAST_DAYS_MAX);
            let back = back.map_err(|refusal| refusal.of_last_days(days))?;
            return Ok(Some(Item::FromLast(back)));
        }
        match text.strip_suffix('W').filter(|day| is_number(day)) {
            Some(day) => Ok(Some(Item::Nearest(self.number(day, 1, 31)?))),
            None => Ok(None),
        }
    }

    /// `d#n`, `d#L` and `dL`.
    fn week_day(self, text: &str) -> Result<Option<Item>, Refusal> {
        if text == "L" {
            return Err(self.refuse(Problem::LastOfWhat, None));
        }
        if let Some((day, nth)) = text.split_once('#') {
            let weekday = self.value(day)? % 7;
            return match nth {
                "L" => Ok(Some(Item::LastOf { weekday })),
                nth => Ok(Some(Item::Nth { weekday, nth: self.number(nth, 1, 5)? })),
            };
        }
        match text.strip_suffix('L') {
            Some(day) => Ok(Some(Item::LastOf { weekday: self.value(day)? % 7 })),
            None => Ok(None),
        }
    }

    fn range(self, text: &str, body: &str, step: Option<&str>) -> Result<Item, Refusal> {
        let (first, last, form) = match body.split_once('-') {
            _ if body == "*" => (self.name.min(), self.name.max(), Form::Star),
            Some((first, last)) => {
                let (first, last) = self.ends(first, last)?;
                (first, last, Form::Range)
            }
            None => {
                let value = self.value(body)?;
                (value, value, Form::Value)
            }
        };
        let by_name = body.starts_with(|c: char| c.is_ascii_alphabetic());
        let step = match step {
            Some(step) => self.step(text, body, step)?,
            None => 1,
        };
        if form == Form::Value && body != text {
            let end = self.written(self.name.max(), by_name);
            let fix = format!("{body}-{end}/{step}");
            return Err(self.refuse(Problem::StepWithoutRange(said(text)), Some(fix)));
        }
        if last < first {
            let fix = self.unwound(first, last, step, by_name);
            return Err(self.refuse(Problem::Inverted(said(text)), Some(fix)));
        }
        Ok(Item::Range { first, last, step, form })
    }

    /// Sunday ends a week as 7 and begins it as 0.
    fn ends(self, first: &str, last: &str) -> Result<(u16, u16), Refusal> {
        let max = || self.name.max().to_string();
        let to = self
            .value(last)
            .map_err(|refusal| Refusal { fix: refusal.fix.map(|_| max()), ..refusal });
        let (from, to) = (self.value(first)?, to?);
        let ends_on_sunday = self.name == FieldName::DayOfWeek && last == "SUN" && first != "SUN";
        Ok((from, if ends_on_sunday { 7 } else { to }))
    }

    fn step(self, text: &str, body: &str, step: &str) -> Result<u16, Refusal> {
        if !is_number(step) {
            return Err(self.refuse(Problem::NotUnderstood(said(text)), None));
        }
        let max = self.name.len();
        match step.parse::<u16>() {
            Ok(0) => Err(self.refuse(Problem::StepZero(said(text)), Some(body.to_owned()))),
            Ok(step) if step <= max => Ok(step),
            _ => Err(self.refuse(Problem::StepTooLarge { item: said(text), max }, None)),
        }
    }

    fn value(self, text: &str) -> Result<u16, Refusal> {
        if let Some(value) = self.name.value_of(text) {
            return Ok(value);
        }
        if is_number(text) {
            return self.number(text, self.name.min(), self.name.limit());
        }
        let homes = [FieldName::Month, FieldName::DayOfWeek];
        let home = homes.into_iter().find(|home| home.value_of(text).is_some());
        let is_month_day = matches!(text, "L" | "LW") || text.ends_with('W');
        let home = home.or(is_month_day.then_some(FieldName::DayOfMonth));
        let home = home.or(text.contains('#').then_some(FieldName::DayOfWeek));
        match home.filter(|home| *home != self.name) {
            Some(field) => Err(self.refuse(Problem::Elsewhere { text: said(text), field }, None)),
            None => Err(self.refuse(Problem::NotUnderstood(said(text)), None)),
        }
    }

    fn number(self, text: &str, min: u16, max: u16) -> Result<u16, Refusal> {
        if !is_number(text) {
            return Err(self.refuse(Problem::NotUnderstood(said(text)), None));
        }
        match text.parse::<u16>() {
            Ok(value) if (min..=max).contains(&value) => Ok(value),
            parsed => {
                // The hour 24 and the minute 60 are the first of what follows.
                let wraps = min == 0 && self.name != FieldName::DayOfWeek && parsed == Ok(max + 1);
                let fix = wraps.then(|| "0".to_owned());
                Err(self.refuse(Problem::OutOfRange { value: said(text), min, max }, fix))
            }
        }
    }

    /// A range that runs over the end of the field, as ranges that do not.
    fn unwound(self, first: u16, last: u16, step: u16, by_name: bool) -> String {
        let is_week = self.name == FieldName::DayOfWeek;
        let (start, end) = if is_week { (1, 7) } else { (self.name.min(), self.name.max()) };
        if is_week && (first == 7 || last == 0) {
            let (first, last) = if first == 7 { (0, last) } else { (first, 7) };
            let step = if step == 1 { String::new() } else { format!("/{step}") };
            let [first, last] = [first, last].map(|value| self.written(value, by_name));
            return format!("{first}-{last}{step}");
        }
        if step == 1 {
            let run = |first: u16, last: u16| match first == last {
                true => self.written(first, by_name),
                false => {
                    format!("{}-{}", self.written(first, by_name), self.written(last, by_name))
                }
            };
            return format!("{},{}", run(first, end), run(start, last));
        }
        let values = (first..=end).chain(start..=last).step_by(usize::from(step));
        values.map(|value| self.written(value, by_name)).collect::<Vec<_>>().join(",")
    }

    fn written(self, value: u16, by_name: bool) -> String {
        if by_name { self.name.text_of(value) } else { value.to_string() }
    }
}

fn is_year(text: &str) -> bool {
    is_number(text) && text.parse().is_ok_and(|year| (YEAR_MIN..=YEAR_MAX).contains(&year))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn said(text: &str) -> String {
    shorten(text, SAID_BYTES_MAX)
}
