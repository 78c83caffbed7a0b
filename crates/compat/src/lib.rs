//! Compatibility with other systems, one module each: their words for our requests and answers.
//!
//! The command line and the MCP server share these modules: which arguments another system takes, in which order it
//! checks them, and the form of its results. They hold no state and no rules of the product; every change is a
//! request to a [`Handle`](api::Handle).

pub mod astra;
pub mod cron;
pub mod foundry;
pub mod import;
pub mod promptyoself;

use api::{Error, Handle, LIST_ITEMS_MAX, Schedule, ScheduleList, Schedules, send};

/// Lists every schedule that the caller can see.
pub async fn list_schedules(handle: &dyn Handle) -> Result<Vec<Schedule>, Error> {
    Ok(list_schedules_with_scope(handle).await?.schedules)
}

/// Lists every schedule that the caller can see. `agent` is set if the caller is limited to one agent's schedules.
pub(crate) async fn list_schedules_with_scope(handle: &dyn Handle) -> Result<Schedules, Error> {
    let (mut schedules, mut cursor) = (Vec::new(), None);
    loop {
        let (agent, limit) = (None, Some(LIST_ITEMS_MAX));
        let request = ScheduleList { agent, limit, cursor, by_id: true };
        let page = send(handle, request).await?;
        schedules.extend(page.schedules);
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(Schedules { schedules, agent: page.agent, cursor });
        }
    }
}
