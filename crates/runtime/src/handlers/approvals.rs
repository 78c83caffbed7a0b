//! Lists, shows and decides approvals.

use api::{
    ApprovalDecide, ApprovalDecided, ApprovalList, ApprovalShow, ApprovalShown, Approvals, Code,
    Decision, Error, FingerprintCheck, Serve,
};
use kernel::agent::Agent;
use kernel::approval::{
    self, Approval, ApprovalContext, Command, ExecutionFingerprint, OPEN, Plan, PreviousAttempt,
    Refusal, Requirements, Signature, Signed, State,
};
use kernel::token::Token;
use kernel::{ApprovalId, Noun, TokenId};

use crate::authorize::approvals::find_approval;
use crate::authorize::policy;
use crate::authorize::signatures::statement;
use crate::commit::caller::Caller;
use crate::commit::codec::decode_listed;
use crate::commit::ids::approval_id;
use crate::commit::rows::{Rows, row_key};
use crate::commit::run_context::run_context;
use crate::commit::transaction::Transaction;
use crate::engine::Engine;
use crate::errors::{self, ToError, internal};
use crate::pages::{self, Order, PageRequest};
use crate::secrets::sealing::Purpose;
use crate::timestamps::rfc3339;
use crate::wire::{self, approval_state};

impl Serve<ApprovalList> for Engine {
    async fn serve(&self, _: &Caller, list: ApprovalList) -> Result<Approvals, Error> {
        let agent = list.agent.as_deref();
        let page = PageRequest {
            noun: Noun::Approval,
            order: Order::NewestFirst((!list.all).then_some(OPEN)),
            limit: list.limit,
            cursor: list.cursor,
        };
        let (approvals, cursor) = pages::page::<ApprovalId, _>(&*self.store, page, |item| {
            let (id, approval) = decode_listed::<Approval>(item)?;
            let of = approval.plan.agent.as_ref().map(|agent| agent.as_str());
            let matches = agent.is_none() || agent == of;
            matches.then(|| wire(&id, &approval)).transpose()
        })
        .await?;
        let mut approvals: Vec<_> = approvals.into_iter().map(|it| self.with_link(it)).collect();
        self.name_approvals(&mut approvals).await?;
        Ok(Approvals { approvals, cursor })
    }
}

/// A caller that may decide the approval sees sealed text too, because they must be able to read what they approve.
impl Serve<ApprovalShow> for Engine {
    async fn serve(&self, caller: &Caller, show: ApprovalShow) -> Result<ApprovalShown, Error> {
        let id = approval_id(&show.id)?;
        let rows = self.transactions.load(&[row_key::<Approval>(&id)]).await?;
        let mut approval = self.with_link(wire_in(&rows, &id)?);
        let Plan { prompt, agent, .. } = &*find_approval(&rows, &id)?.plan;
        if prompt.is_sealed() && self.scope.may_read_sealed(&caller.actor, agent.as_ref()).await? {
            approval.unsealed = self.sealing.open_sealed(prompt, Purpose::PrivateFields)?;
        }
        self.name_approvals(std::slice::from_mut(&mut approval)).await?;
        Ok(ApprovalShown { approval })
    }
}

