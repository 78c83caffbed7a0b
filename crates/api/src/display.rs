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

    /// What the run would do.
    pub fn action(&self) -> String {
        match &self.tool {
            Some(tool) => format!("call the tool `{tool}`"),
            None => format!("prompt agent `{}`", self.about()),
        }
    }

    /// The program with its arguments, or the address, that the plan would use.
    fn target(&self) -> Option<String> {
        let backend = self.plan.get("backend")?;
        let quoted = |argument: &Value| match argument.as_str() {
            Some(text) if text.chars().all(|c| c.is_ascii_graphic() && c != '"') => text.to_owned(),
            _ => argument.to_string(),
        };
        let argv = backend.get("argv").and_then(Value::as_array).map(|argv| {
            let quoted: Vec<String> = argv.iter().map(quoted).collect();
            format!("the program {}", quoted.join(" "))
        });
        let url = || backend.get("url").and_then(Value::as_str).map(str::to_owned);
        argv.or_else(url).map(|target| on_one_line(&target))
    }

    /// What a person needs to decide, the most important first. `time` formats an instant. Text by others is escaped.
    pub fn facts(&self, time: impl Fn(&str) -> String) -> Vec<(&'static str, String)> {
        let at = |name, at: &Option<String>| at.as_ref().map(|at| (name, time(at)));
        let rows = [
            Some(("what", format!("{}, tier {}", self.action(), self.tier))),
            self.target().map(|target| ("by", target)),
            self.schedule_name.as_ref().map(|name| ("schedule", on_one_line(name))),
            self.previous.as_ref().map(|previous| ("ran before", on_one_line(previous))),
            Some(("why it asks", describe_rules(&self.ruling))),
            Some(("state", self.state.to_string())),
            Some(("needs", describe_requirements(&self.needs))),
            (!self.assents.is_empty()).then(|| ("approved by", self.assents.join(", "))),
            at("approve before", &self.approve_by),
            at("starts before", &self.execute_by),
            self.decided_by.clone().map(|by| ("decided by", by)),
            at("decided", &self.decided_at),
            self.note.as_ref().map(|note| ("reason", on_one_line(note))),
        ];
        rows.into_iter().flatten().collect()
    }

    /// The exact rest: ids, names of rules, hashes.
    pub fn details(&self, time: impl Fn(&str) -> String) -> Vec<(&'static str, String)> {
        let PolicyDecision { rules, posture, policy, .. } = &self.ruling;
        let rows = [
            self.containment.map(|it| ("containment", it.description().to_owned())),
            Some(("requested", time(&self.requested_at))),
            (!self.authors.is_empty()).then(|| ("written by", self.authors.join(", "))),
            (!self.agent_authors.is_empty()).then(|| ("agent by", self.agent_authors.join(", "))),
            (!self.fingerprint.is_empty()).then(|| self.describe_fingerprint()),
            Some(("rules", format!("{} ({posture}, policy {policy})", rules.join(", ")))),
            Some(("approval", self.id.clone())),
            Some(("run", self.run_id.clone())),
            Some(("schedule id", self.schedule_id.clone())),
            Some(("plan hash", self.plan_hash.clone())),
        ];
        rows.into_iter().flatten().collect()
    }

    /// The parts of the execution fingerprint, with the result of the check before the start.
    fn describe_fingerprint(&self) -> (&'static str, String) {
        let parts = self.fingerprint.iter().map(|FingerprintPart { part, found }| match found {
            Some(FingerprintCheck::Unchanged) => format!("{part} (unchanged)"),
            Some(FingerprintCheck::Changed) => format!("{part} (changed)"),
            None => part.clone(),
        });
        let name = if self.state.is_open() { "checked again" } else { "checked" };
        (name, format!("{}, before the start", parts.collect::<Vec<_>>().join(", ")))
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
    /// The effect of a decision, in one line. `starts` says when an approved run starts, such as `starts now`.
    pub fn outcome(&self, starts: &str) -> String {
        let Approval { id, state, run_id, assents, needs, previous, schedule_name, .. } =
            &self.approval;
        let name = schedule_name.as_deref().unwrap_or_else(|| self.approval.about());
        let name = on_one_line(name);
        let count = format!("{} of {} so far", assents.len(), needs.persons);
        match (self.changed, state) {
            (true, ApprovalState::Pending) => {
                format!("approved by {}: {count}", assents.join(" and "))
            }
            (false, ApprovalState::Pending) => format!("you have already approved `{id}`: {count}"),
            (true, ApprovalState::Approved) => {
                format!(
                    "approved {name}: its run {starts}; `midwatch run watch {run_id}` follows it"
                )
            }
            (true, state) => {
                let ends = match previous {
                    None => "its run does not start",
                    Some(_) => "its run is not attempted again",
                };
                format!("{state} {name} ({id}): {ends}")
            }
            (false, state) => format!("approval `{id}` was already {state}"),
        }
    }
}

