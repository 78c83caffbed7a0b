//! The store with many schedules: creating it takes minutes, so several phases share it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents::NoBackend;
use anyhow::ensure;
use api::{StatusShow, send};
use tempfile::TempDir;

use super::instance::Instance;
use super::workload::Workload;

pub(crate) struct LargeStore {
    /// The directory that keeps it for the next time.
    kept: Option<PathBuf>,
    temporary: Option<TempDir>,
}

impl LargeStore {
    pub(crate) fn new(kept: Option<PathBuf>) -> LargeStore {
        LargeStore { kept, temporary: None }
    }

    /// Its directory. Adds the schedules of these workloads if it is new.
    pub(crate) async fn prepare(
        &mut self,
        dir: &Path,
        workloads: &[Workload],
    ) -> anyhow::Result<PathBuf> {
        let data = match (&self.kept, &self.temporary) {
            (Some(kept), _) => kept.clone(),
            (None, Some(temporary)) => temporary.path().to_owned(),
            (None, None) => self.temporary.insert(tempfile::tempdir_in(dir)?).path().to_owned(),
        };
        std::fs::create_dir_all(&data)?;
        let is_new = !data.join("midwatch.db").exists();
        let instance = Instance::open(&data, Arc::new(NoBackend)).await?;
        for workload in workloads.iter().filter(|_| is_new) {
            let rate = workload.add(&instance.handle).await?;
            println!("  added    {} × {} at {rate:.0}/s", workload.schedules, workload.name);
        }
        let (found, expected) =
            (send(&*instance.handle, StatusShow {}).await?.schedules, total(workloads));
        ensure!(found == expected as i64, "{found} of {expected} schedules in {}", data.display());
        instance.close().await?;
        Ok(data)
    }
}

pub(crate) fn total(workloads: &[Workload]) -> usize {
    workloads.iter().map(|workload| workload.schedules).sum()
}
