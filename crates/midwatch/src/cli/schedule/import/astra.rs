//! Schedules of Astra, from its index, or from its chain of events if the index is lost or damaged. Its
//! times are in UTC, and the sixth field of an expression has the seconds.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use api::{Action, Code, Error, Payload, ScheduleAdd, Terms, When};
use compat::astra::{name_with_id, seconds_first};
use flate2::read::MultiGzDecoder;
use kernel::Timestamp;
use mcp::scheduled;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::crontab::SkipReason;
use super::plan::{Plan, Planned, Skipped, SourcePosition, plan_schedule};
use crate::cli::support::input::{open, unreadable};

const INDEX: &str = "index.json";
/// The folder of the files in an installation of Astra.
const SUBDIRECTORY: &str = "var/schedules";
const CHAIN_SUFFIX: &str = ".ndjson.gz";
const BYTES_MAX: u64 = 64 << 20;

#[derive(Clone, Debug, Deserialize)]
struct Record {
    name: String,
    cron: String,
    target_tool: String,
    #[serde(default)]
    payload: Value,
    #[serde(default)]
    status: String,
    safety_tier: Option<u8>,
    run_budget: Option<RunBudget>,
}

#[derive(Clone, Debug, Deserialize)]
struct RunBudget {
    per_day: Option<u32>,
}

/// Records by id.
type Records = BTreeMap<String, Value>;

/// The records that the chain leads to, and the files that could be read only in part.
type Chain = (Records, Vec<Skipped>);

/// Uses the index if it has any record, else the chain.
pub(super) fn plan(directory: &Path, now: Timestamp) -> Result<Plan, Error> {
    let inside = directory.join(SUBDIRECTORY);
    let directory = if inside.is_dir() { inside.as_path() } else { directory };
    let index = read_index(directory)?;
    let (records, damage) = match index {
        Some(records) if !records.is_empty() => (records, Vec::new()),
        index => match (read_chain(directory), index) {
            (Err(none), Some(records)) if none.code == Code::NotFound => (records, Vec::new()),
            (chain, _) => chain?,
        },
    };
    let mut plan = plan_records(records, now);
    plan.left_out.extend(damage);
    Ok(plan)
}

/// The index; `None` if it does not exist or is damaged.
fn read_index(directory: &Path) -> Result<Option<Records>, Error> {
    let path = directory.join(INDEX);
    match files::open_linked(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable("index", &path, error)),
        Ok(file) => Ok(read_all(file).ok().and_then(|text| serde_json::from_str(&text).ok())),
    }
}

fn read_chain(directory: &Path) -> Result<Chain, Error> {
    let failed = |error| unreadable("directory", directory, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.to_string_lossy().ends_with(CHAIN_SUFFIX) {
            files.push(path);
        }
    }
    if files.is_empty() {
        let what = format!("`{}` holds no schedules of Astra", directory.display());
        return Err(Error::new(Code::NotFound, what)
            .hint("name the directory with `index.json` or `YYYY-MM.ndjson.gz`"));
    }
    // Names start with the month.
    files.sort();
    let (mut records, mut damage) = (Records::new(), Vec::new());
    for path in files {
        let file = open("chain", &path)?;
        let mut bytes = Vec::new();
        let read = MultiGzDecoder::new(file).take(BYTES_MAX + 1).read_to_end(&mut bytes);
        if BYTES_MAX < bytes.len() as u64 {
            return Err(unreadable("chain", &path, too_long()));
        }
        for line in String::from_utf8_lossy(&bytes).lines() {
            apply_event(&mut records, line);
        }
        if let Err(error) = read {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let reason = format!("only a part of it can be read: {error}");
            let hint = "the rest was not imported; check whether a schedule is missing";
            let why = SkipReason::new(reason, hint);
            damage.push(Skipped { position: SourcePosition::Entry(name.clone()), text: name, why });
        }
    }
    Ok((records, damage))
}

fn read_all(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    match text.len() as u64 <= BYTES_MAX {
        true => Ok(text),
        false => Err(too_long()),
    }
}

fn too_long() -> io::Error {
    io::Error::other("longer than 64 MiB")
}

