//! Steps of a verb: each printed with its name and its time; the first that fails is the last.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub name: &'static str,
    pub run: fn(&Path) -> Result<()>,
}

/// Takes the steps in order and stops at the first that fails.
pub fn walk(root: &Path, steps: &[Step]) -> Result<()> {
    for step in steps {
        eprintln!("── {}", step.name);
        let (result, spent) = timed(|| (step.run)(root));
        let seconds = spent.as_secs_f64();
        result.with_context(|| format!("step `{}` failed after {seconds:.1} s", step.name))?;
        eprintln!("── {}: done in {seconds:.1} s", step.name);
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a step's time is shown to the developer; nothing is decided by it"
)]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    (work(), started.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Step = Step { name: "good", run: |_| Ok(()) };
    const BAD: Step = Step { name: "bad", run: |_| anyhow::bail!("it broke") };
    const UNREACHABLE: Step = Step { name: "next", run: |_| panic!("ran after a failure") };

    #[test]
    fn all_good_steps_are_taken() {
        walk(Path::new("."), &[GOOD, GOOD]).unwrap();
    }

    #[test]
    fn the_first_failure_is_named_and_ends_the_walk() {
        let error = walk(Path::new("."), &[GOOD, BAD, UNREACHABLE]).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.starts_with("step `bad` failed after "), "{text}");
        assert!(text.ends_with("it broke"), "{text}");
    }
}
