//! The operators: they send random requests, each with its idempotency key, and record the answers.

use api::{
    Action, ApiRequest, ApprovalDecide, Call, Code, Decision, Error, EventPublish, Handle, Request,
    Response, RunCancel, RunRetry,
};
use api::{Freeze, SchedulePause, ScheduleRemove, ScheduleResume, Thaw};
use api::{
    RunSettle, ScheduleBackfill, ScheduleBackfillEnd, ScheduleEdit, ScheduleFire, SettledState,
};
use kernel::{Actor, Principal, Role};

use super::generate::{self, instant};
use super::naive_calendar::SECOND_US;
use crate::dice::Dice;

/// Adds all schedules, and therefore may not approve runs that need another person.
pub(super) const AUTHOR: &str = "somebody";
/// Decide approval requests.
const OPERATORS: [&str; 3] = [AUTHOR, "anna", "bert"];
const SCHEDULES_MAX: usize = 8;

/// A call and its result.
#[derive(Clone, Debug)]
pub(super) struct SentCall {
    pub(super) key: String,
    pub(super) by: &'static str,
    /// It was sent before with the same key, and that result is unknown.
    pub(super) is_repeated: bool,
    pub(super) request: Request,
    pub(super) result: Result<Response, Error>,
}

/// What an operator can see when choosing a request.
#[derive(Debug, Default)]
pub(super) struct VisibleState {
    pub(super) now_us: i64,
    pub(super) schedules: Vec<String>,
    pub(super) live: Vec<String>,
    pub(super) ended: Vec<String>,
    pub(super) unknown: Vec<String>,
    /// Approval requests that are pending, each with the hash of its plan.
    pub(super) pending: Vec<(String, String)>,
    /// Approval requests that are not.
    pub(super) decided: Vec<(String, String)>,
}

pub(super) fn actor(name: &str) -> Actor {
    Actor::new(Principal::parse(name), Role::Maintainer)
}

/// The operators who send a request at the same time. Several may decide an approval request; the author sends the rest.
pub(super) fn senders(dice: &mut Dice, request: &Request) -> Vec<&'static str> {
    match request {
        Request::ApprovalDecide(_) => {
            let all = OPERATORS.into_iter().filter(|_| dice.is_one_in(2)).collect::<Vec<_>>();
            if all.is_empty() { vec![AUTHOR] } else { all }
        }
        _ => vec![AUTHOR],
    }
}

pub(super) async fn send(
    handle: impl Handle,
    (key, is_repeated): (String, bool),
    (by, request): (&'static str, Request),
) -> SentCall {
    let call = Call {
        key: Some(key.clone()),
        request: request.clone(),
        version: None,
        tool: None,
        progress: Default::default(),
    };
    let result = handle.call(call).await.map(Response::first);
    SentCall { key, by, is_repeated, request, result }
}

impl SentCall {
    /// Whether it may or may not have been executed.
    pub(super) fn is_in_doubt(&self) -> bool {
        matches!(&self.result, Err(error) if error.code == Code::DatabaseAway)
    }

    /// Whether its commit also stores the response.
    pub(super) fn stores_response(&self) -> bool {
        !matches!(self.request, Request::EventPublish(_))
    }

    /// Whether the answer says that the ledger does not have the change yet. Only a stop may say that.
    pub(super) fn is_unrecorded_stop(&self) -> bool {
        match &self.result {
            Ok(Response::RunCancel(cancelled)) => !cancelled.recorded,
            Ok(Response::Freeze(changed)) => !changed.recorded,
            _ => false,
        }
    }
}

pub(super) fn random_request(dice: &mut Dice, visible: &VisibleState) -> Option<Request> {
    let schedule = dice.pick(&visible.schedules).cloned();
    let is_full = SCHEDULES_MAX <= visible.schedules.len();
    match dice.below(36) {
        0..6 if !is_full => {
            Some(generate::schedule(dice, visible.now_us, &visible.schedules).into_request())
        }
        0..8 => Some(edit(dice, visible, schedule?).into_request()),
        8..10 => Some(SchedulePause { id: schedule?, note: None }.into_request()),
        10..13 => Some(ScheduleResume { id: schedule? }.into_request()),
        13 => Some(ScheduleRemove { id: schedule? }.into_request()),
        14..16 => Some(ScheduleFire { id: schedule? }.into_request()),
        16..18 => {
            let id = dice.pick(&visible.live)?.clone();
            Some(RunCancel { id, note: None }.into_request())
        }
        18 => Some(RunRetry { id: dice.pick(&visible.ended)?.clone() }.into_request()),
        19 => {
            let id = dice.pick(&visible.unknown)?.clone();
            let state = dice.one(SettledState::Done, &[SettledState::Failed]);
            Some(RunSettle { id, state, note: None }.into_request())
        }
        20..22 => {
            let name = dice.pick(&generate::EVENTS)?.to_string();
            let id = Some(format!("event {}", dice.below(60)));
            Some(EventPublish { name, id }.into_request())
        }
        22 => {
            let span = |dice: &mut Dice| dice.below(20_000) as i64 * SECOND_US;
            let to = visible.now_us - span(dice) / 4;
            let from = to - span(dice);
            let gap = dice.is_one_in(3).then(|| "20s".to_owned());
            let (from, to) = (instant(from), instant(to));
            let backfill = ScheduleBackfill { id: schedule?, from, to, gap, ..Default::default() };
            Some(backfill.into_request())
        }
        23 => Some(ScheduleBackfillEnd { id: schedule? }.into_request()),
        24..29 => Some(decision(dice, &visible.pending)?.into_request()),
        29 => Some(decision(dice, &visible.decided)?.into_request()),
        30 => Some(Freeze::default().into_request()),
        31..33 => generate::agent_request(dice),
        _ => Some(Thaw::default().into_request()),
    }
}

fn decision(dice: &mut Dice, of: &[(String, String)]) -> Option<ApprovalDecide> {
    let (id, plan_hash) = dice.pick(of)?.clone();
    let others = [Decision::Approve, Decision::Approve, Decision::Deny, Decision::Revoke];
    let decision = dice.one(Decision::Approve, &others);
    Some(ApprovalDecide { plan_hash: Some(plan_hash), ..ApprovalDecide::new(id, decision) })
}

fn edit(dice: &mut Dice, visible: &VisibleState, id: String) -> ScheduleEdit {
    let terms = generate::terms(dice, visible.now_us);
    let edit = ScheduleEdit { id, ..ScheduleEdit::default() };
    match dice.below(4) {
        0 => ScheduleEdit { terms, ..edit },
        1 => {
            let unset = vec!["max_fires".to_owned(), "start_at".to_owned(), "end_at".to_owned()];
            ScheduleEdit { unset, ..edit }
        }
        2 => {
            let prompt = dice.pick(&generate::PROMPTS).map(ToString::to_string);
            let tier = dice.is_one_in(2).then(|| dice.one(2, &[1]));
            ScheduleEdit { action: Action { prompt, ..Action::default() }, tier, ..edit }
        }
        _ => {
            let (when, event_trigger) = generate::trigger(dice, visible.now_us, &visible.schedules);
            let when = event_trigger.is_none().then_some(when);
            ScheduleEdit { when, event_trigger, ..edit }
        }
    }
}
