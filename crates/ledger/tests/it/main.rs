//! Tests of the public API.

#[cfg(test)]
mod canonical;
#[cfg(test)]
mod chain;
#[cfg(test)]
mod export;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod note;
#[cfg(test)]
mod random_input;
#[cfg(test)]
mod second_verifier;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod verify_export;
#[cfg(test)]
mod verify_ledger;
