//! Approvals: runs wait for a decision over days and restarts, and start once or never.

use api::{
    Approval, ApprovalDecide, ApprovalList, ApprovalShow, Decision, Error, RunCancel, RunRetry,
    ScheduleAdd, StatusShow, Terms,
};
use futures::future::join_all;
use kernel::Role;

use crate::steps::*;
use crate::world::{OCTOBER_US, World, builtin, run_engine};

const DAY_US: i64 = 24 * HOUR_US;

/// A world whose agent is in tier 2, and a schedule that fires after an hour.
async fn external_world(prompt: &str) -> (World, String) {
    let world = World::new().await;
    let ada = of_tier(2, builtin("ada"));
    world.send(ada).await.unwrap();
    let schedule = add(&world, every("1h", prompt)).await;
    (world, schedule)
}

/// The pending approval request.
async fn pending_approval(world: &World) -> Approval {
    let mut open = world.send(ApprovalList::default()).await.unwrap().approvals;
    assert_eq!(open.len(), 1);
    open.remove(0)
}

async fn state(world: &World, id: &str) -> &'static str {
    world.send(ApprovalShow { id: id.to_owned() }).await.unwrap().approval.state.as_str()
}

fn decision_on(approval: &Approval, decision: Decision) -> ApprovalDecide {
    ApprovalDecide {
        plan_hash: Some(approval.plan_hash.clone()),
        ..ApprovalDecide::new(&approval.id, decision)
    }
}

async fn approve(world: &World, approval: &Approval) -> Result<bool, Error> {
    world.send(decision_on(approval, Decision::Approve)).await.map(|answer| answer.changed)
}

#[tokio::test(start_paused = true)]
async fn an_approval_request_survives_crashes_and_expires_after_a_day() {
    let (mut world, schedule) = external_world("hello").await;
    for hour in [1, 5, 24] {
        crash(&mut world, async |world| {
            set(world, hour * HOUR_US).await;
            let run = runs(world).await.remove(0);
            assert_eq!(run.state.as_str(), "waiting_permission", "{run:?}");
            assert_eq!(why(world, &schedule, HOUR_US).await.disposition.as_str(), "parked");
        })
        .await;
    }
    let approval = pending_approval(&world).await;
    run_engine(&world, async {
        set(&world, HOUR_US + DAY_US).await;
    })
    .await;
    assert_eq!(state(&world, &approval.id).await, "expired");
    let explained = why(&world, &schedule, HOUR_US).await;
    let reason = explained.reason.as_deref();
    assert_eq!((explained.disposition.as_str(), reason), ("skipped_policy", Some("expired")));
    assert_eq!(started(&world), 0);
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_starts_one_attempt() {
    let (world, _) = external_world("hello").await;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        let approval = pending_approval(&world).await;
        assert!(approve(&world, &approval).await.unwrap());
        wait_until_idle().await;
        assert_eq!((started(&world), state(&world, &approval.id).await), (1, "consumed"));
        assert!(!approve(&world, &approval).await.unwrap(), "already approved");
        let late = world.send(decision_on(&approval, Decision::Revoke)).await.unwrap_err();
        assert!(late.message.contains("its run has started"), "{late}");
        wait_until_idle().await;
        assert_eq!(started(&world), 1);
    })
    .await;
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_approvals_start_a_run_once() {
    let (world, _) = external_world("hello").await;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        let approval = pending_approval(&world).await;
        let results = join_all((0..100).map(|_| approve(&world, &approval))).await;
        assert_eq!(results.iter().filter(|it| *it.as_ref().unwrap()).count(), 1);
        wait_until_idle().await;
        assert_eq!(started(&world), 1);
    })
    .await;
    let kinds = world.kinds().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "approval.consumed").count(), 1);
    verify_ledger(&world).await;
}

