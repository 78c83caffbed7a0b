//! What becomes of a claimed run: recording its outcome, ending it over a limit, and requeueing.

use agents::{AttemptResult, Outcome};
use api::{Code, Error};
use kernel::approval::Approval;
use kernel::run::{self, Cause, Command, Failure, FailureKind, Output, Report, Run};
use kernel::sealable_text::SealableText;
use kernel::{RunId, ScheduleId};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::authorize::budgets::Shortage;
use crate::commit::rows::row_key;
use crate::commit::run_context::{definition_rows, run_context, run_rows};
use crate::commit::transaction::Transaction;
use crate::dispatch::dispatcher::{Cancellation, Claim};
use crate::errors;
use crate::execute::executor::{Executor, RETRY_PAUSE};
use crate::secrets::sealing::Purpose;

pub(super) struct AttemptOutcome {
    report: Report,
    /// The attempt ended because it was cancelled.
    was_cancelled: bool,
}

impl From<AttemptResult> for AttemptOutcome {
    fn from(result: AttemptResult) -> AttemptOutcome {
        let was_cancelled = result.outcome == Outcome::Cancelled;
        AttemptOutcome { report: report(result), was_cancelled }
    }
}

impl From<Report> for AttemptOutcome {
    fn from(report: Report) -> AttemptOutcome {
        AttemptOutcome { report, was_cancelled: false }
    }
}

