//! Roles of callers and of actors in the ledger.

use crate::words::words;

words! {
    /// What a caller may do, from least to most.
    #[derive(PartialOrd, Ord)]
    pub enum Role "role" {
        /// Reads.
        Observer "observer",
        /// The role of agents and runs.
        Runner "runner",
        /// Approves, cancels, pauses and registers agents.
        Operator "operator",
        /// Also changes the policy, the posture and tokens.
        Maintainer "maintainer",
    }
}

words! {
    /// A role in a response: one of a caller, or that of Midwatch itself, which no request can give.
    pub enum ActorRole "role" {
        Observer "observer",
        Runner "runner",
        Operator "operator",
        Maintainer "maintainer",
        /// Midwatch itself.
        System "system",
    }
}
