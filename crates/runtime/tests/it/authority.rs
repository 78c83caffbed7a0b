//! What the watch may do: the kill switch, and the lease that runs out when nobody looks after it.

use api::{
    AgentTest, Approval, ApprovalDecide, ApprovalList, Code, Freeze, LeaseRenew, RunRetry,
    StatusAsk, Thaw,
};
use futures::future::join;
use kernel::Role;
use kernel::authority::Lease;

use crate::steps::*;
use crate::world::{DAY_US, World, builtin, keep};

const LEASE: Lease = Lease { ask_after_us: 14 * DAY_US, pause_after_us: 28 * DAY_US };

async fn freeze(world: &World) -> bool {
    let note = Some("a strange bill".to_owned());
    world.ask(Freeze { note }).await.unwrap().changed
}

async fn thaw(world: &World) -> bool {
    world.ask_as(Role::Maintainer, Thaw::default()).await.unwrap().changed
}

async fn states(world: &World) -> Vec<String> {
    runs(world).await.into_iter().map(|run| run.state).collect()
}

async fn lease(world: &World) -> api::Lease {
    world.ask(StatusAsk {}).await.unwrap().authority.lease
}

async fn open(world: &World) -> Vec<Approval> {
    world.ask(ApprovalList::default()).await.unwrap().approvals
}

