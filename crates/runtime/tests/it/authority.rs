//! The authority of the installation: freeze and thaw, and the lease that a human must renew.

use api::{
    AgentTest, Approval, ApprovalDecide, ApprovalList, Code, Decision, Freeze, LeaseRenew,
    RunRetry, StatusShow, Thaw,
};
use futures::future::join;
use kernel::Role;
use kernel::authority::Lease;

use crate::steps::*;
use crate::world::{DAY_US, World, builtin, run_engine};

const LEASE: Lease = Lease { ask_after_us: 14 * DAY_US, pause_after_us: 28 * DAY_US };

async fn freeze(world: &World) -> bool {
    let note = Some("a strange bill".to_owned());
    world.send(Freeze { note }).await.unwrap().changed
}

async fn thaw(world: &World) -> bool {
    world.send_as(Role::Maintainer, Thaw::default()).await.unwrap().changed
}

async fn states(world: &World) -> Vec<&'static str> {
    runs(world).await.into_iter().map(|run| run.state.as_str()).collect()
}

async fn lease(world: &World) -> api::Lease {
    world.send(StatusShow {}).await.unwrap().authority.lease
}

async fn open(world: &World) -> Vec<Approval> {
    world.send(ApprovalList::default()).await.unwrap().approvals
}

fn approval_of(approval: &Approval) -> ApprovalDecide {
    ApprovalDecide {
        plan_hash: Some(approval.plan_hash.clone()),
        ..ApprovalDecide::new(&approval.id, Decision::Approve)
    }
}

#[tokio::test(start_paused = true)]
async fn a_freeze_stops_running_runs_and_starts_none_until_thaw() {
    let mut world = World::new().await;
    world.send(builtin("ada")).await.unwrap();
    world.send(builtin("bob")).await.unwrap();
    add(&world, every("1h", "hang")).await;
    add(&world, named("other", "bob", every("2h", "hello"))).await;
    crash(&mut world, async |world| {
        set(world, HOUR_US).await;
        assert_eq!((started(world), states(world).await), (1, vec!["running"]));
        assert!(freeze(world).await);
        assert!(!freeze(world).await, "no change");
        wait_until_idle().await;
        assert_eq!(states(world).await, ["cancelled"]);
        set(world, 2 * HOUR_US).await;
        assert_eq!(states(world).await, ["cancelled", "queued", "queued"]);
    })
    .await;
    // It lasts through a crash, and for a day.
    crash(&mut world, async |world| {
        for hour in 3..27 {
            set(world, hour * HOUR_US).await;
        }
        assert_eq!(states(world).await, ["cancelled", "queued", "queued"]);
        let frozen = world.send(StatusShow {}).await.unwrap().authority.frozen.unwrap();
        assert_eq!(frozen.note.as_deref(), Some("a strange bill"));
    })
    .await;
    assert_eq!(started(&world), 1);
    run_engine(&world, async {
        wait_until_idle().await;
        assert_eq!(started(&world), 1);
        assert!(thaw(&world).await);
        assert!(!thaw(&world).await, "no change");
        wait_until_idle().await;
        assert_eq!(started(&world), 3);
        // A stopped run is retried by hand only.
        let stopped = runs(&world).await.remove(0);
        assert_eq!(stopped.state.as_str(), "cancelled");
        assert!(stopped.message.unwrap().contains("frozen by olga"));
        let later = world.send(RunRetry { id: stopped.id }).await.unwrap_err();
        assert_eq!(later.code.name(), "not_now", "a later run of its schedule is running");
    })
    .await;
    verify_ledger(&world).await;
}

fn test(prompt: &str) -> AgentTest {
    AgentTest { name: "ada".into(), prompt: Some(prompt.into()) }
}

/// In every process, whether or not it runs the engine.
#[tokio::test(start_paused = true)]
async fn a_freeze_stops_and_refuses_agent_tests() {
    let world = World::new().await;
    world.send(builtin("ada")).await.unwrap();
    let frozen = async {
        wait_until_idle().await;
        assert_eq!(started(&world), 1);
        freeze(&world).await;
    };
    let (stopped, ()) = join(world.send(test("hang")), frozen).await;
    assert_eq!(stopped.unwrap().test.reason.as_deref(), Some("cancelled"));
    assert_eq!(world.send(test("hello")).await.unwrap_err().code, Code::NotNow);
    thaw(&world).await;
    assert!(world.send(test("hello")).await.unwrap().test.passed);
    let ends = async {
        wait_until_idle().await;
        world.engine.stop_agent_tests();
    };
    let (stopped, ()) = join(world.send(test("hang")), ends).await;
    assert_eq!(stopped.unwrap().test.reason.as_deref(), Some("cancelled"));
    assert_eq!(started(&world), 3);
}

