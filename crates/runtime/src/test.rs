//! A test of an agent: one prompt that belongs to no schedule, asked for by a human who looks at the answer.
//!
//! It is in the log before it is sent. No rule of the standing orders is asked, because a human is at hand,
//! and so nothing is tested that reaches outside. It counts in the budgets as a run does; nothing else of it
//! is kept.

use agents::{Outcome, Said, Work};
use api::{AgentTest, AgentTested, Code, Error, RunUsage, Test};
use kernel::agent::{self, Command};
use kernel::schedule::PROMPT_BYTES_MAX;
use kernel::{Actor, Body, Noun};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agents::name;
use crate::budgets::{Lacks, Wanted};
use crate::errors::{self, internal};
use crate::transact::Change;
use crate::watch::Watch;

/// Nobody sits before it for longer.
const TIME_MAX: Duration = Duration::from_secs(120);
const SAID_CHARS_MAX: usize = 500;
const PROMPT: &str = "This is a test of the connection. Please answer with one word: ready.";

impl Watch {
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
        let rows = vec![(Noun::Agent, name.to_string())];
        let expects = vec![self.authority_row()];
        let change = Change { rows, expects, ..Change::by(actor, None) };
        let mut wanted = Wanted::default();
        let done = self.act_for(change, |rows, now| {
            if self.authority_in(rows).frozen.is_some() {
                return Err(Error::new(Code::NotNow, "the watch is frozen, and prompts nobody")
                    .hint("`midwatch thaw` lets it go on"));
            }
            let tested = agent::decide(&name, rows.agent(&name), now, actor, Command::Test);
            let tested = tested.map_err(errors::agent)?.map(|it| Body::Agent(name.clone(), it));
            let tested: Vec<Body> = tested.into_iter().collect();
            wanted = Wanted::of(&tested, rows, None, &self.in_force().limits);
            Ok(tested)
        });
        let done = match done.await {
            Err(spent) if spent.code == Code::LimitReached => {
                let lacks = self.lacking(wanted).await;
                let Some(Lacks::Budget(what)) = lacks else { return Err(spent) };
                return Err(Error::new(Code::LimitReached, what)
                    .hint("`midwatch status --budgets` shows what is left"));
            }
            done => done?,
        };
        let agent = done.after.agent(&name).ok_or_else(|| internal("the agent vanished"))?;
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
        let ended = doer.work(work, CancellationToken::new()).await;
        let rows = vec![(Noun::Agent, name.to_string())];
        self.act(rows, Vec::new(), |_, now| {
            let answered = agent::spent_by_test(agent, ended.usage, now);
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
}
