//! Tests an agent with one prompt that belongs to no schedule, for a person who reads the output.
//!
//! The test is recorded before the prompt is sent. It needs no approval, because a person requests it; what the policy denies
//! is not tested, nor is an agent of tier 2. A frozen installation runs no test, and a freeze stops one. A test counts in the
//! budgets like a run; nothing else of it is stored.

use std::time::Duration;

use agents::{Attempt, AttemptResult, LiveOutput, Outcome};
use api::{AgentTest, AgentTestResult, AgentTested, Code, Error, RunUsage, Serve};
use kernel::agent::{self, Agent, AgentName, Command};
use kernel::authority::{Authority, LeaseState};
use kernel::policy_decision::Verdict;
use kernel::run::prompt_request;
use kernel::schedule::PROMPT_BYTES_MAX;
use kernel::{Actor, EventBody, Noun, Now, Timestamp};
use tokio::select;
use uuid::Uuid;

use crate::authorize::budgets::{CounterNeeds, Shortage};
use crate::authorize::policy::{PRESENT_TENSE, decision_sentence};
use crate::commit::caller::Caller;
use crate::commit::ids::agent_name;
use crate::commit::rows::row_key;
use crate::commit::transaction::Transaction;
use crate::engine::Engine;
use crate::errors::{self, internal};

/// The longest time that a person waits for a test.
const TIME_MAX: Duration = Duration::from_secs(120);
const OUTPUT_CHARS_MAX: usize = 500;
const PROMPT: &str = "This is a test of the connection. Please answer with one word: ready.";

impl Serve<AgentTest> for Engine {
    async fn serve(&self, caller: &Caller, request: AgentTest) -> Result<AgentTested, Error> {
        let name = agent_name(&request.name)?;
        let prompt = request.prompt.unwrap_or_else(|| PROMPT.to_owned());
        if PROMPT_BYTES_MAX < prompt.len() {
            let what = format!("a prompt has at most {PROMPT_BYTES_MAX} bytes");
            return Err(Error::new(Code::InvalidInput, what).hint("use a shorter one"));
        }
        let agent = self.start_test(&caller.actor, &name).await?;
        let problems = self.backend.find_problems(agent.clone()).await;
        let server = self.backend.check_server(agent.clone()).await;
        let started_at = self.time.now();
        let attempt = Attempt {
            run: format!("test_{}", Uuid::now_v7().simple()),
            schedule: None,
            slot: None,
            number: 1,
            epoch: 1,
            started_at,
            agent: agent.clone(),
            prompt,
            is_sensitive: false,
            time_max: agent.time_limit().min(TIME_MAX),
            live_output: LiveOutput::default(),
        };
        let result = self.run_until_frozen(attempt).await;
        let rows = vec![(Noun::Agent, name.to_string())];
        let recorded = self.transactions.commit_own(rows, Vec::new(), |_, now| {
            let spent = agent::test_spent_event(&agent, result.usage, now);
            Ok(spent.map(|it| EventBody::Agent(name.clone(), it)).into_iter().collect())
        });
        recorded.await?;
        let took_us = self.time.now().as_micros().saturating_sub(started_at.as_micros());
        let failure = match result.outcome {
            Outcome::Done => None,
            Outcome::Failed(failure) => Some((failure.reason.as_str(), failure.message)),
            Outcome::Cancelled => Some(("cancelled", "the test was cancelled".to_owned())),
        };
        let (reason, message) = failure.unzip();
        let warnings = test_warnings(problems, server.problems, message.as_deref());
        Ok(AgentTested {
            test: AgentTestResult {
                agent: name.to_string(),
                passed: reason.is_none(),
                reason: reason.map(str::to_owned),
                message,
                took_ms: u64::try_from(took_us / 1_000).unwrap_or_default(),
                output: result.output.text.trim().chars().take(OUTPUT_CHARS_MAX).collect(),
                usage: result.usage.map(|usage| RunUsage {
                    input: usage.input_tokens,
                    output: usage.output_tokens,
                }),
                server: server.facts,
                warnings,
            },
        })
    }
}

