//! Answers in words, the same on every surface at which people look.
//!
//! Text that others wrote is made safe to show: it looks like what it is, and like nothing of ours.

use serde_json::Value;

use crate::{Approval, ApprovalDecided, ApprovalRequirements, FingerprintPart, PolicyDecision};

/// With an escape in the place of everything that does not look like what it is, on one line.
pub fn on_one_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

/// With an escape in the place of everything that does not look like what it is.
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

/// Characters that hide, reorder or break a line of text.
pub fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// What an agent is told by a plan, as far as whoever looks may read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// There is none.
    Absent,
    /// As it is in the plan.
    Plain(String),
    /// Opened by the watch. The hash is of the sealed text, so a signature elsewhere takes the watch's word for it.
    Unsealed(String),
    /// Sealed, and not for whoever looks.
    Hidden,
}

impl Approval {
    /// The agent that is prompted, or the tool that is called.
    pub fn about(&self) -> &str {
        self.agent.as_deref().or(self.tool.as_deref()).unwrap_or_default()
    }

    /// What is so, each fact with its name. What an agent or a stranger may have written is not among them, but for
    /// the reason that was given with a decision.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let some = |name, value: &Option<String>| value.clone().map(|value| (name, value));
        let PolicyDecision { rules, posture, policy, .. } = &self.ruling;
        let what = match &self.tool {
            Some(tool) => format!("call the tool `{tool}`"),
            None => format!("prompt agent `{}`", self.about()),
        };
        let rows = [
            Some(("id", self.id.clone())),
            Some(("state", self.state.clone())),
            Some(("what", format!("{what}, tier {}", self.tier))),
            Some(("run", self.run_id.clone())),
            Some(("schedule", self.schedule_id.clone())),
            Some(("asked by", format!("{} ({posture}, rules {policy})", rules.join(", ")))),
            Some(("asked at", self.asked_at.clone())),
            Some(("needs", needs(&self.needs))),
            (!self.authors.is_empty()).then(|| ("written by", self.authors.join(", "))),
            (!self.assents.is_empty()).then(|| ("approved by", self.assents.join(", "))),
            some("approve before", &self.approve_by),
            some("begins before", &self.execute_by),
            some("decided by", &self.decided_by),
            some("decided at", &self.decided_at),
            self.note.as_ref().map(|note| ("reason", on_one_line(note))),
            (!self.stands_on.is_empty()).then(|| ("stands on", stands_on(&self.stands_on))),
            Some(("plan hash", self.plan_hash.clone())),
        ];
        rows.into_iter().flatten().collect()
    }

    /// The plan without the prompt, and the prompt: what an agent or a stranger may have written comes last. The plan is
    /// made safe to show, the prompt is as it was written.
    pub fn plan_and_prompt(&self) -> (String, Prompt) {
        let mut plan = self.plan.clone();
        let prompt = match plan.as_object_mut().and_then(|plan| plan.remove("prompt")) {
            Some(Value::String(prompt)) => Prompt::Plain(prompt),
            Some(_) => match &self.unsealed {
                Some(prompt) => Prompt::Unsealed(prompt.clone()),
                None => Prompt::Hidden,
            },
            None => Prompt::Absent,
        };
        (visible(&serde_json::to_string_pretty(&plan).unwrap_or_default()), prompt)
    }
}

impl ApprovalDecided {
    /// What came of a decision. `begins` says when a run does that is approved.
    pub fn outcome(&self, begins: &str) -> String {
        let Approval { id, state, run_id, assents, needs, .. } = &self.approval;
        match (self.changed, state.as_str()) {
            (true, "pending") => format!(
                "approved by {}; {} of {} are needed",
                assents.join(" and "),
                assents.len(),
                needs.persons
            ),
            (false, "pending") => format!("you have approved `{id}` already, and others have to"),
            (true, "approved") => {
                format!("approved; `midwatch run watch {run_id}` follows the run, which {begins}")
            }
            (true, state) => format!("{state}; run `{run_id}` does not begin"),
            (false, state) => format!("approval `{id}` was {state} already"),
        }
    }
}

/// Each part, and whether it was as it had been.
fn stands_on(parts: &[FingerprintPart]) -> String {
    let parts = parts.iter().map(|FingerprintPart { part, found }| match found {
        Some(found) => format!("{part} ({})", found.replace('_', " ")),
        None => part.clone(),
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn needs(ApprovalRequirements { persons, role, others, signed }: &ApprovalRequirements) -> String {
    let people = match persons {
        1 => format!("one {role}"),
        persons => format!("{persons} different people, each {role}"),
    };
    let others = if *others { " with a token, who did not write the schedule" } else { "" };
    let signed = if *signed { ", signed" } else { "" };
    format!("{people}{others}{signed}")
}
