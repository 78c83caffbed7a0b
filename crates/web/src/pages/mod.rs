//! Every page: a file per noun. A page asks its [`Scene`] and returns regions.

mod agents;
mod approvals;
mod authority;
mod budgets;
mod editor;
mod find;
mod ledger;
mod navigation;
mod policy;
mod runs;
mod schedules;
mod settings;
mod strip;
mod timeline;
mod watch;

use api::{Error, Handle};

use crate::region::{Page, Region};
use crate::scene::Scene;
use crate::view::{Target, View};
use crate::viewer::Viewer;

/// What a page adds to the navigation.
#[derive(Debug)]
pub(crate) struct Content {
    title: String,
    regions: Vec<Region>,
    refresh_ms: Option<u32>,
}

impl Content {
    fn new(title: impl Into<String>, regions: Vec<Region>) -> Content {
        Content { title: title.into(), regions, refresh_ms: None }
    }
}

/// The page at a view, as the handle answers for its viewer.
pub async fn render(handle: &dyn Handle, view: &View, viewer: &Viewer) -> Result<Page, Error> {
    let scene = Scene::new(handle, viewer).await?;
    let seq = scene.status.ledger.entries;
    let Content { title, regions, refresh_ms } = content(&scene, &view.target).await?;
    let mut all = vec![navigation::region(&scene, &view.target), authority::banner(&scene)];
    all.extend(regions);
    Ok(Page { title, seq, regions: all, refresh_ms })
}

async fn content(scene: &Scene<'_>, target: &Target) -> Result<Content, Error> {
    match target {
        Target::Watch => watch::page(scene).await,
        Target::Timeline { after, all } => timeline::page(scene, *after, *all).await,
        Target::Approvals { all, cursor } => approvals::list(scene, *all, cursor.clone()).await,
        Target::Approval { id } => approvals::show(scene, id).await,
        Target::Schedules { agent, cursor } => {
            schedules::list(scene, agent.clone(), cursor.clone()).await
        }
        Target::ScheduleNew(form) => editor::add(scene, form).await,
        Target::SchedulePreview(form) => editor::preview(scene, form).await,
        Target::Schedule { id } => schedules::show(scene, id).await,
        Target::ScheduleEdit { id } => editor::edit(scene, id).await,
        Target::ScheduleRemove { id } => schedules::remove(scene, id).await,
        Target::Slot { id, at } => schedules::slot(scene, id, at).await,
        Target::Runs(filter) => runs::list(scene, filter).await,
        Target::Run { id } => runs::show(scene, id).await,
        Target::RunSettle { id } => runs::settle(scene, id).await,
        Target::RunCancel { id } => runs::cancel(scene, id).await,
        Target::Agents { cursor } => agents::list(scene, cursor.clone()).await,
        Target::Agent { name } => agents::show(scene, name).await,
        Target::Ledger { after } => ledger::list(scene, *after).await,
        Target::Entry { seq } => ledger::entry(scene, *seq).await,
        Target::Policy => policy::list(scene).await,
        Target::Explain { run } => policy::explain(scene, run).await,
        Target::Budgets => budgets::page(scene).await,
        Target::Settings(section) => settings::page(scene, *section).await,
        Target::Find { query } => find::page(scene, query).await,
        Target::Freeze => Ok(authority::freeze(scene)),
        Target::Lease => Ok(authority::lease(scene)),
        Target::More => Ok(navigation::more(scene)),
    }
}
