//! An error in two parts: what is wrong, and what to write instead.

/// An error whose reason and hint can be shown separately. Its `Display` prints both on one line.
pub trait Hint: std::error::Error {
    /// What is wrong.
    fn reason(&self) -> String;

    /// What to write instead.
    fn hint(&self) -> String;
}

/// Implements `Error` and `Display` (`reason: hint`) for a type with a [`Hint`].
macro_rules! display_with_hint {
    ($type:ty) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                use $crate::Hint;
                write!(out, "{}: {}", self.reason(), self.hint())
            }
        }

        impl std::error::Error for $type {}
    };
}

pub(crate) use display_with_hint;
