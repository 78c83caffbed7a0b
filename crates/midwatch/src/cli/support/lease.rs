//! How commands describe a freeze and the lease.

use std::time::Duration;

use api::display::on_one_line;
use api::{Attribution, Authority, Lease, LeaseState};
use calendar::Span;

use crate::config;
use crate::context::Context;
use crate::view::View;

/// What a human has to do about a freeze or an expired lease, if anything.
pub(in crate::cli) fn attention(authority: &Authority, view: &View) -> Option<String> {
    if authority.frozen.is_some() {
        return Some(format!("frozen{}: `midwatch thaw`", frozen_by(authority, view)));
    }
    let Lease { state, ask_after, pause_after, .. } = &authority.lease;
    let (span, effect) = match state {
        LeaseState::Ask => (ask_after, "every run needs approval"),
        LeaseState::Paused => (pause_after, "no run starts"),
        LeaseState::Full => return None,
    };
    let span = in_words(span).unwrap_or_else(|| "too long".to_owned());
    Some(format!(
        "you have not confirmed for {span} that you are still there (the lease has expired), so {effect}: \
         `midwatch lease renew`"
    ))
}

/// What the lease asks of a person, for one who has not heard of it; `None` if it never expires.
pub(in crate::cli) fn terms(lease: &Lease) -> Option<String> {
    let (ask, pause) = (in_words(&lease.ask_after), in_words(&lease.pause_after));
    let effect = match (&ask, &pause) {
        (Some(ask), Some(pause)) => {
            format!("every run needs approval after {ask}, and no run starts after {pause}")
        }
        (Some(ask), None) => format!("every run needs approval after {ask}"),
        (None, Some(pause)) => format!("no run starts after {pause}"),
        (None, None) => return None,
    };
    let every = ask.or(pause).unwrap_or_default();
    Some(format!(
        "confirm every {every} that you are still there: any command that you run in a terminal does, and so \
         does `midwatch lease renew`; without you, {effect}"
    ))
}

/// The same for the lease that the configuration describes.
pub(in crate::cli) fn configured_terms(context: &Context) -> Option<String> {
    let config::Lease { ask_after, pause_after } = context.load_config().ok()?.config.lease;
    let span = |span: Duration| {
        let span = i64::try_from(span.as_millis()).ok().and_then(Span::from_millis);
        span.map(|span| span.to_string())
    };
    terms(&Lease {
        state: LeaseState::Full,
        renewed: None,
        asks_from: None,
        pauses_from: None,
        ask_after: span(ask_after),
        pause_after: span(pause_after),
    })
}

/// Until when a person has to confirm that they are there, and what happens otherwise.
pub(in crate::cli) fn deadline(lease: &Lease, view: &View) -> String {
    let time = |at: &Option<String>| at.as_ref().map(|at| view.moment(at));
    match (time(&lease.asks_from), time(&lease.pauses_from)) {
        (Some(asks), Some(pauses)) => format!(
            "confirm before {asks} that you are still there (then every run needs approval), at the latest \
             before {pauses} (then no run starts)"
        ),
        (Some(asks), None) => {
            format!(
                "confirm before {asks} that you are still there (then every run needs approval)"
            )
        }
        (None, Some(pauses)) => {
            format!("confirm before {pauses} that you are still there (then no run starts)")
        }
        (None, None) => terms(lease).unwrap_or_else(|| "does not expire".to_owned()),
    }
}

fn in_words(span: &Option<String>) -> Option<String> {
    Some(span.as_ref()?.parse::<Span>().ok()?.describe())
}

/// Who froze the installation, when and why.
pub(in crate::cli) fn frozen_by(authority: &Authority, view: &View) -> String {
    let Some(Attribution { by, at, note }) = &authority.frozen else { return String::new() };
    let note = note.as_ref().map(|note| format!(" ({})", on_one_line(note))).unwrap_or_default();
    format!(" by {by}, {}{note}", view.moment(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(ask_after: &str, pause_after: &str) -> Lease {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Lease {
            state: LeaseState::Full,
            renewed: None,
            asks_from: some(ask_after).map(|_| "2026-12-01T12:00:00Z".to_owned()),
            pauses_from: some(pause_after).map(|_| "2026-12-15T12:00:00Z".to_owned()),
            ask_after: some(ask_after),
            pause_after: some(pause_after),
        }
    }

    #[test]
    fn terms_say_what_to_do_and_what_happens_otherwise() {
        let how = "any command that you run in a terminal does, and so does `midwatch lease renew`";
        for (ask, pause, every, effect) in [
            (
                "14d",
                "28d",
                "14 days",
                "every run needs approval after 14 days, and no run starts after 28 days",
            ),
            ("12h", "", "12 hours", "every run needs approval after 12 hours"),
            ("", "90d", "90 days", "no run starts after 90 days"),
        ] {
            let expected = format!(
                "confirm every {every} that you are still there: {how}; without you, {effect}"
            );
            assert_eq!(terms(&lease(ask, pause)), Some(expected));
        }
        assert_eq!(terms(&lease("", "")), None);
    }

    #[test]
    fn an_expired_lease_names_how_long_it_was_not_confirmed() {
        let view = View::fixed(80, "UTC", "2026-11-18T12:00:00Z");
        for (state, span, effect) in [
            (LeaseState::Ask, "14 days", "every run needs approval"),
            (LeaseState::Paused, "28 days", "no run starts"),
        ] {
            let lease = Lease { state, ..lease("14d", "28d") };
            let text = attention(&Authority { frozen: None, lease }, &view).unwrap();
            let expected = format!(
                "you have not confirmed for {span} that you are still there (the lease has expired), so \
                 {effect}: `midwatch lease renew`"
            );
            assert_eq!(text, expected);
        }
        let fresh = Authority { frozen: None, lease: lease("14d", "28d") };
        assert_eq!(attention(&fresh, &view), None);
    }

    #[test]
    fn deadlines_name_each_step_that_exists() {
        let view = View::fixed(80, "UTC", "2026-11-18T12:00:00Z");
        assert_eq!(
            deadline(&lease("14d", "28d"), &view),
            "confirm before 1 Dec 12:00:00 (in 13d) that you are still there (then every run needs \
             approval), at the latest before 15 Dec 12:00:00 (in 27d) (then no run starts)"
        );
        assert_eq!(
            deadline(&lease("", "28d"), &view),
            "confirm before 15 Dec 12:00:00 (in 27d) that you are still there (then no run starts)"
        );
        assert_eq!(deadline(&lease("", ""), &view), "does not expire");
        // Before the daemon has first started, the lease has not begun.
        let asks_from = None;
        let unbegun = Lease { asks_from, pauses_from: None, ..lease("14d", "28d") };
        assert!(deadline(&unbegun, &view).starts_with("confirm every 14 days"));
    }
}
