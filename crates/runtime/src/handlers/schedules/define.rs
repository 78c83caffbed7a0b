//! Parses the definition of a schedule from a request to add or edit it.

use api::{Code, Error, ScheduleAdd, ScheduleEdit};
use calendar::Zone;
use kernel::Timestamp;
use kernel::schedule::terms::{Retry, Terms};
use kernel::schedule::trigger::Trigger;
use kernel::schedule::{self, Definition};

use crate::authorize::schedule_action::{action, edited_action};
use crate::handlers::agents::{parse_money, parse_tier};
use crate::schedule::event_trigger;
use crate::schedule::trigger::{self, ParsedWhen};

/// The definition of a schedule in a request.
#[derive(Clone)]
pub(super) struct ParsedDefinition {
    pub definition: Definition,
    /// Whether its text is to be sealed.
    pub is_sensitive: bool,
    pub is_paused: bool,
    pub warnings: Vec<String>,
}

pub(super) fn parse_add(add: ScheduleAdd) -> Result<ParsedDefinition, Error> {
    let ParsedTrigger { trigger, zone, warnings } = parse_trigger(&add.when, &add.event_trigger)?;
    // A default zone is for display only: an instant without an offset needs a zone that the caller names.
    let named_zone = add.when.tz.as_ref().map(|_| &zone);
    let definition = Definition {
        name: add.name,
        action: action(add.action.into())?,
        tier: parse_tier(add.tier)?,
        terms: parse_terms(add.terms, Terms::default(), named_zone)?,
        trigger,
        zone,
    };
    let (is_sensitive, is_paused) = (add.sensitive, add.paused);
    Ok(ParsedDefinition { definition, is_sensitive, is_paused, warnings })
}

/// Omitted fields keep their value.
pub(super) fn parse_edit(
    before: &Definition,
    edit: ScheduleEdit,
) -> Result<ParsedDefinition, Error> {
    let unset = Unset::of(&edit.unset)?;
    let when = edit.when.unwrap_or_default();
    let only_zone = api::When { tz: when.tz.clone(), ..api::When::default() };
    let keeps_trigger = when == only_zone && edit.event_trigger.is_none();
    let ParsedTrigger { trigger, zone, warnings } = match keeps_trigger {
        true => ParsedTrigger {
            trigger: before.trigger.clone(),
            zone: when
                .tz
                .as_deref()
                .map_or_else(|| Ok(before.zone.clone()), trigger::parse_zone)?,
            warnings: Vec::new(),
        },
        false => parse_trigger(&when, &edit.event_trigger)?,
    };
    let base = unset.terms(before.terms.clone());
    let was_sensitive = before.action.text().is_sealed() && !unset.has("sensitive");
    let definition = Definition {
        name: edit.name.unwrap_or_else(|| before.name.clone()),
        action: edited_action(&before.action, edit.action)?,
        tier: parse_tier(edit.tier)?.or(before.tier.filter(|_| !unset.has("tier"))),
        terms: parse_terms(edit.terms, base, Some(&zone))?,
        trigger,
        zone,
    };
    let is_sensitive = edit.sensitive || was_sensitive;
    Ok(ParsedDefinition { definition, is_sensitive, is_paused: false, warnings })
}

/// The trigger of a schedule, timed or not.
struct ParsedTrigger {
    trigger: Trigger,
    zone: Zone,
    warnings: Vec<String>,
}

fn parse_trigger(when: &api::When, event: &api::EventTrigger) -> Result<ParsedTrigger, Error> {
    trigger::check_one_trigger(when, event)?;
    if let Some((trigger, zone)) = event_trigger::parse(when, event)? {
        return Ok(ParsedTrigger { trigger: Trigger::Event(trigger), zone, warnings: Vec::new() });
    }
    let ParsedWhen { calendar, warnings, .. } = trigger::parse(when)?;
    let trigger = Trigger::Timed(calendar.trigger().clone());
    Ok(ParsedTrigger { trigger, zone: calendar.zone().clone(), warnings })
}

