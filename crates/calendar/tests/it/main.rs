//! Everything that the crate promises to others, tested through its public surface.

#[cfg(test)]
mod jumps;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod support;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod walk;