/// Applies one line of the chain; the last line may be cut off.
fn apply_event(records: &mut Records, line: &str) {
    let Ok(Value::Object(event)) = serde_json::from_str::<Value>(line) else { return };
    let text = |names: &[&str]| {
        names.iter().find_map(|name| event.get(*name)).and_then(Value::as_str).unwrap_or_default()
    };
    let id = text(&["schedule_id", "id"]);
    let set = |records: &mut Records, name: &str, value: Value| {
        if let Some(Value::Object(record)) = records.get_mut(id) {
            record.insert(name.to_owned(), value);
        }
    };
    match text(&["event", "event_type", "type"]) {
        "schedule_created" => {
            if let Some(schedule) = event.get("schedule") {
                let own = schedule.get("id").and_then(Value::as_str).unwrap_or(id);
                records.insert(own.to_owned(), schedule.clone());
            }
        }
        "schedule_modified" => {
            let none = Map::new();
            let updates = event.get("updates").and_then(Value::as_object).unwrap_or(&none);
            for (name, value) in updates {
                match name.as_str() {
                    "per_day_budget" => {
                        set(records, "run_budget", serde_json::json!({ "per_day": value }));
                    }
                    "cron_expression" => set(records, "cron", value.clone()),
                    name => set(records, name, value.clone()),
                }
            }
        }
        "schedule_paused" => set(records, "status", "paused".into()),
        "schedule_resumed" => set(records, "status", "active".into()),
        // A run changes nothing that is imported.
        _ => {}
    }
}

fn plan_records(records: Records, now: Timestamp) -> Plan {
    let mut plan = Plan { schedules: Vec::new(), left_out: Vec::new() };
    for (id, record) in records {
        let text = record.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        match plan_record(&id, record, now) {
            Ok(planned) => plan.schedules.push(planned),
            Err(why) => {
                plan.left_out.push(Skipped { position: SourcePosition::Entry(id), text, why })
            }
        }
    }
    plan
}

/// Its id becomes part of its name, so that Astra's clients find it.
fn plan_record(id: &str, record: Value, now: Timestamp) -> Result<Planned, SkipReason> {
    let record: Record = serde_json::from_value(record).map_err(|error| {
        SkipReason::new(format!("its record is invalid: {error}"), "add it by hand")
    })?;
    let payload = match record.payload {
        Value::Null => json!({}),
        payload => payload,
    };
    let unfit = |unfit: Error| SkipReason::new(unfit.message, unfit.hint.unwrap_or_default());
    let payload = Payload::try_from(payload).map_err(unfit)?;
    scheduled::find(&record.target_tool)
        .and_then(|tool| scheduled::request(tool, payload.as_str()))
        .map_err(unfit)?;
    let action =
        Action { tool: Some(record.target_tool), payload: Some(payload), ..Action::default() };
    let request = ScheduleAdd {
        name: name_with_id(&record.name, id)
            .map_err(|long| SkipReason::new(long.message, "add it by hand under a shorter name"))?,
        when: When {
            cron: Some(seconds_first(&record.cron)),
            tz: Some("UTC".to_owned()),
            ..When::default()
        },
        action,
        tier: record.safety_tier,
        terms: Terms {
            per_day: record.run_budget.and_then(|budget| budget.per_day),
            ..Terms::default()
        },
        ..ScheduleAdd::default()
    };
    let mut planned = plan_schedule(SourcePosition::Entry(id.to_owned()), request, now)?;
    planned.is_paused = record.status == "paused";
    Ok(planned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_are_restored_from_the_chain() {
        let mut records = Records::new();
        for event in [
            json!({"event": "schedule_created", "_timestamp": "t", "schedule": {
                "id": "sch_1", "name": "n", "cron": "0 9 * * *", "target_tool": "run_list",
                "payload": {"limit": 1}, "status": "active", "safety_tier": 2}}),
            json!({"event": "schedule_modified", "schedule_id": "sch_1",
                "updates": {"cron": "0 8 * * *", "per_day_budget": 7}}),
            json!({"event": "schedule_paused", "schedule_id": "sch_1"}),
            json!({"event": "schedule_executed", "schedule_id": "sch_1"}),
            json!({"event": "schedule_paused", "schedule_id": "sch_unknown"}),
        ] {
            apply_event(&mut records, &event.to_string());
        }
        apply_event(&mut records, "{\"event\": \"schedule_res");
        let plan = plan_records(records, Timestamp::from_micros(0));
        let [planned] = plan.schedules.as_slice() else { panic!("{plan:?}") };
        let request = &planned.request;
        assert_eq!(planned.describe, "at 08:00 every day");
        assert!(planned.is_paused);
        assert_eq!((request.tier, request.terms.per_day), (Some(2), Some(7)));
        assert_eq!(request.action.payload.as_ref().map(Payload::as_str), Some("{\"limit\":1}"));
    }

    #[test]
    fn names_contain_the_id() {
        let record = |tool: &str| json!({"name": "n", "cron": "0 9 * * *", "target_tool": tool});
        let records =
            [("sch_1", record("run_list")), ("sch_2", record("agent_list")), ("sch_3", json!({}))];
        let records = records.map(|(id, record)| (id.to_owned(), record)).into_iter().collect();
        let plan = plan_records(records, Timestamp::from_micros(0));
        let names: Vec<&str> = plan.schedules.iter().map(|it| it.request.name.as_str()).collect();
        assert_eq!(names, ["n (sch_1)", "n (sch_2)"]);
        assert_eq!(plan.left_out[0].position, SourcePosition::Entry("sch_3".to_owned()));
    }
}
