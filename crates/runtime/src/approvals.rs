//! Questions to humans: shown, answered, and given up when nobody answers in time.

use api::{
    Answer, ApprovalDecide, ApprovalDecided, ApprovalList, ApprovalShow, ApprovalShown, Approvals,
    Code, Error,
};
use kernel::approval::{
    self, Approval, Command, Footing, Needs, OPEN, Plan, Question, Signature, Signed, State,
};
use kernel::token::Token;
use kernel::{Actor, ApprovalId, Noun, Timestamp, TokenId};
use store::{FIRST_DUE, Item};
use tokio::select;
use tracing::error;

use crate::errors::{self, internal};
use crate::orders;
use crate::page::{Listed, Order};
use crate::rows::{RowKey, Rows};
use crate::sealing::Purpose;
use crate::signatures::statement;
use crate::stored;
use crate::times::rfc3339;
use crate::transact::{Change, Key};
use crate::watch::Engine;
use crate::work::{defined_by, ground, rows_of};

/// Questions that are given up at a time.
const BATCH: usize = 256;
/// The longest sleep: another process on the same database may have asked.
const SLEEP_US_MAX: i64 = 60_000_000;

impl Engine {
    pub(crate) async fn approval_list(&self, asked: ApprovalList) -> Result<Approvals, Error> {
        let agent = asked.agent.as_deref();
        let page = Listed {
            noun: Noun::Approval,
            order: Order::NewestFirst((!asked.all).then_some(OPEN)),
            limit: asked.limit,
            cursor: asked.cursor,
        };
        let (approvals, cursor) = self
            .page::<ApprovalId, _>(page, |item| {
                let (id, approval) = approval_in(item)?;
                let of = approval.plan.agent.as_ref().map(|agent| agent.as_str());
                let is_asked_for = agent.is_none() || agent == of;
                is_asked_for.then(|| wire(&id, &approval)).transpose()
            })
            .await?;
        let approvals = approvals.into_iter().map(|it| self.with_link(it)).collect();
        Ok(Approvals { approvals, cursor })
    }

    /// Whoever may approve sees what is sealed, too: nobody says yes to what they cannot read.
    pub(crate) async fn approval_show(
        &self,
        actor: &Actor,
        asked: ApprovalShow,
    ) -> Result<ApprovalShown, Error> {
        let id = approval_id(&asked.id)?;
        let rows = self.load(&[row_of(&id)]).await?;
        let mut approval = self.with_link(wire_in(&rows, &id)?);
        let Plan { prompt, agent, .. } = &found(&rows, &id)?.plan;
        if prompt.is_sealed() && self.may_read_sealed(actor, agent.as_ref()).await? {
            approval.unsealed = Some(self.sealing().open(prompt, Purpose::Words)?);
        }
        Ok(ApprovalShown { approval })
    }

    /// With where it is decided, as long as somebody is waited for.
    fn with_link(&self, approval: api::Approval) -> api::Approval {
        let is_open = approval.state == "pending";
        let link = is_open.then(|| self.link_to(&approval.id)).flatten();
        api::Approval { link, ..approval }
    }

    /// Where a human looks at an approval and decides, if there is such a page.
    pub(crate) fn link_to(&self, approval: &str) -> Option<String> {
        self.pages().map(|pages| format!("{pages}/approvals/{approval}"))
    }

    pub(crate) async fn approval_decide(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ApprovalDecide,
    ) -> Result<Answer, Error> {
        let id = approval_id(&asked.id)?;
        let remember = asked.remember;
        let (mut rows, reads) = self.rows_of_approval(&id).await?;
        rows.push(self.authority_row());
        let signed = match &asked.signature {
            Some(signature) => self.signed(&id, signature).await?,
            None => None,
        };
        rows.extend(signed.iter().map(|signed| token_row(&signed.signature.token)));
        let command = command(asked, signed)?;
        let change = Change { rows, reads, ..Change::by(actor, key) };
        let decide = |rows: &Rows, now| {
            let approval = found(rows, &id)?;
            let ground = ground(rows, &approval.plan.run, &approval.plan.schedule, now)
                .ok_or_else(|| internal("an approval has no run"))?;
            let agent = approval.plan.agent.as_ref().and_then(|name| rows.agent(name));
            let in_force = self.in_force();
            let rules = in_force.rules.version();
            let question = Question { id: &id, approval, ground, agent, rules };
            approval::decide(question, &self.authority_in(rows), actor, command.clone())
                .map_err(errors::approval)
        };
        let answer = self.transact(change, decide, |before, after| {
            let changed = before.approval(&id) != after.approval(&id);
            let decided = found(after, &id)?;
            let remember = remember.then(|| policy::remember(&decided.request, &decided.ruling));
            let approval = wire_in(after, &id)?;
            Ok(Answer::ApprovalDecide(ApprovalDecided { approval, changed, remember }))
        });
        let answer = answer.await?;
        self.attend(actor).await;
        Ok(answer)
    }

