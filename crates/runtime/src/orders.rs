//! The standing orders: loaded at the start, and asked before every run.

use api::{Code, Error, PolicyExplain, PolicyExplained};
use kernel::ruling::{Posture, Ruling, Verdict};
use kernel::run::Orders;
use kernel::{ApprovalId, Noun};
use policy::{Rules, Source};

use crate::approvals::plan_hash;
use crate::errors;
use crate::rows::Rows as Loaded;
use crate::runs::run_id;
use crate::watch::Watch;

/// The rules of a posture and an operator's own, each by the name of their file. With a fault they are no
/// orders: nothing starts with them.
pub fn rules(posture: Posture, own: &[(String, String)]) -> Result<Rules, Error> {
    let sources: Vec<Source<'_>> = own.iter().map(|(name, text)| Source { name, text }).collect();
    Rules::load(posture, &sources).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Error::new(Code::PolicyInvalid, faults.join("\n"))
            .hint("correct the file; `midwatch policy check` looks at it again")
    })
}

impl Watch {
    /// What a run is begun under.
    pub(crate) fn under_orders<T>(
        &self,
        approval: Option<&ApprovalId>,
        rows: &Loaded,
        begin: impl FnOnce(&Orders<'_>) -> T,
    ) -> T {
        begin(&Orders {
            instance: self.instance(),
            authority: &self.authority_in(rows),
            lease: self.settings().lease,
            judge: &|request| self.rules().decide(request),
            hash: &plan_hash,
            approval: approval.and_then(|id| rows.approval(id)),
            new_approval: &|| self.new_approval(),
        })
    }

    /// What the standing orders said of a run.
    pub(crate) async fn policy_explain(
        &self,
        asked: PolicyExplain,
    ) -> Result<PolicyExplained, Error> {
        let id = run_id(&asked.run)?;
        let rows = self.load(&[(Noun::Run, id.to_string())]).await?;
        let unknown = || errors::run(kernel::run::Refusal::Unknown(id.clone()));
        let run = rows.run(&id).ok_or_else(unknown)?;
        let sentence = match &run.ruling {
            None => {
                "the standing orders were not asked yet: it has not come to its turn".to_owned()
            }
            Some(ruling) => {
                let rules: Vec<String> = ruling.rules.iter().map(|it| format!("`{it}`")).collect();
                let said = match ruling.verdict {
                    Verdict::Allow => "allowed it",
                    Verdict::Ask => "let a human decide",
                    Verdict::Deny => "did not allow it",
                };
                let posture = ruling.posture;
                format!("the standing orders {said} by {} in {posture}", rules.join(", "))
            }
        };
        Ok(PolicyExplained {
            run_id: id.to_string(),
            state: run.state.name().to_owned(),
            ruling: run.ruling.as_ref().map(wire),
            sentence,
        })
    }
}

pub(crate) fn wire(ruling: &Ruling) -> api::Ruling {
    api::Ruling {
        verdict: ruling.verdict.name().to_owned(),
        rules: ruling.rules.clone(),
        posture: ruling.posture.name().to_owned(),
        policy: ruling.policy.clone(),
    }
}
