//! How `status`, `freeze` and `lease renew` describe a freeze and the lease.

use api::display::on_one_line;
use api::{Attribution, Authority, Lease, LeaseState};

use crate::view::View;

/// What a human has to do about a freeze or an expired lease, if anything.
pub(in crate::cli) fn attention(authority: &Authority, view: &View) -> Option<String> {
    if authority.frozen.is_some() {
        return Some(format!("frozen{}: `midwatch thaw`", frozen_by(authority, view)));
    }
    let effect = match authority.lease.state {
        LeaseState::Ask => "every run needs approval",
        LeaseState::Paused => "no run starts",
        LeaseState::Full => return None,
    };
    Some(format!("the lease has expired, so {effect}: `midwatch lease renew`"))
}

/// When the lease has to be renewed, and what happens otherwise.
pub(in crate::cli) fn deadline(lease: &Lease, view: &View) -> String {
    let time = |at: &Option<String>| at.as_ref().map(|at| view.moment(at));
    match (time(&lease.asks_from), time(&lease.pauses_from)) {
        (Some(asks), Some(pauses)) => format!(
            "renew before {asks} (then every run needs approval), at the latest before {pauses} \
             (then no run starts)"
        ),
        (Some(asks), None) => format!("renew before {asks} (then every run needs approval)"),
        (None, Some(pauses)) => format!("renew before {pauses} (then no run starts)"),
        (None, None) => "does not expire".to_owned(),
    }
}

/// Who froze the installation, when and why.
pub(in crate::cli) fn frozen_by(authority: &Authority, view: &View) -> String {
    let Some(Attribution { by, at, note }) = &authority.frozen else { return String::new() };
    let note = note.as_ref().map(|note| format!(" ({})", on_one_line(note))).unwrap_or_default();
    format!(" by {by}, {}{note}", view.moment(at))
}
