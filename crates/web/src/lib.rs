//! The pages of the dashboard: from responses of the `api` to HTML, and from forms to requests.
//!
//! Pure: no connection, no clock, no session. A [`View`] is the address of a page. [`render`] asks a handle for what the
//! page shows; each part of the page that can change by itself is a [`Region`], so a live page gets only the regions
//! that changed. An [`Action`] is a submitted form. Whoever calls this crate decides who may see and do what; a page
//! shows a control that its viewer may not use, with the reason.
//!
//! Invariants: text by agents and strangers is escaped; no page has inline script or style.

mod action;
mod asset;
#[cfg(test)]
mod contrast;
mod document;
mod form;
mod pages;
mod parts;
mod region;
mod scene;
mod view;
mod viewer;

pub use action::{Action, Done, act};
pub use asset::{Asset, asset};
pub use document::{enter_document, error_document};
pub use pages::render;
pub use region::{Page, Region};
pub use view::View;
pub use viewer::{Theme, Viewer};
