//! Parts that several commands share.

pub(super) mod command_line;
pub(super) mod follow;
pub(super) mod input;
pub(super) mod interrupt;
pub(super) mod lease;
pub(super) mod narrate;
pub(super) mod page;
pub(super) mod render;
pub(super) mod restore_store;
pub(super) mod sentence;
pub(super) mod shell;
pub(super) mod short_id;
pub(super) mod staged_database;
pub(super) mod stop;
pub(super) mod table;
pub(super) mod text_arg;
pub(super) mod value_parsers;

/// The exit code of a command that found nothing to do.
pub(super) const NOTHING_TO_DO: u8 = 10;
