//! Tests of the embedded store.

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod damaged_tables;