impl Executor {
    /// Records how an attempt ended. The run is not over before that, so this does not give up.
    pub(super) async fn record_outcome(&self, claim: &Claim, epoch: u32, outcome: AttemptOutcome) {
        let AttemptOutcome { report, was_cancelled } = outcome;
        let Claim { id, schedule, .. } = claim;
        if let Some(cancellation) = claim.pending_cancel.get() {
            self.record_pending_cancel(claim, cancellation).await;
        }
        loop {
            let (rows, reads) = (run_rows(id, schedule), definition_rows(schedule, None));
            let recorded = self.transactions.commit_own(rows, reads, |rows, now| {
                let Some(context) = run_context(rows, id, schedule, now) else {
                    return Ok(Vec::new());
                };
                // No request has cancelled this run: the daemon stops.
                if was_cancelled && context.run.cancel.is_none() {
                    return run::interrupt(context, epoch).map_err(errors::refused);
                }
                run::finish(context, epoch, report.clone(), self.time.random())
                    .map_err(errors::refused)
            });
            match recorded.await {
                Ok(_) => return,
                Err(stale) if stale.code == Code::Stale => {
                    warn!(run = %id, epoch, "ignored a stale outcome");
                    return;
                }
                Err(failed) => {
                    error!(%failed, run = %id, "failed to record an outcome, trying again");
                    sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    /// Records that a run was cancelled, which was not possible when it was requested.
    async fn record_pending_cancel(&self, claim: &Claim, cancellation: &Cancellation) {
        let Claim { id, schedule, .. } = claim;
        while let Err(failed) = self.record_cancel(id, schedule, cancellation).await {
            error!(%failed, run = %id, "failed to record a cancellation, trying again");
            sleep(RETRY_PAUSE).await;
        }
    }

    /// Records that a run was cancelled, unless it has ended.
    pub(super) async fn record_cancel(
        &self,
        id: &RunId,
        schedule: &ScheduleId,
        Cancellation { by, note }: &Cancellation,
    ) -> Result<(), Error> {
        let (rows, reads) = (run_rows(id, schedule), definition_rows(schedule, None));
        let transaction = Transaction { rows, reads, ..Transaction::by(by) };
        let recorded = self.transactions.commit(transaction, |rows, now| {
            let unknown = || errors::refused(run::Refusal::Unknown(id.clone()));
            let context = run_context(rows, id, schedule, now).ok_or_else(unknown)?;
            let command = Command::Cancel { note: note.clone() };
            run::decide(context, by, command).map_err(errors::refused)
        });
        match recorded.await {
            Err(failed) if failed.code != Code::NotNow => Err(failed),
            Ok(_) | Err(_) => {
                self.stop_switch.cancel_recorded(id);
                Ok(())
            }
        }
    }

    /// Ends a run for which a budget is used up, or whose agent has reached its limit of approval requests. If that cannot be recorded, the run is
    /// claimed again.
    pub(super) async fn end_for_shortage(&self, claim: &Claim, shortage: Shortage) {
        let Claim { id, schedule, .. } = claim;
        let mut rows = run_rows(id, schedule);
        rows.extend(claim.approval.as_ref().map(row_key::<Approval>));
        let ended =
            self.transactions.commit_own(rows, definition_rows(schedule, None), |rows, now| {
                let context = run_context(rows, id, schedule, now);
                let end = |context| match &shortage {
                    Shortage::Budget(what) => run::end_over_budget(context, what),
                    Shortage::Approvals(what) => run::end_over_ask_limit(context, what),
                };
                Ok(context.map(end).unwrap_or_default())
            });
        if let Err(failed) = ended.await {
            error!(%failed, run = %id, "failed to end a run that is over a limit");
            sleep(RETRY_PAUSE).await;
            self.reload_queued(id).await.unwrap_or_default();
        }
    }

    /// Puts a claimed run back into its queue, undoing a start whose reply was lost.
    pub(super) async fn requeue(&self, claim: &Claim, stop: &CancellationToken) {
        let Claim { id, schedule, .. } = claim;
        // It is tried once even if the daemon stops, so that a run that has done nothing is not recovered as interrupted.
        loop {
            // The commit that starts the run may have been made, and only its reply was lost. The run had no effect then.
            let (rows, reads) = (run_rows(id, schedule), definition_rows(schedule, None));
            let requeued = self.transactions.commit_own(rows, reads, |rows, now| {
                let context = run_context(rows, id, schedule, now);
                Ok(context.map(|it| run::requeue(it, self.node.name())).unwrap_or_default())
            });
            if requeued.await.is_ok() && self.reload_queued(id).await.is_ok() {
                return;
            }
            if stop.is_cancelled() {
                return;
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    async fn reload_queued(&self, id: &RunId) -> Result<(), Error> {
        let rows = self.transactions.load(&[row_key::<Run>(id)]).await?;
        rows.get::<Run>(id).into_iter().for_each(|run| self.dispatcher.update(id, run));
        Ok(())
    }

    /// Seals the output of a sensitive schedule, which may repeat its prompt.
    pub(super) fn seal_output(&self, outcome: AttemptOutcome) -> AttemptOutcome {
        let AttemptOutcome { mut report, was_cancelled } = outcome;
        report.output = report.output.map(|output| Output {
            text: self.sealing.seal(output.text, Purpose::Output).unwrap_or_else(|failed| {
                error!(%failed, "failed to seal the output of a run, dropped it");
                SealableText::Sealed { sealed: String::new() }
            }),
            ..output
        });
        report.result = report.result.map_err(|failure| Failure {
            cause: Cause::new(&failure.cause.code, "hidden, because the schedule is sensitive"),
            ..failure
        });
        AttemptOutcome { report, was_cancelled }
    }
}

/// The outcome of a run whose prompt or payload cannot be read. Permanent, because a retry could not read it either.
pub(super) fn unreadable_text(unreadable: &Error) -> AttemptOutcome {
    let cause = Cause::new("words_unreadable", &unreadable.message);
    let result = Err(Failure { cause, kind: FailureKind::Permanent });
    Report { result, output: None, usage: None }.into()
}

/// The outcome of an attempt that panicked: it is unknown how far it got.
pub(super) fn panicked() -> AttemptOutcome {
    let cause = Cause::new("panicked", "the backend has a bug; the daemon's log has the details");
    let result = Err(Failure { cause, kind: FailureKind::Indeterminate });
    Report { result, output: None, usage: None }.into()
}

fn report(result: AttemptResult) -> Report {
    let AttemptResult { outcome, output, usage } = result;
    let output = Output {
        text: output.text.into(),
        bytes: output.bytes,
        file: output.file.map(|file| file.display().to_string()),
    };
    let result = match outcome {
        Outcome::Done => Ok(()),
        Outcome::Failed(failure) => Err(Failure {
            cause: Cause::new(failure.reason.as_str(), &failure.message),
            kind: failure.kind,
        }),
        Outcome::Cancelled => Err(Failure {
            cause: Cause::new("cancelled", "it was cancelled"),
            kind: FailureKind::Permanent,
        }),
    };
    Report { result, output: Some(output).filter(|output| 0 < output.bytes), usage }
}
