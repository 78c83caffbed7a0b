//! Tests of the public API.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod baseline;
#[cfg(test)]
mod decisions;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod rule_errors;
#[cfg(test)]
mod support;
