//! The words of programs that were there before, for requests and answers of this one.
//!
//! A command line and an MCP server speak them alike, so what they have in common is here: what is asked for,
//! in which order that is checked, and how an answer looks. No rule of a watch is here and no state is kept;
//! whatever changes something is a request to a [`Handle`](api::Handle) like any other.

pub mod astra;
pub mod promptyoself;

use api::{Error, Handle, LIST_ITEMS_MAX, Schedule, ScheduleList, Schedules, ask};

/// Every schedule that whoever asks can see.
pub async fn schedules(handle: &dyn Handle) -> Result<Vec<Schedule>, Error> {
    Ok(listed(handle).await?.schedules)
}

/// The same, with the agent to whose schedules whoever asks is held.
pub(crate) async fn listed(handle: &dyn Handle) -> Result<Schedules, Error> {
    let (mut schedules, mut cursor) = (Vec::new(), None);
    loop {
        let asked = ScheduleList { limit: Some(LIST_ITEMS_MAX), cursor, ..ScheduleList::default() };
        let page = ask(handle, asked).await?;
        schedules.extend(page.schedules);
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(Schedules { schedules, agent: page.agent, cursor });
        }
    }
}
