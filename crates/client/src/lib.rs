//! The handle over the daemon's socket, and the frames that both ends write.

pub mod frames;
mod socket;

pub use socket::{Socket, connect};
