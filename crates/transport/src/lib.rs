//! Both ends of the daemon's socket: the frames that both write, and the client's [`Socket`], which is an
//! `api::Handle`.

pub mod frames;
mod socket;

pub use socket::{Socket, connect};
