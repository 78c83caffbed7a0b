//! The kernel from outside.

mod golden;