#[tokio::test(start_paused = true)]
async fn an_agent_test_follows_deny_rules_and_needs_no_approval() {
    let mut world = World::new().await;
    for (verdict, code) in [("deny", Some(Code::Denied)), ("ask", None)] {
        world.policy = format!(
            "[[rule]]\nid = 'ada'\n{verdict} = ['agent.prompt']\nagent = ['ada']\n\
             match = [{{ capability = 'agent.prompt', agent = 'ada' }}]\n\
             not_match = [{{ capability = 'agent.prompt', agent = 'bob' }}]\n"
        );
        world.reopen().await.unwrap();
        world.send(builtin("ada")).await.unwrap();
        let tested = world.send(test("hello")).await;
        assert_eq!(tested.err().map(|refused| refused.code), code, "{verdict}");
    }
    assert_eq!(started(&world), 1);
    assert!(world.kinds().await.contains(&"watch.refused".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn agent_tests_are_refused_after_the_lease_expires() {
    let mut world = World::new().await;
    world.lease = LEASE;
    world.reopen().await.unwrap();
    world.send(builtin("ada")).await.unwrap();
    run_engine(&world, async {
        wait_until_idle().await;
        for (day, passes) in [(13, true), (14, true), (28, false)] {
            set(&world, day * DAY_US).await;
            let tested = world.send(test("hello")).await;
            assert_eq!(tested.is_ok(), passes, "{day}: {tested:?}");
        }
    })
    .await;
}

/// The freeze is committed before or after the start of a run, and no run starts after it.
#[tokio::test(start_paused = true)]
async fn no_run_starts_after_a_freeze_is_committed() {
    for approve_first in [true, false] {
        let world = World::new().await;
        let ada = of_tier(2, builtin("ada"));
        world.send(ada).await.unwrap();
        add(&world, every("1h", "hello")).await;
        run_engine(&world, async {
            set(&world, HOUR_US).await;
            let approval = open(&world).await.remove(0);
            let answered = match approve_first {
                true => join(world.send(approval_of(&approval)), freeze(&world)).await.0,
                false => join(freeze(&world), world.send(approval_of(&approval))).await.1,
            };
            wait_until_idle().await;
            if answered.is_err() {
                let refused = world.send(approval_of(&approval)).await.unwrap_err();
                assert!(refused.message.contains("frozen"), "{refused}");
            }
            thaw(&world).await;
            wait_until_idle().await;
        })
        .await;
        let kinds = world.kinds().await;
        let place = |kind: &str| kinds.iter().position(|it| it == kind);
        let (frozen, thawed) = (place("authority.frozen").unwrap(), place("authority.thawed"));
        if let Some(started) = place("run.started") {
            assert!(started < frozen || thawed.unwrap() < started, "{kinds:?}");
        }
        verify_ledger(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn freeze_needs_a_human_and_thaw_a_maintainer() {
    let world = World::new().await;
    for role in [Role::Observer, Role::Runner] {
        for refused in [
            world.send_as(role, Freeze::default()).await.unwrap_err(),
            world.send_as(role, Thaw::default()).await.unwrap_err(),
            world.send_as(role, LeaseRenew::default()).await.unwrap_err(),
        ] {
            assert_eq!(refused.code.name(), "role_too_low");
        }
    }
    assert!(freeze(&world).await);
    let refused = world.send_as(Role::Operator, Thaw::default()).await.unwrap_err();
    assert_eq!(refused.code.name(), "role_too_low");
    assert!(world.send(StatusShow {}).await.unwrap().authority.frozen.is_some());
}

#[tokio::test(start_paused = true)]
async fn runs_need_approval_and_later_stop_when_the_lease_expires() {
    let mut world = World::new().await;
    world.lease = LEASE;
    world.reopen().await.unwrap();
    world.send(builtin("ada")).await.unwrap();
    let schedule = add(&world, every("1d", "hello")).await;
    run_engine(&world, async {
        for day in 1..14 {
            set(&world, day * DAY_US).await;
        }
        assert_eq!((started(&world), lease(&world).await.state.as_str()), (13, "full"));
        set(&world, 14 * DAY_US).await;
        assert_eq!((started(&world), lease(&world).await.state.as_str()), (13, "ask"));
        let approval = open(&world).await.remove(0);
        assert!(approval.ruling.rules.contains(&"@lease".to_owned()), "{:?}", approval.ruling);

        // A decision of a human renews the lease, so runs start without approval again.
        world.send(approval_of(&approval)).await.unwrap();
        wait_until_idle().await;
        assert_eq!((started(&world), lease(&world).await.state.as_str()), (14, "full"));
        for day in 15..28 {
            set(&world, day * DAY_US).await;
        }
        assert_eq!((started(&world), open(&world).await.len()), (27, 0));

        for day in 28..42 {
            set(&world, day * DAY_US).await;
        }
        assert_eq!((started(&world), lease(&world).await.state.as_str()), (27, "ask"));
        set(&world, 42 * DAY_US).await;
        set(&world, 43 * DAY_US).await;
        assert_eq!((started(&world), lease(&world).await.state.as_str()), (27, "paused"));
        assert_eq!(why(&world, &schedule, 43 * DAY_US).await.disposition.as_str(), "skipped_lease");

        world.send(LeaseRenew::default()).await.unwrap();
        set(&world, 44 * DAY_US).await;
        assert_eq!((started(&world), lease(&world).await.state.as_str()), (28, "full"));
    })
    .await;
    let warned = world.kinds().await.iter().filter(|kind| *kind == "authority.warned").count();
    assert_eq!(warned, 3, "twice before `ask`, once before `paused`");
    verify_ledger(&world).await;
}

const ASK_FOR_BOB: &str = r#"
    [[rule]]
    id = "bob"
    ask = ["agent.prompt"]
    agent = ["bob"]
    match = [{ capability = "agent.prompt", agent = "bob" }]
    not_match = [{ capability = "agent.prompt", agent = "ada" }]
"#;

/// A world on day 15, in which the runs of `mail` and `news` wait only because of the lease, and that of `post` also
/// because of the policy.
async fn with_parked_runs() -> World {
    let mut world = World::new().await;
    (world.lease, world.policy) = (LEASE, ASK_FOR_BOB.to_owned());
    world.reopen().await.unwrap();
    world.send(builtin("ada")).await.unwrap();
    world.send(builtin("bob")).await.unwrap();
    for (name, agent) in [("mail", "ada"), ("news", "ada"), ("post", "bob")] {
        add(&world, named(name, agent, every("1d", name))).await;
    }
    run_engine(&world, async { set(&world, 15 * DAY_US).await }).await;
    assert_eq!((started(&world), open(&world).await.len()), (0, 3));
    world
}

#[tokio::test(start_paused = true)]
async fn renewing_the_lease_releases_what_only_the_lease_had_parked() {
    let world = with_parked_runs().await;
    run_engine(&world, async {
        let renewed = world.send(LeaseRenew::default()).await.unwrap();
        let mut released: Vec<_> =
            renewed.released.iter().filter_map(|run| run.schedule_name.as_deref()).collect();
        released.sort_unstable();
        assert_eq!(released, ["mail", "news"]);
        wait_until_idle().await;
        assert_eq!(started(&world), 2);
        let waiting = open(&world).await;
        let names: Vec<_> = waiting.iter().map(|it| it.schedule_name.as_deref()).collect();
        assert_eq!(names, [Some("post")], "the policy itself asks about it");
        let lapsed = world.events().await.into_iter().find(|it| it.kind == "approval.lapsed");
        let lapsed = lapsed.unwrap().body;
        assert_eq!((&lapsed["why"], &lapsed["by"]), (&"lease_renewed".into(), &"olga".into()));
        let again = world.send(LeaseRenew::default()).await.unwrap();
        assert!(again.released.is_empty(), "{again:?}");
    })
    .await;
    verify_ledger(&world).await;
}

/// The process that renewed the lease was killed before it released anything.
#[tokio::test(start_paused = true)]
async fn next_daemon_releases_what_a_killed_renewal_left_parked() {
    let mut world = with_parked_runs().await;
    let approval = open(&world).await.into_iter().find(|it| it.agent.as_deref() == Some("ada"));
    // It renews the lease, and no daemon runs that would release the rest.
    world.send(approval_of(&approval.unwrap())).await.unwrap();
    let pending = async |world: &World| {
        let is_pending = |it: &Approval| it.state == api::ApprovalState::Pending;
        open(world).await.into_iter().filter(is_pending).count()
    };
    assert_eq!((lease(&world).await.state.as_str(), pending(&world).await), ("full", 2));
    world.reopen().await.unwrap();
    run_engine(&world, async {
        wait_until_idle().await;
        assert_eq!((started(&world), pending(&world).await), (2, 1));
    })
    .await;
    verify_ledger(&world).await;
}
