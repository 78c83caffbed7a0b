//! States, decisions and roles of the kernel as the words of the wire, and back.
//!
//! Every match is exhaustive, so that a new state in the kernel needs a word here.

use api::{
    ActorRole, ApprovalState, Containment, Disposition, LeaseState, Posture, RunOrigin, RunState,
    SettledState, Verdict,
};
use kernel::approval::{self, LapseReason};
use kernel::run::{self, Origin, Outcome};
use kernel::{Role, authority, backend, policy_decision, posture, slot};

pub(crate) fn run_state(state: &run::State) -> RunState {
    match state {
        run::State::Queued { .. } => RunState::Queued,
        run::State::Parked => RunState::WaitingPermission,
        run::State::Running { .. } => RunState::Running,
        run::State::Ended(Outcome::Done) => RunState::Done,
        run::State::Ended(Outcome::Failed) => RunState::Failed,
        run::State::Ended(Outcome::Cancelled) => RunState::Cancelled,
        run::State::Ended(Outcome::Unknown) => RunState::Unknown,
    }
}

pub(crate) fn settled_outcome(state: SettledState) -> Outcome {
    match state {
        SettledState::Done => Outcome::Done,
        SettledState::Failed => Outcome::Failed,
    }
}

pub(crate) fn run_origin(origin: Origin) -> RunOrigin {
    match origin {
        Origin::Slot => RunOrigin::Slot,
        Origin::CatchUp => RunOrigin::CatchUp,
        Origin::Buffer => RunOrigin::Buffer,
        Origin::Manual => RunOrigin::Manual,
        Origin::After => RunOrigin::After,
        Origin::Event => RunOrigin::Event,
        Origin::Backfill => RunOrigin::Backfill,
    }
}

pub(crate) fn approval_state(state: approval::State) -> ApprovalState {
    match state {
        approval::State::Pending { .. } => ApprovalState::Pending,
        approval::State::Approved { .. } => ApprovalState::Approved,
        approval::State::Denied => ApprovalState::Denied,
        approval::State::Consumed => ApprovalState::Consumed,
        approval::State::Lapsed(LapseReason::Expired) => ApprovalState::Expired,
        approval::State::Lapsed(LapseReason::Revoked) => ApprovalState::Revoked,
        approval::State::Lapsed(LapseReason::Changed) => ApprovalState::Changed,
        approval::State::Lapsed(LapseReason::Unsigned) => ApprovalState::Unsigned,
        approval::State::Lapsed(LapseReason::RunEnded) => ApprovalState::Cancelled,
        approval::State::Lapsed(LapseReason::NotNeeded | LapseReason::LeaseRenewed) => {
            ApprovalState::NotNeeded
        }
    }
}

pub(crate) fn containment(containment: backend::Containment) -> Containment {
    match containment {
        backend::Containment::Builtin => Containment::Builtin,
        backend::Containment::Advisory => Containment::Advisory,
        backend::Containment::External => Containment::External,
    }
}

pub(crate) fn verdict(verdict: policy_decision::Verdict) -> Verdict {
    match verdict {
        policy_decision::Verdict::Allow => Verdict::Allow,
        policy_decision::Verdict::Ask => Verdict::Ask,
        policy_decision::Verdict::Deny => Verdict::Deny,
    }
}

pub(crate) fn lease_state(state: authority::LeaseState) -> LeaseState {
    match state {
        authority::LeaseState::Full => LeaseState::Full,
        authority::LeaseState::Ask => LeaseState::Ask,
        authority::LeaseState::Paused => LeaseState::Paused,
    }
}

pub(crate) fn posture(posture: posture::Posture) -> Posture {
    match posture {
        posture::Posture::StrictProd => Posture::StrictProd,
        posture::Posture::Staging => Posture::Staging,
        posture::Posture::Debug => Posture::Debug,
    }
}

pub(crate) fn kernel_posture(posture: Posture) -> posture::Posture {
    match posture {
        Posture::StrictProd => posture::Posture::StrictProd,
        Posture::Staging => posture::Posture::Staging,
        Posture::Debug => posture::Posture::Debug,
    }
}

pub(crate) fn role(role: Role) -> ActorRole {
    match role {
        Role::Observer => ActorRole::Observer,
        Role::Runner => ActorRole::Runner,
        Role::Operator => ActorRole::Operator,
        Role::Maintainer => ActorRole::Maintainer,
        Role::System => ActorRole::System,
    }
}

pub(crate) fn disposition(disposition: slot::Disposition) -> Disposition {
    match disposition {
        slot::Disposition::Ran => Disposition::Ran,
        slot::Disposition::RanLate => Disposition::RanLate,
        slot::Disposition::Failed => Disposition::Failed,
        slot::Disposition::Unknown => Disposition::Unknown,
        slot::Disposition::Cancelled => Disposition::Cancelled,
        slot::Disposition::Coalesced => Disposition::Coalesced,
        slot::Disposition::SkippedOverlap => Disposition::SkippedOverlap,
        slot::Disposition::SkippedMissed => Disposition::SkippedMissed,
        slot::Disposition::SkippedPaused => Disposition::SkippedPaused,
        slot::Disposition::SkippedBudget => Disposition::SkippedBudget,
        slot::Disposition::SkippedPolicy => Disposition::SkippedPolicy,
        slot::Disposition::SkippedLease => Disposition::SkippedLease,
        slot::Disposition::SkippedDependency => Disposition::SkippedDependency,
        slot::Disposition::SkippedFull => Disposition::SkippedFull,
        slot::Disposition::Superseded => Disposition::Superseded,
        slot::Disposition::Fired => Disposition::Fired,
        slot::Disposition::Parked => Disposition::Parked,
        slot::Disposition::Buffered => Disposition::Buffered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sentences and the ledger use the kernel's names, so a user sees both.
    #[test]
    fn words_on_the_wire_are_the_names_in_the_kernel() {
        for it in slot::Disposition::ALL {
            assert_eq!(disposition(*it).as_str(), it.name());
        }
        for it in posture::Posture::ALL {
            assert_eq!(posture(it).as_str(), it.name());
            assert_eq!(kernel_posture(posture(it)), it);
        }
        for (name, it) in posture::Posture::NAMES {
            assert_eq!(name.parse(), Ok(posture(it)), "the wire has the same aliases");
        }
        for outcome in [Outcome::Done, Outcome::Failed, Outcome::Cancelled, Outcome::Unknown] {
            let state = run::State::Ended(outcome);
            assert_eq!(run_state(&state).as_str(), state.name());
        }
        assert_eq!(run_state(&run::State::Parked).as_str(), run::State::Parked.name());
        for reason in [
            LapseReason::Expired,
            LapseReason::Revoked,
            LapseReason::Changed,
            LapseReason::Unsigned,
            LapseReason::RunEnded,
            LapseReason::NotNeeded,
            LapseReason::LeaseRenewed,
        ] {
            let state = approval::State::Lapsed(reason);
            assert_eq!(approval_state(state).as_str(), state.name());
        }
        use policy_decision::Verdict as Decided;
        for it in [Decided::Allow, Decided::Ask, Decided::Deny] {
            assert_eq!(verdict(it).as_str(), it.name());
        }
        use authority::LeaseState as Lease;
        for it in [Lease::Full, Lease::Ask, Lease::Paused] {
            assert_eq!(lease_state(it).as_str(), it.name());
        }
        for it in [Role::Observer, Role::Runner, Role::Operator, Role::Maintainer, Role::System] {
            assert_eq!(role(it).as_str(), it.name());
        }
    }
}
