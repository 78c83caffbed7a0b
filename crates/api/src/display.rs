//! Responses as text for people, the same in the terminal and on web pages.
//!
//! Text by agents and strangers is escaped, so that it can neither hide characters nor pass for Midwatch's
//! own output.

use serde_json::Value;

use crate::{
    Approval, ApprovalDecided, ApprovalRequirements, ApprovalState, Containment, FingerprintCheck,
    FingerprintPart, PolicyDecision,
};

/// Escapes control characters, deceptive characters and line breaks.
pub fn on_one_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

/// Escapes control characters and deceptive characters, but not line breaks.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push(c),
            _ if c.is_control() || is_deceptive(c) => shown.extend(c.escape_unicode()),
            _ => shown.push(c),
        }
    }
    shown
}

/// Whether a character is invisible, or reorders or breaks a line of text.
pub fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The prompt of a plan, as far as the caller may read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// The plan has no prompt.
    Absent,
    /// The prompt is readable in the plan.
    Plain(String),
    /// The prompt is sealed in the plan, and the daemon opened it. The plan's hash covers only the sealed text, so
    /// a person who signs elsewhere relies on the daemon to show the right text.
    Unsealed(String),
    /// The prompt is sealed, and the caller may not read it.
    Hidden,
}

impl Containment {
    /// How people see it.
    pub const fn description(self) -> &'static str {
        match self {
            Containment::Builtin => "builtin (it only answers)",
            Containment::Advisory => "advisory (runs as the daemon's user)",
            Containment::External => "external (acts outside Midwatch)",
        }
    }
}

impl Approval {
    /// The agent that the plan prompts, or the tool that it calls.
    pub fn about(&self) -> &str {
        self.agent.as_deref().or(self.tool.as_deref()).unwrap_or_default()
    }

    /// Labels and values of the approval. Only the reason of a decision is text by others; it is escaped.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let some = |name, value: &Option<String>| value.clone().map(|value| (name, value));
        let PolicyDecision { rules, posture, policy, .. } = &self.ruling;
        let what = match &self.tool {
            Some(tool) => format!("call the tool `{tool}`"),
            None => format!("prompt agent `{}`", self.about()),
        };
        let rows = [
            Some(("id", self.id.clone())),
            Some(("state", self.state.to_string())),
            Some(("what", format!("{what}, tier {}", self.tier))),
            self.containment.map(|it| ("containment", it.description().to_owned())),
            Some(("run", self.run_id.clone())),
            Some(("schedule", self.schedule_id.clone())),
            Some(("because of", format!("{} ({posture}, rules {policy})", rules.join(", ")))),
            Some(("requested at", self.requested_at.clone())),
            Some(("needs", describe_requirements(&self.needs))),
            (!self.authors.is_empty()).then(|| ("written by", self.authors.join(", "))),
            (!self.agent_authors.is_empty())
                .then(|| ("agent set up by", self.agent_authors.join(", "))),
            (!self.assents.is_empty()).then(|| ("approved by", self.assents.join(", "))),
            some("approve before", &self.approve_by),
            some("starts before", &self.execute_by),
            some("decided by", &self.decided_by),
            some("decided at", &self.decided_at),
            self.note.as_ref().map(|note| ("reason", on_one_line(note))),
            (!self.fingerprint.is_empty()).then(|| ("depends on", self.describe_fingerprint())),
            Some(("plan hash", self.plan_hash.clone())),
        ];
        rows.into_iter().flatten().collect()
    }

    /// The parts of the execution fingerprint, with the result of the check before the start.
    fn describe_fingerprint(&self) -> String {
        let parts = self.fingerprint.iter().map(|FingerprintPart { part, found }| match found {
            Some(FingerprintCheck::Unchanged) => format!("{part} (unchanged)"),
            Some(FingerprintCheck::Changed) => format!("{part} (changed)"),
            None => part.clone(),
        });
        let parts = parts.collect::<Vec<_>>().join(", ");
        match self.state.is_open() {
            true => format!("{parts}; checked again before the start"),
            false => parts,
        }
    }
}

/// The plan without the prompt, and the prompt, which an agent or a stranger may have written. The plan is escaped, the
/// prompt is not.
pub fn plan_and_prompt(plan: &Value, unsealed: Option<&str>) -> (String, Prompt) {
    let mut plan = plan.clone();
    let prompt = match plan.as_object_mut().and_then(|plan| plan.remove("prompt")) {
        Some(Value::String(prompt)) => Prompt::Plain(prompt),
        Some(_) => match unsealed {
            Some(prompt) => Prompt::Unsealed(prompt.to_owned()),
            None => Prompt::Hidden,
        },
        None => Prompt::Absent,
    };
    (visible(&serde_json::to_string_pretty(&plan).unwrap_or_default()), prompt)
}

impl ApprovalDecided {
    /// The effect of a decision. `starts` says when an approved run starts, such as `starts now`.
    pub fn outcome(&self, starts: &str) -> String {
        let Approval { id, state, run_id, assents, needs, .. } = &self.approval;
        let count = format!("{} of {} so far", assents.len(), needs.persons);
        match (self.changed, state) {
            (true, ApprovalState::Pending) => {
                format!("approved by {}: {count}", assents.join(" and "))
            }
            (false, ApprovalState::Pending) => format!("you have already approved `{id}`: {count}"),
            (true, ApprovalState::Approved) => {
                format!("approved; `midwatch run watch {run_id}` follows the run, which {starts}")
            }
            (true, state) => format!("{state}; run `{run_id}` does not start"),
            (false, state) => format!("approval `{id}` was already {state}"),
        }
    }
}

/// Who must approve, and how.
fn describe_requirements(requirements: &ApprovalRequirements) -> String {
    let ApprovalRequirements { persons, role, needs_personal_token, signed } = requirements;
    let people = match (persons, signed) {
        (1, false) => format!("one {role}"),
        (1, true) => format!("one signature, from one {role}"),
        (persons, false) => format!("{persons} different {role}s"),
        (persons, true) => format!("{persons} signatures, from {role}s"),
    };
    let others = match (needs_personal_token, signed) {
        (false, _) => "",
        // Signing keys belong to personal tokens.
        (true, true) => " who did not write the schedule",
        (true, false) => " with a personal token who did not write the schedule",
    };
    format!("{people}{others}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_say_who_must_approve_and_how() {
        let table = [
            (1, false, false, "one operator"),
            (2, false, false, "2 different operators"),
            (1, true, false, "one operator with a personal token who did not write the schedule"),
            (3, true, true, "3 signatures, from operators who did not write the schedule"),
        ];
        for (persons, needs_personal_token, signed, expected) in table {
            let role = crate::ActorRole::Operator;
            let requirements = ApprovalRequirements { persons, role, needs_personal_token, signed };
            assert_eq!(describe_requirements(&requirements), expected);
        }
    }
}
