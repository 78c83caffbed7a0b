//! The backends from outside, with real programs.

#[cfg(test)]
mod builtin;
#[cfg(test)]
mod command;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod footing;
#[cfg(test)]
mod hook;
#[cfg(test)]
mod http;
#[cfg(test)]
mod letta;
#[cfg(test)]
mod output;
#[cfg(test)]
mod stand_in;
#[cfg(test)]
mod webhook;
#[cfg(test)]
mod world;
