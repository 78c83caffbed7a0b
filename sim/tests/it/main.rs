//! Campaigns small enough for every day.

#[cfg(test)]
mod crash;
#[cfg(test)]
mod watch;
