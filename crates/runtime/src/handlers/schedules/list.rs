//! Lists schedules: by when they are due next, or by id.
//!
//! The first order follows the index of due times, then come schedules that are not due, by id: paused ones, ended ones and
//! those that wait for an event. A schedule whose next time changes between two pages may be on both, or on neither. By id
//! each is listed once, whatever happens meanwhile.

use std::fmt;

use api::{Error, LIST_BYTES_MAX, ScheduleList, Schedules, Serve};
use kernel::progress::{Progress, Status};
use kernel::schedule::Schedule;
use kernel::{Noun, ScheduleId};
use store::{BEFORE_ALL_DUE, Due, Item, Store};

use super::rows_of;
use super::wire::wire;
use crate::commit::caller::Caller;
use crate::commit::codec::decode_listed;
use crate::commit::rows::RowKey;
use crate::engine::Engine;
use crate::errors::{self, internal};
use crate::pages::{
    self, Order, PageRequest, READ_AHEAD, ROWS_READ_MAX, invalid_cursor, page_size,
};

/// Precedes the id in the cursor of a schedule that is not due; of others, the due time does.
const NOT_DUE: &str = "none";

impl Serve<ScheduleList> for Engine {
    async fn serve(&self, _: &Caller, list: ScheduleList) -> Result<Schedules, Error> {
        let (schedules, cursor) = match list.by_id {
            true => self.schedules_by_id(&list).await?,
            false => self.schedules_by_due_time(&list).await?,
        };
        Ok(Schedules { schedules, agent: list.agent, cursor })
    }
}

/// A page of schedules, and the cursor of the next one if there is one.
type Page = (Vec<api::Schedule>, Option<String>);

impl Engine {
    async fn schedules_by_id(&self, list: &ScheduleList) -> Result<Page, Error> {
        let page = PageRequest {
            noun: Noun::Schedule,
            order: Order::ById,
            limit: list.limit,
            cursor: list.cursor.clone(),
        };
        let (ids, cursor) = pages::page::<ScheduleId, _>(&*self.store, page, |item| {
            let (id, schedule) = decode_listed::<Schedule>(item)?;
            Ok(is_listed(&schedule, list).then_some(id))
        })
        .await?;
        let rows: Vec<RowKey> = ids.iter().flat_map(rows_of).collect();
        let rows = self.transactions.load(&rows).await?;
        // A schedule may have been removed since, or given to another agent.
        let listed =
            ids.iter().filter(|id| rows.get::<Schedule>(id).is_some_and(|it| is_listed(it, list)));
        Ok((listed.map(|id| wire(id, &rows)).collect::<Result<_, _>>()?, cursor))
    }

    async fn schedules_by_due_time(&self, list: &ScheduleList) -> Result<Page, Error> {
        let limit = page_size(list.limit)?;
        let mut position = Position::parse(list.cursor.as_deref().unwrap_or_default())?;
        let (mut shown, mut last) = (Vec::new(), None);
        let (mut bytes, mut rows_read) = (0, 0);
        // One more than requested tells whether there is a next page.
        let mut batch = limit + 1;
        loop {
            let items = position.read_after(&*self.store, batch).await?;
            let found = items.iter().map(|it| position.of(it)).collect::<Result<Vec<_>, _>>()?;
            let ids = found.iter().filter(|it| it.is_candidate).map(|it| &it.id);
            let rows: Vec<RowKey> = ids.flat_map(rows_of).collect();
            let rows = self.transactions.load(&rows).await?;
            for Found { id, position: at, is_candidate } in found {
                position = at;
                let schedule = rows.get::<Schedule>(&id).filter(|_| is_candidate);
                if !schedule.is_some_and(|schedule| is_listed(schedule, list)) {
                    continue;
                }
                if shown.len() == limit || LIST_BYTES_MAX <= bytes {
                    return Ok((shown, last));
                }
                let schedule = wire(&id, &rows)?;
                bytes += serde_json::to_vec(&schedule).map_err(internal)?.len();
                shown.push(schedule);
                last = Some(position.to_string());
            }
            rows_read += items.len();
            if items.len() < batch {
                match position {
                    Position::Due { .. } => position = Position::NotDue { id: String::new() },
                    Position::NotDue { .. } => return Ok((shown, None)),
                }
            }
            if ROWS_READ_MAX <= rows_read {
                return Ok((shown, Some(position.to_string())));
            }
            batch = batch.max(READ_AHEAD);
        }
    }
}

