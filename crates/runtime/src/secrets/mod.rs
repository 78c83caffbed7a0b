//! The key files of the data directory, and sealing of private text.

pub(crate) mod key_files;
pub(crate) mod sealing;
