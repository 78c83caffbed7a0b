//! Calling a human: what is told, how often, and what a crash or a deaf receiver does to it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{
    AgentAdd, ApprovalDecide, ApprovalList, ConfigReload, Digest, RunRetry, ScheduleAdd, StatusAsk,
    Terms,
};
use futures::future::{BoxFuture, FutureExt, pending};
use runtime::{Messenger, Untold};
use serde_json::json;
use tokio::time::sleep;

use crate::steps::*;
use crate::world::{Files, World, builtin, keep};

/// Hears every delivery, and answers as it was told; otherwise that all is well.
#[derive(Debug, Default)]
struct Ear {
    heard: Mutex<Vec<Digest>>,
    answers: Mutex<VecDeque<Answer>>,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Fails,
    FailsForGood,
    /// It never answers.
    Hangs,
}

impl Messenger for Ear {
    fn channel(&self) -> &'static str {
        "ear"
    }

    fn tell<'a>(&'a self, digest: &'a Digest) -> BoxFuture<'a, Result<(), Untold>> {
        async move {
            self.heard.lock().unwrap().push(digest.clone());
            let answer = self.answers.lock().unwrap().pop_front();
            let failed = |is_permanent| Err(Untold { what: "it is deaf".into(), is_permanent });
            match answer {
                None => Ok(()),
                Some(Answer::Fails) => failed(false),
                Some(Answer::FailsForGood) => failed(true),
                Some(Answer::Hangs) => pending().await,
            }
        }
        .boxed()
    }
}

impl Ear {
    fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unwrap().extend(answers);
    }

    fn heard(&self) -> Vec<Digest> {
        self.heard.lock().unwrap().clone()
    }

    /// Of each delivery: how many items it had, and how many more there were.
    fn sizes(&self) -> Vec<(usize, u64)> {
        self.heard().iter().map(|digest| (digest.items.len(), digest.more)).collect()
    }

    fn last(&self) -> Digest {
        self.heard().pop().expect("it heard something")
    }
}

/// A world with an ear, and a schedule whose runs fail for good when they are asked for.
async fn listening() -> (World, Arc<Ear>, String) {
    let mut world = world().await;
    let ear = Arc::new(Ear::default());
    world.messenger = Some(ear.clone());
    let terms = Terms { pause_after: Some(0), per_day: Some(1_000), ..Terms::default() };
    let failing = ScheduleAdd { terms, ..every("1d", "fail for good") };
    let failing = add(&world, failing).await;
    (world, ear, failing)
}

/// A run fails; whoever can be told of it by now has been.
async fn fail(world: &World, schedule: &str) {
    fire(world, schedule).await;
    look().await;
}

/// Long enough for a look at the log, on tokio's own time; the watch's clock does not move.
async fn look() {
    sleep(Duration::from_secs(1)).await;
}

async fn at(world: &World, micros: i64) {
    set(world, micros).await;
    look().await;
}