fn is_listed(schedule: &Schedule, list: &ScheduleList) -> bool {
    let agent = schedule.definition.action.agent().map(|agent| agent.as_str());
    list.agent.is_none() || list.agent.as_deref() == agent
}

/// A place in the list by due time. As text it is a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Position {
    Due { due_us: i64, id: String },
    NotDue { id: String },
}

/// A row of the list, and the position after it.
struct Found {
    id: ScheduleId,
    position: Position,
    /// Whether it belongs to this part of the list.
    is_candidate: bool,
}

impl Position {
    fn parse(cursor: &str) -> Result<Position, Error> {
        let (start_us, start) = BEFORE_ALL_DUE;
        if cursor.is_empty() {
            return Ok(Position::Due { due_us: start_us, id: start.to_owned() });
        }
        let position = || {
            let (part, id) = cursor.split_once('-')?;
            // An empty id is the start of the second part.
            let is_start = part == NOT_DUE && id.is_empty();
            if !is_start && id.parse::<ScheduleId>().is_err() {
                return None;
            }
            let id = id.to_owned();
            match part {
                NOT_DUE => Some(Position::NotDue { id }),
                due_us => Some(Position::Due { due_us: due_us.parse().ok()?, id }),
            }
        };
        position().ok_or_else(|| invalid_cursor(cursor))
    }

    /// The rows after it, in this part of the list.
    async fn read_after(&self, store: &dyn Store, limit: usize) -> Result<Vec<Item>, Error> {
        let noun = Noun::Progress.name();
        let items = match self {
            Position::Due { due_us, id } => {
                let after = (*due_us, id.as_str());
                store.list_due(Due { noun, after, until_us: i64::MAX, limit }).await
            }
            Position::NotDue { id } => store.list(noun, id, limit).await,
        };
        items.map_err(errors::store)
    }

    /// What a row of this part of the list is.
    fn of(&self, item: &Item) -> Result<Found, Error> {
        let (id, progress) = decode_listed::<Progress>(item)?;
        let (position, is_candidate) = match (self, item.due_us) {
            (Position::Due { .. }, Some(due_us)) => {
                (Position::Due { due_us, id: id.to_string() }, true)
            }
            (Position::Due { .. } | Position::NotDue { .. }, due_us) => {
                let is_candidate = due_us.is_none() && progress.status != Status::Removed;
                (Position::NotDue { id: id.to_string() }, is_candidate)
            }
        };
        Ok(Found { id, position, is_candidate })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Due { due_us, id } => write!(out, "{due_us}-{id}"),
            Position::NotDue { id } => write!(out, "{NOT_DUE}-{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_is_a_position_and_nothing_else() {
        for cursor in
            ["1763200000000000-sch_0a1b2c3d", "0-sch_0a1b2c3d", "none-sch_0a1b2c3d", "none-"]
        {
            assert_eq!(Position::parse(cursor).unwrap().to_string(), cursor);
        }
        let start = Position::Due { due_us: i64::MIN, id: String::new() };
        assert_eq!(Position::parse("").unwrap(), start);
        // Among them the cursor of a list by id.
        for cursor in [
            "sch_0a1b2c3d",
            "-",
            "17-",
            "x-sch_0a1b2c3d",
            "none",
            "none-run_1",
            "17-none-sch_0a1b2c3d",
        ] {
            assert!(Position::parse(cursor).is_err(), "{cursor}");
        }
    }
}
