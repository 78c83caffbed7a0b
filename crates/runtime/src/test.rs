//! A test of an agent: one prompt that belongs to no schedule, asked for by a human who looks at the answer.
//!
//! It is in the log before it is sent. What the standing orders would ask a human needs no approval, because
//! one asks in person; what they deny is not tested, nor is what reaches outside. A frozen watch tests nobody,
//! and a freeze stops a test. It counts in the budgets as a run does; nothing else of it is kept.

use agents::{AgentBackend, Ended, Outcome, Said, Work};
use api::{AgentTest, AgentTested, Code, Error, RunUsage, Test};
use kernel::agent::{self, Agent, AgentName, Command};
use kernel::authority::{Authority, Step};
use kernel::ruling::Verdict;
use kernel::run::prompting;
use kernel::schedule::PROMPT_BYTES_MAX;
use kernel::{Actor, Body, Noun, Now, Timestamp};
use std::time::Duration;
use tokio::select;
use uuid::Uuid;

use crate::agents::name;
use crate::budgets::{Lacks, Wanted};
use crate::errors::{self, internal};
use crate::orders::{FORESEEN, sentence};
use crate::transact::Change;
use crate::watch::Engine;

/// Nobody sits before it for longer.
const TIME_MAX: Duration = Duration::from_secs(120);
const SAID_CHARS_MAX: usize = 500;
const PROMPT: &str = "This is a test of the connection. Please answer with one word: ready.";

impl Engine {
    /// Stops all tests, for good: whoever waits for one would keep the watch from ending.
    pub fn stop_tests(&self) {
        self.tests().cancel();
    }

    pub(crate) async fn agent_test(
        &self,
        actor: &Actor,
        asked: AgentTest,
    ) -> Result<AgentTested, Error> {
        let name = name(&asked.name)?;
        let doer =
            self.doer().ok_or_else(|| internal("nobody is here who could prompt an agent"))?;
        let prompt = asked.prompt.unwrap_or_else(|| PROMPT.to_owned());
        if PROMPT_BYTES_MAX < prompt.len() {
            let what = format!("a prompt has at most {PROMPT_BYTES_MAX} bytes");
            return Err(Error::new(Code::InvalidInput, what).hint("give a shorter one"));
        }
        let agent = self.begin_test(actor, &name).await?;
        let server = doer.look(agent.clone()).await;
        let began = self.now();
        let work = Work {
            run: format!("test_{}", Uuid::now_v7().simple()),
            schedule: None,
            slot: None,
            attempt: 1,
            epoch: 1,
            at: began,
            agent: agent.clone(),
            prompt,
            is_sensitive: false,
            time_max: agent.time_limit().min(TIME_MAX),
            said: Said::default(),
        };
        let ended = self.work_until_frozen(&**doer, work).await;
        let rows = vec![(Noun::Agent, name.to_string())];
        self.act(rows, Vec::new(), |_, now| {
            let answered = agent::spent_by_test(&agent, ended.usage, now);
            Ok(answered.map(|it| Body::Agent(name.clone(), it)).into_iter().collect())
        })
        .await?;
        let took_us = self.now().as_micros().saturating_sub(began.as_micros());
        let failure = match ended.outcome {
            Outcome::Done => None,
            Outcome::Failed(failure) => Some((failure.reason.as_str(), failure.message)),
            Outcome::Cancelled => Some(("cancelled", "it was told to stop".to_owned())),
        };
        let (reason, message) = failure.unzip();
        Ok(AgentTested {
            test: Test {
                agent: name.to_string(),
                passed: reason.is_none(),
                reason: reason.map(str::to_owned),
                message,
                took_ms: u64::try_from(took_us / 1_000).unwrap_or_default(),
                said: ended.output.text.trim().chars().take(SAID_CHARS_MAX).collect(),
                usage: ended.usage.map(|usage| RunUsage {
                    input: usage.input_tokens,
                    output: usage.output_tokens,
                }),
                server,
            },
        })
    }

    /// The intent is in the log before anything is sent.
    async fn begin_test(&self, actor: &Actor, name: &AgentName) -> Result<Agent, Error> {
        let rows = vec![(Noun::Agent, name.to_string()), self.authority_row()];
        let change = Change { rows, ..Change::by(actor, None) };
        let mut wanted = Wanted::default();
        let done = self.act_for(change, |rows, now| {
            let tested = agent::decide(name, rows.agent(name), now, actor, Command::Test);
            let tested = tested.map_err(errors::agent)?.map(|it| Body::Agent(name.clone(), it));
            if let Some(agent) = rows.agent(name) {
                self.lets_test(actor, agent, &self.authority_in(rows), now)?;
            }
            let tested: Vec<Body> = tested.into_iter().collect();
            wanted = Wanted::of(&tested, rows, None, &self.in_force().limits);
            Ok(tested)
        });
        let done = match done.await {
            Err(spent) if spent.code == Code::LimitReached => {
                let lacks = self.lacking(wanted).await;
                let Some(Lacks::Budget(what)) = lacks else { return Err(spent) };
                return Err(Error::new(Code::BudgetExhausted, what)
                    .hint("`midwatch status --budgets` shows what is left"));
            }
            done => done?,
        };
        done.after.agent(name).cloned().ok_or_else(|| internal("the agent vanished"))
    }

    /// Whoever asks in person needs nobody's approval; what is denied is denied to them too.
    fn lets_test(
        &self,
        actor: &Actor,
        agent: &Agent,
        authority: &Authority,
        now: Timestamp,
    ) -> Result<(), Error> {
        if authority.frozen.is_some() {
            return Err(Error::new(Code::NotNow, "the watch is frozen, and prompts nobody")
                .hint("`midwatch thaw` lets it go on"));
        }
        let in_force = self.in_force();
        let now = Now { clock: self.now(), latest: now };
        if authority.step(in_force.lease, now) == Step::Paused {
            return Err(Error::new(Code::NotNow, "the lease has run out, and nobody is prompted")
                .hint("`midwatch lease renew` lets the watch go on"));
        }
        let details = self.details(agent);
        let request = prompting(actor.clone(), Some(&agent.name), agent.tier, details);
        let ruling = in_force.rules.decide(&request);
        match ruling.verdict {
            Verdict::Allow | Verdict::Ask => Ok(()),
            Verdict::Deny => Err(Error::new(Code::Denied, sentence(&ruling, FORESEEN))
                .hint("change that rule in `policy.toml` to test the agent")),
        }
    }

    /// Stops when the watch is frozen or ends, as runs do.
    async fn work_until_frozen(&self, doer: &dyn AgentBackend, work: Work) -> Ended {
        let stop = self.tests().child_token();
        let mut ended = doer.work(work, stop.clone());
        select! {
            biased;
            ended = &mut ended => return ended,
            () = self.until_frozen() => stop.cancel(),
        }
        ended.await
    }
}
