//! A refusal in two parts: what is wrong, and what to write instead.

/// For surfaces that show the two apart. Printing a refusal gives both in one line.
pub trait Advice: std::error::Error {
    /// What is wrong, in a sentence.
    fn reason(&self) -> String;

    /// What to write instead.
    fn advice(&self) -> String;
}

/// An error whose words are those of its [`Advice`].
macro_rules! said_with_advice {
    ($type:ty) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                use $crate::Advice;
                write!(out, "{}: {}", self.reason(), self.advice())
            }
        }

        impl std::error::Error for $type {}
    };
}

pub(crate) use said_with_advice;
