//! Adds the names of schedules to what refers to them by id.

use std::collections::BTreeMap;

use api::Error;
use kernel::ScheduleId;
use kernel::progress::Progress;
use kernel::schedule::Schedule;

use crate::commit::rows::row_key;
use crate::engine::Engine;

impl Engine {
    /// The names of these schedules, also of removed ones; those that older versions removed have none.
    pub(crate) async fn schedule_names(
        &self,
        ids: impl IntoIterator<Item = &str>,
    ) -> Result<BTreeMap<String, String>, Error> {
        let mut ids: Vec<ScheduleId> = ids.into_iter().filter_map(|id| id.parse().ok()).collect();
        ids.sort_unstable();
        ids.dedup();
        let keys: Vec<_> = ids.iter().map(row_key::<Schedule>).collect();
        let mut rows = self.transactions.load(&keys).await?;
        let removed = ids.iter().filter(|id| rows.get::<Schedule>(id).is_none());
        let progress: Vec<_> = removed.map(row_key::<Progress>).collect();
        rows.extend(self.transactions.load(&progress).await?);
        let name = |id: &ScheduleId| match rows.get::<Schedule>(id) {
            Some(schedule) => Some(schedule.definition.name.clone()),
            None => rows.get::<Progress>(id)?.removed_name.clone(),
        };
        Ok(ids.iter().filter_map(|id| Some((id.to_string(), name(id)?))).collect())
    }

    pub(crate) async fn name_runs(&self, runs: &mut [api::Run]) -> Result<(), Error> {
        let names =
            self.schedule_names(runs.iter().filter_map(|it| it.schedule_id.as_deref())).await?;
        for run in runs {
            run.schedule_name = run.schedule_id.as_ref().and_then(|id| names.get(id)).cloned();
        }
        Ok(())
    }

    pub(crate) async fn name_approvals(
        &self,
        approvals: &mut [api::Approval],
    ) -> Result<(), Error> {
        let names = self.schedule_names(approvals.iter().map(|it| it.schedule_id.as_str())).await?;
        for approval in approvals {
            approval.schedule_name = names.get(&approval.schedule_id).cloned();
        }
        Ok(())
    }
}
