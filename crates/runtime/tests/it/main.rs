//! The watch on the in-memory store, with a clock that the test sets.

mod agents;
mod upkeep;
mod world;
