//! Reports of browsers that a page broke its content security policy: a fault of ours, or an attack.

use std::sync::atomic::{AtomicU64, Ordering};

use api::display::visible;
use axum::body::Body;
use axum::response::Response;
use serde_json::Value;
use tracing::warn;

use super::no_content;
use crate::body::read_body;
use crate::byte_budget::ByteBudget;

const REPORT_BYTES_MAX: usize = 8 << 10;
/// Reports that are logged. Anyone on this machine can send one.
const LOGGED_MAX: u64 = 100;
const TEXT_CHARS_MAX: usize = 200;

#[derive(Debug, Default)]
pub(super) struct CspReports(AtomicU64);

impl CspReports {
    /// `POST /csp`.
    pub(super) async fn take(&self, body: Body) -> Response {
        let mut reservation = ByteBudget::new(0, 0).reserve(String::new());
        let body = read_body(body, REPORT_BYTES_MAX, &mut reservation).await;
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        if count <= LOGGED_MAX {
            let body = body.unwrap_or_default();
            let report: Value = serde_json::from_slice(&body).unwrap_or_default();
            let report = report.get("csp-report").cloned().unwrap_or_default();
            let text = |key: &str| {
                let text = report.get(key).and_then(Value::as_str).unwrap_or_default();
                visible(&text.chars().take(TEXT_CHARS_MAX).collect::<String>())
            };
            let (directive, blocked) = (text("violated-directive"), text("blocked-uri"));
            let page = text("document-uri");
            warn!(count, directive, blocked, page, "a page broke its content security policy");
        }
        no_content()
    }
}
