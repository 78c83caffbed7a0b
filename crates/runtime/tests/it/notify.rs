//! Notifications: which events are delivered, how often, and after a crash or a failed delivery.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{
    ApprovalDecide, ApprovalList, ConfigReload, Decision, Digest, RunRetry, ScheduleAdd,
    StatusShow, Terms,
};
use futures::future::{BoxFuture, FutureExt, pending};
use kernel::authority::Lease;
use kernel::{Actor, Role};
use runtime::{Channel, DeliveryError};
use serde_json::json;
use tokio::time::sleep;

use crate::steps::*;
use crate::world::{DAY_US, Files, World, builtin, run_engine};

/// Records every delivery, and fails as scripted.
#[derive(Debug, Default)]
struct RecordingChannel {
    delivered: Mutex<Vec<Digest>>,
    script: Mutex<VecDeque<DeliveryScript>>,
}

#[derive(Clone, Copy, Debug)]
enum DeliveryScript {
    Fails,
    FailsPermanently,
    /// Never returns.
    Hangs,
}

impl Channel for RecordingChannel {
    fn name(&self) -> &'static str {
        "command"
    }

    fn deliver<'a>(&'a self, digest: &'a Digest) -> BoxFuture<'a, Result<(), DeliveryError>> {
        async move {
            self.delivered.lock().unwrap().push(digest.clone());
            let next = self.script.lock().unwrap().pop_front();
            let failed =
                |is_permanent| Err(DeliveryError { what: "scripted failure".into(), is_permanent });
            match next {
                None => Ok(()),
                Some(DeliveryScript::Fails) => failed(false),
                Some(DeliveryScript::FailsPermanently) => failed(true),
                Some(DeliveryScript::Hangs) => pending().await,
            }
        }
        .boxed()
    }
}

impl RecordingChannel {
    fn fail_next(&self, script: impl IntoIterator<Item = DeliveryScript>) {
        self.script.lock().unwrap().extend(script);
    }

    fn delivered(&self) -> Vec<Digest> {
        self.delivered.lock().unwrap().clone()
    }

    /// The number of items in each delivery, and of those that it only counts.
    fn sizes(&self) -> Vec<(usize, u64)> {
        self.delivered().iter().map(|digest| (digest.items.len(), digest.more)).collect()
    }

    fn last(&self) -> Digest {
        self.delivered().pop().expect("a delivery")
    }
}

/// A world with a channel, and a schedule whose runs fail when it is fired by hand.
async fn world_with_channel() -> (World, Arc<RecordingChannel>, String) {
    let mut world = world().await;
    let channel = Arc::new(RecordingChannel::default());
    world.channel = Some(channel.clone());
    let terms = Terms { pause_after: Some(0), per_day: Some(1_000), ..Terms::default() };
    let failing = ScheduleAdd { terms, ..every("1d", "fail for good") };
    let failing = add(&world, failing).await;
    (world, channel, failing)
}

/// Lets a run fail, and waits for its delivery.
async fn fail(world: &World, schedule: &str) {
    fire(world, schedule).await;
    wait_for_notifier().await;
}

/// Waits until the notifier has read the ledger. The clock of the engine does not move.
async fn wait_for_notifier() {
    sleep(Duration::from_secs(1)).await;
}

async fn at(world: &World, micros: i64) {
    set(world, micros).await;
    wait_for_notifier().await;
}

/// Nothing is delivered while they are off; later, events that still need a human are.
#[tokio::test(start_paused = true)]
async fn events_are_delivered_after_notifications_are_switched_on_again() {
    let (mut world, channel, failing) = world_with_channel().await;
    let files = Files::of(&mut world).await;
    let reload = async || world.send_as(kernel::Role::Maintainer, ConfigReload {}).await.unwrap();
    run_engine(&world, async {
        files.change(|it| it.flags.notices = false);
        reload().await;
        fail(&world, &failing).await;
        fail(&world, &failing).await;
        at(&world, 3_600_000_000).await;
        assert_eq!(channel.sizes(), []);
        files.change(|it| it.flags.notices = true);
        reload().await;
        wait_for_notifier().await;
        assert_eq!(channel.sizes(), [(2, 0)]);
    })
    .await;
}

