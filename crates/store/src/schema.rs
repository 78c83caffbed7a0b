//! The steps of a schema, as every engine keeps them: applied in order, each remembered by the hash of
//! its text, so that a step that was edited after its release is noticed on both sides.

use crate::port::Error;

#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub sql: &'static str,
    /// Pinned, because a released step is never edited.
    pub sha256: &'static str,
}

/// How many of these steps were applied, by the hashes that a database remembers.
pub fn applied(found: &[String], steps: &[Step]) -> Result<usize, Error> {
    for (index, (found, step)) in found.iter().zip(steps).enumerate() {
        if found != step.sha256 {
            let number = index + 1;
            return Err(Error::Failed(format!(
                "step {number} of the schema is not the one known here"
            )));
        }
    }
    let number = |steps| u32::try_from(steps).unwrap_or(u32::MAX);
    match found.len() <= steps.len() {
        true => Ok(found.len()),
        false => Err(Error::Newer { found: number(found.len()), known: number(steps.len()) }),
    }
}
