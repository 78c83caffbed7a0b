//! The engine on the in-memory store, with a clock that the test sets.

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
mod clock;
#[cfg(test)]
mod clock_ahead;
#[cfg(test)]
mod clock_changes;
#[cfg(test)]
mod devices;
#[cfg(test)]
mod hidden_objects;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod maintenance;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod notify;
#[cfg(test)]
mod policy_preview;
#[cfg(test)]
mod races;
#[cfg(test)]
mod references;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod reopen;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod scope;
#[cfg(test)]
mod status;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod tool_calls;
#[cfg(test)]
mod tool_metrics;
#[cfg(test)]
mod triggers;
#[cfg(test)]
mod world;
#[cfg(test)]
mod zones;
