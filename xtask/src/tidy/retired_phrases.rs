//! Phrases that new users did not understand, in the words of a translation. Each has plainer words beside it, which help,
//! messages and documents use now.
//!
//! Looked for in everything that people read: documents, source files of crates, and snapshots of what commands print.

use crate::workspace::Workspace;

/// A phrase, and what to write instead.
const RETIRED: &[(&str, &str)] = &[
    ("what is at work is cancelled", "Cancel every running run"),
    ("standing orders", "the policy, the rules"),
    ("people are let in", "access tokens"),
    ("authority of the watch", "the lease"),
    ("say what became of", "explain"),
    ("let an agent's host speak", "run the MCP server"),
    ("runs ask from", "renew before … (then every run needs approval)"),
    ("kept by process", "running, pid"),
    ("not kept: no daemon", "no daemon is running"),
    ("none signed yet", "not signed yet"),
    ("is a slot that is not decided yet", "next due"),
    ("do not allow it by", "denies it because of"),
    ("let a human decide by", "requires approval because of"),
    ("rules in order for", "all valid (posture …)"),
    ("stands on program", "checked again: program"),
    ("as it is written (not by", "shown unchanged"),
    ("somebody waits for your", "needs your approval"),
    ("nobody is waited for", "already decided"),
    ("lets nobody in", "unknown or revoked token"),
    ("nobody was reached", "refused the connection"),
    ("there is no secret at", "the daemon has no variable"),
    ("nothing here happens when", "is not supported"),
    ("has this name, and does", "the name is taken by"),
    ("each serves one end", "no secret is used twice"),
    ("nobody can approve, and", "0 of 2 required approvers are set up"),
    ("is so already", "nothing to change"),
    ("it fires no more: its", "that time is past"),
    ("shows how it is used", "see `… --help`"),
    ("wrote from its first entry on", "without `--vkey` a completely forged ledger would pass"),
    ("say how a run ended that", "record the outcome"),
    ("of each of which", "each delay is shortened at random"),
    ("has a star in its time", "expressions with `*`"),
    ("of which no rule speaks", "when no rule matches"),
    ("as many as there are", "no limit"),
    ("if nobody says where", "if the default port is taken"),
    ("has something to say holds", "the strictest matching rule wins"),
    ("is let begin on the next day", "may still start"),
    ("who needs a shell writes", "register a script"),
    ("what is no message is", "a malformed message"),
    ("taken, and not looked at", "ignored; accepted for compatibility"),
    ("nobody knows the end of", "unknown outcome"),
    ("no human was here for long", "the lease runs out soon"),
    ("everything is as it was", "nothing reloaded"),
    ("begun, and that is in the log", "started"),
    ("carried over", "imported"),
];

/// The README opens with the image that the name comes from, and explains it.
const IMAGE: (&str, &str) = ("README.md", "standing orders (the policy)");

pub(super) fn retired_phrases(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in workspace.files.iter().filter(|(path, _)| is_read_by_people(path)) {
        let text = on_one_line(text);
        let text = if path == IMAGE.0 { text.replace(IMAGE.1, "") } else { text };
        let retired = RETIRED.iter().filter(|(phrase, _)| text.contains(phrase));
        found.extend(
            retired.map(|(phrase, instead)| format!("{path}: `{phrase}`, now `{instead}`")),
        );
    }
    found
}

fn is_read_by_people(path: &str) -> bool {
    let is_source = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    let is_document = path.ends_with(".md") && !path.starts_with("docs/decisions/");
    is_source || is_document || path.ends_with(".snap")
}

/// The text in lower case, with the lines of strings and comments joined.
fn on_one_line(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim_end_matches('\\').trim();
        line.trim_start_matches("///").trim_start_matches("//!").trim_start_matches("//")
    });
    let words = lines.flat_map(str::split_whitespace).map(str::to_lowercase);
    words.collect::<Vec<_>>().join(" ")
}
