//! Schedules of Agent Blob, from the list in its file. As there, missed runs are skipped, and an
//! expression with days of the month and of the week fires when both match.

use std::collections::HashMap;
use std::path::Path;

use api::{Code, Error, ScheduleAdd, Terms, When};
use calendar::format_instant;
use compat::promptyoself::prompt_action;
use kernel::Timestamp;
use kernel::schedule::NAME_CHARS_MAX;
use serde::Deserialize;

use super::crontab::SkipReason;
use super::plan::{Plan, Planned, Skipped, SourcePosition, plan_schedule};
use crate::cli::support::input::{open, read_text};

const FILE: &str = "schedules.json";
/// The folder of the file in an installation of Agent Blob.
const SUBDIRECTORY: &str = "data";
const BYTES_MAX: u64 = 64 << 20;

#[derive(Clone, Debug, Deserialize)]
struct Record {
    id: String,
    #[serde(default = "yes")]
    enabled: bool,
    /// Seconds since 1970.
    next_run_at: Option<f64>,
    created_at: Option<f64>,
    schedule: RecordTrigger,
    payload: Payload,
    tz: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct RecordTrigger {
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
    let inside = directory.join(SUBDIRECTORY).join(FILE);
    let path = if inside.is_file() { inside } else { directory.join(FILE) };
    let what = "list of schedules";
    let text = read_text(what, &path, open(what, &path)?, BYTES_MAX)?;
    let records: Vec<serde_json::Value> = serde_json::from_str(&text).map_err(|error| {
        let what = format!("`{}` is not a list of schedules: {error}", path.display());
        Error::new(Code::InvalidInput, what).hint("name the working directory of Agent Blob")
    })?;
    Ok(plan_records(records, agent, now))
}

fn plan_records(records: Vec<serde_json::Value>, agent: &str, now: Timestamp) -> Plan {
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
        // The first schedule of a title keeps it, so the same list makes the same names.
        let name = if *count == 1 { title.clone() } else { format!("{title} ({id})") };
        match plan_record(record, name, agent, now) {
            Ok(planned) => plan.schedules.push(planned),
            Err(why) => plan.left_out.push(Skipped {
                position: SourcePosition::Entry(id),
                text: title,
                why,
            }),
        }
    }
    plan
}

fn plan_record(
    record: serde_json::Value,
    name: String,
    agent: &str,
    now: Timestamp,
) -> Result<Planned, SkipReason> {
    let record: Record = serde_json::from_value(record).map_err(|error| {
        SkipReason::new(format!("its record is invalid: {error}"), "add it by hand")
    })?;
    let Payload { kind, text } = &record.payload;
    if kind != "prompt" || text.trim().is_empty() {
        let reason = format!("its payload is `{kind}`, not a prompt");
        return Err(SkipReason::new(reason, "add it with a prompt for the agent"));
    }
    let name = if name.is_empty() { record.id.clone() } else { name };
    let request = ScheduleAdd {
        name: name.chars().take(NAME_CHARS_MAX).collect(),
        when: when(&record)?,
        action: prompt_action(agent, text),
        terms: Terms { missed: Some("skip".to_owned()), ..Terms::default() },
        ..ScheduleAdd::default()
    };
    let mut planned = plan_schedule(SourcePosition::Entry(record.id.clone()), request, now)?;
    planned.is_paused = !record.enabled;
    if text.trim_start().starts_with(['{', '[']) {
        planned.warnings.push("its prompt looks like a tool call; it is sent as text".into());
    }
    Ok(planned)
}

fn when(record: &Record) -> Result<When, SkipReason> {
    let tz = record.tz.clone().filter(|tz| !tz.is_empty()).unwrap_or_else(|| "UTC".to_owned());
    match &record.schedule {
        RecordTrigger { cron: Some(cron), .. } => {
            let (cron, tz) = (Some(with_both_days(cron)), Some(tz));
            Ok(When { cron, tz, ..When::default() })
        }
        RecordTrigger { interval_s: Some(seconds), .. } if (1.0..=3.2e8).contains(seconds) => {
            // The anchor keeps the times that it has in Agent Blob.
            let from = record.next_run_at.or(record.created_at).unwrap_or_default();
            let anchor = format_instant(micros(from));
            let every = Some(format!("{}ms", millis(*seconds)));
            Ok(When { every, anchor: Some(anchor), ..When::default() })
        }
        RecordTrigger { .. } => Err(SkipReason::new(
            "it has neither a cron expression nor an interval of a second or more",
            "add it by hand with `midwatch schedule add`",
        )),
    }
}

/// Adds the `+` that makes both day fields match. With a `*` in one of them they do anyway.
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
        let plan = plan_records(vec![record.clone()], "ada", Timestamp::from_micros(0));
        let found = match (plan.schedules.as_slice(), plan.left_out.as_slice()) {
            ([it], []) => Ok(it.describe.as_str()),
            ([], [it]) => Err(it.why.reason.as_str()),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{record}");
    }

    #[test]
    fn record_becomes_a_schedule_or_a_reason() {
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
            Err("it has neither a cron expression nor an interval of a second or more"),
        );
        let tool = json!({"kind": "tool"});
        check(json!({"cron": "* * * * *"}), tool, Err("its payload is `tool`, not a prompt"));
    }

    #[test]
    fn both_day_fields_must_match() {
        for (cron, expected) in [
            ("0 9 1 * 1", "0 9 1 * +1"),
            ("0 9 * * 1,2", "0 9 * * 1,2"),
            ("0 9 1,15 * *", "0 9 1,15 * *"),
        ] {
            assert_eq!(with_both_days(cron), expected);
        }
    }
}
