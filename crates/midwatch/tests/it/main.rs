//! The program as its users meet it.

mod faults;
mod logs;
mod story;
mod tamper;
mod world;
