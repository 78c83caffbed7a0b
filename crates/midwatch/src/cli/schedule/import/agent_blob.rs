//! The schedules of Agent Blob: a list in a file. Runs that are missed are skipped, as there, and an
//! expression that names days of the month and of the week fires when both fit.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use api::{Code, Error, ScheduleAdd, Terms, When};
use calendar::format_instant;
use compat::promptyoself::prompt;
use kernel::Timestamp;
use kernel::schedule::NAME_CHARS_MAX;
use serde::Deserialize;

use super::crontab::Refusal;
use super::plan::{LeftOut, Place, Plan, Planned, planned};
use crate::cli::unreadable;

const FILE: &str = "schedules.json";
/// Where it is below the directory of an installation.
const INSIDE: &str = "data";
const BYTES_MAX: u64 = 64 << 20;

#[derive(Clone, Debug, Deserialize)]
struct Record {
    id: String,
    #[serde(default = "yes")]
    enabled: bool,
    /// Seconds since 1970.
    next_run_at: Option<f64>,
    created_at: Option<f64>,
    schedule: Due,
    payload: Payload,
    tz: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Due {
    interval_s: Option<f64>,
    cron: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Payload {
    kind: String,
    #[serde(default)]
    text: String,
}

fn yes() -> bool {
    true
}

pub(super) fn plan(directory: &Path, agent: &str, now: Timestamp) -> Result<Plan, Error> {
    let inside = directory.join(INSIDE).join(FILE);
    let path = if inside.is_file() { inside } else { directory.join(FILE) };
    let failed = |error| unreadable("list of schedules", &path, error);
    let mut text = String::new();
    let file = File::open(&path).map_err(failed)?;
    file.take(BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    let malformed = |what: String| {
        let what = format!("`{}` {what}", path.display());
        Error::new(Code::InvalidInput, what).hint("give the directory that Agent Blob works in")
    };
    if BYTES_MAX < text.len() as u64 {
        return Err(malformed("is longer than 64 MiB".to_owned()));
    }
    let records: Vec<serde_json::Value> = serde_json::from_str(&text)
        .map_err(|error| malformed(format!("is no list of schedules: {error}")))?;
    Ok(planned_from(records, agent, now))
}

fn planned_from(records: Vec<serde_json::Value>, agent: &str, now: Timestamp) -> Plan {
    let mut plan = Plan { schedules: Vec::new(), left_out: Vec::new() };
    let mut names: HashMap<String, usize> = HashMap::new();
    for (index, record) in (1..).zip(records) {
        let text = |name: &str| {
            let text = record.get(name).and_then(serde_json::Value::as_str);
            text.unwrap_or_default().trim().to_owned()
        };
        let id = Some(text("id")).filter(|id| !id.is_empty());
        let (id, title) = (id.unwrap_or_else(|| format!("#{index}")), text("title"));
        let count = names.entry(title.clone()).or_default();
        *count += 1;
        // The first of a name has it; so the same list gives the same names.
        let name = if *count == 1 { title.clone() } else { format!("{title} ({id})") };
        match schedule(record, name, agent, now) {
            Ok(planned) => plan.schedules.push(planned),
            Err(why) => plan.left_out.push(LeftOut { place: Place::Entry(id), text: title, why }),
        }
    }
    plan
}

fn schedule(
    record: serde_json::Value,
    name: String,
    agent: &str,
    now: Timestamp,
) -> Result<Planned, Refusal> {
    let record: Record = serde_json::from_value(record).map_err(|error| {
        Refusal::new(format!("its record cannot be understood: {error}"), "add it by hand")
    })?;
    let Payload { kind, text } = &record.payload;
    if kind != "prompt" || text.trim().is_empty() {
        let reason = format!("its payload is `{kind}` and no prompt");
        return Err(Refusal::new(reason, "say in words what the agent shall do"));
    }
    let name = if name.is_empty() { record.id.clone() } else { name };
    let request = ScheduleAdd {
        name: name.chars().take(NAME_CHARS_MAX).collect(),
        when: when(&record)?,
        action: prompt(agent, text),
        terms: Terms { missed: Some("skip".to_owned()), ..Terms::default() },
        ..ScheduleAdd::default()
    };
    let mut planned = planned(Place::Entry(record.id.clone()), request, now)?;
    planned.is_paused = !record.enabled;
    if text.trim_start().starts_with(['{', '[']) {
        planned.warnings.push("its prompt looks like a call of a tool; it is sent as text".into());
    }
    Ok(planned)
}

fn when(record: &Record) -> Result<When, Refusal> {
    let tz = record.tz.clone().filter(|tz| !tz.is_empty()).unwrap_or_else(|| "UTC".to_owned());
    match &record.schedule {
        Due { cron: Some(cron), .. } => {
            let (cron, tz) = (Some(with_both_days(cron)), Some(tz));
            Ok(When { cron, tz, ..When::default() })
        }
        Due { interval_s: Some(seconds), .. } if (1.0..=3.2e8).contains(seconds) => {
            // It goes on with the times that it has there; its name says that it is the same one.
            let from = record.next_run_at.or(record.created_at).unwrap_or_default();
            let anchor = format_instant(micros(from));
            let every = Some(format!("{}ms", millis(*seconds)));
            Ok(When { every, anchor: Some(anchor), ..When::default() })
        }
        Due { .. } => Err(Refusal::new(
            "it has neither an expression nor an interval of a second or more",
            "add it by hand with `midwatch schedule add`",
        )),
    }
}

/// A `+` says that both day fields must fit. With a star in one of them they do so anyway.
fn with_both_days(cron: &str) -> String {
    let fields: Vec<&str> = cron.split_whitespace().collect();
    match fields.as_slice() {
        [minute, hour, day, month, weekday] if *day != "*" && *weekday != "*" => {
            format!("{minute} {hour} {day} {month} +{weekday}")
        }
        fields => fields.join(" "),
    }
}

fn millis(seconds: f64) -> i64 {
    (seconds * 1e3).round() as i64
}

fn micros(seconds: f64) -> i64 {
    millis(seconds.clamp(0.0, 4e9)) * 1_000
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(
        schedule: serde_json::Value,
        payload: serde_json::Value,
        expected: Result<&str, &str>,
    ) {
        let record = json!({
            "id": "sched_1", "type": "x", "title": "t", "schedule": schedule, "payload": payload,
            "created_at": 1.5, "next_run_at": 99.0,
        });
        let plan = planned_from(vec![record.clone()], "ada", Timestamp::from_micros(0));
        let found = match (plan.schedules.as_slice(), plan.left_out.as_slice()) {
            ([it], []) => Ok(it.describe.as_str()),
            ([], [it]) => Err(it.why.reason.as_str()),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{record}");
    }

    #[test]
    fn a_record_is_a_schedule_or_says_why_not() {
        let prompt = json!({"kind": "prompt", "text": "hi"});
        check(json!({"cron": "30 9 * * *"}), prompt.clone(), Ok("at 09:30 every day"));
        check(
            json!({"interval_s": 10}),
            prompt.clone(),
            Ok("every 10 seconds from 1970-01-01T00:01:39Z"),
        );
        check(
            json!({"interval_s": 0.2}),
            prompt,
            Err("it has neither an expression nor an interval of a second or more"),
        );
        let tool = json!({"kind": "tool"});
        check(json!({"cron": "* * * * *"}), tool, Err("its payload is `tool` and no prompt"));
    }

    #[test]
    fn both_day_fields_must_fit() {
        for (cron, expected) in [
            ("0 9 1 * 1", "0 9 1 * +1"),
            ("0 9 * * 1,2", "0 9 * * 1,2"),
            ("0 9 1,15 * *", "0 9 1,15 * *"),
        ] {
            assert_eq!(with_both_days(cron), expected);
        }
    }
}
