//! The steps of a verb: each is printed with its name and duration, and the first failure ends the verb. At the end all
//! durations are printed together.

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
    let mut durations = Vec::new();
    for step in steps {
        eprintln!("── {}", step.name);
        let (result, elapsed) = timed(|| (step.run)(root));
        let seconds = elapsed.as_secs_f64();
        result.with_context(|| format!("step `{}` failed after {seconds:.1} s", step.name))?;
        eprintln!("── {}: done in {seconds:.1} s", step.name);
        durations.push((step.name, elapsed));
    }
    eprint!("\n{}", table(&durations));
    Ok(())
}

/// One line per step, and their sum.
fn table(durations: &[(&str, Duration)]) -> String {
    let total = durations.iter().map(|(_, duration)| *duration).sum();
    let mut text = String::new();
    for (name, duration) in durations.iter().chain([&("total", total)]) {
        text += &format!("{name:<8} {:>8.1} s\n", duration.as_secs_f64());
    }
    text
}

#[expect(clippy::disallowed_methods, reason = "the duration is only shown to the developer")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
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

    #[test]
    fn the_table_ends_with_the_sum_of_the_durations() {
        let durations = [("fmt", Duration::from_millis(2_500)), ("test", Duration::from_secs(413))];
        assert_eq!(
            table(&durations),
            "fmt           2.5 s\ntest        413.0 s\ntotal       415.5 s\n"
        );
    }
}
