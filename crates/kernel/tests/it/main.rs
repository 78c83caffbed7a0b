//! The kernel from outside.

#[cfg(test)]
mod golden;
#[cfg(test)]
mod life;