/// Switched off, nobody is called; switched on again, what still needs somebody is told.
#[tokio::test(start_paused = true)]
async fn what_happens_while_notices_are_off_is_told_later() {
    let (world, ear, failing) = listening().await;
    let files = Files::of(&world);
    let reload = async || world.ask_as(kernel::Role::Maintainer, ConfigReload {}).await.unwrap();
    keep(&world, async {
        files.change(|it| it.flags.notices = false);
        reload().await;
        fail(&world, &failing).await;
        fail(&world, &failing).await;
        at(&world, 3_600_000_000).await;
        assert_eq!(ear.sizes(), []);
        files.change(|it| it.flags.notices = true);
        reload().await;
        look().await;
        assert_eq!(ear.sizes(), [(2, 0)]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_first_is_told_at_once_and_what_follows_together_ten_seconds_later() {
    let (world, ear, failing) = listening().await;
    keep(&world, async {
        fail(&world, &failing).await;
        let first = ear.last();
        let run = the_run(&world).await.id;
        let seq = first.items[0].seq;
        let (text, command) = (
            format!("Run {run} of {failing} failed (script)."),
            format!("midwatch run show {run}"),
        );
        let expected = json!({
            "format": 1,
            "id": first.id,
            "instance": world.watch.instance(),
            "text": format!("{text} ({command})"),
            "items": [{
                "seq": seq,
                "kind": "run_failed",
                "id": run,
                "at": after(0),
                "text": text,
                "command": command,
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
        assert_eq!(ear.sizes(), [(1, 0)]);
        at(&world, 10 * SECOND_US).await;
        assert_eq!(ear.sizes(), [(1, 0), (3, 0)]);
        assert_ne!(ear.last().id, first.id);
        // Nothing more, and the next is told at once again.
        at(&world, HOUR_US).await;
        assert_eq!(ear.sizes().len(), 2);
        fail(&world, &failing).await;
        assert_eq!(ear.sizes(), [(1, 0), (3, 0), (1, 0)]);
    })
    .await;
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_failures_is_a_few_deliveries() {
    let (world, ear, failing) = listening().await;
    keep(&world, async {
        fail(&world, &failing).await;
        for _ in 1..1_000 {
            fire(&world, &failing).await;
            settle().await;
        }
        look().await;
        at(&world, 10 * SECOND_US).await;
        at(&world, HOUR_US).await;
    })
    .await;
    assert_eq!(ear.sizes(), [(1, 0), (20, 979)]);
    let text = ear.last().text;
    assert_eq!(text.lines().count(), 21);
    assert_eq!(text.lines().last(), Some("And 979 more (midwatch status)."));
}

#[tokio::test(start_paused = true)]
async fn a_delivery_is_tried_again_at_growing_distances_and_given_up() {
    let (world, ear, failing) = listening().await;
    ear.answer([Answer::Fails; 9]);
    keep(&world, async {
        fail(&world, &failing).await;
        let mut second = 0;
        for (tries, wait) in [10, 30, 60, 120, 300, 300, 300, 300].into_iter().enumerate() {
            second += wait;
            at(&world, second * SECOND_US - 1).await;
            assert_eq!(ear.heard().len(), tries + 1, "before second {second}");
            at(&world, second * SECOND_US).await;
            assert_eq!(ear.heard().len(), tries + 2, "in second {second}");
        }
        // What came meanwhile waits for its own delivery, which comes when the first is given up.
        fail(&world, &failing).await;
        let first = ear.heard().remove(0);
        assert!(ear.heard().iter().all(|digest| *digest == first), "a repetition is the same");
        let status = world.ask(StatusAsk {}).await.unwrap().notices.remove(0);
        assert_eq!((status.channel.as_str(), status.last_success), ("ear", None));
        let failure = status.last_failure.unwrap();
        assert_eq!((failure.at, failure.what.as_str()), (after(second * SECOND_US), "it is deaf"));

        at(&world, (second + 10) * SECOND_US).await;
        assert_eq!((ear.heard().len(), ear.last().items.len()), (10, 1));
        assert_ne!(ear.last().items, first.items);
        let status = world.ask(StatusAsk {}).await.unwrap().notices.remove(0);
        assert_eq!(status.last_success, Some(after((second + 10) * SECOND_US)));

        // What cannot be helped is not tried again.
        ear.answer([Answer::FailsForGood]);
        at(&world, HOUR_US).await;
        fail(&world, &failing).await;
        at(&world, 2 * HOUR_US).await;
        assert_eq!(ear.heard().len(), 11);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_repeats_a_delivery_under_its_id_and_loses_nothing() {
    let (mut world, ear, failing) = listening().await;
    ear.answer([Answer::Hangs]);
    crash(&mut world, async |world| {
        fail(world, &failing).await;
        assert_eq!(ear.sizes(), [(1, 0)]);
        // This one is nobody's business yet, because the first is still under way.
        fail(world, &failing).await;
    })
    .await;
    let first = ear.last();
    crash(&mut world, async |world| {
        look().await;
        assert_eq!(ear.heard(), [first.clone(), first.clone()]);
        at(world, 10 * SECOND_US).await;
        assert_eq!(ear.sizes(), [(1, 0), (1, 0), (1, 0)]);
        assert_ne!(ear.last().items, first.items);
        assert_ne!(ear.last().id, first.id);
    })
    .await;
    // What was told is not told again, not even after another crash.
    keep(&world, async {
        look().await;
        at(&world, HOUR_US).await;
        assert_eq!(ear.heard().len(), 3);
        fail(&world, &failing).await;
        assert_eq!(ear.heard().len(), 4);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_a_crash_cut_off_is_told_by_the_process_that_finds_it() {
    let mut world = World::new().await;
    world.ask(program("ada")).await.unwrap();
    let hanging = add(&world, every("1d", "hang")).await;
    crash(&mut world, async |world| {
        fire(world, &hanging).await;
        settle().await;
    })
    .await;
    // The channel is new, and what its first process finds is new as well.
    let ear = Arc::new(Ear::default());
    world.messenger = Some(ear.clone());
    keep(&world, look()).await;
    let kinds: Vec<String> = ear.last().items.into_iter().map(|item| item.kind).collect();
    assert_eq!(kinds, ["run_unknown"]);
}

#[tokio::test(start_paused = true)]
async fn a_channel_begins_at_the_end_of_the_log_and_again_when_it_comes_back() {
    let (mut world, ear, failing) = listening().await;
    let messenger = world.messenger.take();
    keep(&world, fail(&world, &failing)).await;
    world.messenger = messenger.clone();
    keep(&world, look()).await;
    assert_eq!(ear.sizes(), []);
    keep(&world, fail(&world, &failing)).await;
    assert_eq!(ear.sizes(), [(1, 0)]);

    world.messenger = None;
    keep(&world, fail(&world, &failing)).await;
    world.messenger = messenger;
    keep(&world, look()).await;
    assert_eq!(ear.sizes(), [(1, 0)]);
}

/// Also when its delivery has failed meanwhile.
#[tokio::test(start_paused = true)]
async fn what_was_answered_before_it_was_told_is_left_out() {
    let (world, ear, failing) = listening().await;
    let outside = AgentAdd { tier: Some(2), ..builtin("eve") };
    world.ask(outside).await.unwrap();
    let asking = [
        add(&world, named("one", "eve", every("1d", "hello"))).await,
        add(&world, named("two", "eve", every("1d", "hello"))).await,
    ];
    keep(&world, async {
        fail(&world, &failing).await;
        for schedule in &asking {
            fire(&world, schedule).await;
            look().await;
        }
        fail(&world, &failing).await;
        let [two, one] = open(&world).await.try_into().unwrap();
        deny(&world, &one).await;
        let again = runs(&world).await.pop().unwrap();
        world.ask(RunRetry { id: again.id.clone() }).await.unwrap();
        look().await;
        ear.answer([Answer::Fails]);
        at(&world, 10 * SECOND_US).await;
        let told = |digest: &Digest| -> Vec<String> {
            digest.items.iter().map(|item| item.id.clone()).collect()
        };
        // The run that somebody has asked for again has failed again.
        assert_eq!(told(&ear.last()), [two.0.clone(), again.id.clone()]);

        deny(&world, &two).await;
        at(&world, 20 * SECOND_US).await;
        assert_eq!((ear.heard().len(), told(&ear.last())), (3, vec![again.id]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_delivery_of_which_nothing_is_left_does_not_go_out() {
    let (world, ear, _) = listening().await;
    world.ask(AgentAdd { tier: Some(2), ..builtin("eve") }).await.unwrap();
    let asking = add(&world, named("one", "eve", every("1d", "hello"))).await;
    ear.answer([Answer::Fails]);
    keep(&world, async {
        fire(&world, &asking).await;
        look().await;
        assert_eq!(ear.last().items[0].kind, "approval_asked");
        deny(&world, &open(&world).await[0]).await;
        at(&world, HOUR_US).await;
        assert_eq!(ear.heard().len(), 1);
    })
    .await;
}

/// Two failures in a row pause a schedule: one delivery tells of both.
#[tokio::test(start_paused = true)]
async fn a_schedule_that_was_paused_for_its_failures_is_told() {
    let (world, ear, _) = listening().await;
    let terms = Terms { pause_after: Some(1), ..Terms::default() };
    let schedule = ScheduleAdd { terms, ..named("x", "ada", every("1d", "fail for good")) };
    let schedule = add(&world, schedule).await;
    keep(&world, fail(&world, &schedule)).await;
    let told: Vec<(String, String)> =
        ear.last().items.into_iter().map(|item| (item.kind, item.id)).collect();
    let run = the_run(&world).await.id;
    let expected = [("run_failed", run), ("schedule_paused", schedule)];
    assert_eq!(told, expected.map(|(kind, id)| (kind.to_owned(), id)));
}

/// Id and plan of each open question, newest first.
async fn open(world: &World) -> Vec<(String, String)> {
    let open = world.ask(ApprovalList::default()).await.unwrap().approvals;
    open.into_iter().map(|approval| (approval.id, approval.plan_hash)).collect()
}

async fn deny(world: &World, (id, plan): &(String, String)) {
    let (decision, plan_hash) = ("deny".to_owned(), Some(plan.clone()));
    let denied = ApprovalDecide { id: id.clone(), decision, plan_hash, ..Default::default() };
    world.ask(denied).await.unwrap();
}
