//! Why no slot follows an instant.

use calendar::{Calendar, Trigger};

use crate::support::{at, cron, zone};

fn check(calendar: &Calendar, from: &str, expected: Option<&str>) {
    let reason = calendar.no_next_slot(at(from)).map(|reason| reason.to_string());
    assert_eq!(reason.as_deref(), expected, "{:?} from {from}", calendar.trigger());
}

#[test]
fn reason_says_never_or_names_the_last_time() {
    let never = "it never fires: no time from 1970 to 2199 matches";
    let today = "2026-01-01T00:00:00Z";
    let never_with_suggestion = format!("{never}; did you mean `0 0 L FEB *`?");
    check(&cron("0 0 31 2 *", "UTC"), today, Some(&never_with_suggestion));
    check(&cron("0 0 29 2 *", "UTC"), today, None);
    // Samoa skipped this day: the date matches, but never occurs.
    check(&cron("0 0 12 30 12 * 2011", "Pacific/Apia"), today, Some(never));

    let past = "it does not fire again: its last time was 2020-12-31T23:00:00Z";
    check(&cron("0 0 23 * * * 2020", "UTC"), today, Some(past));
    check(&cron("0 0 23 * * * 2020", "UTC"), "2020-12-31T22:59:59Z", None);

    let once = Trigger::Once { at_us: at("2026-01-01T00:00:00Z") };
    let once = Calendar::new(once, zone("UTC")).unwrap();
    check(&once, today, Some("that time is past: 2026-01-01T00:00:00Z"));
    check(&once, "2025-12-31T23:59:59.999999Z", None);
}
