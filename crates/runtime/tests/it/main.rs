//! The watch on the in-memory store, with a clock that the test sets.

#[cfg(test)]
mod agents;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod authority;
#[cfg(test)]
mod budget;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod clock;
#[cfg(test)]
mod foretold;
#[cfg(test)]
mod happenings;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod notices;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod scope;
#[cfg(test)]
mod set_clock;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod story;
#[cfg(test)]
mod tallies;
#[cfg(test)]
mod upkeep;
#[cfg(test)]
mod world;
#[cfg(test)]
mod zones;
