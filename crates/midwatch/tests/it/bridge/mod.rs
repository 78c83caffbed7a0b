//! The dashboard in a real browser, and the attacks on it.

mod another_port;
mod attacks;
mod client;
mod dashboard;
mod journeys;
mod pages;
mod story;
