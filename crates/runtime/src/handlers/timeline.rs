//! The timeline: the events of the ledger as sentences, with the names of their schedules.

use std::collections::BTreeMap;

use api::{Error, Serve, Timeline, TimelineLine, TimelineShow};
use kernel::run::Run;
use kernel::timeline::{DaemonState, Subject, line_after};
use kernel::{RunId, Timestamp};
use ledger::EntryRef;
use store::{PAGE_ENTRIES_MAX, Page};

use crate::commit::caller::Caller;
use crate::commit::codec;
use crate::commit::rows::row_key;
use crate::engine::Engine;
use crate::errors;
use crate::pages::page_size;
use crate::schedule::trigger;
use crate::timestamps::rfc3339;

/// When the timeline begins if the caller does not say.
const SINCE_DEFAULT: &str = "24h";
/// What a line is about that belongs to no schedule, agent or tool.
const INSTALLATION: &str = "midwatch";

impl Serve<TimelineShow> for Engine {
    async fn serve(&self, _: &Caller, request: TimelineShow) -> Result<Timeline, Error> {
        let TimelineShow { after, since, all, limit, wait_ms } = request;
        let after = match after {
            Some(after) => after,
            None => {
                let since = since.as_deref().unwrap_or(SINCE_DEFAULT);
                self.feed.position_before(trigger::parse_since(since, self.time.now())?).await?
            }
        };
        let (page, after) = self.feed.page(Some(after), page_size(limit)?, wait_ms).await?;
        let mut lines = Vec::with_capacity(page.len());
        let mut daemon = self.daemon_state_before(&page, after).await?;
        for fields in page.iter() {
            lines.extend(describe(&fields, all, &mut daemon)?);
        }
        self.name_lines(&mut lines).await?;
        let cursor = page.last_seq().unwrap_or(after);
        let size = self.store.head().await.map_err(errors::store)?.size();
        Ok(Timeline { lines, cursor, more: cursor < size })
    }
}

impl Engine {
    /// Whether a daemon ran before the first entry of a page with a start. If several share the store, their entries do
    /// not tell.
    async fn daemon_state_before(
        &self,
        page: &Page,
        after: u64,
    ) -> Result<Option<DaemonState>, Error> {
        if self.database_url().is_some() {
            return Ok(None);
        }
        let mut state = DaemonState::Unknown;
        if page.iter().any(|fields| fields.kind == "watch.started") {
            let first = after.saturating_sub(PAGE_ENTRIES_MAX as u64);
            let earlier = self.store.entries(first, PAGE_ENTRIES_MAX).await;
            for fields in earlier.map_err(errors::store)?.iter().filter(|it| it.seq <= after) {
                state = state.after(&codec::decode_facts(&fields)?);
            }
        }
        Ok(Some(state))
    }

    /// Adds the schedules of runs, and the names of schedules.
    async fn name_lines(&self, lines: &mut [TimelineLine]) -> Result<(), Error> {
        let mut runs: Vec<RunId> =
            lines.iter().filter_map(|line| line.run_id.as_ref()?.parse().ok()).collect();
        runs.sort_unstable();
        runs.dedup();
        let keys: Vec<_> = runs.iter().map(row_key::<Run>).collect();
        // A reader is woken before the cache has the new run, but not before the store has it.
        let rows = self.transactions.load_stored(&keys).await?;
        let schedules: BTreeMap<&str, String> = runs
            .iter()
            .filter_map(|id| Some((id.as_str(), rows.get::<Run>(id)?.schedule.to_string())))
            .collect();
        for line in lines.iter_mut() {
            let of_run = line.run_id.as_deref().and_then(|id| schedules.get(id)).cloned();
            line.schedule_id = line.schedule_id.take().or(of_run);
        }
        let ids = lines.iter().filter_map(|line| line.schedule_id.as_deref());
        let names = self.schedule_names(ids).await?;
        for line in lines {
            if let Some(id) = &line.schedule_id {
                line.about.clone_from(names.get(id).unwrap_or(id));
            }
        }
        Ok(())
    }
}

/// The line of an entry, unless it is bookkeeping that is hidden. It is made from the facts alone, without private fields.
fn describe(
    fields: &EntryRef<'_>,
    all: bool,
    daemon: &mut Option<DaemonState>,
) -> Result<Option<TimelineLine>, Error> {
    let body = codec::decode_facts(fields)?;
    let told = line_after(daemon.unwrap_or_default(), &body, fields.actor);
    *daemon = daemon.map(|state| state.after(&body));
    if told.is_bookkeeping && !all {
        return Ok(None);
    }
    let (mut schedule_id, mut run_id, mut about) = (None, None, INSTALLATION.to_owned());
    match told.subject {
        Subject::Schedule(id) => schedule_id = Some(id.to_string()),
        Subject::Run(id) => run_id = Some(id.to_string()),
        Subject::Agent(name) => about = name.to_string(),
        Subject::Tool(name) => about = name.to_string(),
        Subject::Installation => {}
    }
    Ok(Some(TimelineLine {
        seq: fields.seq,
        at: rfc3339(Timestamp::from_micros(fields.ts_us)),
        kind: fields.kind.to_owned(),
        actor: fields.actor.to_owned(),
        about,
        schedule_id,
        run_id,
        approval_id: told.approval.map(ToString::to_string),
        text: told.text,
    }))
}
