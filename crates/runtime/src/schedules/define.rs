//! What a wire form means: the definition of a schedule, new or changed.

use api::{Code, Error, ScheduleAdd, ScheduleEdit};
use calendar::Zone;
use kernel::Timestamp;
use kernel::schedule::terms::{Retry, Terms};
use kernel::schedule::trigger::Trigger;
use kernel::schedule::{self, Action, Definition};
use kernel::wording::Wording;

use crate::agents::money;
use crate::{errors, happening, when};

/// A definition, and what is worth saying about it.
#[derive(Clone)]
pub(super) struct Defined {
    pub definition: Definition,
    /// What it tells is to be sealed.
    pub is_sensitive: bool,
    pub is_paused: bool,
    pub warnings: Vec<String>,
}

pub(super) fn new(asked: ScheduleAdd) -> Result<Defined, Error> {
    let Fires { trigger, zone, warnings } = fires(&asked.when, &asked.happening)?;
    // One that nobody has named is for showing instants, and not for guessing them.
    let named = asked.when.tz.as_ref().map(|_| &zone);
    let definition = Definition {
        name: asked.name,
        action: action(asked.action.into())?,
        tier: tier(asked.tier)?,
        terms: terms(asked.terms, Terms::default(), named)?,
        trigger,
        zone,
    };
    let (is_sensitive, is_paused) = (asked.sensitive, asked.paused);
    Ok(Defined { definition, is_sensitive, is_paused, warnings })
}

/// A definition with what is given in the place of what was.
pub(super) fn edited(before: &Definition, asked: ScheduleEdit) -> Result<Defined, Error> {
    let unset = Unset::of(&asked.unset)?;
    let when = asked.when.unwrap_or_default();
    let only_zone = api::When { tz: when.tz.clone(), ..api::When::default() };
    let is_same = when == only_zone && asked.happening.is_none();
    let Fires { trigger, zone, warnings } = match is_same {
        true => Fires {
            trigger: before.trigger.clone(),
            zone: when.tz.as_deref().map_or_else(|| Ok(before.zone.clone()), when::zone_named)?,
            warnings: Vec::new(),
        },
        false => fires(&when, &asked.happening)?,
    };
    let base = unset.terms(before.terms.clone());
    let was_sensitive = before.action.words().is_sealed() && !unset.has("sensitive");
    let definition = Definition {
        name: asked.name.unwrap_or_else(|| before.name.clone()),
        action: edited_action(&before.action, asked.action)?,
        tier: tier(asked.tier)?.or(before.tier.filter(|_| !unset.has("tier"))),
        terms: terms(asked.terms, base, Some(&zone))?,
        trigger,
        zone,
    };
    let is_sensitive = asked.sensitive || was_sensitive;
    Ok(Defined { definition, is_sensitive, is_paused: false, warnings })
}

/// When a schedule fires, one way or the other.
struct Fires {
    trigger: Trigger,
    zone: Zone,
    warnings: Vec<String>,
}

fn fires(when: &api::When, happening: &api::Happening) -> Result<Fires, Error> {
    if let Some((happening, zone)) = happening::meant(when, happening)? {
        return Ok(Fires { trigger: Trigger::Happens(happening), zone, warnings: Vec::new() });
    }
    let meant = when::meant(when)?;
    let (trigger, zone) = (meant.calendar.trigger().clone(), meant.calendar.zone().clone());
    Ok(Fires { trigger: Trigger::Timed(trigger), zone, warnings: meant.warnings })
}

fn tier(number: Option<u8>) -> Result<Option<kernel::backend::Tier>, Error> {
    number.map(TryFrom::try_from).transpose().map_err(errors::invalid)
}

