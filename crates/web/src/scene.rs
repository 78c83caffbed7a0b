//! What every page is made with: the handle that answers for the viewer, the viewer, and the status.

use api::display::on_one_line;
use api::{ApiRequest, Error, Handle, Status, send};
use calendar::{LocalTimes, parse_instant};
use maud::{Markup, html};

use crate::parts::coded;
use crate::viewer::Viewer;

#[derive(Debug)]
pub(crate) struct Scene<'a> {
    handle: &'a dyn Handle,
    pub(crate) viewer: &'a Viewer,
    pub(crate) times: LocalTimes,
    pub(crate) status: Status,
}

impl<'a> Scene<'a> {
    pub(crate) async fn new(
        handle: &'a dyn Handle,
        viewer: &'a Viewer,
    ) -> Result<Scene<'a>, Error> {
        let status = send(handle, api::StatusShow {}).await?;
        Ok(Scene { handle, viewer, times: viewer.times(), status })
    }

    pub(crate) async fn ask<R: ApiRequest>(&self, request: R) -> Result<R::Response, Error> {
        send(self.handle, request).await
    }

    /// Local time with the distance from now: `18 Nov 03:00:00  5m ago`. The exact instant is its tooltip.
    pub(crate) fn moment(&self, instant: &str) -> Markup {
        html! { (self.time(instant)) " " (self.distance(instant)) }
    }

    /// Local time alone.
    pub(crate) fn time(&self, instant: &str) -> Markup {
        html! { time datetime=(instant) title=(instant) { (self.times.time(instant)) } }
    }

    /// How far an instant is from now. The script keeps it up to date.
    pub(crate) fn distance(&self, instant: &str) -> Markup {
        let at_ms = parse_instant(instant, None).map(|at_us| at_us / 1_000).ok();
        html! { span.rel data-at=[at_ms] { (self.times.relative(instant)) } }
    }

    /// A sentence with local times; its commands in backticks are code.
    pub(crate) fn sentence(&self, text: &str) -> Markup {
        coded(&on_one_line(&self.times.localize(text)))
    }
}
