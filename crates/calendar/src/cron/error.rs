//! Why an expression is invalid, and what to write instead.

use std::fmt;

use super::EXPRESSION_BYTES_MAX;
use super::field::FieldName;
use crate::Hint;

/// Why an expression is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidCron {
    /// The invalid field; `None` if the expression as a whole is invalid.
    pub field: Option<FieldName>,
    pub problem: Problem,
    /// The replacement for the invalid text.
    pub fix: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("the expression has {0} bytes, more than the {EXPRESSION_BYTES_MAX} allowed")]
    TooLong(usize),
    #[error(
        "an expression has 5 fields (minute hour day-of-month month day-of-week), 6 with seconds \
         first or 7 with the year last, not {0}"
    )]
    FieldCount(usize),
    #[error("a year needs 7 fields, with seconds first")]
    YearWithoutSeconds,
    #[error("`@reboot` is not supported: use an event trigger")]
    Reboot,
    #[error("`@every` is an interval, not a cron expression")]
    Every,
    #[error(
        "unknown alias `{0}`: use @yearly, @annually, @monthly, @weekly, @daily, @midnight or \
         @hourly"
    )]
    UnknownAlias(String),
    #[error("a list item is empty")]
    EmptyItem,
    #[error("`{0}` runs backwards")]
    Inverted(String),
    #[error("`{0}` has a step without `*` or a range")]
    StepWithoutRange(String),
    #[error("`{0}` has a step of zero")]
    StepZero(String),
    #[error(
        "`{item}` has a step above {max}, so it matches only one value; an interval trigger has no \
         such limit"
    )]
    StepTooLarge { item: String, max: u16 },
    #[error("`{value}` is not within {min} to {max}")]
    OutOfRange { value: String, min: u16, max: u16 },
    #[error("`?` must be alone, in day-of-month or day-of-week")]
    QuestionMark,
    #[error("`{text}` belongs in the {field} field")]
    WrongField { text: String, field: FieldName },
    #[error("`L` needs a weekday before it here, as in `FRIL`")]
    LastWithoutWeekday,
    #[error("`{0}` is not valid")]
    InvalidItem(String),
}

impl std::error::Error for InvalidCron {}

impl Hint for InvalidCron {
    fn reason(&self) -> String {
        match self.field {
            Some(field) => format!("in the {field} field, {}", self.problem),
            None => self.problem.to_string(),
        }
    }

    fn hint(&self) -> String {
        match (&self.fix, self.field) {
            (Some(fix), _) => format!("write `{fix}`"),
            (None, Some(field)) => format!("the {field} field takes {}", field.accepted_values()),
            (None, None) => "write an expression such as `30 9 * * MON-FRI`".to_owned(),
        }
    }
}

impl fmt::Display for InvalidCron {
    /// The reason, and the fix if one exists. The values that a field takes would be too long.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fix {
            Some(_) => write!(out, "{}: {}", self.reason(), self.hint()),
            None => write!(out, "{}", self.reason()),
        }
    }
}
