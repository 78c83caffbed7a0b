//! The next times of a schedule, in its zone and in the reader's.

use api::{Schedule, ScheduleStatus};
use calendar::{Zone, distance, parse_instant};

use crate::cli::support::table::{table, whole};
use crate::view::View;

/// A trigger in words, with its zone.
pub(super) fn when(describe: &str, zone: &str) -> String {
    format!("{describe} ({zone})")
}

/// The next slots of a schedule.
pub(super) fn upcoming(schedule: &Schedule, next: &[String], view: &View) -> String {
    let slots = slots(schedule, next, view);
    match schedule.status {
        ScheduleStatus::Paused if !slots.is_empty() => {
            format!("it is paused; if it were resumed now, its next times would be\n{slots}")
        }
        ScheduleStatus::Active
        | ScheduleStatus::Paused
        | ScheduleStatus::Ended
        | ScheduleStatus::Removed => slots,
    }
}

fn slots(schedule: &Schedule, next: &[String], view: &View) -> String {
    // The daemon may know zones that this program does not.
    let Ok(zone) = schedule.tz.parse() else { return next.join("\n") };
    let slots: Vec<i64> = next.iter().filter_map(|text| parse_instant(text, None).ok()).collect();
    slot_table(view, &zone, &slots, (view.now_us, "IN"))
}

/// One line per slot: when it is in the schedule's zone, and in the reader's if that is another one. `from` is the instant
/// from which distances are measured, and their heading.
pub(super) fn slot_table(
    view: &View,
    zone: &Zone,
    slots: &[i64],
    (from_us, distance_head): (i64, &'static str),
) -> String {
    if slots.is_empty() {
        return String::new();
    }
    let own = |at_us: i64| view.time_in(zone, at_us);
    let away = |at_us: i64| distance(at_us - from_us);
    let slots = slots.iter().copied();
    match view.zone() {
        Some(reader) if reader != zone => {
            let columns = [whole(zone.name()), whole(reader.name()), whole(distance_head)];
            let rows = slots.map(|at| [own(at), view.time_in(reader, at), away(at)]);
            table(view, columns, rows)
        }
        Some(_) | None => {
            let head = view.zone().map_or("UTC", Zone::name);
            table(view, [whole(head), whole(distance_head)], slots.map(|at| [own(at), away(at)]))
        }
    }
}
