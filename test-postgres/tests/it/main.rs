//! Tests of the public API.

#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod standby;
#[cfg(test)]
mod tls;
