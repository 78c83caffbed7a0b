//! The program as its users meet it.

mod logs;
mod story;
mod tamper;
mod world;
