//! Runs that need approval, and every way to give it.

mod another_attempt;
mod page;
mod policy;
pub(crate) mod setup;
mod several_people;
mod strict_prod;
mod token_files;