impl Serve<ApprovalDecide> for Engine {
    async fn serve(
        &self,
        caller: &Caller,
        request: ApprovalDecide,
    ) -> Result<ApprovalDecided, Error> {
        let id = approval_id(&request.id)?;
        let remember = request.remember;
        let (mut rows, reads) = self.approvals.rows_of(&id).await?;
        rows.push(self.authority.row());
        let signed = match &request.signature {
            Some(signature) => self.find_signer(&id, signature).await?,
            None => None,
        };
        rows.extend(signed.iter().map(|signed| row_key::<Token>(&signed.signature.token)));
        let command = parse_command(request, signed)?;
        let transaction = Transaction { rows, reads, ..Transaction::of(caller) };
        let decide = |rows: &Rows, now| {
            let approval = find_approval(rows, &id)?;
            let run_context = run_context(rows, &approval.plan.run, &approval.plan.schedule, now)
                .ok_or_else(|| internal("an approval has no run"))?;
            let agent = approval.plan.agent.as_ref().and_then(|name| rows.get::<Agent>(name));
            let config = self.config.active();
            let active_policy = config.rules.version();
            let context = ApprovalContext { id: &id, approval, run_context, agent, active_policy };
            approval::decide(context, &self.authority.in_rows(rows), &caller.actor, command.clone())
                .map_err(errors::refused)
        };
        let response = self.transactions.respond::<ApprovalDecide>(
            caller,
            transaction,
            decide,
            |before, after| {
                let changed = before.get::<Approval>(&id) != after.get::<Approval>(&id);
                let decided = find_approval(after, &id)?;
                let remember =
                    remember.then(|| ::policy::how_to_allow(&decided.request, &decided.ruling));
                let approval = wire_in(after, &id)?;
                Ok(ApprovalDecided { approval, changed, remember })
            },
        );
        let mut response = response.await?;
        self.authority.renew_lease_on_activity(&caller.actor).await;
        // The decision is made, whether or not the name can be read.
        drop(self.name_approvals(std::slice::from_mut(&mut response.approval)).await);
        Ok(response)
    }
}

impl Engine {
    /// Adds the link to the page where a pending approval is decided.
    fn with_link(&self, approval: api::Approval) -> api::Approval {
        let is_pending = approval.state == api::ApprovalState::Pending;
        let link = is_pending.then(|| self.installation.approval_link(&approval.id)).flatten();
        api::Approval { link, ..approval }
    }

    /// The person who made a signature. `None` if the approval is not pending any more.
    async fn find_signer(&self, id: &ApprovalId, signature: &str) -> Result<Option<Signed>, Error> {
        let rows = self.transactions.load(&[row_key::<Approval>(id)]).await?;
        let approval = find_approval(&rows, id)?;
        let State::Pending { approve_by: expires_at } = approval.state else { return Ok(None) };
        let opened = self.sealing.open_sealed(&approval.plan.prompt, Purpose::PrivateFields)?;
        let approve_by = rfc3339(expires_at);
        let statement = statement(id, approval, opened.as_deref(), &approve_by);
        let is_signer = |(_, token): &(TokenId, Token)| statement.is_signed(signature, token);
        let signed_by = self.tokens.all().await?.into_iter().find(is_signer);
        let signed = signed_by.and_then(|(token, it)| {
            let signature = Signature { token, text: signature.to_owned(), expires_at };
            Some(Signed { by: it.actor()?, signature })
        });
        signed.map(Some).ok_or_else(|| {
            let what = "the signature does not match this approval, its plan and its expiry, with any known key";
            Error::new(Code::SignatureInvalid, what)
                .hint("sign with `midwatch approval sign`; register a key with `midwatch token create --key`")
        })
    }
}

impl ToError for Refusal {
    fn to_error(&self) -> Error {
        match self {
            Refusal::Unknown(_) => Error::new(Code::NotFound, self)
                .hint("`midwatch approval list` shows the approvals"),
            Refusal::Closed { .. } => Error::new(Code::NotNow, self)
                .hint("nothing was changed; if the run is still needed, retry it"),
            Refusal::PlanMismatch(id) => {
                let hint = format!("check it again with `midwatch approval show {id}`");
                Error::new(Code::NotNow, self).hint(hint)
            }
            Refusal::NotSigned(id) => {
                let hint = format!(
                    "sign it with `midwatch approval sign` on the machine that has your key, then pass the signature: \
                     `midwatch approval approve {id} --signature mws_…`"
                );
                Error::new(Code::SignatureNeeded, self).hint(hint)
            }
            Refusal::Author { .. } => Error::new(Code::RoleTooLow, self)
                .hint("ask an approver who did not write it; you can still deny it"),
            Refusal::AgentAuthor { .. } => Error::new(Code::RoleTooLow, self)
                .hint("ask an approver who did not set up the agent; you can still deny it"),
            Refusal::NotPersonal(_) => errors::not_personal(self),
            Refusal::PolicyChanged(_) => Error::new(Code::NotNow, self).hint(
                "deny it, and request a new approval by the active rules with `midwatch run retry`",
            ),
            Refusal::Frozen => {
                Error::new(Code::NotNow, self).hint("deny it, or run `midwatch thaw` first")
            }
            Refusal::RoleTooLow { .. } => Error::new(Code::RoleTooLow, self)
                .hint("agents and runs cannot decide approvals; ask a person"),
            Refusal::Schedule(inner) => inner.to_error(),
        }
    }
}

