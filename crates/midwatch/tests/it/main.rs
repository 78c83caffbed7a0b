//! The program as its users meet it.

mod story;
mod world;