/// What was seen before the prompt, beside how the prompt ended. A failure is not told twice, and what the server says does
/// not contradict a prompt that worked.
fn test_warnings(local: Vec<String>, server: Vec<String>, failure: Option<&str>) -> Vec<String> {
    let server = server.into_iter().map(|problem| match failure {
        None => format!("{problem}; the prompt worked all the same"),
        Some(_) => problem,
    });
    let mut warnings: Vec<String> = local.into_iter().chain(server).collect();
    warnings.retain(|warning| failure != Some(warning));
    warnings.dedup();
    warnings
}

impl Engine {
    /// Records the test, before anything is sent.
    async fn start_test(&self, actor: &Actor, name: &AgentName) -> Result<Agent, Error> {
        let rows = vec![row_key::<Agent>(name), row_key::<Authority>(&self.installation.instance)];
        let transaction = Transaction { rows, ..Transaction::by(actor) };
        let mut needs = CounterNeeds::default();
        let committed = self.transactions.commit(transaction, |rows, now| {
            let tested = agent::decide(name, rows.get::<Agent>(name), now, actor, Command::Test);
            let tested =
                tested.map_err(errors::refused)?.map(|it| EventBody::Agent(name.clone(), it));
            if let Some(agent) = rows.get::<Agent>(name) {
                self.check_may_test(
                    actor,
                    agent,
                    &rows.authority_of(&self.installation.instance),
                    now,
                )?;
            }
            let tested: Vec<EventBody> = tested.into_iter().collect();
            needs = CounterNeeds::of(&tested, rows, None, &self.config.active().limits);
            Ok(tested)
        });
        let committed = match committed.await {
            Err(spent) if spent.code == Code::LimitReached => {
                let shortage = self.budgets.find_shortage(needs).await;
                let Some(Shortage::Budget(what)) = shortage else { return Err(spent) };
                return Err(Error::new(Code::BudgetExhausted, what)
                    .hint("`midwatch status --budgets` shows what is left"));
            }
            committed => committed?,
        };
        committed
            .after
            .get::<Agent>(name)
            .cloned()
            .ok_or_else(|| internal("the tested agent does not exist"))
    }

    /// Refuses a test that the policy denies, or while no run may start.
    fn check_may_test(
        &self,
        actor: &Actor,
        agent: &Agent,
        authority: &Authority,
        now: Timestamp,
    ) -> Result<(), Error> {
        if authority.frozen.is_some() {
            return Err(Error::new(
                Code::NotNow,
                "the installation is frozen, so no agent is prompted",
            )
            .hint("run `midwatch thaw` first"));
        }
        let config = self.config.active();
        let now = Now { clock: self.time.now(), latest: now };
        if authority.lease_state(config.lease, now) == LeaseState::Paused {
            return Err(Error::new(Code::NotNow, "the lease has expired, so no agent is prompted")
                .hint("run `midwatch lease renew` first"));
        }
        let details = self.policy.details(agent);
        let request = prompt_request(actor.clone(), Some(&agent.name), agent.tier, details);
        let decision = config.rules.decide(&request);
        match decision.verdict {
            Verdict::Allow | Verdict::Ask => Ok(()),
            Verdict::Deny => {
                Err(Error::new(Code::Denied, decision_sentence(&decision, PRESENT_TENSE))
                    .hint("change that rule in `policy.toml` to test the agent"))
            }
        }
    }

    /// Stops when the installation is frozen or the daemon stops, as runs do.
    async fn run_until_frozen(&self, attempt: Attempt) -> AttemptResult {
        let stop = self.agent_tests.child_token();
        let mut result = self.backend.run(attempt, stop.clone());
        select! {
            biased;
            result = &mut result => return result,
            () = self.authority.wait_until_frozen() => stop.cancel(),
        }
        result.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_neither_contradict_nor_repeat_the_outcome() {
        let (missing, refused) = ("no variable `KEY`", "http://x refused the connection");
        let found = |failure| test_warnings(vec![missing.into()], vec![refused.into()], failure);
        let contradicted = format!("{refused}; the prompt worked all the same");
        assert_eq!(found(None), [missing, &contradicted]);
        assert_eq!(found(Some(refused)), [missing]);
        assert_eq!(found(Some(missing)), [refused]);
        assert_eq!(found(Some("it failed")), [missing, refused]);
        let both = test_warnings(vec![missing.into()], vec![missing.into()], Some("it failed"));
        assert_eq!(both, [missing]);
    }
}