fn yes(question: &Approval) -> ApprovalDecide {
    ApprovalDecide {
        id: question.id.clone(),
        decision: "approve".into(),
        plan_hash: Some(question.plan_hash.clone()),
        note: None,
        ..Default::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_frozen_watch_stops_what_is_at_work_and_begins_nothing_until_it_thaws() {
    let mut world = World::new().await;
    world.ask(builtin("ada")).await.unwrap();
    world.ask(builtin("bob")).await.unwrap();
    add(&world, every("1h", "hang")).await;
    add(&world, named("other", "bob", every("2h", "hello"))).await;
    crash(&mut world, async |world| {
        set(world, HOUR_US).await;
        assert_eq!((begun(world), states(world).await), (1, vec!["running".to_owned()]));
        assert!(freeze(world).await);
        assert!(!freeze(world).await, "it was so already");
        settle().await;
        assert_eq!(states(world).await, ["cancelled"]);
        set(world, 2 * HOUR_US).await;
        assert_eq!(states(world).await, ["cancelled", "queued", "queued"]);
    })
    .await;
    // Through a crash, and for a day.
    crash(&mut world, async |world| {
        for hour in 3..27 {
            set(world, hour * HOUR_US).await;
        }
        assert_eq!(states(world).await, ["cancelled", "queued", "queued"]);
        let frozen = world.ask(StatusAsk {}).await.unwrap().authority.frozen.unwrap();
        assert_eq!(frozen.note.as_deref(), Some("a strange bill"));
    })
    .await;
    assert_eq!(begun(&world), 1);
    keep(&world, async {
        settle().await;
        assert_eq!(begun(&world), 1);
        assert!(thaw(&world).await);
        assert!(!thaw(&world).await, "it was so already");
        settle().await;
        assert_eq!(begun(&world), 3);
        // What was stopped is tried again only if a human wants it.
        let stopped = runs(&world).await.remove(0);
        assert_eq!(stopped.state, "cancelled");
        assert!(stopped.message.unwrap().contains("somebody has frozen the watch"));
        let later = world.ask(RunRetry { id: stopped.id }).await.unwrap_err();
        assert_eq!(later.code.name(), "not_now", "a later run of its schedule is at work");
    })
    .await;
    check_log(&world).await;
}

fn test(prompt: &str) -> AgentTest {
    AgentTest { name: "ada".into(), prompt: Some(prompt.into()) }
}

/// In every process, whether or not it keeps the watch.
#[tokio::test(start_paused = true)]
async fn a_freeze_stops_the_test_of_an_agent_and_lets_none_begin() {
    let world = World::new().await;
    world.watch.set_doer(world.doer());
    world.ask(builtin("ada")).await.unwrap();
    let frozen = async {
        settle().await;
        assert_eq!(begun(&world), 1);
        freeze(&world).await;
    };
    let (stopped, ()) = join(world.ask(test("hang")), frozen).await;
    assert_eq!(stopped.unwrap().test.reason.as_deref(), Some("cancelled"));
    assert_eq!(world.ask(test("hello")).await.unwrap_err().code, Code::NotNow);
    thaw(&world).await;
    assert!(world.ask(test("hello")).await.unwrap().test.passed);
    let ends = async {
        settle().await;
        world.watch.stop_tests();
    };
    let (stopped, ()) = join(world.ask(test("hang")), ends).await;
    assert_eq!(stopped.unwrap().test.reason.as_deref(), Some("cancelled"));
    assert_eq!(begun(&world), 3);
}

#[tokio::test(start_paused = true)]
async fn a_test_is_denied_as_a_run_is_and_needs_no_approval() {
    let mut world = World::new().await;
    for (verdict, code) in [("deny", Some(Code::Denied)), ("ask", None)] {
        world.policy = format!(
            "[[rule]]\nid = 'ada'\n{verdict} = ['agent.prompt']\nagent = ['ada']\n\
             match = [{{ capability = 'agent.prompt', agent = 'ada' }}]\n\
             not_match = [{{ capability = 'agent.prompt', agent = 'bob' }}]\n"
        );
        world.reopen().await.unwrap();
        world.watch.set_doer(world.doer());
        world.ask(builtin("ada")).await.unwrap();
        let tested = world.ask(test("hello")).await;
        assert_eq!(tested.err().map(|refused| refused.code), code, "{verdict}");
    }
    assert_eq!(begun(&world), 1);
    assert!(world.kinds().await.contains(&"watch.refused".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_tested_when_the_lease_has_run_out() {
    let mut world = World::new().await;
    world.lease = LEASE;
    world.reopen().await.unwrap();
    world.ask(builtin("ada")).await.unwrap();
    keep(&world, async {
        settle().await;
        for (day, passes) in [(13, true), (14, true), (28, false)] {
            set(&world, day * DAY_US).await;
            let tested = world.ask(test("hello")).await;
            assert_eq!(tested.is_ok(), passes, "{day}: {tested:?}");
        }
    })
    .await;
}

/// The freeze is in the log before or after the commit that begins a run, and none begins after it.
#[tokio::test(start_paused = true)]
async fn a11_an_approval_that_meets_a_freeze_begins_before_it_or_not_at_all() {
    for approve_first in [true, false] {
        let world = World::new().await;
        let ada = api::AgentAdd { tier: Some(2), ..builtin("ada") };
        world.ask(ada).await.unwrap();
        add(&world, every("1h", "hello")).await;
        keep(&world, async {
            set(&world, HOUR_US).await;
            let question = open(&world).await.remove(0);
            let answered = match approve_first {
                true => join(world.ask(yes(&question)), freeze(&world)).await.0,
                false => join(freeze(&world), world.ask(yes(&question))).await.1,
            };
            settle().await;
            if answered.is_err() {
                let refused = world.ask(yes(&question)).await.unwrap_err();
                assert!(refused.message.contains("frozen"), "{refused}");
            }
            thaw(&world).await;
            settle().await;
        })
        .await;
        let kinds = world.kinds().await;
        let place = |kind: &str| kinds.iter().position(|it| it == kind);
        let (frozen, thawed) = (place("authority.frozen").unwrap(), place("authority.thawed"));
        if let Some(started) = place("run.started") {
            assert!(started < frozen || thawed.unwrap() < started, "{kinds:?}");
        }
        check_log(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_human_freezes_and_only_a_maintainer_thaws() {
    let world = World::new().await;
    for role in [Role::Observer, Role::Runner] {
        for refused in [
            world.ask_as(role, Freeze::default()).await.unwrap_err(),
            world.ask_as(role, Thaw::default()).await.unwrap_err(),
            world.ask_as(role, LeaseRenew::default()).await.unwrap_err(),
        ] {
            assert_eq!(refused.code.name(), "role_too_low");
        }
    }
    assert!(freeze(&world).await);
    let refused = world.ask_as(Role::Operator, Thaw::default()).await.unwrap_err();
    assert_eq!(refused.code.name(), "role_too_low");
    assert!(world.ask(StatusAsk {}).await.unwrap().authority.frozen.is_some());
}

#[tokio::test(start_paused = true)]
async fn without_a_human_everything_asks_and_then_nothing_begins() {
    let mut world = World::new().await;
    world.lease = LEASE;
    world.reopen().await.unwrap();
    world.ask(builtin("ada")).await.unwrap();
    let schedule = add(&world, every("1d", "hello")).await;
    keep(&world, async {
        for day in 1..14 {
            set(&world, day * DAY_US).await;
        }
        assert_eq!((begun(&world), lease(&world).await.step.as_str()), (13, "full"));
        set(&world, 14 * DAY_US).await;
        assert_eq!((begun(&world), lease(&world).await.step.as_str()), (13, "ask"));
        let question = open(&world).await.remove(0);
        assert!(question.ruling.rules.contains(&"@lease".to_owned()), "{:?}", question.ruling);

        // An answer is a sign of life: from now on it goes by itself again.
        world.ask(yes(&question)).await.unwrap();
        settle().await;
        assert_eq!((begun(&world), lease(&world).await.step.as_str()), (14, "full"));
        for day in 15..28 {
            set(&world, day * DAY_US).await;
        }
        assert_eq!((begun(&world), open(&world).await.len()), (27, 0));

        for day in 28..42 {
            set(&world, day * DAY_US).await;
        }
        assert_eq!((begun(&world), lease(&world).await.step.as_str()), (27, "ask"));
        set(&world, 42 * DAY_US).await;
        set(&world, 43 * DAY_US).await;
        assert_eq!((begun(&world), lease(&world).await.step.as_str()), (27, "paused"));
        assert_eq!(why(&world, &schedule, 43 * DAY_US).await.disposition, "skipped_lease");

        world.ask(LeaseRenew::default()).await.unwrap();
        set(&world, 44 * DAY_US).await;
        assert_eq!((begun(&world), lease(&world).await.step.as_str()), (28, "full"));
    })
    .await;
    let warned = world.kinds().await.iter().filter(|kind| *kind == "authority.warned").count();
    assert_eq!(warned, 3, "before asking, and again, and before pausing");
    check_log(&world).await;
}
