//! The standing orders: loaded at the start, and asked before every run.

use api::{Code, Error};
use kernel::ApprovalId;
use kernel::ruling::Posture;
use kernel::run::Orders;
use policy::{Rules, Source};

use crate::approvals::plan_hash;
use crate::rows::Rows as Loaded;
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
            judge: &|request| self.rules().decide(request),
            hash: &plan_hash,
            approval: approval.and_then(|id| rows.approval(id)),
            new_approval: &|| self.new_approval(),
        })
    }
}
