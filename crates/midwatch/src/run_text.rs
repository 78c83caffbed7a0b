//! How runs are named in a sentence.

use api::Run;

use crate::view::View;

/// Runs that are named; more are counted.
const NAMED_MAX: usize = 5;

/// `1 run (standup, started 2m ago)`
pub(crate) fn describe_running(runs: &[Run], view: &View) -> String {
    let started = |run: &Run| {
        let at = run.started_at.as_deref().map(|at| format!(", started {}", view.relative(at)));
        format!("{}{}", schedule_of(run), at.unwrap_or_default())
    };
    let mut named: Vec<String> = runs.iter().take(NAMED_MAX).map(started).collect();
    if NAMED_MAX < runs.len() {
        named.push(format!("{} more", runs.len() - NAMED_MAX));
    }
    let noun = if runs.len() == 1 { "run" } else { "runs" };
    format!("{} {noun} ({})", runs.len(), named.join("; "))
}

/// One line for each run that a stop cut off.
pub(crate) fn describe_cut_off(runs: &[Run]) -> Vec<String> {
    let line = |run: &Run| {
        format!("cut off {} ({}): `midwatch run show {}`", schedule_of(run), run.state, run.id)
    };
    runs.iter().map(line).collect()
}

/// The name of the schedule of a run, else its id.
pub(crate) fn schedule_of(run: &Run) -> &str {
    run.schedule_name.as_deref().or(run.schedule_id.as_deref()).unwrap_or("(manual)")
}
