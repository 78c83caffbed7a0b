//! What a run asks of the standing orders, and what the log tells of it later.
//!
//! What is asked is not stored where it follows from the run: who asks is its schedule, and the agent
//! is the one that it was queued for. Only how far it reaches is decided when it is to begin.

use super::decide::LEASE;
use super::{Ended, Event, Run, Started};
use crate::actor::Role;
use crate::approval;
use crate::backend::Tier;
use crate::event::Body;
use crate::id::RunId;
use crate::ruling::{Details, Request, Ruling, Verdict};

/// The run of an event that tells what the standing orders decided, and what that was.
///
/// What was asked of a human is told when it is asked; that the run begins or ends then is no decision
/// of theirs again. What the lease decided is none either.
pub fn ruled(body: &Body) -> Option<(&RunId, &Ruling)> {
    let (id, ruling) = match body {
        Body::Approval(_, approval::Event::Asked(asked)) => {
            let by_lease = asked.ruling.rules.first().is_some_and(|rule| rule == LEASE);
            return (!by_lease).then_some((&asked.plan.run, &asked.ruling));
        }
        Body::Run(id, Event::Started(Started { ruling: Some(ruling), .. })) => (id, ruling),
        Body::Run(id, Event::Ended(Ended { ruling: Some(ruling), .. })) => (id, ruling),
        _ => return None,
    };
    let by_lease = ruling.rules.iter().any(|rule| rule == LEASE);
    (ruling.verdict != Verdict::Ask && !by_lease).then_some((id, ruling))
}

/// What they were asked when they decided that, as far as the log tells.
pub fn requested(body: &Body, run: &Run) -> Option<Request> {
    match body {
        Body::Approval(_, approval::Event::Asked(asked)) => Some(asked.request.clone()),
        Body::Run(_, Event::Started(started)) => Some(request(run, started.tier)),
        Body::Run(_, Event::Ended(ended)) => ended.tier.map(|tier| request(run, tier)),
        _ => None,
    }
}

/// What the standing orders say of a request. Whoever rules: nothing reaches outside without a human's
/// word.
pub fn judged(request: &Request, judge: impl FnOnce(&Request) -> Ruling) -> Ruling {
    let mut ruling = judge(request);
    if request.tier == Tier::External {
        ruling.verdict = ruling.verdict.max(Verdict::Ask);
    }
    ruling
}

/// What a run asks of the standing orders.
pub(super) fn request(run: &Run, tier: Tier) -> Request {
    Request {
        principal: format!("schedule:{}", run.schedule),
        role: Role::Runner,
        capability: "agent.prompt".to_owned(),
        tier,
        agent: run.agent.clone(),
        details: Details::default(),
    }
}
