//! The embedded store under the suite that every store must pass, and what is its own to show.

#[cfg(test)]
mod conform;
#[cfg(test)]
mod damage;
