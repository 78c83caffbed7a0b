//! What `approve`, `deny` and `revoke` share: send a decision on exactly the plan that the person has seen.

use std::io::{self, BufRead, IsTerminal};
use std::thread::sleep;
use std::time::Duration;

use api::{
    Approval, ApprovalDecide, ApprovalDecided, ApprovalShow, ApprovalState, Code, Decision, Error,
    HealthShow,
};
use rustix::termios::{QueueSelector, tcflush};

use super::show;
use crate::access::send;
use crate::context::Context;
use crate::output::Format;

/// How long a plan is on the screen before it can be confirmed.
const DWELL: Duration = Duration::from_secs(2);
/// A shorter beginning of a plan hash could be guessed.
const PLAN_DIGITS_MIN: usize = 8;

/// Sends the decision, and first shows the plan where it is confirmed. `expected_plan` is the start of the hash of the plan that
/// the caller has seen before.
pub(super) async fn decide(
    context: &Context,
    request: ApprovalDecide,
    expected_plan: Option<&str>,
) -> Result<(), Error> {
    let id = request.id.clone();
    let shown = send(context, ApprovalShow { id: id.clone() }).await?.approval;
    if expected_plan.is_some_and(|hash| hash.len() < PLAN_DIGITS_MIN) {
        let what = format!("`--plan` needs at least {PLAN_DIGITS_MIN} digits of the plan hash");
        return Err(Error::new(Code::InvalidInput, what)
            .hint(format!("`midwatch approval show {id}` shows the hash")));
    }
    let is_expected = |hash: &str| shown.plan_hash.starts_with(hash);
    if !expected_plan.is_none_or(is_expected) {
        return Err(Error::new(Code::NotNow, "the plan has another hash than `--plan`")
            .hint(format!("review it again with `midwatch approval show {id}`")));
    }
    let is_confirmed = expected_plan.is_some()
        || request.signature.is_some()
        || shown.state != ApprovalState::Pending;
    if request.decision == Decision::Approve && !is_confirmed && !confirm(context, &shown)? {
        return Err(Error::new(Code::NotNow, "nothing was approved"));
    }
    let request = ApprovalDecide { plan_hash: Some(shown.plan_hash), ..request };
    let mut answer = send(context, request).await?;
    answer.approval.schedule_name = shown.schedule_name;
    if answer.approval.state == ApprovalState::Expired {
        let what = format!("approval `{id}` had expired, so nothing was decided");
        return Err(Error::new(Code::NotNow, what).hint(format!(
            "if the run is still needed: `midwatch run retry {}`",
            answer.approval.run_id
        )));
    }
    // The decision is made, whatever happened to the daemon since.
    let health = send(context, HealthShow {}).await;
    let starts = match health.is_ok_and(|health| health.daemon.running) {
        true => "starts now",
        false => "starts once `midwatch up` runs",
    };
    context.output.say(&answer, |answer| render(answer, starts));
    Ok(())
}

/// A decision without signature.
pub(super) fn decision(id: String, decision: Decision, note: Option<String>) -> ApprovalDecide {
    ApprovalDecide { note, ..ApprovalDecide::new(id, decision) }
}

/// Shows the plan and asks the person at the terminal for a yes. Keys pressed before the question appears do not count.
fn confirm(context: &Context, shown: &Approval) -> Result<bool, Error> {
    let id = &shown.id;
    let is_shown = context.output.format == Format::Human && io::stdout().is_terminal();
    if !is_shown || !io::stdin().is_terminal() {
        return Err(Error::new(Code::BadUsage, "without a terminal, approving needs `--plan`")
            .hint(format!(
                "review the plan with `midwatch approval show {id}`, and pass its plan hash"
            )));
    }
    context.output.show_text(&show::render(shown, &context.view));
    sleep(DWELL);
    let failed = |error: io::Error| Error::new(Code::Failed, error);
    tcflush(io::stdin(), QueueSelector::IFlush).map_err(|error| failed(error.into()))?;
    context.output.show_part("\napprove exactly this? [y/N] ").map_err(failed)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// `starts` says when an approved run starts.
fn render(answer: &ApprovalDecided, starts: &str) -> String {
    let remember = answer.remember.as_ref().map(|how| format!("\nto allow it from now on: {how}"));
    format!("{}{}", answer.outcome(starts), remember.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::tests::pending;
    use super::*;

    #[test]
    fn decision_says_what_it_changed() {
        let approved = Approval { state: ApprovalState::Approved, ..pending("hello") };
        let answer = ApprovalDecided { approval: approved, changed: true, remember: None };
        let line = "approved standup: its run starts now; `midwatch run watch run_1` follows it";
        assert_eq!(render(&answer, "starts now"), line);
        let answer = ApprovalDecided { changed: false, ..answer };
        assert_eq!(render(&answer, "starts now"), "approval `apr_1` was already approved");
        let denied = Approval { state: ApprovalState::Denied, ..pending("hello") };
        let answer = ApprovalDecided { approval: denied, changed: true, remember: None };
        assert_eq!(render(&answer, "starts now"), "denied standup (apr_1): its run does not start");
    }
}