    /// Whose signature that is. None is needed where nothing waits for an answer any more.
    async fn signed(&self, id: &ApprovalId, signature: &str) -> Result<Option<Signed>, Error> {
        let rows = self.load(&[row_of(id)]).await?;
        let approval = found(&rows, id)?;
        let State::Pending { approve_by: expires_at } = approval.state else { return Ok(None) };
        let approve_by = rfc3339(expires_at);
        let statement = statement(id, approval, &approve_by);
        let signer = |(_, token): &(TokenId, Token)| statement.is_signed(signature, token);
        let signed_by = self.tokens().await?.into_iter().find(signer);
        let signed = signed_by.and_then(|(token, it)| {
            let signature = Signature { token, text: signature.to_owned(), expires_at };
            Some(Signed { by: it.actor()?, signature })
        });
        signed.map(Some).ok_or_else(|| {
            let what = "the signature is none of a known key for this approval, its plan and its time";
            Error::new(Code::SignatureInvalid, what)
                .hint("`midwatch approval sign` makes one; `midwatch token create --key` makes a key known")
        })
    }

    /// The rows of those whose signatures let a run begin: they must still be let in themselves.
    pub(crate) async fn signers_of(&self, id: Option<&ApprovalId>) -> Result<Vec<RowKey>, Error> {
        let Some(id) = id else { return Ok(Vec::new()) };
        let rows = self.load(&[row_of(id)]).await?;
        let said = rows.approval(id).into_iter().flat_map(Approval::approvals);
        let signatures = said.filter_map(|decision| decision.signature.as_ref());
        Ok(signatures.map(|signature| token_row(&signature.token)).collect())
    }

    /// Gives up questions that nobody has answered in time, until it is told to stop.
    pub(crate) async fn lapse_approvals(&self) {
        loop {
            let now = self.now();
            let due =
                self.store().due(Noun::Approval.name(), FIRST_DUE, now.as_micros(), BATCH).await;
            let due = due.unwrap_or_else(|unreachable| {
                error!(error = %unreachable, "which approvals have run out could not be read");
                Vec::new()
            });
            for item in due {
                if let Err(failed) = self.lapse(&item).await {
                    error!(%failed, id = item.id, "an approval could not be given up");
                }
            }
            let next = self.store().due(Noun::Approval.name(), FIRST_DUE, i64::MAX, 1).await;
            let next = next.ok().and_then(|items| items.first().and_then(|item| item.due_us));
            // One that could not be given up just now has its turn later.
            let soonest = now.as_micros().saturating_add(SLEEP_US_MAX / 60);
            let latest = now.as_micros().saturating_add(SLEEP_US_MAX);
            let at = next.unwrap_or(latest).clamp(soonest, latest);
            select! {
                biased;
                () = self.reaches(Timestamp::from_micros(at)) => {}
                () = self.asked().notified() => {}
            }
        }
    }

    async fn lapse(&self, item: &Item) -> Result<(), Error> {
        let id: ApprovalId = item.id.parse().map_err(internal)?;
        let (rows, reads) = self.rows_of_approval(&id).await?;
        let decide = |rows: &Rows, now| {
            let approval = found(rows, &id)?;
            let Plan { run, schedule, .. } = &approval.plan;
            let ground = ground(rows, run, schedule, now);
            let (agent, rules) = (None, approval.plan.policy.as_str());
            let question = |ground| Question { id: &id, approval, ground, agent, rules };
            let expire = |ground| approval::expire(question(ground));
            Ok(ground.map(expire).unwrap_or_default())
        };
        self.act(rows, reads, decide).await.map(drop)
    }

    /// What an answer may change, and what it depends on besides.
    pub(crate) async fn rows_of_approval(
        &self,
        id: &ApprovalId,
    ) -> Result<(Vec<RowKey>, Vec<RowKey>), Error> {
        let found_rows = self.load(&[row_of(id)]).await?;
        let Plan { run, schedule, agent, .. } = &found(&found_rows, id)?.plan;
        let mut rows = rows_of(run, schedule);
        rows.push(row_of(id));
        rows.extend(agent.as_ref().map(|agent| (Noun::Agent, agent.to_string())));
        Ok((rows, defined_by(schedule, None)))
    }
}

pub(crate) fn row_of(id: &ApprovalId) -> RowKey {
    (Noun::Approval, id.to_string())
}

fn token_row(id: &TokenId) -> RowKey {
    (Noun::Token, id.to_string())
}

