//! Tests of the wire types as other programs see them.

#[cfg(test)]
mod contract;
