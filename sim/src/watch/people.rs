//! What people ask of the watch, at random, each with a key of its own; and what they were told.

use api::{
    Action, Answer, ApprovalDecide, Ask, Call, Code, Error, EventTell, Handle, Request, RunCancel,
    RunRetry,
};
use api::{Freeze, SchedulePause, ScheduleRemove, ScheduleResume, Thaw};
use api::{RunSettle, ScheduleBackfill, ScheduleBackfillEnd, ScheduleEdit, ScheduleFire};
use kernel::{Actor, Role};

use super::plan::{self, instant};
use super::slow::SECOND_US;
use crate::dice::Dice;

/// Who writes all schedules, and so does not approve what others have to.
pub(super) const NAME: &str = "somebody";
/// Who may be there to answer a question.
const PEOPLE: [&str; 3] = [NAME, "anna", "bert"];
const SCHEDULES_MAX: usize = 8;

/// A call that was made, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) key: String,
    /// Who made it.
    pub(super) by: &'static str,
    /// It was made before, and nobody knows what came of that.
    pub(super) is_repeated: bool,
    pub(super) request: Request,
    pub(super) result: Result<Answer, Error>,
}

/// What people know when they think of something.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) now_us: i64,
    pub(super) schedules: Vec<String>,
    pub(super) live: Vec<String>,
    pub(super) ended: Vec<String>,
    pub(super) unknown: Vec<String>,
    /// Questions that are open, each with the hash of its plan.
    pub(super) asked: Vec<(String, String)>,
    /// Questions that are not.
    pub(super) answered: Vec<(String, String)>,
}

pub(super) fn actor(name: &str) -> Actor {
    Actor { name: name.to_owned(), role: Role::Maintainer }
}

/// Those who say the same at once, each for themselves. Only answers to questions are anybody's.
pub(super) fn who(dice: &mut Dice, request: &Request) -> Vec<&'static str> {
    match request {
        Request::ApprovalDecide(_) => {
            let all = PEOPLE.into_iter().filter(|_| dice.is_one_in(2)).collect::<Vec<_>>();
            if all.is_empty() { vec![NAME] } else { all }
        }
        _ => vec![NAME],
    }
}

/// Makes a call and keeps what came of it.
pub(super) async fn make(
    handle: impl Handle,
    (key, is_repeated): (String, bool),
    (by, request): (&'static str, Request),
) -> Made {
    let call = Call {
        key: Some(key.clone()),
        request: request.clone(),
        tool: None,
        progress: Default::default(),
    };
    let result = handle.call(call).await.map(Answer::first);
    Made { key, by, is_repeated, request, result }
}

impl Made {
    /// Nobody knows whether it was carried out.
    pub(super) fn is_in_doubt(&self) -> bool {
        matches!(&self.result, Err(error) if error.code == Code::DatabaseAway)
    }

    /// Whether the answer is kept in the commit that carries it out.
    pub(super) fn is_kept(&self) -> bool {
        !matches!(self.request, Request::EventTell(_))
    }
}

pub(super) fn think(dice: &mut Dice, known: &Known) -> Option<Request> {
    let schedule = dice.pick(&known.schedules).cloned();
    let is_full = SCHEDULES_MAX <= known.schedules.len();
    match dice.below(36) {
        0..6 if !is_full => {
            Some(plan::schedule(dice, known.now_us, &known.schedules).into_request())
        }
        0..8 => Some(edit(dice, known, schedule?).into_request()),
        8..10 => Some(SchedulePause { id: schedule?, note: None }.into_request()),
        10..13 => Some(ScheduleResume { id: schedule? }.into_request()),
        13 => Some(ScheduleRemove { id: schedule? }.into_request()),
        14..16 => Some(ScheduleFire { id: schedule? }.into_request()),
        16..18 => {
            let id = dice.pick(&known.live)?.clone();
            Some(RunCancel { id, note: None }.into_request())
        }
        18 => Some(RunRetry { id: dice.pick(&known.ended)?.clone() }.into_request()),
        19 => {
            let (id, state) = (dice.pick(&known.unknown)?.clone(), dice.one("done", &["failed"]));
            Some(RunSettle { id, state: state.to_owned(), note: None }.into_request())
        }
        20..22 => {
            let name = dice.pick(&plan::EVENTS)?.to_string();
            let id = Some(format!("event {}", dice.below(60)));
            Some(EventTell { name, id }.into_request())
        }
        22 => {
            let span = |dice: &mut Dice| dice.below(20_000) as i64 * SECOND_US;
            let to = known.now_us - span(dice) / 4;
            let from = to - span(dice);
            let gap = dice.is_one_in(3).then(|| "20s".to_owned());
            let (from, to) = (instant(from), instant(to));
            let asked = ScheduleBackfill { id: schedule?, from, to, gap, ..Default::default() };
            Some(asked.into_request())
        }
        23 => Some(ScheduleBackfillEnd { id: schedule? }.into_request()),
        24..29 => Some(answer(dice, &known.asked)?.into_request()),
        29 => Some(answer(dice, &known.answered)?.into_request()),
        30 => Some(Freeze::default().into_request()),
        31..33 => plan::agent(dice),
        _ => Some(Thaw::default().into_request()),
    }
}

fn answer(dice: &mut Dice, of: &[(String, String)]) -> Option<ApprovalDecide> {
    let (id, plan_hash) = dice.pick(of)?.clone();
    let decision = dice.one("approve", &["approve", "approve", "deny", "revoke"]).to_owned();
    Some(ApprovalDecide { id, decision, plan_hash: Some(plan_hash), ..Default::default() })
}

fn edit(dice: &mut Dice, known: &Known, id: String) -> ScheduleEdit {
    let terms = plan::terms(dice, known.now_us);
    let edit = ScheduleEdit { id, ..ScheduleEdit::default() };
    match dice.below(4) {
        0 => ScheduleEdit { terms, ..edit },
        1 => {
            let unset = vec!["max_fires".to_owned(), "start_at".to_owned(), "end_at".to_owned()];
            ScheduleEdit { unset, ..edit }
        }
        2 => {
            let prompt = dice.pick(&plan::PROMPTS).map(ToString::to_string);
            let tier = dice.is_one_in(2).then(|| dice.one(2, &[1]));
            ScheduleEdit { action: Action { prompt, ..Action::default() }, tier, ..edit }
        }
        _ => {
            let (when, happening) = plan::trigger(dice, known.now_us, &known.schedules);
            let when = happening.is_none().then_some(when);
            ScheduleEdit { when, happening, ..edit }
        }
    }
}
