//! Tests of the public API.

#[cfg(test)]
mod hostile_text;
#[cfg(test)]
mod patterns;
