//! `midwatch policy list`

use api::{Error, PolicyList, PolicyRule, PolicyRules};

use crate::access::send;
use crate::context::Context;

pub(super) async fn run(context: &Context) -> Result<(), Error> {
    let answer = send(context, PolicyList {}).await?;
    context.output.show(&answer, render);
    Ok(())
}

fn render(PolicyRules { posture, policy, rules }: &PolicyRules) -> String {
    let rules: Vec<String> = rules.iter().map(render_rule).collect();
    format!(
        "{}\n\nposture {posture}, policy version {policy}; the strictest rule that matches wins: deny, \
         then ask, then allow",
        rules.join("\n")
    )
}

/// Its effect, name and origin, and below that what it is about.
fn render_rule(rule: &PolicyRule) -> String {
    let line = rule.line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let mut text = format!("{:<5} {}{line}", rule.effect, rule.name);
    if !rule.classes.is_empty() {
        text.push_str(&format!("\n      {}", rule.classes.join(", ")));
    }
    for condition in &rule.conditions {
        let joint = if condition.key == "argv" { " " } else { ", " };
        let verb = if condition.key == "argv" { "starts with" } else { "is" };
        let values = condition.values.join(joint);
        text.push_str(&format!("\n      only if {} {verb} {values}", condition.key));
    }
    text.extend(rule.approvers.iter().map(|who| format!("\n      approved by {who}")));
    text.extend(rule.when.iter().map(|when| format!("\n      when {when}")));
    text
}
