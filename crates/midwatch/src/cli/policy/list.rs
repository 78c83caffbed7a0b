//! `midwatch policy list`

use api::{Error, PolicyList, PolicyRule, PolicyRules};

use crate::access::send;
use crate::context::Context;
use crate::view::View;
use crate::wrap::wrap;

/// Columns before what a rule is about.
const INDENT: &str = "      ";

pub(super) async fn run(context: &Context) -> Result<(), Error> {
    let answer = send(context, PolicyList {}).await?;
    context.output.show(&answer, |answer| render(answer, &context.view));
    Ok(())
}

fn render(PolicyRules { posture, policy, rules }: &PolicyRules, view: &View) -> String {
    let rules: Vec<String> = rules.iter().map(|rule| render_rule(rule, view)).collect();
    let last = format!(
        "posture {posture}, policy version {policy}; the strictest rule that matches wins: deny, then \
         ask, then allow"
    );
    format!("{}\n\n{}", rules.join("\n"), wrap(&last, view.width, ""))
}

/// Its effect, name and origin, and below that what it is about.
fn render_rule(rule: &PolicyRule, view: &View) -> String {
    let line = rule.line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let head = format!("{:<5} {}{line}", rule.effect, rule.name);
    let classes = (!rule.classes.is_empty()).then(|| rule.classes.join(", "));
    let conditions = rule.conditions.iter().map(|condition| {
        let (joint, verb) = match condition.key.as_str() {
            "argv" => (" ", "starts with"),
            _ => (", ", "is"),
        };
        format!("only if {} {verb} {}", condition.key, condition.values.join(joint))
    });
    let approvers = rule.approvers.iter().map(|who| format!("approved by {who}"));
    let when = rule.when.iter().map(|when| format!("when {when}"));
    let below = classes.into_iter().chain(conditions).chain(approvers).chain(when);
    let width = view.width.saturating_sub(INDENT.len());
    let below = below.map(|text| wrap(&text, width, "").replace('\n', &format!("\n{INDENT}")));
    let below = below.map(|text| format!("{INDENT}{text}"));
    std::iter::once(head).chain(below).collect::<Vec<_>>().join("\n")
}