/// Why the policy asks, in plain words. Of the rules that people wrote, only the first decides for certain.
fn describe_rules(ruling: &PolicyDecision) -> String {
    let describe = |(position, rule): (usize, &String)| match (rule.as_str(), rule.split_once('/'))
    {
        ("@tier-2", _) => Some("it reaches the outside world (tier 2)".to_owned()),
        ("@lease", _) => Some("the lease has expired".to_owned()),
        ("@protected", _) => Some("it writes to a protected path".to_owned()),
        ("@system-place", _) => {
            Some("it is in a system directory or another user's home".to_owned())
        }
        ("@default", _) => Some(format!("no rule allows it in {}", ruling.posture)),
        (_, Some(("baseline", id))) if position == 0 => {
            Some(format!("the rule `{id}` of the posture {}", ruling.posture))
        }
        (_, Some((file, id))) if position == 0 && !rule.starts_with('@') => {
            Some(format!("your rule `{id}` in {file}"))
        }
        _ => None,
    };
    let reasons: Vec<String> = ruling.rules.iter().enumerate().filter_map(describe).collect();
    match reasons.is_empty() {
        true => ruling.rules.join(", "),
        false => reasons.join("; "),
    }
}

/// An RFC 3339 instant in UTC, to the second.
pub fn utc_time(instant: &str) -> String {
    match instant.strip_suffix('Z').and_then(|it| it.split_once('T')) {
        Some((date, time)) => format!("{date} {} UTC", time.get(..8).unwrap_or(time)),
        None => instant.to_owned(),
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
    fn rules_are_described_in_plain_words() {
        let table: [(&[&str], &str); 6] = [
            (&["@tier-2", "baseline/agents"], "it reaches the outside world (tier 2)"),
            (
                &["policy.toml/nights", "@lease"],
                "your rule `nights` in policy.toml; the lease has expired",
            ),
            (&["baseline/agents"], "the rule `agents` of the posture staging"),
            (&["@default"], "no rule allows it in staging"),
            (&["@error:policy.toml/x"], "@error:policy.toml/x"),
            (&["@lease", "policy.toml/allows-it"], "the lease has expired"),
        ];
        for (rules, expected) in table {
            let ruling = PolicyDecision {
                verdict: crate::Verdict::Ask,
                rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
                posture: crate::Posture::Staging,
                policy: "0a1b".to_owned(),
            };
            assert_eq!(describe_rules(&ruling), expected);
        }
    }

    #[test]
    fn times_on_pages_are_in_utc_to_the_second() {
        assert_eq!(utc_time("2026-11-17T09:00:00.123456Z"), "2026-11-17 09:00:00 UTC");
        assert_eq!(utc_time("2026-11-17T09:00:00Z"), "2026-11-17 09:00:00 UTC");
        assert_eq!(utc_time("soon"), "soon");
    }

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
