//! Generates the agents and random schedules of a simulation: every kind of trigger, all sorts of terms.

use api::{
    Action, AgentAdd, AgentEdit, AgentRemove, AgentSettings, ApiRequest, EventTrigger, Request,
    ScheduleAdd, Terms, When,
};
use jiff::Timestamp;

use super::naive_calendar::SECOND_US;
use super::patterns::PATTERNS;
use crate::dice::Dice;

/// Its runs may be repeated.
pub(super) const ECHO: &str = "ada";
/// Its runs must not be repeated.
pub(super) const PROGRAM: &str = "smith";
/// Marked as repeatable, but in tier 2, so its runs must not be repeated.
const EXTERNAL: &str = "otto";
/// In tier 2, and two people must approve its runs.
pub(super) const TWO_APPROVERS: &str = "tina";
/// The operator's rules in every simulation.
pub(super) const POLICY: &str = r#"
    [[rule]]
    id = "two"
    ask = ["agent.prompt"]
    agent = ["tina"]
    persons = 2
    match = [{ capability = "agent.prompt", agent = "tina" }]
    not_match = [{ capability = "agent.prompt", agent = "otto" }]
"#;
/// Reports its usage, so the first run reserves a share of the day's budget.
const REPORTS_USAGE: &str = "lena";
pub(super) const PROMPT: &str = "go on";
/// The prompts that an edit may set.
pub(super) const PROMPTS: [&str; 3] = [PROMPT, "go back", "go home"];
pub(super) const EVENTS: [&str; 2] = ["mail/in", "build.done"];
const ZONES: [&str; 6] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Africa/Cairo",
];

pub(super) fn agents() -> Vec<AgentAdd> {
    let program = |name: &str| AgentAdd {
        name: name.to_owned(),
        backend: "command".to_owned(),
        settings: AgentSettings {
            argv: vec!["true".to_owned()],
            time_limit_seconds: Some(1_200),
            ..AgentSettings::default()
        },
        look: false,
    };
    let priced = |agent: AgentAdd| AgentAdd {
        settings: AgentSettings { price_input: Some("1".to_owned()), ..agent.settings },
        ..agent
    };
    let external = |agent: AgentAdd| AgentAdd {
        settings: AgentSettings { tier: Some(2), ..agent.settings },
        ..agent
    };
    let repeatable = |agent: AgentAdd| AgentAdd {
        settings: AgentSettings {
            repeatable: Some(true),
            price_run: Some("0.0001".to_owned()),
            ..agent.settings
        },
        ..agent
    };
    vec![
        AgentAdd { name: ECHO.to_owned(), backend: "builtin".to_owned(), ..AgentAdd::default() },
        priced(program(PROGRAM)),
        priced(AgentAdd {
            name: REPORTS_USAGE.to_owned(),
            backend: "letta".to_owned(),
            settings: AgentSettings {
                remote_id: Some("agent-1".to_owned()),
                ..AgentSettings::default()
            },
            look: false,
        }),
        repeatable(external(program(EXTERNAL))),
        priced(external(program(TWO_APPROVERS))),
    ]
}

/// A request that edits, removes or adds an agent.
pub(super) fn agent_request(dice: &mut Dice) -> Option<Request> {
    let agents = agents();
    let agent = dice.pick(&agents)?.clone();
    Some(match dice.below(6) {
        0 => AgentRemove { name: agent.name }.into_request(),
        1..3 => agent.into_request(),
        _ => {
            let tier = Some(dice.one(2, &[0, 1]));
            let settings = AgentSettings { tier, ..AgentSettings::default() };
            AgentEdit { name: agent.name, settings, ..AgentEdit::default() }.into_request()
        }
    })
}

pub(super) fn instant(micros: i64) -> String {
    Timestamp::from_microsecond(micros).unwrap_or_default().to_string()
}

/// A random trigger: by time, or by an event or run.
pub(super) fn trigger(dice: &mut Dice, now_us: i64, others: &[String]) -> (When, EventTrigger) {
    let (when, event_trigger) = (When::default(), EventTrigger::default());
    match dice.below(16) {
        0..5 => {
            let every = dice.one("20s", &["1m", "90s", "10m", "1h", "7h"]).to_owned();
            let shift = dice.below(100_000) as i64 * SECOND_US;
            let anchor = dice.is_one_in(3).then(|| instant(now_us - shift));
            (When { every: Some(every), anchor, ..when }, event_trigger)
        }
        5..9 => (pattern(dice), event_trigger),
        9 => {
            let at = instant(now_us + dice.below(4_000) as i64 * SECOND_US);
            (When { at: Some(at), ..when }, event_trigger)
        }
        10..12 => (
            when,
            EventTrigger { event: dice.pick(&EVENTS).map(ToString::to_string), ..event_trigger },
        ),
        12..14 => {
            let ending = Some(dice.one("success", &["failure", "any"]).to_owned());
            match dice.pick(others) {
                Some(other) => {
                    (when, EventTrigger { after: Some(other.clone()), ending, ..event_trigger })
                }
                None => (When { every: Some("5m".to_owned()), ..when }, event_trigger),
            }
        }
        _ => {
            let since = Some(dice.one("start", &["finish"]).to_owned());
            let again = Some(dice.one("30s", &["2m", "15m"]).to_owned());
            (when, EventTrigger { again, since, ..event_trigger })
        }
    }
}

