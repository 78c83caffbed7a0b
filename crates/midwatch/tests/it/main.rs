//! The program as its users meet it: the built binary, a real daemon, real files.

#[cfg(test)]
mod access;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod bridge;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod compat;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod http;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod operations;
#[cfg(test)]
mod schedules;
#[cfg(test)]
mod support;
#[cfg(test)]
mod walk;
