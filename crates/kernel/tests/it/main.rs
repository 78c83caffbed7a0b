//! Tests of the kernel through its public interface.

#[cfg(test)]
mod agent_callers;
#[cfg(test)]
mod approval;
#[cfg(test)]
mod authority_invariants;
#[cfg(test)]
mod event_triggers;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod notice;
#[cfg(test)]
mod policy_decisions;
#[cfg(test)]
mod random_histories;
#[cfg(test)]
mod run;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod slot;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tick;
#[cfg(test)]
mod timeline;
#[cfg(test)]
mod tool;
