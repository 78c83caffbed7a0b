//! Everything that the crate promises to others, tested through its public surface.

#[cfg(test)]
mod croner;
#[cfg(test)]
mod days;
#[cfg(test)]
mod describe;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod input;
#[cfg(test)]
mod jumps;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod silence;
#[cfg(test)]
mod stored;
#[cfg(test)]
mod support;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod walk;
