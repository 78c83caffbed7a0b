//! The server's instructions, which a model reads before the tools.

use crate::selection::Selection;

/// Each line with the tools that it mentions. It is omitted unless all of them are offered.
const LINES: &[(&[&str], &str)] = &[
    (
        &[],
        "Midwatch schedules, runs and supervises agents that work unattended. All state is in the server; you may stop at any time.",
    ),
    (&["status_get"], "Start with status_get."),
    (
        &["run_start", "run_wait"],
        "For long work, run_start returns a run at once; then call run_wait with its run_id, and again with the cursor of \
         each answer, until `ended` is true.",
    ),
    (
        &["schedule_create"],
        "Pass an idempotency_key with every call that changes something, and the same key when you retry it.",
    ),
    (&[], "`waiting_permission` means that a human must decide. You cannot approve anything."),
    (
        &["approval_call_human", "approval_get"],
        "Call approval_call_human once, tell your user, do other work, and check with approval_get.",
    ),
    (
        &[],
        "`unknown` means that the run may or may not have happened. Never repeat it; a human must settle it.",
    ),
    (&[], "Follow `next_action` if an answer has one. After an error, follow its `hint`."),
    (
        &[],
        "Lists are paged: to get more, pass the `cursor` of the answer unchanged. To find one item, get it by its id \
         instead of listing many.",
    ),
];

/// The instructions for the tools of this selection.
pub fn instructions(selection: &Selection) -> String {
    let is_relevant = |(tools, _): &&(&[&str], &str)| {
        let is_offered = |name: &&str| selection.find(name).is_some();
        tools.iter().all(is_offered)
    };
    let lines: Vec<&str> = LINES.iter().filter(is_relevant).map(|(_, line)| *line).collect();
    lines.join("\n")
}
