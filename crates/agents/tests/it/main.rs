//! The backends from outside, with real programs.

#[cfg(test)]
mod builtin;
#[cfg(test)]
mod command;
#[cfg(test)]
mod fingerprint;
#[cfg(test)]
mod hook;
#[cfg(test)]
mod http;
#[cfg(test)]
mod letta;
#[cfg(test)]
mod output;
mod problems;
#[cfg(test)]
mod stand_in;
#[cfg(test)]
mod termination;
#[cfg(test)]
mod webhook;
#[cfg(test)]
mod world;
