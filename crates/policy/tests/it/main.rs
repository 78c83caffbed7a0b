//! Everything that the crate promises to others, tested through its public surface.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod baseline;
#[cfg(test)]
mod decisions;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod support;
