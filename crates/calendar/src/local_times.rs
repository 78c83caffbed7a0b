//! Instants as the clock of a reader shows them, and their distance from now.

use crate::{CivilTime, Zone, parse_instant, relative};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The zone of a reader, and the present time. Instants are RFC 3339 text; a text that is none is shown unchanged.
#[derive(Clone, Debug)]
pub struct LocalTimes {
    pub zone: Zone,
    pub now_us: i64,
}

impl LocalTimes {
    /// `18 Nov 03:00:00`, with the year if it is another one.
    pub fn time(&self, instant: &str) -> String {
        parse_instant(instant, None)
            .map_or_else(|_| instant.to_owned(), |at_us| self.time_in(&self.zone, at_us))
    }

    /// What a clock in another zone shows.
    pub fn time_in(&self, zone: &Zone, at_us: i64) -> String {
        let year_now = zone.wall_time(self.now_us).civil().year;
        let CivilTime { year, month, day, hour, minute, second } = zone.wall_time(at_us).civil();
        let month = usize::try_from(month).ok().and_then(|month| MONTHS.get(month - 1));
        let month = month.copied().unwrap_or_default();
        let year = if year == year_now { String::new() } else { format!(" {year}") };
        format!("{day} {month}{year} {hour:02}:{minute:02}:{second:02}")
    }

    /// `03:00:00`
    pub fn time_of_day(&self, instant: &str) -> String {
        let Ok(at_us) = parse_instant(instant, None) else { return instant.to_owned() };
        let CivilTime { hour, minute, second, .. } = self.zone.wall_time(at_us).civil();
        format!("{hour:02}:{minute:02}:{second:02}")
    }

    /// `5m ago`, `in 3h20m`, `now`
    pub fn relative(&self, instant: &str) -> String {
        parse_instant(instant, None).map_or(String::new(), |at_us| relative(at_us, self.now_us))
    }

    /// A sentence with its instants as the clock shows them. Commands in backticks keep theirs.
    pub fn localize(&self, sentence: &str) -> String {
        let parts = sentence.split('`').enumerate().map(|(index, part)| match index % 2 {
            0 => self.localize_instants(part),
            _ => part.to_owned(),
        });
        parts.collect::<Vec<_>>().join("`")
    }

    fn localize_instants(&self, sentence: &str) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-:.+".contains(c);
        let mut text = String::new();
        let mut rest = sentence;
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
            let (before, from) = rest.split_at(start);
            let (word, after) = from.split_at(from.find(|c| !is_part(c)).unwrap_or(from.len()));
            let instant = word.trim_end_matches(['.', ':']);
            text.push_str(before);
            match instant.ends_with('Z') {
                true => text.push_str(&self.time(instant)),
                false => text.push_str(instant),
            }
            text.push_str(word.strip_prefix(instant).unwrap_or_default());
            rest = after;
        }
        text + rest
    }
}