fn pattern(dice: &mut Dice) -> When {
    let tz = dice.pick(&ZONES).map(ToString::to_string);
    let when = When { tz, ..When::default() };
    let Some(pattern) = dice.pick(PATTERNS) else { return when };
    match pattern.daily {
        Some((times, on)) => {
            When { daily: Some(times.to_owned()), on: on.map(str::to_owned), ..when }
        }
        None => When { cron: pattern.cron.map(str::to_owned), ..when },
    }
}

pub(super) fn terms(dice: &mut Dice, now_us: i64) -> Terms {
    let overlap = dice.one(
        "skip",
        &["skip", "buffer_one", "buffer_all:3", "allow:2", "cancel_other", "terminate_other"],
    );
    let missed = dice.one("latest", &["earliest", "all:4", "skip"]);
    let mut one_in = |many: u64| dice.is_one_in(many);
    let (has_window, has_jitter, has_keys) = (one_in(3), one_in(4), one_in(4));
    let (is_paced, is_counted, starts, ends) = (one_in(8), one_in(5), one_in(8), one_in(8));
    let (is_frugal, is_poor) = (one_in(6), one_in(6));
    let seconds = |dice: &mut Dice, end: u64| dice.below(end) as i64 * SECOND_US;
    Terms {
        overlap: Some(overlap.to_owned()),
        missed: Some(missed.to_owned()),
        window: has_window.then(|| dice.one("30s", &["10m", "3h", "30d"]).to_owned()),
        jitter: has_jitter.then(|| dice.one("5s", &["45s", "10m"]).to_owned()),
        attempts: Some(dice.one(1, &[2, 5])),
        backoff: None,
        pause_after: Some(dice.one(5, &[0, 1, 3])),
        resume: Some(dice.one("skip", &["as_missed"]).to_owned()),
        priority: Some(dice.one(5, &[0, 9])),
        keys: has_keys.then(|| vec![dice.one("deploy", &["mail:2"]).to_owned()]),
        per_day: is_paced.then(|| dice.one(3, &[40])),
        tokens_per_day: is_frugal.then(|| dice.one(3_000, &[600])),
        money_per_day: is_poor.then(|| dice.one("0.004", &["0.0005"]).to_owned()),
        max_fires: is_counted.then(|| dice.one(1, &[4, 12])),
        start_at: starts.then(|| instant(now_us + seconds(dice, 2_000))),
        end_at: ends.then(|| instant(now_us + 2_000 * SECOND_US + seconds(dice, 200_000))),
    }
}

pub(super) fn schedule(dice: &mut Dice, now_us: i64, others: &[String]) -> ScheduleAdd {
    let (when, event_trigger) = trigger(dice, now_us, others);
    let agent = dice
        .one(ECHO, &[ECHO, PROGRAM, EXTERNAL, TWO_APPROVERS, TWO_APPROVERS, REPORTS_USAGE])
        .to_owned();
    let action =
        Action { agent: Some(agent), prompt: Some(PROMPT.to_owned()), ..Action::default() };
    ScheduleAdd {
        name: format!("plan {}", dice.below(40)),
        when,
        event_trigger,
        action,
        sensitive: false,
        tier: None,
        terms: terms(dice, now_us),
        paused: false,
        dry_run: false,
    }
}

/// A schedule that fires often and has no early end.
pub(super) fn busy_schedule(dice: &mut Dice, now_us: i64) -> ScheduleAdd {
    let schedule = schedule(dice, now_us, &[]);
    let every = Some(dice.one("20s", &["1m", "90s", "3m"]).to_owned());
    let terms = Terms {
        max_fires: None,
        start_at: None,
        end_at: None,
        per_day: Some(5_000),
        ..schedule.terms
    };
    let (when, event_trigger) = (When { every, ..When::default() }, EventTrigger::default());
    ScheduleAdd { when, event_trigger, terms, ..schedule }
}
