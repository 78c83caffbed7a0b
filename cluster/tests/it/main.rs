//! A cluster from outside.

#[cfg(test)]
mod life;
