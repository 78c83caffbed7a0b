//! The tamper-evident ledger: feed, checkpoints, export, verification, rebuild and restore.

mod attempts;
pub(crate) mod checkpoints;
pub(crate) mod copy;
pub(crate) mod export;
pub(crate) mod feed;
pub(crate) mod integrity_check;
pub(crate) mod month_files;
pub(crate) mod rebuild;
pub(crate) mod restore;
pub(crate) mod verify;
