//! Schedules of Astra, from its index, or from its chain of events if the index is lost or damaged. Its
//! times are in UTC, and the sixth field of an expression has the seconds.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use api::{Action, Code, Error, Payload, ScheduleAdd, Terms, When};
use compat::astra::name_with_id;
use compat::cron::seconds_first;
use compat::import::{Entry, LeftOut, NewSchedule, Position};
use flate2::read::MultiGzDecoder;
use mcp::scheduled;
use serde::Deserialize;
use serde_json::{Map, Value, json};

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
type Chain = (Records, Vec<Entry>);

/// Uses the index if it has any record, else the chain.
pub(super) fn read(directory: &Path) -> Result<Vec<Entry>, Error> {
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
    Ok(entries(records).chain(damage).collect())
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
            let outcome = Err(LeftOut::new(reason, hint));
            damage.push(Entry { position: Position::entry(name), text: String::new(), outcome });
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

fn entries(records: Records) -> impl Iterator<Item = Entry> {
    records.into_iter().map(|(id, record)| {
        let text = record.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let outcome = new_schedule(&id, record);
        Entry { position: Position::entry(id), text, outcome }
    })
}

/// Its id becomes part of its name, so that Astra's clients find it.
fn new_schedule(id: &str, record: Value) -> Result<NewSchedule, LeftOut> {
    let record: Record = serde_json::from_value(record).map_err(|error| {
        LeftOut::new(format!("its record is invalid: {error}"), "add it by hand")
    })?;
    let payload = match record.payload {
        Value::Null => json!({}),
        payload => payload,
    };
    let payload = Payload::try_from(payload)?;
    let tool = scheduled::find(&record.target_tool)?;
    scheduled::request(tool, payload.as_str())?;
    let action =
        Action { tool: Some(record.target_tool), payload: Some(payload), ..Action::default() };
    let request = ScheduleAdd {
        name: name_with_id(&record.name, id)
            .map_err(|long| LeftOut::new(long.message, "add it by hand under a shorter name"))?,
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
        paused: record.status == "paused",
        ..ScheduleAdd::default()
    };
    Ok(NewSchedule::new(request, String::new()))
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
        let entries: Vec<Entry> = entries(records).collect();
        let [Entry { outcome: Ok(NewSchedule { request, .. }), .. }] = entries.as_slice() else {
            panic!("{entries:?}")
        };
        assert_eq!((request.when.cron.as_deref(), request.paused), (Some("0 8 * * *"), true));
        assert_eq!((request.tier, request.terms.per_day), (Some(2), Some(7)));
        assert_eq!(request.action.payload.as_ref().map(Payload::as_str), Some("{\"limit\":1}"));
    }

    #[test]
    fn names_contain_the_id() {
        let record = |tool: &str| json!({"name": "n", "cron": "0 9 * * *", "target_tool": tool});
        let records =
            [("sch_1", record("run_list")), ("sch_2", record("agent_list")), ("sch_3", json!({}))];
        let records = records.map(|(id, record)| (id.to_owned(), record)).into_iter().collect();
        let found: Vec<String> = entries(records)
            .map(|it| match it.outcome {
                Ok(NewSchedule { request, .. }) => request.name,
                Err(_) => format!("left out: {}", it.position),
            })
            .collect();
        assert_eq!(found, ["n (sch_1)", "n (sch_2)", "left out: entry sch_3"]);
    }
}
