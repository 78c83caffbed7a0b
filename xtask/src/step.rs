//! The steps of a verb: each is printed with its name and duration, and the first failure ends the verb.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub name: &'static str,
    pub run: fn(&Path) -> Result<()>,
}

/// Runs the steps in order and stops at the first failure.
pub fn run_steps(root: &Path, steps: &[Step]) -> Result<()> {
    for step in steps {
        eprintln!("── {}", step.name);
        let (result, elapsed) = timed(|| (step.run)(root));
        let seconds = elapsed.as_secs_f64();
        result.with_context(|| format!("step `{}` failed after {seconds:.1} s", step.name))?;
        eprintln!("── {}: done in {seconds:.1} s", step.name);
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the duration is only shown to the developer")]
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
    fn steps_run_while_none_fails() {
        run_steps(Path::new("."), &[GOOD, GOOD]).unwrap();
    }

    #[test]
    fn the_first_failure_is_named_and_no_step_follows() {
        let error = run_steps(Path::new("."), &[GOOD, BAD, UNREACHABLE]).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.starts_with("step `bad` failed after "), "{text}");
        assert!(text.ends_with("it broke"), "{text}");
    }
}