fn parse_command(request: ApprovalDecide, signed: Option<Signed>) -> Result<Command, Error> {
    let ApprovalDecide { decision, plan_hash, note, .. } = request;
    let shown = || {
        plan_hash.clone().ok_or_else(|| {
            Error::new(
                Code::InvalidInput,
                "`plan_hash` is missing: a decision names the plan that was shown",
            )
            .hint("`midwatch approval show` shows the plan and its hash")
        })
    };
    match decision {
        Decision::Approve => Ok(Command::Approve { shown: shown()?, note, signed }),
        Decision::Deny => Ok(Command::Deny { shown: shown()?, note }),
        Decision::Revoke => Ok(Command::Revoke { note }),
    }
}

fn wire_in(rows: &Rows, id: &ApprovalId) -> Result<api::Approval, Error> {
    wire(id, find_approval(rows, id)?)
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
        state: approval_state(*state),
        run_id: plan.run.to_string(),
        schedule_id: plan.schedule.to_string(),
        schedule_name: None,
        agent: plan.agent.as_ref().map(ToString::to_string),
        tool: plan.tool.as_ref().map(|tool| tool.name.clone()),
        tier: plan.tier.into(),
        previous: plan.previous.as_ref().map(PreviousAttempt::describe),
        containment: plan.backend.as_ref().map(|it| wire::containment(it.containment())),
        requested_at: rfc3339(approval.requested_at),
        approve_by: approve_by.map(rfc3339),
        execute_by: execute_by.map(rfc3339),
        decided_by: decision.as_ref().map(|it| it.by.clone()),
        decided_at: decision.as_ref().map(|it| rfc3339(it.at)),
        note: decision.as_ref().and_then(|it| it.note.clone()),
        needs: wire_requirements(approval),
        assents: approval.assents.iter().map(|it| it.by.clone()).collect(),
        authors: approval.authors.iter().map(ToString::to_string).collect(),
        agent_authors: approval.agent_authors.iter().map(ToString::to_string).collect(),
        ruling: policy::wire_decision(&approval.ruling),
        action_hash: approval.action_hash.clone(),
        plan_hash: approval.plan_hash.clone(),
        fingerprint: wire_fingerprint(approval),
        plan: serde_json::to_value(plan).map_err(internal)?,
        unsealed: None,
        link: None,
    })
}

/// What the plan depends on, and whether it had changed when it was checked again.
fn wire_fingerprint(approval: &Approval) -> Vec<api::FingerprintPart> {
    let Approval { plan, changed, state, .. } = approval;
    let is_compared = *state == State::Consumed || !changed.is_empty();
    let parts: Vec<&str> = plan.fingerprint.iter().flat_map(ExecutionFingerprint::parts).collect();
    let new = changed.iter().map(String::as_str).filter(|part| !parts.contains(part));
    let wire = parts.iter().copied().chain(new).map(|part| {
        let is_changed = changed.iter().any(|changed| changed == part);
        let found = match is_changed {
            true => FingerprintCheck::Changed,
            false => FingerprintCheck::Unchanged,
        };
        let found = is_compared.then_some(found);
        api::FingerprintPart { part: part.to_owned(), found }
    });
    wire.collect()
}

fn wire_requirements(approval: &Approval) -> api::ApprovalRequirements {
    let Requirements { persons, role, needs_personal_token, needs_signature } =
        approval.requirements();
    api::ApprovalRequirements {
        persons,
        role: wire::role(role),
        needs_personal_token,
        signed: needs_signature,
    }
}
