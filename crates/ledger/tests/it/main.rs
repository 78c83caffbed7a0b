//! Everything that the crate promises to others, tested through its public surface.

#[cfg(test)]
mod canonical;
#[cfg(test)]
mod chain;
#[cfg(test)]
mod export;
#[cfg(test)]
mod files;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod log;
#[cfg(test)]
mod note;
#[cfg(test)]
mod python;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tree;
