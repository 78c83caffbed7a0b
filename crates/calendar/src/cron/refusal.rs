//! Why an expression is refused, and what to write instead.

use std::fmt;

use super::EXPRESSION_BYTES_MAX;
use super::field::FieldName;
use crate::Advice;

/// An expression that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The field at fault, unless it is the expression as a whole.
    pub field: Option<FieldName>,
    pub problem: Problem,
    /// What to write in place of the text at fault.
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
    #[error("`@reboot` is not a time of the calendar: use a trigger on an event")]
    Reboot,
    #[error("`@every` is an interval trigger and not cron")]
    Every,
    #[error(
        "there is no alias `{0}`: there are @yearly, @annually, @monthly, @weekly, @daily, \
         @midnight and @hourly"
    )]
    UnknownAlias(String),
    #[error("an item of the list is empty")]
    EmptyItem,
    #[error("`{0}` runs backwards")]
    Inverted(String),
    #[error("`{0}` has a step without `*` or a range")]
    StepWithoutRange(String),
    #[error("`{0}` has a step of zero")]
    StepZero(String),
    #[error(
        "`{item}` has a step above {max}, so it would match one value only; an interval trigger \
         has no such limit"
    )]
    StepTooLarge { item: String, max: u16 },
    #[error("`{value}` is not within {min} to {max}")]
    OutOfRange { value: String, min: u16, max: u16 },
    #[error("`?` stands alone, in day-of-month or day-of-week")]
    QuestionMark,
    #[error("`{text}` belongs in the {field} field")]
    Elsewhere { text: String, field: FieldName },
    #[error("`L` needs a day in front of it here, as in `FRIL`")]
    LastOfWhat,
    #[error("`{0}` is not understood")]
    NotUnderstood(String),
}

impl std::error::Error for Refusal {}

impl Advice for Refusal {
    fn reason(&self) -> String {
        match self.field {
            Some(field) => format!("in the {field} field, {}", self.problem),
            None => self.problem.to_string(),
        }
    }

    fn advice(&self) -> String {
        match (&self.fix, self.field) {
            (Some(fix), _) => format!("write `{fix}`"),
            (None, Some(field)) => format!("the {field} field takes {}", field.takes()),
            (None, None) => "write an expression such as `30 9 * * MON-FRI`".to_owned(),
        }
    }
}

impl fmt::Display for Refusal {
    /// With a fix if there is one; what a field takes in general would be too long.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fix {
            Some(_) => write!(out, "{}: {}", self.reason(), self.advice()),
            None => write!(out, "{}", self.reason()),
        }
    }
}
