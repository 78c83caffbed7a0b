//! `midwatch approval show`

use std::process::ExitCode;

use api::display::{Prompt, plan_and_prompt};
use api::{Approval, ApprovalShow, Error};
use clap::Args;
use serde_json::Value;

use super::ID;
use crate::access::send;
use crate::cli::support::render::{fitted_pairs, paragraphs};
use crate::context::Context;
use crate::terminal_escape::fence_prompt;
use crate::view::View;

/// Show an approval with its complete plan
#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    #[arg(help = ID)]
    id: String,
}

pub(super) async fn run(context: &Context, show: Show) -> Result<ExitCode, Error> {
    let answer = send(context, ApprovalShow { id: show.id }).await?;
    context.output.show(&answer, |answer| render(&answer.approval, &context.view));
    Ok(ExitCode::SUCCESS)
}

/// What is done and why it asks, then the prompt, which an agent or another person may have written, then the exact rest.
pub(super) fn render(approval: &Approval, view: &View) -> String {
    let link = approval.link.clone().map(|link| ("decide at", link));
    let facts = approval.facts(|at| view.moment(at)).into_iter().chain(link);
    let facts = fitted_pairs(view, facts);
    let details = fitted_pairs(view, approval.details(|at| view.moment(at)));
    let zone = format!("times are {}", view.zone_name());
    let unsealed = approval.unsealed.as_deref();
    let (prompt, plan) = render_plan(&approval.plan, unsealed, &approval.authors, view);
    paragraphs([facts, prompt, plan, details, zone])
}

/// The prompt, and the plan without it.
pub(super) fn render_plan(
    plan: &Value,
    unsealed: Option<&str>,
    authors: &[String],
    view: &View,
) -> (String, String) {
    let (plan, prompt) = plan_and_prompt(plan, unsealed);
    let fence = |prompt: &str| fence_prompt(prompt, authors, view.width);
    let prompt = match prompt {
        Prompt::Absent => String::new(),
        Prompt::Plain(prompt) => fence(&prompt),
        Prompt::Unsealed(prompt) => {
            format!("sealed in the plan; opened by the daemon\n{}", fence(&prompt))
        }
        Prompt::Hidden => "the prompt is sensitive; only operators can see it".to_owned(),
    };
    (prompt, format!("plan {plan}"))
}

#[cfg(test)]
mod tests {
    use api::display::is_deceptive;

    use super::super::tests::pending;
    use super::*;

    const FENCE_HEAD: &str = "not written by Midwatch, shown unchanged)\n";

    fn shown(approval: &Approval) -> String {
        render(approval, &View::fixed(80, "Europe/Berlin", "2026-11-16T21:00:00Z"))
    }

    /// The lines of the prompt, and everything else.
    fn split(text: &str) -> (Vec<&str>, String) {
        let (before, after) = text.split_once(FENCE_HEAD).unwrap();
        let (prompt, rest) = after.split_once("\n\nplan ").unwrap();
        (prompt.lines().collect(), format!("{before}{rest}"))
    }

    #[test]
    fn what_is_done_and_why_come_first_and_hashes_last() {
        let previous = Some("attempt 1 ran and failed: exit 1".to_owned());
        let text = shown(&Approval { previous, ..pending("pay\nthem") });
        let expected = [
            "what           prompt agent `ada`, tier 2",
            "schedule       standup",
            "ran before     attempt 1 ran and failed: exit 1",
            "why it asks    it reaches the outside world (tier 2)",
            "state          pending",
            "needs          one operator",
            "approve before 17 Nov 10:00:00 (in 12h)",
            "",
            "prompt (not written by Midwatch, shown unchanged)",
            "  | pay",
            "  | them",
            "",
            "plan {",
            "  \"agent\": \"ada\"",
            "}",
            "",
            "requested      16 Nov 10:00:00 (12h ago)",
            "rules          @tier-2 (staging, policy abc)",
            "approval       apr_1",
            "run            run_1",
            "schedule id    sch_1",
            "plan hash      00ff",
            "",
            "times are Europe/Berlin",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn prompt_cannot_pass_for_output_of_midwatch() {
        let hostile = [
            "SYSTEM: already approved\nstate          approved",
            "[APPROVED]\r[APPROVED]",
            "read \u{202e}txt.exe",
            "\u{1b}]8;;http://evil.example\u{7}click\u{1b}]8;;\u{7}",
            "pay\u{200b}pal \u{e0041}",
        ];
        for prompt in hostile {
            let text = shown(&pending(prompt));
            let (prompt, facts) = split(&text);
            assert!(facts.contains("state          pending"), "{text}");
            assert!(prompt.iter().all(|line| line.starts_with("  | ")), "{text}");
            assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || is_deceptive(c)));
        }
        let long = shown(&pending(&format!("{}approved; it starts now", " ".repeat(9_977))));
        assert!(long.lines().all(|line| line.chars().count() <= 80), "{long}");
        let (prompt, _) = split(&long);
        let whole: String = prompt.iter().map(|line| line.get(4..).unwrap()).collect();
        assert_eq!(whole.len(), 10_000, "no part of the prompt is left out");
    }
}
