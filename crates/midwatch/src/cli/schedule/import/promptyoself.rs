//! Schedules from the database of promptyoself. They keep their numbers and their counts.
//!
//! Stored times have no offset and are in UTC. promptyoself dropped the offset of the time that it was
//! given; the original text is stored, too, and has it.

use std::collections::HashSet;
use std::path::Path;

use api::{Code, Error, ScheduleAdd, When};
use calendar::{Zone, format_instant, parse_instant};
use compat::cron::seconds_first;
use compat::import::{Entry, LeftOut, NewSchedule, Position};
use compat::promptyoself::register::{parse_cron, parse_interval, parse_time};
use compat::promptyoself::{prompt_action, prompt_terms, view};
use kernel::Timestamp;
use kernel::schedule::PROMPT_BYTES_MAX;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use crate::cli::support::input::open;

/// The current table and the older one.
const TABLES: [&str; 2] = ["unified_reminders", "schedules"];
/// The columns of [`Row`], in order; the prompt has another name in the older table.
const COLUMNS: [&str; 9] = [
    "id",
    "agent_id",
    "message",
    "schedule_type",
    "schedule_value",
    "next_run",
    "active",
    "max_repetitions",
    "repetition_count",
];
const ROWS_MAX: usize = 100_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Its number in the table.
    id: String,
    /// Its number in Midwatch.
    number: u64,
    agent_id: String,
    prompt: String,
    kind: String,
    value: String,
    next_run: String,
    is_active: bool,
    /// Zero: no limit.
    max: i64,
    count: i64,
    /// Columns with text that is not UTF-8.
    unreadable: Vec<&'static str>,
}

/// Reads all rows of both tables, without changing the file.
pub(super) fn read(path: &Path) -> Result<Vec<Row>, Error> {
    // SQLite would wait at a pipe.
    open("database", path)?;
    let failed = |error: rusqlite::Error| {
        let what = format!("`{}` cannot be read as a database: {error}", path.display());
        Error::new(Code::InvalidInput, what).hint("name the database of promptyoself")
    };
    let database =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    let mut rows = Vec::new();
    let mut tables = 0;
    for table in TABLES {
        let columns = columns(&database, table).map_err(failed)?;
        if columns.is_empty() {
            continue;
        }
        // The numbers of the current table may grow, so those of the older one start far above.
        let first = if tables == 0 { 0 } else { view::DERIVED_NUMBERS_START };
        tables += 1;
        rows.extend(rows_of(&database, table, &columns, first).map_err(failed)?);
    }
    if tables == 0 {
        let what = format!("`{}` is not a database of promptyoself", path.display());
        return Err(Error::new(Code::InvalidInput, what)
            .hint("it has neither a table `unified_reminders` nor `schedules`"));
    }
    Ok(rows)
}

