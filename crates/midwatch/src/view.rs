//! How text is laid out for the person who reads it: the width of their terminal, their time zone, and the present time.
//!
//! Times are local, to the second, with the distance from now beside them. With `--utc` they are exact and in UTC.

use std::collections::BTreeMap;

use calendar::{LocalTimes, Zone, format_instant, parse_instant, relative, replace_instants};
use runtime::{Clock, SystemClock};

/// Columns of a line if neither `COLUMNS` nor a terminal says how many there are.
const WIDTH_DEFAULT: usize = 80;
/// The narrowest layout; a narrower terminal breaks lines itself.
const WIDTH_MIN: usize = 40;

#[derive(Clone, Debug)]
pub struct View {
    /// Columns of a line.
    pub width: usize,
    pub now_us: i64,
    /// The zone of the reader; `None` shows exact times in UTC.
    zone: Option<Zone>,
    /// The words of the command after `midwatch`, as the reader typed them.
    pub arguments: Vec<String>,
}

impl View {
    pub fn new(environment: &BTreeMap<String, String>, utc: bool, now_us: i64) -> View {
        let zone = (!utc).then(|| local_zone(environment));
        View { width: width(environment), now_us, zone, arguments: Vec::new() }
    }

    /// The same view for the answer to this command.
    #[must_use]
    pub fn for_command(self, arguments: impl IntoIterator<Item = String>) -> View {
        View { arguments: arguments.into_iter().collect(), ..self }
    }

    /// The same view at the present time, for a process that prints for long.
    #[must_use]
    pub fn at_now(&self) -> View {
        View { now_us: SystemClock.now().as_micros(), ..self.clone() }
    }

    /// A view of this width in a zone.
    #[cfg(test)]
    pub(crate) fn fixed(width: usize, zone: &str, now: &str) -> View {
        let now_us = parse_instant(now, None).unwrap();
        View { width, now_us, zone: Some(zone.parse().unwrap()), arguments: Vec::new() }
    }

    /// An RFC 3339 instant as the reader's clock shows it: `18 Nov 03:00:00`, with the year if it is another one.
    pub fn time(&self, instant: &str) -> String {
        match (self.local(), parse_instant(instant, None)) {
            (Some(local), _) => local.time(instant),
            (None, Ok(at_us)) if !instant.ends_with('Z') => format_instant(at_us),
            (None, _) => instant.to_owned(),
        }
    }

    /// What a clock in a zone shows at an instant; the exact time with `--utc`.
    pub fn time_in(&self, zone: &Zone, at_us: i64) -> String {
        self.local().map_or_else(|| format_instant(at_us), |local| local.time_in(zone, at_us))
    }

    /// The time of day of an RFC 3339 instant: `14:00:03`; the exact time with `--utc`.
    pub fn time_of_day(&self, instant: &str) -> String {
        self.local().map_or_else(|| instant.to_owned(), |local| local.time_of_day(instant))
    }

    /// A sentence with its RFC 3339 instants as the reader's clock shows them. Commands in backticks keep theirs.
    pub fn localize(&self, sentence: &str) -> String {
        replace_instants(sentence, |instant| self.time(instant))
    }

    /// The clock of the reader; `None` with `--utc`.
    fn local(&self) -> Option<LocalTimes> {
        self.zone.clone().map(|zone| LocalTimes { zone, now_us: self.now_us })
    }

    /// How far an instant is from now: `5m ago`, `in 3h20m`, `now`.
    pub fn relative(&self, instant: &str) -> String {
        parse_instant(instant, None).map_or(String::new(), |at_us| relative(at_us, self.now_us))
    }

    /// Both: `18 Nov 03:00:00 (5m ago)`.
    pub fn moment(&self, instant: &str) -> String {
        match self.relative(instant) {
            relative if relative.is_empty() => self.time(instant),
            relative => format!("{} ({relative})", self.time(instant)),
        }
    }

