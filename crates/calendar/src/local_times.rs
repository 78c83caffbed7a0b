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

    /// A sentence with its instants as the clock shows them.
    pub fn localize(&self, sentence: &str) -> String {
        replace_instants(sentence, |instant| self.time(instant))
    }
}

/// A sentence in which every RFC 3339 instant is shown as `show` does. Commands in backticks keep theirs.
pub fn replace_instants(sentence: &str, show: impl Fn(&str) -> String) -> String {
    let parts = sentence.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => replace_in_plain_text(part, &show),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

fn replace_in_plain_text(text: &str, show: impl Fn(&str) -> String) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-:.+".contains(c);
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_part(c)).unwrap_or(from.len()));
        let instant = word.trim_end_matches(['.', ':']);
        replaced.push_str(before);
        let has_offset = instant.contains('T') && parse_instant(instant, None).is_ok();
        match has_offset || instant.ends_with('Z') {
            true => replaced.push_str(&show(instant)),
            false => replaced.push_str(instant),
        }
        replaced.push_str(word.strip_prefix(instant).unwrap_or_default());
        rest = after;
    }
    replaced + rest
}