/// Omitted terms are those of `base`.
fn parse_terms(terms: api::Terms, base: Terms, zone: Option<&Zone>) -> Result<Terms, Error> {
    let instant = |text: Option<String>| {
        let at = text.map(|text| trigger::parse_instant(&text, zone)).transpose()?;
        Ok::<_, Error>(at.map(Timestamp::from_micros))
    };
    let span = |text: Option<String>| text.map(|text| trigger::parse_span(&text)).transpose();
    let mut keys = match terms.keys {
        Some(keys) => keys.into_iter().map(|key| parse_term(&key)).collect::<Result<_, _>>()?,
        None => base.keys,
    };
    keys.sort();
    keys.dedup();
    let backoff = |text: String| base.retry.with_backoff(&text).map_err(invalid_term);
    let retry = terms.backoff.map(backoff).transpose()?.unwrap_or(base.retry);
    let attempts = terms.attempts.or(retry.attempts);
    Ok(Terms {
        overlap: terms.overlap.map(|it| parse_term(&it)).transpose()?.unwrap_or(base.overlap),
        missed: terms.missed.map(|it| parse_term(&it)).transpose()?.unwrap_or(base.missed),
        window: span(terms.window)?.or(base.window),
        jitter: span(terms.jitter)?.or(base.jitter),
        retry: Retry { attempts, ..retry },
        pause_after: terms.pause_after.unwrap_or(base.pause_after),
        resume: terms.resume.map(|it| parse_term(&it)).transpose()?.unwrap_or(base.resume),
        priority: terms.priority.unwrap_or(base.priority),
        keys,
        per_day: terms.per_day.or(base.per_day),
        tokens_per_day: terms.tokens_per_day.or(base.tokens_per_day),
        money_per_day: parse_money(terms.money_per_day)?.or(base.money_per_day),
        max_fires: terms.max_fires.or(base.max_fires),
        start_at: instant(terms.start_at)?.or(base.start_at),
        end_at: instant(terms.end_at)?.or(base.end_at),
    })
}

/// Names of fields to reset to their default.
struct Unset<'a>(&'a [String]);

impl<'a> Unset<'a> {
    const NAMES: [&'static str; 18] = [
        "overlap",
        "missed",
        "window",
        "jitter",
        "attempts",
        "backoff",
        "pause_after",
        "resume",
        "priority",
        "keys",
        "per_day",
        "tokens_per_day",
        "money_per_day",
        "max_fires",
        "start_at",
        "end_at",
        "tier",
        "sensitive",
    ];

    fn of(names: &'a [String]) -> Result<Unset<'a>, Error> {
        match names.iter().find(|name| !Self::NAMES.contains(&name.as_str())) {
            Some(name) => Err(Error::new(Code::InvalidInput, format!("unknown term `{name}`"))
                .hint(format!("the terms are {}", Self::NAMES.join(", ")))),
            None => Ok(Unset(names)),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|unset| unset == name)
    }

    fn terms(&self, terms: Terms) -> Terms {
        let default = Terms::default();
        let (attempts, delays) = (
            if self.has("attempts") { default.retry } else { terms.retry },
            if self.has("backoff") { default.retry } else { terms.retry },
        );
        let retry = Retry { attempts: attempts.attempts, ..delays };
        macro_rules! unless_unset {
            ($($term:ident),*) => {
                Terms {
                    retry,
                    $($term: if self.has(stringify!($term)) { default.$term } else { terms.$term },)*
                }
            };
        }
        unless_unset!(
            overlap,
            missed,
            window,
            jitter,
            pause_after,
            resume,
            priority,
            keys,
            per_day,
            tokens_per_day,
            money_per_day,
            max_fires,
            start_at,
            end_at
        )
    }
}

fn parse_term<T>(text: &str) -> Result<T, Error>
where
    T: std::str::FromStr<Err = schedule::terms::InvalidTerm>,
{
    text.parse().map_err(invalid_term)
}

fn invalid_term(invalid: schedule::terms::InvalidTerm) -> Error {
    Error::new(Code::InvalidInput, &invalid).hint(invalid.hint)
}
