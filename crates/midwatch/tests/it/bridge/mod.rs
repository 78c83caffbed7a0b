//! The dashboard in a real browser, and the attacks on it.

mod dashboard;
mod story;
