//! Schedules of Agent Blob, from the list in its file. As there, missed runs are skipped, and an
//! expression with days of the month and of the week fires when both match.

use std::path::{Path, PathBuf};

use api::{Code, Error, ScheduleAdd, Terms, When};
use calendar::format_instant;
use compat::import::{Entry, LeftOut, NewSchedule, Position, UniqueNames, agent_hint, parse_json};
use compat::promptyoself::prompt_action;
use serde::Deserialize;
use serde_json::Value;

use super::machine_zone::ZoneSource;
use crate::cli::support::input::{open, read_text};

const FILE: &str = "schedules.json";
/// The folder of the file in an installation of Agent Blob.
const SUBDIRECTORY: &str = "data";
/// The configuration, in the folder of the installation.
const CONFIGURATION: &str = "agent_blob.json";
const BYTES_MAX: u64 = 64 << 20;

#[derive(Clone, Debug, Deserialize)]
struct Record {
    #[serde(default = "yes")]
    enabled: bool,
    /// Seconds since 1970.
    next_run_at: Option<f64>,
    created_at: Option<f64>,
    #[serde(flatten)]
    content: Content,
    tz: Option<String>,
}

/// The trigger and the prompt of a record, in its present and its older form.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Present {
        schedule: RecordTrigger,
        payload: Payload,
    },
    Older {
        #[serde(flatten)]
        schedule: RecordTrigger,
        input: String,
    },
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

/// `zone` is used for records that name none and for which the configuration names none.
pub(super) fn read(directory: &Path, agent: &str, zone: ZoneSource) -> Result<Vec<Entry>, Error> {
    let inside = directory.join(SUBDIRECTORY).join(FILE);
    let path = if inside.is_file() { inside } else { directory.join(FILE) };
    let what = "list of schedules";
    let text = read_text(what, &path, open(what, &path)?, BYTES_MAX)?;
    let Value::Array(records) = parse_json(&format!("`{}`", path.display()), &text)? else {
        let what = format!("`{}` is not a list of schedules", path.display());
        let hint = "name the working directory of Agent Blob";
        return Err(Error::new(Code::InvalidInput, what).hint(hint));
    };
    let zone = zone.or_configured(configured_zone(directory))?;
    Ok(entries(records, agent, &zone))
}

/// `scheduler.timezone` of the configuration, which is beside the data or in the directory itself.
fn configured_zone(directory: &Path) -> Option<String> {
    let parent = directory.parent().map(|parent| parent.join(CONFIGURATION));
    let paths: Vec<PathBuf> = [directory.join(CONFIGURATION)].into_iter().chain(parent).collect();
    let path = paths.iter().find(|path| path.is_file())?;
    let text =
        read_text("configuration", path, open("configuration", path).ok()?, BYTES_MAX).ok()?;
    let configuration: Value = serde_json::from_str(&text).ok()?;
    configuration.get("scheduler")?.get("timezone")?.as_str().map(str::to_owned)
}

fn entries(records: Vec<Value>, agent: &str, zone: &str) -> Vec<Entry> {
    let mut names = UniqueNames::default();
    let entries = (1..).zip(records).map(|(index, record)| {
        let text = |name: &str| {
            let text = record.get(name).and_then(Value::as_str);
            text.unwrap_or_default().trim().to_owned()
        };
        let id = Some(text("id")).filter(|id| !id.is_empty());
        let (id, title) = (id.unwrap_or_else(|| format!("#{index}")), text("title"));
        let name = names.name(&title, &id);
        let outcome = new_schedule(record, name, agent, zone);
        Entry { position: Position::entry(id), text: title, outcome }
    });
    entries.collect()
}

fn new_schedule(
    record: Value,
    name: String,
    agent: &str,
    zone: &str,
) -> Result<NewSchedule, LeftOut> {
    let record: Record = serde_json::from_value(record).map_err(|error| {
        LeftOut::new(format!("its record is invalid: {error}"), "add it by hand")
    })?;
    let prompt = match &record.content {
        Content::Present { payload: Payload { kind, text }, .. } if kind == "prompt" => text,
        Content::Present { payload: Payload { kind, .. }, .. } => {
            let reason = format!("its payload is `{kind}`, not a prompt");
            return Err(LeftOut::new(reason, "add it with a prompt for the agent"));
        }
        Content::Older { input, .. } => input,
    };
    if prompt.trim().is_empty() {
        return Err(LeftOut::new("it has no prompt", "add it with a prompt for the agent"));
    }
    let request = ScheduleAdd {
        name,
        when: when(&record, zone)?,
        action: prompt_action(agent, prompt),
        terms: Terms { missed: Some("skip".to_owned()), ..Terms::default() },
        paused: !record.enabled,
        ..ScheduleAdd::default()
    };
    let mut schedule = NewSchedule::new(request, agent_hint(agent));
    if prompt.trim_start().starts_with(['{', '[']) {
        schedule.warnings.push("its prompt looks like a tool call; it is sent as text".into());
    }
    Ok(schedule)
}

fn when(record: &Record, zone: &str) -> Result<When, LeftOut> {
    let tz = record.tz.clone().filter(|tz| !tz.is_empty()).unwrap_or_else(|| zone.to_owned());
    let (Content::Present { schedule, .. } | Content::Older { schedule, .. }) = &record.content;
    match schedule {
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
        RecordTrigger { .. } => Err(LeftOut::new(
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
    use kernel::Timestamp;
    use serde_json::json;

    use super::super::plan::plan;
    use super::*;

    /// Checks the trigger in words, or the reason if it is left out.
    fn check(record: Value, expected: Result<&str, &str>) {
        let now = Timestamp::from_micros(0);
        let planned = plan(entries(vec![record.clone()], "ada", "Asia/Tokyo"), now).unwrap();
        let found = match &planned[0].outcome {
            Ok(it) => Ok(format!("{} ({})", it.describe, it.zone.name())),
            Err(it) => Err(it.reason.as_str()),
        };
        assert_eq!(found, expected.map(str::to_owned), "{record}");
    }

    fn check_present(schedule: Value, payload: Value, expected: Result<&str, &str>) {
        let record = json!({
            "id": "sched_1", "type": "x", "title": "t", "schedule": schedule, "payload": payload,
            "created_at": 1.5, "next_run_at": 99.0, "tz": null,
        });
        check(record, expected);
    }

    #[test]
    fn record_becomes_a_schedule_or_a_reason() {
        let prompt = json!({"kind": "prompt", "text": "hi"});
        check_present(
            json!({"cron": "30 9 * * *"}),
            prompt.clone(),
            Ok("at 09:30 every day (Asia/Tokyo)"),
        );
        check_present(
            json!({"interval_s": 10}),
            prompt.clone(),
            Ok("every 10 seconds from 1970-01-01T00:01:39Z (UTC)"),
        );
        check_present(
            json!({"interval_s": 0.2}),
            prompt,
            Err("it has neither a cron expression nor an interval of a second or more"),
        );
        let tool = json!({"kind": "tool"});
        check_present(
            json!({"cron": "* * * * *"}),
            tool,
            Err("its payload is `tool`, not a prompt"),
        );
    }

    #[test]
    fn record_of_the_older_form_is_read() {
        let older = json!({"id": "sched_1", "cron": "0 9 * * *", "input": "hi", "tz": "UTC"});
        check(older, Ok("at 09:00 every day (UTC)"));
        let older = json!({"id": "sched_1", "interval_s": 60, "input": "hi", "created_at": 0.0});
        check(older, Ok("every minute (UTC)"));
        check(json!({"id": "sched_1", "cron": "0 9 * * *", "input": ""}), Err("it has no prompt"));
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
