//! Gregorian dates as integers: no zone, no text, no limits but those of `i64`.
//!
//! A day is its number since 1970-01-01; weekdays count from Sunday = 0. The conversions start the
//! year in March, so that the leap day comes last.

pub(crate) const DAY_S: i64 = 86_400;
pub(crate) const SECOND_US: i64 = 1_000_000;

const DAYS_PER_ERA: i64 = 146_097;
const YEARS_PER_ERA: i64 = 400;
/// From 0000-03-01 to 1970-01-01.
const DAYS_BEFORE_1970: i64 = 719_468;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: u32,
    /// 1 to 31.
    pub(crate) day: u32,
}

impl Date {
    pub(crate) fn from_day_number(day: i64) -> Date {
        let day = day + DAYS_BEFORE_1970;
        let era = day.div_euclid(DAYS_PER_ERA);
        let in_era = day.rem_euclid(DAYS_PER_ERA);
        let year_in_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
        let in_year = in_era - (365 * year_in_era + year_in_era / 4 - year_in_era / 100);
        let from_march = (5 * in_year + 2) / 153;
        let day = in_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = year_in_era + era * YEARS_PER_ERA + i64::from(month <= 2);
        Date { year, month: month as u32, day: day as u32 }
    }

    pub(crate) fn day_number(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let era = year.div_euclid(YEARS_PER_ERA);
        let year_in_era = year.rem_euclid(YEARS_PER_ERA);
        let from_march = (i64::from(self.month) + 9) % 12;
        let in_year = (153 * from_march + 2) / 5 + i64::from(self.day) - 1;
        let in_era = year_in_era * 365 + year_in_era / 4 - year_in_era / 100 + in_year;
        era * DAYS_PER_ERA + in_era - DAYS_BEFORE_1970
    }

    pub(crate) fn is_valid(self) -> bool {
        (1..=12).contains(&self.month) && (1..=Month::of(self).days()).contains(&self.day)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Month {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: u32,
}

impl Month {
    pub(crate) fn of(date: Date) -> Month {
        Month { year: date.year, month: date.month }
    }

    pub(crate) fn days(self) -> u32 {
        match self.month {
            2 if is_leap(self.year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    pub(crate) fn next(self) -> Month {
        match self.month {
            12 => Month { year: self.year + 1, month: 1 },
            month => Month { year: self.year, month: month + 1 },
        }
    }

    pub(crate) fn previous(self) -> Month {
        match self.month {
            1 => Month { year: self.year - 1, month: 12 },
            month => Month { year: self.year, month: month - 1 },
        }
    }

    /// The number of its first day since 1970-01-01.
    pub(crate) fn first_day(self) -> i64 {
        Date { year: self.year, month: self.month, day: 1 }.day_number()
    }

    /// The weekday of its first day.
    pub(crate) fn first_weekday(self) -> u32 {
        weekday(self.first_day())
    }
}

/// 1970-01-01 was a Thursday.
pub(crate) fn weekday(day: i64) -> u32 {
    (day + 4).rem_euclid(7) as u32
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_four_centuries_round_trips() {
        let mut expected = Date { year: 1899, month: 12, day: 31 };
        let first = Date { year: 1900, month: 1, day: 1 }.day_number();
        assert_eq!(first, -25_567);
        for day in first..first + DAYS_PER_ERA {
            let month = Month::of(expected);
            expected = match expected.day < month.days() {
                true => Date { day: expected.day + 1, ..expected },
                false => Date { year: month.next().year, month: month.next().month, day: 1 },
            };
            assert_eq!((Date::from_day_number(day), expected.day_number()), (expected, day));
            assert_eq!(month.next().previous(), month);
        }
    }

    #[test]
    fn weekdays_and_leap_years() {
        assert_eq!([0, 3, -4].map(weekday), [4, 0, 0]);
        assert_eq!([1999, 2000, 2096, 2100, 2104].map(is_leap), [false, true, true, false, true]);
        assert!(Date { year: 2028, month: 2, day: 29 }.is_valid());
        assert!(!Date { year: 2027, month: 2, day: 29 }.is_valid());
        assert!(!Date { year: 2027, month: 13, day: 1 }.is_valid());
        assert!(!Date { year: 2027, month: 4, day: 0 }.is_valid());
    }
}