fn command(asked: ApprovalDecide, signed: Option<Signed>) -> Result<Command, Error> {
    let ApprovalDecide { decision, plan_hash, note, .. } = asked;
    let shown = || {
        plan_hash.clone().ok_or_else(|| {
            Error::new(Code::InvalidInput, "an answer names the hash of the plan that was shown")
                .hint("`midwatch approval show` shows the plan and its hash")
        })
    };
    match decision.as_str() {
        "approve" => Ok(Command::Approve { shown: shown()?, note, signed }),
        "deny" => Ok(Command::Deny { shown: shown()?, note }),
        "revoke" => Ok(Command::Revoke { note }),
        other => Err(Error::new(Code::InvalidInput, format!("`{other}` is no answer"))
            .hint("it is `approve`, `deny` or `revoke`")),
    }
}

pub(crate) fn approval_id(text: &str) -> Result<ApprovalId, Error> {
    text.parse().map_err(|invalid| {
        Error::new(Code::NotFound, invalid).hint("`midwatch approval list` shows the approvals")
    })
}

pub(crate) fn found<'a>(rows: &'a Rows, id: &ApprovalId) -> Result<&'a Approval, Error> {
    let unknown = || errors::approval(approval::Refusal::Unknown(id.clone()));
    rows.approval(id).ok_or_else(unknown)
}

pub(crate) fn approval_in(item: &Item) -> Result<(ApprovalId, Box<Approval>), Error> {
    let id = item.id.parse().map_err(internal)?;
    let state = item.body.as_ref().map(|body| stored::state(Noun::Approval, body)).transpose()?;
    let approval = state.and_then(kernel::State::approval);
    Ok((id, approval.ok_or_else(|| internal("a listed approval has no state"))?))
}

/// Whether the question in a row of the store waits for an answer.
pub(crate) fn is_pending(item: &Item) -> Result<bool, Error> {
    Ok(matches!(approval_in(item)?.1.state, State::Pending { .. }))
}

fn wire_in(rows: &Rows, id: &ApprovalId) -> Result<api::Approval, Error> {
    wire(id, found(rows, id)?)
}

fn wire(id: &ApprovalId, approval: &Approval) -> Result<api::Approval, Error> {
    let Approval { plan, state, decision, .. } = approval;
    let (approve_by, execute_by) = match state {
        State::Pending { approve_by } => (Some(*approve_by), None),
        State::Approved { execute_by } => (None, Some(*execute_by)),
        State::Denied | State::Consumed | State::Lapsed(_) => (None, None),
    };
    Ok(api::Approval {
        id: id.to_string(),
        state: state.name().to_owned(),
        run_id: plan.run.to_string(),
        schedule_id: plan.schedule.to_string(),
        agent: plan.agent.as_ref().map(ToString::to_string),
        tool: plan.tool.as_ref().map(|tool| tool.name.clone()),
        tier: plan.tier.into(),
        asked_at: rfc3339(approval.asked_at),
        approve_by: approve_by.map(rfc3339),
        execute_by: execute_by.map(rfc3339),
        decided_by: decision.as_ref().map(|it| it.by.clone()),
        decided_at: decision.as_ref().map(|it| rfc3339(it.at)),
        note: decision.as_ref().and_then(|it| it.note.clone()),
        needs: needs(approval),
        assents: approval.assents.iter().map(|it| it.by.clone()).collect(),
        authors: approval.authors.clone(),
        ruling: orders::wire(&approval.ruling),
        action_hash: approval.action_hash.clone(),
        plan_hash: approval.plan_hash.clone(),
        stands_on: stands_on(approval),
        plan: serde_json::to_value(plan).map_err(internal)?,
        unsealed: None,
        link: None,
    })
}

/// What the plan stands on; and when somebody has looked again, whether it was as it had been.
fn stands_on(approval: &Approval) -> Vec<api::StandsOn> {
    let Approval { plan, changed, state, .. } = approval;
    let is_compared = *state == State::Consumed || !changed.is_empty();
    let parts: Vec<&str> = plan.footing.iter().flat_map(Footing::parts).collect();
    let new = changed.iter().map(String::as_str).filter(|part| !parts.contains(part));
    let stands_on = parts.iter().copied().chain(new).map(|part| {
        let is_changed = changed.iter().any(|changed| changed == part);
        let found = if is_changed { "changed" } else { "as_it_was" };
        let found = is_compared.then(|| found.to_owned());
        api::StandsOn { part: part.to_owned(), found }
    });
    stands_on.collect()
}

fn needs(approval: &Approval) -> api::Needs {
    let Needs { persons, role, is_personal, is_signed } = approval.needs();
    let role = role.name().to_owned();
    api::Needs { persons, role, others: is_personal, signed: is_signed }
}