/// A name could say anything, so that of an agent or of a program that acts for a person does not leave the machine.
#[tokio::test(start_paused = true)]
async fn only_schedules_that_people_wrote_are_named() {
    let (world, channel, _) = world_with_channel().await;
    let olga = Actor::token_holder("olga".parse().unwrap(), Role::Operator);
    let agent = Actor::token_holder("ada".parse().unwrap(), Role::Runner);
    run_engine(&world, async {
        for (number, (actor, is_named)) in
            [(olga.clone(), true), (olga.into_assistant(), false), (agent, false)]
                .into_iter()
                .enumerate()
        {
            let name = format!("canary {number}");
            let request = named(&name, "ada", every("100d", "fail for good"));
            let handle = world.engine.handle(actor);
            let schedule = api::send(&handle, request).await.unwrap().schedule.id;
            fire(&world, &schedule).await;
            at(&world, (number as i64 + 1) * MINUTE_US).await;
            let digest = serde_json::to_string(&channel.last()).unwrap();
            assert!(digest.contains(&schedule), "{digest}");
            assert_eq!(digest.contains(&name), is_named, "{digest}");
        }
    })
    .await;
}

/// Before every run needs approval, and again before none starts.
#[tokio::test(start_paused = true)]
async fn people_are_notified_before_each_step_of_the_lease() {
    let (mut world, channel, _) = world_with_channel().await;
    world.lease = Lease { ask_after_us: 14 * DAY_US, pause_after_us: 28 * DAY_US };
    world.reopen().await.unwrap();
    run_engine(&world, async {
        let told = async |day: i64| {
            at(&world, day * DAY_US).await;
            // The failure of that day may have been delivered before.
            at(&world, day * DAY_US + 20 * SECOND_US).await;
            let items = channel.delivered().into_iter().flat_map(|digest| digest.items);
            let low = items.filter(|item| item.kind == "lease_low");
            low.map(|item| (item.text, item.command)).collect::<Vec<_>>()
        };
        // The lease begins with the first start.
        wait_until_idle().await;
        assert_eq!(told(11).await, []);
        let notice = |day: i64, what: &str| {
            let from = after(day * DAY_US);
            let text = format!("Confirm that you are still there, or from {from} on {what}.");
            (text, "midwatch lease renew".to_owned())
        };
        let steps = [notice(14, "every run needs approval"), notice(28, "no run starts")];
        assert_eq!(told(12).await, steps[..1]);
        assert_eq!(told(25).await, steps[..1]);
        assert_eq!(told(26).await, steps);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_first_event_is_delivered_immediately_and_the_next_ones_together() {
    let (world, channel, failing) = world_with_channel().await;
    run_engine(&world, async {
        fail(&world, &failing).await;
        let first = channel.last();
        let run = only_run(&world).await.id;
        let seq = first.items[0].seq;
        let (text, command) = (
            format!("fail for good: Run {run} of {failing} failed (script)."),
            format!("midwatch run show {run}"),
        );
        let expected = json!({
            "format": 1,
            "id": first.id,
            "instance": world.engine.instance(),
            "text": format!("{text} ({command})"),
            "items": [{
                "seq": seq,
                "kind": "run_failed",
                "id": run,
                "at": after(0),
                "text": text,
                "command": command,
                "schedule_id": failing,
                "schedule_name": "fail for good",
            }],
            "more": 0,
        });
        assert_eq!(serde_json::to_value(&first).unwrap(), expected);

        let range = first.id.strip_prefix(&format!("ntc_{}_", first.instance)).unwrap();
        let (from, through) = range.split_once('_').unwrap();
        let (from, through): (u64, u64) = (from.parse().unwrap(), through.parse().unwrap());
        assert!(from <= seq && seq <= through, "{seq} is not in {range}");

        for _ in 0..3 {
            fail(&world, &failing).await;
        }
        at(&world, 10 * SECOND_US - 1).await;
        assert_eq!(channel.sizes(), [(1, 0)]);
        at(&world, 10 * SECOND_US).await;
        assert_eq!(channel.sizes(), [(1, 0), (3, 0)]);
        assert_ne!(channel.last().id, first.id);
        // The batch is done, so the next event is delivered immediately again.
        at(&world, HOUR_US).await;
        assert_eq!(channel.sizes().len(), 2);
        fail(&world, &failing).await;
        assert_eq!(channel.sizes(), [(1, 0), (3, 0), (1, 0)]);
    })
    .await;
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn many_failures_are_delivered_in_a_few_digests() {
    let (world, channel, failing) = world_with_channel().await;
    run_engine(&world, async {
        fail(&world, &failing).await;
        for _ in 1..1_000 {
            fire(&world, &failing).await;
            wait_until_idle().await;
        }
        wait_for_notifier().await;
        at(&world, 10 * SECOND_US).await;
        at(&world, HOUR_US).await;
    })
    .await;
    assert_eq!(channel.sizes(), [(1, 0), (20, 979)]);
    let text = channel.last().text;
    assert_eq!(text.lines().count(), 21);
    assert_eq!(text.lines().last(), Some("And 979 more (midwatch status)."));
}

#[tokio::test(start_paused = true)]
async fn a_failed_delivery_is_retried_with_backoff_and_then_given_up() {
    let (world, channel, failing) = world_with_channel().await;
    channel.fail_next([DeliveryScript::Fails; 9]);
    run_engine(&world, async {
        fail(&world, &failing).await;
        let mut second = 0;
        for (attempts, wait) in [10, 30, 60, 120, 300, 300, 300, 300].into_iter().enumerate() {
            second += wait;
            at(&world, second * SECOND_US - 1).await;
            assert_eq!(channel.delivered().len(), attempts + 1, "before second {second}");
            at(&world, second * SECOND_US).await;
            assert_eq!(channel.delivered().len(), attempts + 2, "in second {second}");
        }
        // Later events wait until the first delivery is given up.
        fail(&world, &failing).await;
        let first = channel.delivered().remove(0);
        assert!(
            channel.delivered().iter().all(|digest| *digest == first),
            "a repetition is the same"
        );
        let status = world.send(StatusShow {}).await.unwrap().notices.remove(0);
        assert_eq!((status.channel.as_str(), status.last_success), ("command", None));
        let failure = status.last_failure.unwrap();
        assert_eq!(
            (failure.at, failure.what.as_str()),
            (after(second * SECOND_US), "scripted failure")
        );

        at(&world, (second + 10) * SECOND_US).await;
        assert_eq!((channel.delivered().len(), channel.last().items.len()), (10, 1));
        assert_ne!(channel.last().items, first.items);
        let status = world.send(StatusShow {}).await.unwrap().notices.remove(0);
        assert_eq!(status.last_success, Some(after((second + 10) * SECOND_US)));

        // A permanent failure is not retried.
        channel.fail_next([DeliveryScript::FailsPermanently]);
        at(&world, HOUR_US).await;
        fail(&world, &failing).await;
        at(&world, 2 * HOUR_US).await;
        assert_eq!(channel.delivered().len(), 11);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_repeats_a_delivery_with_the_same_id_and_loses_none() {
    let (mut world, channel, failing) = world_with_channel().await;
    channel.fail_next([DeliveryScript::Hangs]);
    crash(&mut world, async |world| {
        fail(world, &failing).await;
        assert_eq!(channel.sizes(), [(1, 0)]);
        // The second event waits, because the first delivery is still running.
        fail(world, &failing).await;
    })
    .await;
    let first = channel.last();
    crash(&mut world, async |world| {
        wait_for_notifier().await;
        assert_eq!(channel.delivered(), [first.clone(), first.clone()]);
        at(world, 10 * SECOND_US).await;
        assert_eq!(channel.sizes(), [(1, 0), (1, 0), (1, 0)]);
        assert_ne!(channel.last().items, first.items);
        assert_ne!(channel.last().id, first.id);
    })
    .await;
    // A delivered event is not delivered again, not even after another crash.
    run_engine(&world, async {
        wait_for_notifier().await;
        at(&world, HOUR_US).await;
        assert_eq!(channel.delivered().len(), 3);
        fail(&world, &failing).await;
        assert_eq!(channel.delivered().len(), 4);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_is_reported_after_recovery() {
    let mut world = World::new().await;
    world.send(program("ada")).await.unwrap();
    let hanging = add(&world, every("1d", "hang")).await;
    crash(&mut world, async |world| {
        fire(world, &hanging).await;
        wait_until_idle().await;
    })
    .await;
    // The channel is new, and it delivers what its first process finds at recovery.
    let channel = Arc::new(RecordingChannel::default());
    world.channel = Some(channel.clone());
    run_engine(&world, wait_for_notifier()).await;
    let kinds: Vec<String> = channel.last().items.into_iter().map(|item| item.kind).collect();
    assert_eq!(kinds, ["run_unknown"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_or_returning_channel_starts_at_the_end_of_the_ledger() {
    let (mut world, channel, failing) = world_with_channel().await;
    let present = world.channel.take();
    run_engine(&world, fail(&world, &failing)).await;
    world.channel = present.clone();
    run_engine(&world, wait_for_notifier()).await;
    assert_eq!(channel.sizes(), []);
    run_engine(&world, fail(&world, &failing)).await;
    assert_eq!(channel.sizes(), [(1, 0)]);

    world.channel = None;
    run_engine(&world, fail(&world, &failing)).await;
    world.channel = present;
    run_engine(&world, wait_for_notifier()).await;
    assert_eq!(channel.sizes(), [(1, 0)]);
}

/// Also after a failed delivery.
#[tokio::test(start_paused = true)]
async fn events_that_were_handled_before_delivery_are_left_out() {
    let (world, channel, failing) = world_with_channel().await;
    let outside = of_tier(2, builtin("eve"));
    world.send(outside).await.unwrap();
    let asking = [
        add(&world, named("one", "eve", every("1d", "hello"))).await,
        add(&world, named("two", "eve", every("1d", "hello"))).await,
    ];
    run_engine(&world, async {
        fail(&world, &failing).await;
        for schedule in &asking {
            fire(&world, schedule).await;
            wait_for_notifier().await;
        }
        fail(&world, &failing).await;
        let [two, one] = open(&world).await.try_into().unwrap();
        deny(&world, &one).await;
        let again = runs(&world).await.pop().unwrap();
        world.send(RunRetry { id: again.id.clone() }).await.unwrap();
        wait_for_notifier().await;
        channel.fail_next([DeliveryScript::Fails]);
        at(&world, 10 * SECOND_US).await;
        let run_ids = |digest: &Digest| -> Vec<String> {
            digest.items.iter().map(|item| item.id.clone()).collect()
        };
        // The retried run failed again.
        assert_eq!(run_ids(&channel.last()), [two.0.clone(), again.id.clone()]);

        deny(&world, &two).await;
        at(&world, 20 * SECOND_US).await;
        assert_eq!((channel.delivered().len(), run_ids(&channel.last())), (3, vec![again.id]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_digest_is_not_delivered() {
    let (world, channel, _) = world_with_channel().await;
    world.send(of_tier(2, builtin("eve"))).await.unwrap();
    let asking = add(&world, named("one", "eve", every("1d", "hello"))).await;
    channel.fail_next([DeliveryScript::Fails]);
    run_engine(&world, async {
        fire(&world, &asking).await;
        wait_for_notifier().await;
        assert_eq!(channel.last().items[0].kind, "approval_asked");
        deny(&world, &open(&world).await[0]).await;
        at(&world, HOUR_US).await;
        assert_eq!(channel.delivered().len(), 1);
    })
    .await;
}

/// One digest has the failure and the pause that it causes.
#[tokio::test(start_paused = true)]
async fn a_pause_after_failures_is_delivered() {
    let (world, channel, _) = world_with_channel().await;
    let terms = Terms { pause_after: Some(1), ..Terms::default() };
    let schedule = ScheduleAdd { terms, ..named("x", "ada", every("1d", "fail for good")) };
    let schedule = add(&world, schedule).await;
    run_engine(&world, fail(&world, &schedule)).await;
    let delivered: Vec<(String, String)> =
        channel.last().items.into_iter().map(|item| (item.kind, item.id)).collect();
    let run = only_run(&world).await.id;
    let expected = [("run_failed", run), ("schedule_paused", schedule)];
    assert_eq!(delivered, expected.map(|(kind, id)| (kind.to_owned(), id)));
}

/// Id and plan hash of each pending approval request, newest first.
async fn open(world: &World) -> Vec<(String, String)> {
    let open = world.send(ApprovalList::default()).await.unwrap().approvals;
    open.into_iter().map(|approval| (approval.id, approval.plan_hash)).collect()
}

async fn deny(world: &World, (id, plan): &(String, String)) {
    let (decision, plan_hash) = (Decision::Deny, Some(plan.clone()));
    let denied = ApprovalDecide { plan_hash, ..ApprovalDecide::new(id, decision) };
    world.send(denied).await.unwrap();
}
