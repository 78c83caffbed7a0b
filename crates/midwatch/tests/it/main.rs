//! The program as its users meet it.

mod logs;
mod story;
mod world;
