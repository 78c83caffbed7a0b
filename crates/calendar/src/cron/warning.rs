//! What to know about an accepted expression.

use super::Cron;
use super::field::{Field, FieldName};
use super::parse::{Form, Item, said};

/// An accepted expression that may mean something else than it seems to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error(
        "`{item}` in the {field} field names fixed times, which run once when the clock goes back; \
         `{star}` would follow elapsed time"
    )]
    LooksLikeStar { field: FieldName, item: String, star: String },
    #[error(
        "`{item}` in the {field} field counts as a star, so a day must match both day fields; \
         other programs run it when either matches"
    )]
    SteppedStarAndDay { field: FieldName, item: String },
    #[error("`{item}` in the {field} field starts again at every {whole}, so its steps are uneven")]
    UnevenStep { field: FieldName, item: String, whole: &'static str },
}

/// For the seconds, minute or hour field, as parsed and as typed.
pub(super) fn of_time(cron: &Cron, field: FieldName, items: &[Item], text: &str) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (item, text) in items.iter().zip(text.split(',')) {
        let Item::Range { first, last, step, form } = *item else { continue };
        let item = said(text);
        let covers = first == field.min() && last == field.max();
        if form == Form::Range && covers && cron.is_fixed_time() {
            let star = if step == 1 { "*".to_owned() } else { format!("*/{step}") };
            warnings.push(Warning::LooksLikeStar { field, item, star });
        } else if form == Form::Star && !field.len().is_multiple_of(step) {
            warnings.push(Warning::UnevenStep { field, item, whole: whole(field) });
        }
    }
    warnings
}

/// For the two day fields, as typed.
pub(super) fn of_days(cron: &Cron, day: &str, weekday: &str) -> Option<Warning> {
    let (days, weekdays) = (cron.days.plain, cron.weekdays.plain);
    let stepped = |field: Field, name| field.star && !field.is_full(name);
    let (field, item) = match (days.star, weekdays.star) {
        _ if cron.both => return None,
        (true, false) if stepped(days, FieldName::DayOfMonth) => (FieldName::DayOfMonth, day),
        (false, true) if stepped(weekdays, FieldName::DayOfWeek) => (FieldName::DayOfWeek, weekday),
        _ => return None,
    };
    Some(Warning::SteppedStarAndDay { field, item: said(item) })
}

fn whole(field: FieldName) -> &'static str {
    match field {
        FieldName::Second => "minute",
        FieldName::Minute => "hour",
        _ => "day",
    }
}