fn columns(database: &Connection, table: &str) -> rusqlite::Result<HashSet<String>> {
    let mut statement = database.prepare("SELECT name FROM pragma_table_info(?1)")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

/// Missing columns are empty. The number of a row is its own plus `first`.
fn rows_of(
    database: &Connection,
    table: &str,
    columns: &HashSet<String>,
    first: u64,
) -> rusqlite::Result<Vec<Row>> {
    let selected = COLUMNS.map(|column| match column {
        "message" if !columns.contains(column) => "prompt_text",
        column => column,
    });
    let selected = selected.map(|column| match columns.contains(column) {
        true => column,
        false => "NULL",
    });
    let selected = selected.join(", ");
    let query = format!("SELECT {selected} FROM {table} ORDER BY 1 LIMIT {ROWS_MAX}");
    let mut statement = database.prepare(&query)?;
    let rows = statement.query_map([], |row| {
        let (mut texts, mut unreadable) = (Vec::new(), Vec::new());
        for (index, column) in COLUMNS.into_iter().enumerate() {
            texts.push(match row.get_ref(index)? {
                ValueRef::Null | ValueRef::Blob(_) => String::new(),
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Real(number) => number.to_string(),
                ValueRef::Text(text) => {
                    let text = String::from_utf8(text.to_vec());
                    text.unwrap_or_else(|_| {
                        unreadable.push(column);
                        String::new()
                    })
                }
            });
        }
        Ok(Row { unreadable, ..Row::from_texts(texts, first) })
    })?;
    rows.collect()
}

impl Row {
    /// From the texts of its columns.
    fn from_texts(texts: Vec<String>, first: u64) -> Row {
        let mut texts = texts.into_iter();
        let mut next = || texts.next().unwrap_or_default();
        let number = |text: String| text.parse::<i64>().unwrap_or_default();
        let id = next();
        Row {
            number: first.saturating_add(id.parse().unwrap_or_default()),
            id,
            agent_id: next(),
            prompt: next(),
            kind: next(),
            value: next(),
            next_run: next(),
            is_active: !["0", "false"].contains(&next().to_ascii_lowercase().as_str()),
            max: number(next()),
            count: number(next()),
            unreadable: Vec::new(),
        }
    }
}

/// The highest number of the database that would be given out in order.
pub(super) fn highest_number(rows: &[Row]) -> Option<u64> {
    let in_order = rows.iter().map(|row| row.number);
    in_order.filter(|number| *number < view::DERIVED_NUMBERS_START).max()
}

pub(super) fn entries(rows: Vec<Row>, now: Timestamp) -> Vec<Entry> {
    let entries = rows.into_iter().map(|row| {
        let text = row.prompt.lines().next().unwrap_or_default().to_owned();
        let outcome = new_schedule(&row, now);
        Entry { position: Position::entry(row.id), text, outcome }
    });
    entries.collect()
}

fn new_schedule(row: &Row, now: Timestamp) -> Result<NewSchedule, LeftOut> {
    let number = row.number;
    if let Some(column) = row.unreadable.first() {
        let reason = format!("its `{column}` is not UTF-8 text");
        return Err(LeftOut::new(reason, "register it again"));
    }
    if row.id.parse::<u64>().is_err() {
        let reason = format!("`{}` is not a valid number", row.id);
        return Err(LeftOut::new(reason, "register it again"));
    }
    if !row.is_active {
        return Err(LeftOut::new("it is cancelled or completed", "nothing to do"));
    }
    if row.agent_id.trim().is_empty() || row.prompt.is_empty() {
        return Err(LeftOut::new("it has no agent or no prompt", "register it again"));
    }
    if PROMPT_BYTES_MAX < row.prompt.len() {
        let hint = "register it again with less text";
        return Err(LeftOut::new("it is longer than 64 KiB, the limit of a prompt", hint));
    }
    let mut warnings = Vec::new();
    let when = when(row, now, &mut warnings)?;
    let sent_before = u64::try_from(row.count).unwrap_or_default();
    let request = ScheduleAdd {
        name: view::schedule_name(number, sent_before, &row.value),
        when,
        action: prompt_action(&row.agent_id, &row.prompt),
        terms: prompt_terms(remaining(row)?),
        ..ScheduleAdd::default()
    };
    if row.id != number.to_string() {
        let id = &row.id;
        warnings
            .push(format!("the number {id} belongs to the other table, so it becomes {number}"));
    }
    let schedule = NewSchedule::new(request, String::new());
    Ok(NewSchedule { warnings, registers_letta_agent: true, ..schedule })
}

/// How often it may still be sent; `None` if there is no limit.
fn remaining(row: &Row) -> Result<Option<u64>, LeftOut> {
    match u64::try_from(row.max.saturating_sub(row.count)) {
        _ if row.max == 0 => Ok(None),
        Err(_) | Ok(0) => Err(LeftOut::new("it was sent as often as allowed", "nothing to do")),
        Ok(left) => Ok(Some(left)),
    }
}

fn when(row: &Row, now: Timestamp, warnings: &mut Vec<String>) -> Result<When, LeftOut> {
    let utc: Option<Zone> = "UTC".parse().ok();
    let stored_us = parse_instant(&row.next_run, utc.as_ref()).ok();
    let malformed = |what: &str| {
        LeftOut::new(format!("{what} `{}` is invalid", row.value), "register it again")
    };
    match row.kind.as_str() {
        "once" => {
            let has_offset = parse_instant(row.value.trim(), None).is_ok();
            let original_us = has_offset.then(|| parse_time(&row.value).ok()).flatten();
            let at_us = original_us.or(stored_us).or_else(|| parse_time(&row.value).ok());
            let at_us = at_us.ok_or_else(|| malformed("its time"))?;
            if at_us <= now.as_micros() {
                let reason = format!("its time is past: {}", format_instant(at_us));
                return Err(LeftOut::new(reason, "register it again if it was not sent"));
            }
            if let Some(stored_us) = stored_us.filter(|stored_us| *stored_us != at_us) {
                let stored = format_instant(stored_us);
                warnings.push(format!(
                    "promptyoself would have sent it at {stored}, ignoring its offset"
                ));
            }
            Ok(When { at: Some(format_instant(at_us)), ..When::default() })
        }
        "interval" => {
            let every = parse_interval(&row.value).ok_or_else(|| malformed("its interval"))?;
            let anchor_us = stored_us.unwrap_or(now.as_micros());
            let (every, anchor) = (Some(every.to_string()), Some(format_instant(anchor_us)));
            Ok(When { every, anchor, ..When::default() })
        }
        "cron" => {
            parse_cron(&row.value).ok_or_else(|| malformed("its expression"))?;
            let (cron, tz) = (Some(seconds_first(&row.value)), Some("UTC".to_owned()));
            Ok(When { cron, tz, ..When::default() })
        }
        other => {
            let reason = format!("unknown kind of schedule `{other}`");
            Err(LeftOut::new(reason, "register it again with --time, --cron or --every"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Planned, plan};
    use super::*;

    fn row(kind: &str, value: &str) -> Row {
        Row {
            id: "5".to_owned(),
            number: 5,
            agent_id: "agent-1".to_owned(),
            prompt: "hi".to_owned(),
            kind: kind.to_owned(),
            value: value.to_owned(),
            next_run: "2030-01-01 00:00:00.000000".to_owned(),
            is_active: true,
            max: 0,
            count: 0,
            unreadable: Vec::new(),
        }
    }

    /// Checks the trigger in words, the limit and the warnings; or the reason if it is left out.
    fn check(row: Row, expected: Result<(&str, Option<u64>, &[&str]), &str>) {
        let now = Timestamp::from_micros(parse_instant("2026-11-16T12:00:00Z", None).unwrap());
        let planned = plan(entries(vec![row.clone()], now), now).unwrap();
        let found = match &planned[0].outcome {
            Ok(Planned { schedule, describe, .. }) => {
                let warnings: Vec<&str> = schedule.warnings.iter().map(String::as_str).collect();
                Ok((describe.as_str(), schedule.request.terms.max_fires, warnings))
            }
            Err(left_out) => Err(left_out.reason.as_str()),
        };
        let expected = expected.map(|(when, max, warnings)| (when, max, warnings.to_vec()));
        assert_eq!(found, expected, "{row:?}");
    }

    #[test]
    fn row_becomes_a_schedule_or_a_reason() {
        check(row("cron", "0 9 * * *"), Ok(("at 09:00 every day", None, &[])));
        check(row("cron", "0 9 * * * 30"), Ok(("at 09:00:30 every day", None, &[])));
        check(row("interval", "45"), Ok(("every 45 seconds from 2030-01-01T00:00:00Z", None, &[])));
        check(row("cron", "bad"), Err("its expression `bad` is invalid"));
        check(row("interval", "0"), Err("its interval `0` is invalid"));
        check(row("weekly", ""), Err("unknown kind of schedule `weekly`"));
        let cancelled = Row { is_active: false, ..row("cron", "0 9 * * *") };
        check(cancelled, Err("it is cancelled or completed"));
        let no_agent = Row { agent_id: String::new(), ..row("cron", "0 9 * * *") };
        check(no_agent, Err("it has no agent or no prompt"));
    }

    #[test]
    fn dropped_offset_is_restored() {
        let dropped =
            "promptyoself would have sent it at 2030-01-01T00:00:00Z, ignoring its offset";
        check(
            row("once", "2030-01-01T00:00:00-05:00"),
            Ok(("once at 2030-01-01T05:00:00+00:00", None, &[dropped])),
        );
        check(
            row("once", "2030-01-01T00:00:00"),
            Ok(("once at 2030-01-01T00:00:00+00:00", None, &[])),
        );
        check(row("once", "tomorrow"), Ok(("once at 2030-01-01T00:00:00+00:00", None, &[])));
        let past = Row { next_run: "2026-11-16 11:59:59".to_owned(), ..row("once", "") };
        check(past, Err("its time is past: 2026-11-16T11:59:59Z"));
    }

    #[test]
    fn sent_repetitions_are_counted() {
        let some = Row { max: 5, count: 3, ..row("cron", "0 9 * * *") };
        check(some.clone(), Ok(("at 09:00 every day", Some(2), &[])));
        let Ok(schedule) = new_schedule(&some, Timestamp::from_micros(0)) else {
            panic!("{some:?}")
        };
        assert_eq!(schedule.request.name, "promptyoself 5 (after 3): 0 9 * * *");
        let all = Row { max: 5, count: 5, ..row("cron", "0 9 * * *") };
        check(all, Err("it was sent as often as allowed"));
        let odd = Row { max: -1, ..row("cron", "0 9 * * *") };
        check(odd, Err("it was sent as often as allowed"));
        let negative = Row { id: "-5".to_owned(), ..row("cron", "0 9 * * *") };
        check(negative, Err("`-5` is not a valid number"));
    }

    #[test]
    fn row_of_the_older_table_gets_a_new_number() {
        let texts = ["5", "agent-1", "hi", "cron", "0 8 * * *", "", "False", "-1", ""];
        let texts = texts.map(str::to_owned).to_vec();
        let older = Row::from_texts(texts, view::DERIVED_NUMBERS_START);
        assert_eq!((older.is_active, older.max), (false, -1));
        let active = Row { is_active: true, max: 0, ..older };
        assert_eq!(highest_number(&[row("cron", ""), active.clone()]), Some(5));
        let planned = new_schedule(&active, Timestamp::from_micros(0)).unwrap();
        assert_eq!(planned.request.name, "promptyoself 4294967301: 0 8 * * *");
        let warning = "the number 5 belongs to the other table, so it becomes 4294967301";
        assert_eq!(planned.warnings, [warning]);
    }
}