/// The commit that consumes the approval also starts the run, so after a crash its outcome is unknown.
#[tokio::test(start_paused = true)]
async fn an_approved_run_is_not_restarted_after_a_crash() {
    let (mut world, _) = external_world("hang").await;
    crash(&mut world, async |world| {
        set(world, HOUR_US).await;
        let approval = pending_approval(world).await;
        approve(world, &approval).await.unwrap();
        wait_until_idle().await;
        assert_eq!(started(world), 1);
    })
    .await;
    run_engine(&world, async {
        set(&world, HOUR_US + MINUTE_US).await;
        let run = only_run(&world).await;
        assert_eq!((run.state.as_str(), started(&world)), ("unknown", 1));
    })
    .await;
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_change_voids_an_approval() {
    let (mut world, _) = external_world("hello").await;
    crash(&mut world, async |world| set(world, HOUR_US).await).await;
    let approval = pending_approval(&world).await;
    approve(&world, &approval).await.unwrap();
    world.policy = r#"
        [[rule]]
        id = "mail"
        ask = ["message.send"]
        match = [{ capability = "message.send" }]
        not_match = [{ capability = "agent.prompt" }]
    "#
    .to_owned();
    world.reopen().await.unwrap();
    run_engine(&world, async {
        set(&world, HOUR_US + SECOND_US).await;
        assert_eq!(only_run(&world).await.reason.as_deref(), Some("plan_changed"));
    })
    .await;
    assert_eq!((started(&world), state(&world, &approval.id).await), (0, "changed"));
}

#[tokio::test(start_paused = true)]
async fn an_approval_request_ends_with_its_run() {
    let (world, _) = external_world("hello").await;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        let approval = pending_approval(&world).await;
        let id = approval.run_id.clone();
        world.send(RunCancel { id, note: None }).await.unwrap();
        assert_eq!(state(&world, &approval.id).await, "cancelled");
        let late = approve(&world, &approval).await.unwrap_err();
        assert_eq!(late.code, api::Code::NotNow);
        assert_eq!(world.send(ApprovalList::default()).await.unwrap().approvals, []);
        let all = ApprovalList { all: true, ..ApprovalList::default() };
        assert_eq!(world.send(all).await.unwrap().approvals.len(), 1);
    })
    .await;
    assert_eq!(started(&world), 0);
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn repeated_denials_stop_approval_requests_for_an_agent() {
    let (mut world, schedule) = external_world("hello").await;
    let silenced = async |world: &World| world.send(StatusShow {}).await.unwrap().silenced;
    crash(&mut world, async |world| {
        for hour in 1..=10 {
            set(world, hour * HOUR_US).await;
            assert_eq!(silenced(world).await, Vec::<String>::new());
            let approval = pending_approval(world).await;
            world.send(decision_on(&approval, Decision::Deny)).await.unwrap();
        }
        set(world, 11 * HOUR_US).await;
    })
    .await;
    assert_eq!(silenced(&world).await, ["ada"]);
    let explained = why(&world, &schedule, 11 * HOUR_US).await;
    assert_eq!(explained.reason.as_deref(), Some("denied_often"), "{explained:?}");
    assert!(
        explained.sentence.contains("the last 10 approval requests for agent `ada` were denied")
    );
    run_engine(&world, async {
        let run = fire(&world, &schedule).await.id;
        wait_until_idle().await;
        let approval = pending_approval(&world).await;
        assert_eq!(approval.run_id, run, "an operator retried it");
        approve(&world, &approval).await.unwrap();
        wait_until_idle().await;
        set(&world, 12 * HOUR_US).await;
        assert_eq!(silenced(&world).await, Vec::<String>::new());
        pending_approval(&world).await;
    })
    .await;
    assert_eq!(started(&world), 1);
    verify_ledger(&world).await;
}

/// Five slots were missed, and all five runs would request the same approval.
#[tokio::test(start_paused = true)]
async fn runs_of_the_same_action_share_one_approval_request() {
    let world = World::new().await;
    world.send(of_tier(2, builtin("ada"))).await.unwrap();
    let terms = Terms {
        overlap: Some("allow:5".into()),
        missed: Some("all:5".into()),
        window: Some("9h".into()),
        ..Terms::default()
    };
    let schedule = add(&world, ScheduleAdd { terms, ..every("1h", "hello") }).await;
    run_engine(&world, async {
        world.set_clock(OCTOBER_US + 5 * HOUR_US);
        wait_until_idle().await;
        let approval = pending_approval(&world).await;
        let (waiting, others): (Vec<_>, Vec<_>) =
            runs(&world).await.into_iter().partition(|run| run.id == approval.run_id);
        assert_eq!((waiting[0].state.as_str(), others.len()), ("waiting_permission", 4));
        for run in &others {
            assert_eq!(
                (run.state.as_str(), run.reason.as_deref()),
                ("cancelled", Some("asked_already"))
            );
            assert!(run.message.as_ref().unwrap().contains(&approval.id), "{run:?}");
        }
        let explained = why(&world, &schedule, 5 * HOUR_US).await;
        assert!(
            ["skipped_policy", "parked"].contains(&explained.disposition.as_str()),
            "{explained:?}"
        );
        approve(&world, &approval).await.unwrap();
        wait_until_idle().await;
        assert_eq!(started(&world), 1, "one approval starts one run");
        // The request is decided, so the next run can request an approval.
        world.send(RunRetry { id: others[0].id.clone() }).await.unwrap();
        wait_until_idle().await;
        assert_eq!(pending_approval(&world).await.run_id, others[0].id);
    })
    .await;
    let kinds = world.kinds().await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "approval.asked").count(), 2);
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_decision_needs_the_plan_hash_and_a_human() {
    let (world, _) = external_world("hello").await;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        let approval = pending_approval(&world).await;
        for role in [Role::Observer, Role::Runner] {
            for decision in Decision::ALL.iter().copied() {
                let refused =
                    world.send_as(role, decision_on(&approval, decision)).await.unwrap_err();
                assert_eq!(refused.code, api::Code::RoleTooLow, "{role:?} {decision}");
            }
        }
        let blind = ApprovalDecide { plan_hash: None, ..decision_on(&approval, Decision::Approve) };
        assert_eq!(world.send(blind).await.unwrap_err().code, api::Code::InvalidInput);
        let other = ApprovalDecide {
            plan_hash: Some("0".repeat(64)),
            ..decision_on(&approval, Decision::Deny)
        };
        assert_eq!(world.send(other).await.unwrap_err().code, api::Code::NotNow);
        let none =
            ApprovalDecide { id: "apr_1".into(), ..decision_on(&approval, Decision::Approve) };
        assert_eq!(world.send(none).await.unwrap_err().code, api::Code::NotFound);
        assert_eq!(state(&world, &approval.id).await, "pending");
    })
    .await;
}
