//! What a model is told before it sees a tool.

use crate::toolset::Selection;

/// Each line with the tools that it speaks of: without them it is left out.
const LINES: &[(&[&str], &str)] = &[
    (
        &[],
        "Midwatch keeps the watch over agents that work alone. Its state is in the server; you may stop at any time.",
    ),
    (&["status_get"], "Begin with status_get."),
    (
        &["run_start", "run_wait"],
        "Long work: run_start answers at once with a run; then call run_wait with its id, and with the cursor of the \
         answer, until `ended` is true.",
    ),
    (
        &["schedule_create"],
        "Give a changing call an idempotency_key, and the same key when you try it again.",
    ),
    (&[], "`waiting_permission` means that a human must decide. You cannot approve anything."),
    (
        &["approval_call_human", "approval_get"],
        "Call approval_call_human once, tell your user, do other work, and look with approval_get.",
    ),
    (
        &[],
        "`unknown` means that nobody knows whether it happened. Never repeat it; a human settles it.",
    ),
    (&[], "Follow `next_action` where an answer has one. After an error, follow its `hint`."),
    (
        &[],
        "Lists are paged: where there is a `cursor`, give it back unchanged. Ask for one thing by its id instead of \
         a long list.",
    ),
];

pub fn instructions(selection: &Selection) -> String {
    let is_said = |(tools, _): &&(&[&str], &str)| {
        let is_there = |name: &&str| selection.find(name).is_some();
        tools.iter().all(is_there)
    };
    let lines: Vec<&str> = LINES.iter().filter(is_said).map(|(_, line)| *line).collect();
    lines.join("\n")
}