/// Those that are given, and of the others what they were.
fn terms(asked: api::Terms, base: Terms, zone: Option<&Zone>) -> Result<Terms, Error> {
    let instant = |text: Option<String>| {
        let at = text.map(|text| when::instant(&text, zone)).transpose()?;
        Ok::<_, Error>(at.map(Timestamp::from_micros))
    };
    let span = |text: Option<String>| text.map(|text| when::span(&text)).transpose();
    let mut keys = match asked.keys {
        Some(keys) => keys.into_iter().map(|key| parse(&key)).collect::<Result<_, _>>()?,
        None => base.keys,
    };
    keys.sort();
    keys.dedup();
    let backoff = |text: String| base.retry.with_backoff(&text).map_err(invalid_term);
    let retry = asked.backoff.map(backoff).transpose()?.unwrap_or(base.retry);
    let attempts = asked.attempts.unwrap_or(retry.attempts);
    Ok(Terms {
        overlap: asked.overlap.map(|it| parse(&it)).transpose()?.unwrap_or(base.overlap),
        missed: asked.missed.map(|it| parse(&it)).transpose()?.unwrap_or(base.missed),
        window: span(asked.window)?.or(base.window),
        jitter: span(asked.jitter)?.or(base.jitter),
        retry: Retry { attempts, ..retry },
        pause_after: asked.pause_after.unwrap_or(base.pause_after),
        resume: asked.resume.map(|it| parse(&it)).transpose()?.unwrap_or(base.resume),
        priority: asked.priority.unwrap_or(base.priority),
        keys,
        per_day: asked.per_day.or(base.per_day),
        tokens_per_day: asked.tokens_per_day.or(base.tokens_per_day),
        money_per_day: money(asked.money_per_day)?.or(base.money_per_day),
        max_fires: asked.max_fires.or(base.max_fires),
        start_at: instant(asked.start_at)?.or(base.start_at),
        end_at: instant(asked.end_at)?.or(base.end_at),
    })
}

/// Names of terms that shall be the default again.
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
            Some(name) => Err(Error::new(Code::InvalidInput, format!("there is no term `{name}`"))
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

/// What is not said of an action is as it was, as long as it is the same kind of action.
pub(crate) fn edited_action(before: &Action, asked: api::Action) -> Result<Action, Error> {
    match (before, asked) {
        (_, asked) if asked == api::Action::default() => Ok(before.clone()),
        (Action::Prompt { agent, prompt }, asked) if asked.tool.is_none() => {
            let asked = Asked::from(asked);
            action(Asked {
                agent: asked.agent.or_else(|| Some(agent.to_string())),
                prompt: asked.prompt.or_else(|| Some(prompt.clone())),
                ..asked
            })
        }
        (Action::Tool { tool, payload, .. }, asked) if asked.agent.is_none() => {
            let asked = Asked::from(asked);
            action(Asked {
                tool: asked.tool.or_else(|| Some(tool.clone())),
                payload: asked.payload.or_else(|| Some(payload.clone())),
                ..asked
            })
        }
        (_, asked) => action(asked.into()),
    }
}

/// The parts of an action, of which some may be sealed already.
struct Asked {
    agent: Option<String>,
    prompt: Option<Wording>,
    tool: Option<String>,
    payload: Option<Wording>,
}

impl From<api::Action> for Asked {
    fn from(asked: api::Action) -> Asked {
        let api::Action { agent, prompt, tool, payload } = asked;
        Asked {
            agent,
            prompt: prompt.map(Wording::from),
            tool,
            payload: payload.map(Wording::from),
        }
    }
}

fn action(asked: Asked) -> Result<Action, Error> {
    match asked {
        Asked { agent: Some(agent), prompt: Some(prompt), tool: None, payload: None } => {
            let agent = agent.parse().map_err(|invalid| {
                Error::new(Code::InvalidInput, invalid)
                    .hint("`midwatch agent list` shows the agents")
            })?;
            Ok(Action::Prompt { agent, prompt })
        }
        Asked { agent: None, prompt: None, tool: Some(tool), payload } => {
            let payload = payload.unwrap_or_else(|| "{}".into());
            let payload = match payload.plain() {
                Some(text) => json(text)?.into(),
                None => payload,
            };
            Ok(Action::Tool { tool, payload, hash: None })
        }
        _ => Err(Error::new(
            Code::InvalidInput,
            "a schedule either prompts an agent or calls a tool",
        )
        .hint("give an agent and a prompt, or a tool and its payload")),
    }
}

/// The text of a JSON document, as it is stored.
fn json(text: &str) -> Result<String, Error> {
    let json: serde_json::Value = api::json::read(text.as_bytes()).map_err(|error| {
        Error::new(Code::InvalidInput, format!("the payload is not JSON: {error}"))
            .hint("give an object, such as `{\"path\": \"notes.md\"}`")
    })?;
    Ok(json.to_string())
}

fn parse<T>(text: &str) -> Result<T, Error>
where
    T: std::str::FromStr<Err = schedule::terms::InvalidTerm>,
{
    text.parse().map_err(invalid_term)
}

fn invalid_term(invalid: schedule::terms::InvalidTerm) -> Error {
    Error::new(Code::InvalidInput, &invalid).hint(invalid.hint)
}
