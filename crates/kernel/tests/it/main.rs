//! The kernel from outside.

#[cfg(test)]
mod golden;