    /// The reader's zone, unless times are shown in UTC.
    pub fn zone(&self) -> Option<&Zone> {
        self.zone.as_ref()
    }

    /// The name of the zone of the times: `Europe/Berlin`.
    pub fn zone_name(&self) -> &'static str {
        self.zone.as_ref().map_or("UTC", Zone::name)
    }
}

/// Columns of a line: as `COLUMNS` says, else the terminal, else 80, in pipes too.
pub fn width(environment: &BTreeMap<String, String>) -> usize {
    let columns = environment.get("COLUMNS").and_then(|text| text.parse().ok());
    let terminal = || terminal_size::terminal_size().map(|(width, _)| width.0.into());
    columns.or_else(terminal).unwrap_or(WIDTH_DEFAULT).max(WIDTH_MIN)
}

/// The zone that `TZ` names, else that of the machine, else UTC.
pub fn local_zone(environment: &BTreeMap<String, String>) -> Zone {
    let variable = environment.get("TZ").map(|name| name.trim_start_matches(':').to_owned());
    let name = variable.filter(|it| !it.is_empty()).or_else(|| iana_time_zone::get_timezone().ok());
    match name.as_deref() {
        None | Some("Etc/UTC") => Zone::utc(),
        Some(name) => name.parse().unwrap_or_else(|_| Zone::utc()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> View {
        View::fixed(80, "Europe/Berlin", "2026-03-28T12:30:00Z")
    }

    #[test]
    fn times_are_local_to_the_second_and_name_another_year() {
        for (instant, expected) in [
            ("2026-03-28T12:29:55.123456Z", "28 Mar 13:29:55 (4s ago)"),
            ("2026-03-28T12:30:00Z", "28 Mar 13:30:00 (now)"),
            // Summer time begins in between.
            ("2026-03-29T11:30:00Z", "29 Mar 13:30:00 (in 23h)"),
            ("2025-12-31T22:59:59Z", "31 Dec 2025 23:59:59 (86d13h ago)"),
            ("2025-12-31T23:00:00Z", "1 Jan 00:00:00 (86d13h ago)"),
            ("not a time", "not a time"),
        ] {
            assert_eq!(berlin().moment(instant), expected);
        }
    }

    #[test]
    fn instants_in_a_sentence_are_local() {
        for (sentence, expected) in [
            ("", ""),
            (
                "the slot of 2026-03-28T12:00:00Z did not run",
                "the slot of 28 Mar 13:00:00 did not run",
            ),
            (
                "next due 2026-03-29T11:30:00.25Z; run run_2026 failed: exit 1",
                "next due 29 Mar 13:30:00; run run_2026 failed: exit 1",
            ),
            ("at 2026-03-28T12:00:00Z: größe 5.", "at 28 Mar 13:00:00: größe 5."),
            ("`--since 2026-03-28T12:00:00Z` goes on", "`--since 2026-03-28T12:00:00Z` goes on"),
        ] {
            assert_eq!(berlin().localize(sentence), expected);
        }
    }

    #[test]
    fn utc_shows_exact_times() {
        let view = View { zone: None, ..berlin() };
        let exact = "2026-03-28T12:29:55.123456Z";
        assert_eq!(view.time(exact), exact);
        assert_eq!((view.zone_name(), berlin().zone_name()), ("UTC", "Europe/Berlin"));
    }

    #[test]
    fn width_and_zone_come_from_the_environment() {
        let environment = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let view = View::new(&environment(&[("COLUMNS", "60"), ("TZ", ":Asia/Tokyo")]), false, 0);
        assert_eq!((view.width, view.zone_name()), (60, "Asia/Tokyo"));
        assert_eq!(View::new(&environment(&[("COLUMNS", "1")]), true, 0).width, WIDTH_MIN);
        assert_eq!(local_zone(&environment(&[("TZ", "Mars/Olympus")])).name(), "UTC");
    }
}
