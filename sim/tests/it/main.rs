//! Small crash campaigns and simulations.

#[cfg(test)]
mod crash;
#[cfg(test)]
mod engine;
