//! Questions to humans: runs that wait for an answer over days and restarts, and begin once or not at
//! all.

use api::{
    Approval, ApprovalDecide, ApprovalList, ApprovalShow, Error, RunCancel, RunRetry, ScheduleAdd,
    StatusAsk, Terms,
};
use futures::future::join_all;
use kernel::Role;

use crate::steps::*;
use crate::world::{OCTOBER_US, World, builtin, keep};

const DAY_US: i64 = 24 * HOUR_US;

/// A world whose only agent reaches outside, and a schedule that fires after an hour.
async fn outside(prompt: &str) -> (World, String) {
    let world = World::new().await;
    let ada = api::AgentAdd { tier: Some(2), ..builtin("ada") };
    world.ask(ada).await.unwrap();
    let schedule = add(&world, every("1h", prompt)).await;
    (world, schedule)
}

/// The question that is open.
async fn asked(world: &World) -> Approval {
    let mut open = world.ask(ApprovalList::default()).await.unwrap().approvals;
    assert_eq!(open.len(), 1);
    open.remove(0)
}

async fn state(world: &World, id: &str) -> String {
    world.ask(ApprovalShow { id: id.to_owned() }).await.unwrap().approval.state
}

fn answer(approval: &Approval, decision: &str) -> ApprovalDecide {
    ApprovalDecide {
        id: approval.id.clone(),
        decision: decision.to_owned(),
        plan_hash: Some(approval.plan_hash.clone()),
        note: None,
        ..Default::default()
    }
}

async fn approve(world: &World, approval: &Approval) -> Result<bool, Error> {
    world.ask(answer(approval, "approve")).await.map(|answer| answer.changed)
}

#[tokio::test(start_paused = true)]
async fn a_parked_run_waits_a_day_through_crashes_and_then_gives_up() {
    let (mut world, schedule) = outside("hello").await;
    for hour in [1, 5, 24] {
        crash(&mut world, async |world| {
            set(world, hour * HOUR_US).await;
            let run = runs(world).await.remove(0);
            assert_eq!(run.state, "waiting_permission", "{run:?}");
            assert_eq!(why(world, &schedule, HOUR_US).await.disposition, "parked");
        })
        .await;
    }
    let question = asked(&world).await;
    keep(&world, async {
        set(&world, HOUR_US + DAY_US).await;
    })
    .await;
    assert_eq!(state(&world, &question.id).await, "expired");
    let told = why(&world, &schedule, HOUR_US).await;
    let reason = told.reason.as_deref();
    assert_eq!((told.disposition.as_str(), reason), ("skipped_policy", Some("expired")));
    assert_eq!(begun(&world), 0);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a01_an_approval_is_good_for_one_beginning() {
    let (world, _) = outside("hello").await;
    keep(&world, async {
        set(&world, HOUR_US).await;
        let question = asked(&world).await;
        assert!(approve(&world, &question).await.unwrap());
        settle().await;
        assert_eq!((begun(&world), state(&world, &question.id).await.as_str()), (1, "consumed"));
        assert!(!approve(&world, &question).await.unwrap(), "it was said before");
        let late = world.ask(answer(&question, "revoke")).await.unwrap_err();
        assert!(late.message.contains("its run has begun"), "{late}");
        settle().await;
        assert_eq!(begun(&world), 1);
    })
    .await;
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a02_many_answers_at_once_begin_it_once() {
    let (world, _) = outside("hello").await;
    keep(&world, async {
        set(&world, HOUR_US).await;
        let question = asked(&world).await;
        let answers = join_all((0..100).map(|_| approve(&world, &question))).await;
        assert_eq!(answers.iter().filter(|it| *it.as_ref().unwrap()).count(), 1);
        settle().await;
        assert_eq!(begun(&world), 1);
    })
    .await;
    let kinds = world.kinds().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "approval.consumed").count(), 1);
    check_log(&world).await;
}

