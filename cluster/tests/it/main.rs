//! A cluster from outside.

#[cfg(test)]
mod life;
#[cfg(test)]
mod standby;
#[cfg(test)]
mod tls;
