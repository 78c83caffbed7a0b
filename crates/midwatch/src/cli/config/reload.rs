//! `midwatch config reload`

use api::{ConfigReload, ConfigReloaded, Error, Finding, Reloaded};

use crate::access::send;
use crate::context::Context;

pub(super) async fn run(context: &Context) -> Result<(), Error> {
    let answer = send(context, ConfigReload {}).await?;
    context.output.say(&answer, |ConfigReloaded { reloaded }| render(reloaded));
    Ok(())
}

fn render(reloaded: &Reloaded) -> String {
    let Reloaded { policy, changed, waiting, overridden, warnings, .. } = reloaded;
    let quoted = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
        names.join(", ")
    };
    let mut lines = vec![match changed.is_empty() {
        true => format!("nothing reloaded (policy version {policy})"),
        false => format!("reloaded {} (policy version {policy})", quoted(changed)),
    }];
    if !waiting.is_empty() {
        let verb = if waiting.len() == 1 { "takes" } else { "take" };
        lines.push(format!("{} {verb} effect after a restart", quoted(waiting)));
    }
    if !overridden.is_empty() {
        let keys = quoted(overridden);
        lines.push(format!("set by the daemon's environment, not by the file: {keys}"));
    }
    let warnings = warnings.iter().map(render_finding);
    lines.into_iter().chain(warnings).collect::<Vec<_>>().join("\n")
}

/// A finding about the active configuration, and whether it keeps the daemon from starting again.
pub(in crate::cli) fn render_finding(finding: &Finding) -> String {
    let refuses = if finding.refuses { "the next start will be refused: " } else { "" };
    format!("warning: {refuses}{}; {}", finding.what, finding.fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reload_lists_what_changed_what_waits_and_what_is_overridden() {
        let reloaded = |changed: &[&str], waiting: &[&str], warnings| Reloaded {
            config_hash: "0".into(),
            policy: "0a1b".into(),
            changed: changed.iter().map(ToString::to_string).collect(),
            waiting: waiting.iter().map(ToString::to_string).collect(),
            overridden: waiting.iter().map(|_| "log.level".to_owned()).collect(),
            warnings,
        };
        let nothing = render(&reloaded(&[], &[], vec![]));
        assert_eq!(nothing, "nothing reloaded (policy version 0a1b)");
        let warning = |refuses| Finding {
            check: "approvers".into(),
            refuses,
            what: "0 of 1 required approvers are set up".into(),
            fix: "create a token".into(),
        };
        let several = render(&reloaded(
            &["budget.runs", "policy.toml"],
            &["posture"],
            vec![warning(false), warning(true)],
        ));
        let expected = [
            "reloaded `budget.runs`, `policy.toml` (policy version 0a1b)",
            "`posture` takes effect after a restart",
            "set by the daemon's environment, not by the file: `log.level`",
            "warning: 0 of 1 required approvers are set up; create a token",
            "warning: the next start will be refused: 0 of 1 required approvers are set up; create a \
             token",
        ];
        assert_eq!(several, expected.join("\n"));
    }
}