/// The commit that consumes it is the one that begins the run, so after it nobody knows.
#[tokio::test(start_paused = true)]
async fn a13_an_approved_run_that_a_crash_cut_off_is_not_begun_again() {
    let (mut world, _) = outside("hang").await;
    crash(&mut world, async |world| {
        set(world, HOUR_US).await;
        let question = asked(world).await;
        approve(world, &question).await.unwrap();
        settle().await;
        assert_eq!(begun(world), 1);
    })
    .await;
    keep(&world, async {
        set(&world, HOUR_US + MINUTE_US).await;
        let run = the_run(&world).await;
        assert_eq!((run.state.as_str(), begun(&world)), ("unknown", 1));
    })
    .await;
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn other_orders_make_an_approval_void() {
    let (mut world, _) = outside("hello").await;
    crash(&mut world, async |world| set(world, HOUR_US).await).await;
    let question = asked(&world).await;
    approve(&world, &question).await.unwrap();
    world.policy = r#"
        [[rule]]
        id = "mail"
        ask = ["message.send"]
        match = [{ capability = "message.send" }]
        not_match = [{ capability = "agent.prompt" }]
    "#
    .to_owned();
    world.reopen().await.unwrap();
    keep(&world, async {
        set(&world, HOUR_US + SECOND_US).await;
        assert_eq!(the_run(&world).await.reason.as_deref(), Some("plan_changed"));
    })
    .await;
    assert_eq!((begun(&world), state(&world, &question.id).await.as_str()), (0, "changed"));
}

#[tokio::test(start_paused = true)]
async fn a_question_is_gone_with_its_run() {
    let (world, _) = outside("hello").await;
    keep(&world, async {
        set(&world, HOUR_US).await;
        let question = asked(&world).await;
        let id = question.run_id.clone();
        world.ask(RunCancel { id, note: None }).await.unwrap();
        assert_eq!(state(&world, &question.id).await, "cancelled");
        let late = approve(&world, &question).await.unwrap_err();
        assert_eq!(late.code, api::Code::NotNow);
        assert_eq!(world.ask(ApprovalList::default()).await.unwrap().approvals, []);
        let all = ApprovalList { all: true, ..ApprovalList::default() };
        assert_eq!(world.ask(all).await.unwrap().approvals.len(), 1);
    })
    .await;
    assert_eq!(begun(&world), 0);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_always_denied_is_not_asked_about_any_more() {
    let (mut world, schedule) = outside("hello").await;
    let silenced = async |world: &World| world.ask(StatusAsk {}).await.unwrap().silenced;
    crash(&mut world, async |world| {
        for hour in 1..=10 {
            set(world, hour * HOUR_US).await;
            assert_eq!(silenced(world).await, Vec::<String>::new());
            let question = asked(world).await;
            world.ask(answer(&question, "deny")).await.unwrap();
        }
        set(world, 11 * HOUR_US).await;
    })
    .await;
    assert_eq!(silenced(&world).await, ["ada"]);
    let told = why(&world, &schedule, 11 * HOUR_US).await;
    assert_eq!(told.reason.as_deref(), Some("denied_often"), "{told:?}");
    assert!(told.sentence.contains("the last 10 questions about agent `ada` were denied"));
    keep(&world, async {
        let run = fire(&world, &schedule).await.id;
        settle().await;
        let question = asked(&world).await;
        assert_eq!(question.run_id, run, "somebody wants it");
        approve(&world, &question).await.unwrap();
        settle().await;
        set(&world, 12 * HOUR_US).await;
        assert_eq!(silenced(&world).await, Vec::<String>::new());
        asked(&world).await;
    })
    .await;
    assert_eq!(begun(&world), 1);
    check_log(&world).await;
}

/// Five slots were missed, and all five runs are about to ask the same at once.
#[tokio::test(start_paused = true)]
async fn runs_that_would_ask_the_same_ask_once() {
    let world = World::new().await;
    world.ask(api::AgentAdd { tier: Some(2), ..builtin("ada") }).await.unwrap();
    let terms = Terms {
        overlap: Some("allow:5".into()),
        missed: Some("all:5".into()),
        window: Some("9h".into()),
        ..Terms::default()
    };
    let schedule = add(&world, ScheduleAdd { terms, ..every("1h", "hello") }).await;
    keep(&world, async {
        world.set_clock(OCTOBER_US + 5 * HOUR_US);
        settle().await;
        let question = asked(&world).await;
        let (waiting, others): (Vec<_>, Vec<_>) =
            runs(&world).await.into_iter().partition(|run| run.id == question.run_id);
        assert_eq!((waiting[0].state.as_str(), others.len()), ("waiting_permission", 4));
        for run in &others {
            assert_eq!(
                (run.state.as_str(), run.reason.as_deref()),
                ("cancelled", Some("asked_already"))
            );
            assert!(run.message.as_ref().unwrap().contains(&question.id), "{run:?}");
        }
        let told = why(&world, &schedule, 5 * HOUR_US).await;
        assert!(["skipped_policy", "parked"].contains(&told.disposition.as_str()), "{told:?}");
        approve(&world, &question).await.unwrap();
        settle().await;
        assert_eq!(begun(&world), 1, "one yes begins one run");
        // The question is answered, so another can be asked.
        world.ask(RunRetry { id: others[0].id.clone() }).await.unwrap();
        settle().await;
        assert_eq!(asked(&world).await.run_id, others[0].id);
    })
    .await;
    let kinds = world.kinds().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "approval.asked").count(), 2);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_names_what_was_shown_and_comes_from_a_human() {
    let (world, _) = outside("hello").await;
    keep(&world, async {
        set(&world, HOUR_US).await;
        let question = asked(&world).await;
        for role in [Role::Observer, Role::Runner] {
            for decision in ["approve", "deny", "revoke"] {
                let refused = world.ask_as(role, answer(&question, decision)).await.unwrap_err();
                assert_eq!(refused.code, api::Code::RoleTooLow, "{role:?} {decision}");
            }
        }
        let blind = ApprovalDecide { plan_hash: None, ..answer(&question, "approve") };
        assert_eq!(world.ask(blind).await.unwrap_err().code, api::Code::InvalidInput);
        let other = ApprovalDecide { plan_hash: Some("0".repeat(64)), ..answer(&question, "deny") };
        assert_eq!(world.ask(other).await.unwrap_err().code, api::Code::NotNow);
        let none = ApprovalDecide { id: "apr_1".into(), ..answer(&question, "approve") };
        assert_eq!(world.ask(none).await.unwrap_err().code, api::Code::NotFound);
        let what = world.ask(answer(&question, "maybe")).await.unwrap_err();
        assert_eq!(what.code, api::Code::InvalidInput);
        assert_eq!(state(&world, &question.id).await, "pending");
    })
    .await;
}
