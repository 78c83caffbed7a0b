//! Tests of the wire types as other programs see them.

mod contract;
