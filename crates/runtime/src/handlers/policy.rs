//! Evaluates the policy for a request, and explains its decision about a run.

use api::{Error, PolicyDecide, PolicyDecided, PolicyExplain, PolicyExplained, Serve};
use kernel::policy_decision::Details;
use kernel::run::{self, Run};

use crate::authorize::policy::{
    PRESENT_TENSE, decision_sentence, wire_decision, wire_facts, wire_request,
};
use crate::commit::caller::Caller;
use crate::commit::ids::run_id;
use crate::commit::rows::row_key;
use crate::engine::Engine;
use crate::errors;
use crate::wire::run_state;

/// What the policy decides about an action that the caller is about to take outside Midwatch.
impl Serve<PolicyDecide> for Engine {
    async fn serve(&self, caller: &Caller, request: PolicyDecide) -> Result<PolicyDecided, Error> {
        let PolicyDecide { capability, resource, host, path, argv } = request;
        let scope = self.scope.runner_scope(&caller.actor, &capability, None).await?;
        let agent = scope.map(|scope| scope.agent);
        let details = Details { resource, host, path, argv };
        let decision = self.policy.evaluate(&caller.actor, &capability, agent, details);
        let sentence = decision_sentence(&decision, PRESENT_TENSE);
        Ok(PolicyDecided { ruling: wire_decision(&decision), sentence })
    }
}

/// The policy decision about a run.
impl Serve<PolicyExplain> for Engine {
    async fn serve(&self, _: &Caller, request: PolicyExplain) -> Result<PolicyExplained, Error> {
        let id = run_id(&request.run)?;
        let rows = self.transactions.load(&[row_key::<Run>(&id)]).await?;
        let unknown = || errors::refused(run::Refusal::Unknown(id.clone()));
        let run = rows.get::<Run>(&id).ok_or_else(unknown)?;
        let sentence = match &run.ruling {
            None => "the policy has not decided yet: the run was not claimed".to_owned(),
            Some(decision) => {
                decision_sentence(decision, ["allowed it", "required approval", "denied it"])
            }
        };
        let (request, facts) = run::last_request(run).unzip();
        Ok(PolicyExplained {
            run_id: id.to_string(),
            state: run_state(&run.state),
            request: request.map(wire_request),
            facts: facts.map(wire_facts),
            ruling: run.ruling.as_ref().map(wire_decision),
            sentence,
            containment: self.containment_of(run).await?,
        })
    }
}
