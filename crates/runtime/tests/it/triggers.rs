//! Schedules that events and other runs trigger; edits, backfills and explanations of slots.

use api::{
    ApiRequest, Call, Code, EventPublish, EventTrigger, Explained, Handle, Request, Run, RunSettle,
    RunWatch, ScheduleAdd, ScheduleAddAll, ScheduleBackfill, ScheduleBackfillEnd, ScheduleEdit,
    SchedulePause, ScheduleRemove, ScheduleResume, ScheduleShow, SettledState, Terms, When, Why,
};
use futures::future::join;
use kernel::{Actor, Role};
use sha2::{Digest, Sha256};

use crate::steps::*;
use crate::world::{OCTOBER_US, World, builtin, run_engine};

fn on_trigger(name: &str, event_trigger: EventTrigger) -> ScheduleAdd {
    ScheduleAdd { when: When::default(), event_trigger, ..named(name, "ada", every("1h", name)) }
}

fn after_run(name: &str, of: &str, ending: Option<&str>) -> ScheduleAdd {
    let (after, ending) = (Some(of.to_owned()), ending.map(str::to_owned));
    on_trigger(name, EventTrigger { after, ending, ..EventTrigger::default() })
}

fn on_event(name: &str) -> ScheduleAdd {
    on_trigger(name, EventTrigger { event: Some("mail/new".into()), ..EventTrigger::default() })
}

async fn publish(world: &World, id: &str) -> Vec<Run> {
    let asked = EventPublish { name: "mail/new".into(), id: Some(id.to_owned()) };
    world.send(asked).await.unwrap().runs
}

/// The prompt and state of each run, oldest first.
async fn outcomes(world: &World) -> Vec<(String, String)> {
    let started: Vec<_> = world.backend.started.lock().unwrap().clone();
    let prompt = |run: &Run| {
        started.iter().find(|attempt| attempt.run == run.id).map(|it| it.prompt.clone())
    };
    let runs = runs(world).await;
    runs.iter().map(|run| (prompt(run).unwrap_or_default(), run.state.to_string())).collect()
}

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_run_fires_its_dependents() {
    let world = world().await;
    let first = add(&world, every("1h", "first")).await;
    let fails = add(&world, every("1h", "fail for good")).await;
    let second = add(&world, after_run("second", &first, None)).await;
    add(&world, after_run("third", &second, Some("any"))).await;
    add(&world, after_run("never", &fails, None)).await;
    add(&world, after_run("sorry", &fails, Some("failure"))).await;
    run_engine(&world, async {
        fire(&world, &first).await;
        wait_until_idle().await;
        assert_eq!(
            outcomes(&world).await,
            pairs(&[("first", "done"), ("second", "done"), ("third", "done")])
        );
        fire(&world, &fails).await;
        wait_until_idle().await;
        assert_eq!(
            outcomes(&world).await[3..],
            pairs(&[("fail for good", "failed"), ("sorry", "done")])
        );
    })
    .await;
    let followed = schedule(&world, &first).await.followers;
    assert_eq!(followed, [second]);
    let refused = world.send(ScheduleRemove { id: first }).await.unwrap_err();
    assert_eq!((refused.code, refused.hint.is_some()), (Code::NotNow, true));
    verify_ledger(&world).await;
}

/// The end of a run and the fires of its dependents are one commit.
#[tokio::test(start_paused = true)]
async fn a_crash_loses_no_dependent_fire() {
    let mut world = world().await;
    let first = add(&world, every("1h", "wait")).await;
    add(&world, after_run("second", &first, Some("any"))).await;
    crash(&mut world, async |world| {
        fire(world, &first).await;
        set(world, SECOND_US).await;
    })
    .await;
    world.backend.release(1);
    run_engine(&world, wait_until_idle()).await;
    assert_eq!(outcomes(&world).await, pairs(&[("wait", "done"), ("second", "done")]));
    verify_ledger(&world).await;
}

/// It ends twice: as unknown, and when an operator settles it.
#[tokio::test(start_paused = true)]
async fn settling_a_run_fires_its_dependents_once() {
    let mut world = world().await;
    let first = add(&world, named("first", "smith", every("1h", "hang"))).await;
    add(&world, after_run("success", &first, None)).await;
    add(&world, after_run("any", &first, Some("any"))).await;
    crash(&mut world, async |world| {
        fire(world, &first).await;
        set(world, SECOND_US).await;
    })
    .await;
    run_engine(&world, async {
        wait_until_idle().await;
        assert_eq!(outcomes(&world).await, pairs(&[("hang", "unknown"), ("any", "done")]));
        let id = runs(&world).await[0].id.clone();
        world.send(RunSettle { id, state: SettledState::Done, note: None }).await.unwrap();
        wait_until_idle().await;
    })
    .await;
    assert_eq!(outcomes(&world).await[1..], pairs(&[("any", "done"), ("success", "done")]));
}

#[tokio::test(start_paused = true)]
async fn dependency_cycles_and_long_chains_are_refused() {
    let world = world().await;
    let mut chain = vec![add(&world, every("1h", "0")).await];
    for number in 1..=16 {
        let last = chain.last().unwrap().clone();
        chain.push(add(&world, after_run(&number.to_string(), &last, None)).await);
    }
    let too_long = world.send(after_run("17", &chain[16], None)).await.unwrap_err();
    assert_eq!(too_long.code, Code::InvalidInput, "{too_long:?}");
    let edit = |id: &str, after: &str| ScheduleEdit {
        id: id.to_owned(),
        event_trigger: EventTrigger { after: Some(after.to_owned()), ..EventTrigger::default() },
        ..ScheduleEdit::default()
    };
    let cycle = world.send(edit(&chain[0], &chain[3])).await.unwrap_err();
    assert_eq!(cycle.code, Code::InvalidInput);
    assert!(cycle.message.starts_with("a schedule cannot follow itself"), "{}", cycle.message);
    let unknown = world.send(after_run("x", "sch_00000000", None)).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_fires_each_waiting_schedule_once() {
    let mut world = world().await;
    let one = add(&world, on_event("one")).await;
    add(&world, on_event("two")).await;
    run_engine(&world, async {
        let ids = |runs: Vec<Run>| runs.into_iter().map(|run| run.id).collect::<Vec<_>>();
        let led_to = ids(publish(&world, "message 1").await);
        assert_eq!(led_to.len(), 2);
        wait_until_idle().await;
        assert_eq!(ids(publish(&world, "message 1").await), led_to, "it is the same event");
        wait_until_idle().await;
        assert_eq!(started(&world), 2);
        world.send(SchedulePause { id: one.clone(), note: None }).await.unwrap();
        assert_eq!(publish(&world, "message 2").await.len(), 1);
        wait_until_idle().await;
    })
    .await;
    // The engine is not running: the run is queued, and executed later.
    world.reopen().await.unwrap();
    assert_eq!(publish(&world, "message 3").await.len(), 1);
    assert_eq!(started(&world), 3);
    run_engine(&world, wait_until_idle()).await;
    assert_eq!((started(&world), states(&world).await.len()), (4, 4));
    let unused = EventPublish { name: "mail/gone".into(), id: None };
    assert_eq!(world.send(unused).await.unwrap().listeners, 0);
    let bad = EventPublish { name: "Mail New".into(), id: None };
    assert_eq!(world.send(bad).await.unwrap_err().code, Code::InvalidInput);
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn events_during_a_pause_wait_for_the_resume() {
    let world = world().await;
    let terms = Terms { resume: Some("as_missed".into()), ..Terms::default() };
    let id = add(&world, ScheduleAdd { terms, ..on_event("post") }).await;
    world.send(SchedulePause { id: id.clone(), note: None }).await.unwrap();
    run_engine(&world, async {
        set(&world, MINUTE_US).await;
        assert!(publish(&world, "message").await.is_empty());
        let slot = last(&world, &id).await;
        let waits = format!("the slot of {} runs when the schedule is resumed", after(MINUTE_US));
        assert_eq!((slot.disposition.as_str(), slot.sentence), ("buffered", waits));
        let resume = || world.send(ScheduleResume { id: id.clone() });
        assert_eq!(resume().await.unwrap().released, [after(MINUTE_US)]);
        assert!(resume().await.unwrap().released.is_empty(), "it was not paused");
        wait_until_idle().await;
        assert_eq!(
            publish(&world, "message").await[0].state.as_str(),
            "done",
            "the buffered event has run"
        );
    })
    .await;
    assert_eq!(last(&world, &id).await.disposition.as_str(), "ran");
}

/// One more than a page, of waiting schedules and of runs.
#[tokio::test(start_paused = true)]
async fn an_event_fires_more_schedules_than_a_page() {
    let world = world().await;
    let list = |from: u32, to: u32| {
        let schedules = (from..to).map(|number| on_event(&number.to_string())).collect();
        ScheduleAddAll { schedules, dry_run: false }
    };
    world.send(list(0, 1_000)).await.unwrap();
    assert_eq!(publish(&world, "message 1").await.len(), 1_000);
    world.send(list(1_000, 1_001)).await.unwrap();
    let events = EventPublish { name: "mail/new".into(), id: Some("message 1".into()) };
    let published = world.send(events).await.unwrap();
    assert_eq!(
        (published.listeners, published.runs.len()),
        (1_001, 1_001),
        "including schedules that knew the event"
    );
    run_engine(&world, async {
        wait_until_idle().await;
        assert_eq!(started(&world), 1_001);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_repeats_after_its_last_run_never_overlaps_it() {
    let world = world().await;
    let again = EventTrigger { again: Some("10m".into()), ..EventTrigger::default() };
    let id = add(
        &world,
        ScheduleAdd {
            action: api::Action { prompt: Some("wait".into()), ..every("1h", "x").action },
            ..on_trigger("loop", again)
        },
    )
    .await;
    run_engine(&world, async {
        set(&world, 10 * MINUTE_US).await;
        assert_eq!(started(&world), 1);
        set(&world, 35 * MINUTE_US).await;
        assert_eq!(started(&world), 1, "the first run has not ended");
        world.backend.release(1);
        wait_until_idle().await;
        set(&world, 45 * MINUTE_US - 1).await;
        assert_eq!(started(&world), 1);
        set(&world, 45 * MINUTE_US).await;
        assert_eq!(started(&world), 2, "ten minutes after the first run ended");
        world.backend.release(1);
        wait_until_idle().await;
    })
    .await;
    assert_eq!(schedule(&world, &id).await.next_run_at, Some(after(55 * MINUTE_US)));
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_newer_slot_may_replace_a_run() {
    for (overlap, agent, first) in [
        ("cancel_other", "ada", "cancelled"),
        ("cancel_other", "smith", "cancelled"),
        ("terminate_other", "ada", "cancelled"),
        ("terminate_other", "smith", "unknown"),
    ] {
        let world = world().await;
        let terms = Terms { overlap: Some(overlap.into()), ..Terms::default() };
        add(&world, ScheduleAdd { terms, ..named("x", agent, every("10m", "hang")) }).await;
        run_engine(&world, async {
            set(&world, 10 * MINUTE_US).await;
            set(&world, 20 * MINUTE_US).await;
            assert_eq!(states(&world).await, [first, "running"], "{overlap} {agent}");
            assert_eq!(started(&world), 2);
        })
        .await;
        verify_ledger(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn runs_that_share_a_concurrency_key_run_one_at_a_time() {
    let world = world().await;
    let keyed = |name: &str, agent: &str| {
        let terms = Terms { keys: Some(vec!["printer".into()]), ..Terms::default() };
        ScheduleAdd { terms, ..named(name, agent, every("1h", "wait")) }
    };
    for (name, agent) in [("one", "ada"), ("two", "smith"), ("three", "ada")] {
        add(&world, keyed(name, agent)).await;
    }
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        for done in 1..=3 {
            assert_eq!(started(&world), done);
            world.backend.release(1);
            wait_until_idle().await;
        }
    })
    .await;
    assert_eq!(states(&world).await, ["done"; 3]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_changes_future_slots_only() {
    let world = world().await;
    let id = add(&world, every("10m", "before")).await;
    run_engine(&world, async {
        set(&world, 10 * MINUTE_US).await;
        set(&world, 15 * MINUTE_US).await;
        let edit = ScheduleEdit {
            id: id.clone(),
            when: Some(When { every: Some("1h".into()), ..When::default() }),
            action: api::Action { prompt: Some("after".into()), ..api::Action::default() },
            terms: Terms { priority: Some(9), ..Terms::default() },
            ..ScheduleEdit::default()
        };
        let edited = world.send(edit.clone()).await.unwrap();
        let changed = (edited.changed, edited.schedule.revision, edited.schedule.id.as_str());
        assert_eq!(changed, (true, 2, id.as_str()));
        assert_eq!((edited.next.len(), &edited.next[0]), (5, &after(HOUR_US)));
        assert!(!world.send(edit).await.unwrap().changed);
        set(&world, 20 * MINUTE_US).await;
        assert_eq!(started(&world), 1);
        set(&world, HOUR_US).await;
    })
    .await;
    assert_eq!(outcomes(&world).await, pairs(&[("before", "done"), ("after", "done")]));
    assert_eq!(
        why(&world, &id, 10 * MINUTE_US).await.disposition.as_str(),
        "ran",
        "a slot of the old trigger"
    );
    let unset = |term: &str| ScheduleEdit {
        id: id.clone(),
        unset: vec![term.to_owned()],
        ..ScheduleEdit::default()
    };
    let when = Some(When { tz: Some("Asia/Kolkata".into()), ..When::default() });
    let edited = world.send(ScheduleEdit { id: id.clone(), when, ..ScheduleEdit::default() });
    let edited = edited.await.unwrap().schedule;
    assert_eq!((edited.tz.as_str(), edited.describe.as_str()), ("Asia/Kolkata", "every hour"));
    let edited = world.send(unset("priority")).await.unwrap();
    assert_eq!(edited.schedule.terms.priority, Some(5));
    assert_eq!(world.send(unset("colour")).await.unwrap_err().code, Code::InvalidInput);
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn why_explains_slots_of_a_removed_schedule() {
    let world = world().await;
    let timed = add(&world, every("10m", "hello")).await;
    let waits = add(&world, on_event("post")).await;
    run_engine(&world, async {
        set(&world, 10 * MINUTE_US).await;
        publish(&world, "message").await;
        wait_until_idle().await;
    })
    .await;
    for id in [&timed, &waits] {
        let ask = || world.send(Why { id: id.clone(), at: None });
        let before = ask().await.unwrap();
        assert_eq!(before.disposition.as_str(), "ran", "{before:?}");
        world.send(ScheduleRemove { id: id.clone() }).await.unwrap();
        assert_eq!(ask().await.unwrap().run_id, before.run_id);
    }
    assert_eq!(why(&world, &timed, 10 * MINUTE_US).await.disposition.as_str(), "ran");
    assert_eq!(why(&world, &timed, 15 * MINUTE_US).await.disposition.as_str(), "none");
    let unknown = Why { id: "sch_00000000".into(), at: None };
    assert_eq!(world.send(unknown).await.unwrap_err().code, Code::NotFound);
}

async fn last(world: &World, id: &str) -> Explained {
    world.send(Why { id: id.to_owned(), at: None }).await.unwrap()
}

/// Five slots at ten minutes are skipped in a pause; then an edit sets the interval to a quarter of an hour.
#[tokio::test(start_paused = true)]
async fn why_explains_a_slot_by_the_revision_of_its_time() {
    let world = world().await;
    let id = add(&world, every("10m", "hello")).await;
    world.send(SchedulePause { id: id.clone(), note: None }).await.unwrap();
    let edit = |every: &str| ScheduleEdit {
        id: id.clone(),
        when: Some(When { every: Some(every.to_owned()), ..When::default() }),
        ..ScheduleEdit::default()
    };
    run_engine(&world, async {
        set(&world, 55 * MINUTE_US).await;
        assert_eq!(world.send(ScheduleResume { id: id.clone() }).await.unwrap().skipped, 5);
        world.send(edit("15m")).await.unwrap();
    })
    .await;
    let check = async || {
        for (minute, disposition) in [(10, "skipped_paused"), (15, "none"), (20, "skipped_paused")]
        {
            let explained = why(&world, &id, minute * MINUTE_US).await;
            assert_eq!(explained.disposition.as_str(), disposition, "{minute}: {explained:?}");
        }
        let between = why(&world, &id, 15 * MINUTE_US).await.sentence;
        assert!(between.ends_with("which was due every 10 minutes then"), "{between}");
        assert_eq!(last(&world, &id).await.slot, after(50 * MINUTE_US));
    };
    check().await;
    let early = why(&world, &id, -MINUTE_US).await.sentence;
    assert!(early.contains("is before this schedule was added"), "{early}");
    world.send(ScheduleRemove { id: id.clone() }).await.unwrap();
    check().await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_creates_no_slots_in_the_past() {
    let world = world().await;
    let id = add(&world, every("1h", "hello")).await;
    run_engine(&world, set(&world, 25 * MINUTE_US)).await;
    let when = Some(When { every: Some("10m".into()), ..When::default() });
    world.send(ScheduleEdit { id: id.clone(), when, ..ScheduleEdit::default() }).await.unwrap();
    let explained = why(&world, &id, 20 * MINUTE_US).await;
    let (at, changed) = (after(20 * MINUTE_US), after(25 * MINUTE_US));
    assert_eq!(
        explained.sentence,
        format!("{at} was not a slot then; the schedule was changed at {changed}")
    );
    assert_eq!(why(&world, &id, 30 * MINUTE_US).await.disposition.as_str(), "upcoming");
    world.send(SchedulePause { id: id.clone(), note: None }).await.unwrap();
    let explained = why(&world, &id, 30 * MINUTE_US).await.sentence;
    assert!(explained.ends_with("is not decided: the schedule is paused"), "{explained}");
}

#[tokio::test(start_paused = true)]
async fn why_explains_schedules_without_a_time_trigger() {
    let world = world().await;
    let first = add(&world, every("1h", "first")).await;
    let second = add(&world, after_run("second", &first, None)).await;
    let again = EventTrigger { again: Some("10m".into()), ..EventTrigger::default() };
    let again = add(&world, on_trigger("again", again)).await;
    let trigger = format!("after each run of {first} that is done");
    let explained = last(&world, &second).await;
    let yet = format!("the schedule was not triggered yet: {trigger}");
    assert_eq!((explained.disposition.as_str(), explained.sentence), ("none", yet));
    let explained = why(&world, &second, MINUTE_US).await.sentence;
    assert_eq!(
        explained,
        format!("{} is not a slot of this schedule: {trigger}", after(MINUTE_US))
    );
    assert_eq!(last(&world, &again).await.disposition.as_str(), "upcoming");
    run_engine(&world, async {
        set(&world, 10 * MINUTE_US).await;
        fire(&world, &first).await;
        wait_until_idle().await;
    })
    .await;
    for id in [&second, &again] {
        let explained = last(&world, id).await;
        assert_eq!(
            (explained.disposition.as_str(), explained.run_id.is_some()),
            ("ran", true),
            "{explained:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_backfill_runs_skipped_slots_and_none_twice() {
    let mut world = world().await;
    let terms = Terms { missed: Some("skip".into()), ..Terms::default() };
    let id = add(&world, ScheduleAdd { terms, ..every("10m", "fill") }).await;
    let ask = |dry_run, to| ScheduleBackfill {
        id: id.clone(),
        from: after(0),
        to: after(to),
        dry_run,
        ..ScheduleBackfill::default()
    };
    run_engine(&world, async {
        set(&world, 10 * MINUTE_US).await;
        set(&world, 65 * MINUTE_US).await;
        let before = entries(&world).await;
        let dry = world.send(ask(true, HOUR_US)).await.unwrap();
        assert_eq!(
            (dry.slots, dry.taken, dry.started),
            (7, 1, false),
            "the slot at the start is included"
        );
        assert_eq!(entries(&world).await, before);
    })
    .await;
    let started_before = started(&world);
    assert!(world.send(ask(false, HOUR_US)).await.unwrap().started);
    assert_eq!(world.send(ask(false, HOUR_US)).await.unwrap_err().code, Code::NotNow);
    // A crash during the backfill loses no slot.
    crash(&mut world, async |_| wait_until_idle().await).await;
    run_engine(&world, wait_until_idle()).await;
    assert_eq!(started(&world) - started_before, 6);
    assert!(schedule(&world, &id).await.backfill.is_none());
    assert!(world.send(ask(false, HOUR_US)).await.unwrap().started);
    run_engine(&world, wait_until_idle()).await;
    assert_eq!(started(&world) - started_before, 6, "every slot has a run already");
    let end = world.send(ScheduleBackfillEnd { id: id.clone() }).await.unwrap();
    assert!(!end.changed);
    let was_skipped = why(&world, &id, 20 * MINUTE_US).await;
    assert_eq!(
        (was_skipped.disposition.as_str(), was_skipped.run_id.is_some()),
        ("skipped_missed", true)
    );
    let later =
        format!("; later the slot of {} was run by a backfill: run ", after(20 * MINUTE_US));
    assert!(was_skipped.sentence.contains(&later), "{was_skipped:?}");
    let before_it_was = why(&world, &id, 0).await;
    assert_eq!((before_it_was.disposition.as_str(), before_it_was.run_id.is_some()), ("ran", true));
    let ran = why(&world, &id, 10 * MINUTE_US).await;
    assert!(!ran.sentence.contains("backfill"), "{ran:?}");
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_large_backfill_needs_confirmation() {
    let world = world().await;
    let terms = Terms { missed: Some("skip".into()), ..Terms::default() };
    let id = add(&world, ScheduleAdd { terms, ..every("10s", "fill") }).await;
    run_engine(&world, set(&world, HOUR_US)).await;
    let ask = |confirm: Option<String>, to| ScheduleBackfill {
        id: id.clone(),
        from: after(10 * SECOND_US),
        to: after(to),
        confirm,
        dry_run: false,
        ..ScheduleBackfill::default()
    };
    let refused = world.send(ask(None, 1_010 * SECOND_US)).await.unwrap_err();
    assert_eq!(refused.code, Code::NotNow);
    let dry = ScheduleBackfill { dry_run: true, ..ask(None, 1_010 * SECOND_US) };
    let token = world.send(dry).await.unwrap().token;
    let other = world.send(ask(Some(token.clone()), 1_020 * SECOND_US)).await.unwrap_err();
    assert_eq!(other.code, Code::NotNow, "the token confirms exactly these slots");
    assert!(
        world.send(ask(None, 1_000 * SECOND_US)).await.unwrap().started,
        "a hundred slots need no confirmation"
    );
    assert!(world.send(ScheduleBackfillEnd { id: id.clone() }).await.unwrap().changed);
    assert!(world.send(ask(Some(token), 1_010 * SECOND_US)).await.unwrap().started);
}

/// So the author can check the times after an add or an edit.
#[tokio::test(start_paused = true)]
async fn a_paused_schedule_shows_the_slots_after_a_resume() {
    let world = world().await;
    let added = ScheduleAdd { paused: true, ..every("10m", "hello") };
    let added = world.send(added).await.unwrap();
    let id = added.schedule.id;
    assert_eq!((added.schedule.status.as_str(), added.next.len()), ("paused", 5));
    assert_eq!(added.next[0], after(10 * MINUTE_US));
    let bounds = added.bounds.unwrap();
    assert_eq!((bounds.window.as_deref(), bounds.per_day), (Some("30m"), 288));
    world.set_now(OCTOBER_US + 65 * MINUTE_US);
    let shown = world.send(ScheduleShow { id: id.clone() }).await.unwrap();
    assert_eq!(shown.next[0], after(70 * MINUTE_US), "slots in the pause are left out");
    assert_eq!(shown.schedule.next_run_at, None);
    let edit = ScheduleEdit {
        id: id.clone(),
        when: Some(When { every: Some("1h".into()), ..When::default() }),
        terms: Terms { missed: Some("skip".into()), per_day: Some(3), ..Terms::default() },
        ..ScheduleEdit::default()
    };
    let edited = world.send(edit).await.unwrap();
    assert_eq!((edited.next.len(), &edited.next[0]), (5, &after(2 * HOUR_US)));
    let bounds = edited.bounds.unwrap();
    assert_eq!((bounds.window, bounds.per_day), (None, 3));
    let resumed = world.send(ScheduleResume { id }).await.unwrap();
    assert_eq!(resumed.next, edited.next, "the preview is correct");
}

/// There is no default zone.
#[tokio::test(start_paused = true)]
async fn start_and_end_without_an_offset_need_a_zone() {
    let world = world().await;
    let at = || Some("2027-03-28T02:30".to_owned());
    let with = |terms: Terms, tz: Option<&str>| {
        let when = When { tz: tz.map(str::to_owned), ..every("1h", "x").when };
        world.send(ScheduleAdd { when, terms, ..every("1h", "x") })
    };
    let start = || Terms { start_at: at(), ..Terms::default() };
    for terms in [start(), Terms { end_at: at(), ..Terms::default() }] {
        let refused = with(terms, None).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidInput, "{refused:?}");
        assert!(refused.hint.unwrap().contains("--tz"));
    }
    let added = with(start(), Some("Asia/Kolkata")).await.unwrap();
    assert_eq!(added.schedule.terms.start_at.as_deref(), Some("2027-03-27T21:00:00Z"));
}

#[tokio::test(start_paused = true)]
async fn a_list_is_added_completely_or_not_at_all() {
    let world = world().await;
    let list = |names: &[&str]| ScheduleAddAll {
        schedules: names.iter().map(|name| named(name, "ada", every("1h", name))).collect(),
        dry_run: false,
    };
    let added = world.send(list(&["one", "two", "one"])).await.unwrap().schedules;
    let created: Vec<bool> = added.iter().map(|it| it.created).collect();
    assert_eq!((created, added[0].next.len()), (vec![true, true, false], 5));
    assert_eq!(added[0].id, added[2].id, "a repeated schedule is added once");
    let again = world.send(list(&["two", "three"])).await.unwrap().schedules;
    assert_eq!(again.iter().map(|it| it.created).collect::<Vec<_>>(), [false, true]);

    let before = entries(&world).await;
    let mut wrong = list(&["four", "five"]);
    wrong.schedules[1].when.every = Some("ten".into());
    let refused = world.send(wrong).await.unwrap_err();
    assert_eq!(refused.message, "schedule 2 of the list, `five`: `ten` is not a duration");
    let mut wrong = list(&["four", "five"]);
    wrong.schedules[1].action.agent = Some("missing".into());
    let refused = world.send(wrong).await.unwrap_err();
    assert_eq!(refused.message, "schedule 2 of the list, `five`: agent `missing` does not exist");
    assert_eq!(entries(&world).await, before, "no schedule of a refused list is added");

    let many = |count: usize| ScheduleAddAll {
        schedules: (0..count).map(|it| named(&format!("n{it}"), "ada", every("1h", "x"))).collect(),
        dry_run: false,
    };
    assert_eq!(world.send(many(1_001)).await.unwrap_err().code, Code::InvalidInput);
    assert_eq!(world.send(many(1_000)).await.unwrap().schedules.len(), 1_000);
    verify_ledger(&world).await;
}

/// Two names whose schedule ids have the same first eight digits; a hundred thousand names contain such pairs.
async fn names_with_colliding_ids(world: &World) -> [String; 2] {
    add(world, named("sample", "ada", every("1h", "x"))).await;
    let added = world.events().await.pop().unwrap();
    let mut definition = added.body["definition"].clone();
    definition["action"]["prompt"] = "x".into();
    let mut seen = std::collections::HashMap::new();
    for number in 0.. {
        let name = format!("n{number}");
        definition["name"] = name.clone().into();
        let hash = Sha256::digest(ledger::canonical_json(&definition).unwrap());
        if let Some(other) = seen.insert(hash[..4].to_vec(), name.clone()) {
            return [other, name];
        }
    }
    unreachable!("there are not that many ids")
}

#[tokio::test(start_paused = true)]
async fn a_colliding_id_gets_longer() {
    let world = world().await;
    let [one, two] = names_with_colliding_ids(&world).await;
    let ask = |name: &str| world.send(named(name, "ada", every("1h", "x")));
    let (first, second) = join(ask(&one), ask(&two)).await;
    let (first, second) = (first.unwrap().schedule, second.unwrap().schedule);
    assert_eq!((&first.name, &second.name), (&one, &two));
    assert_eq!(first.id[..12], second.id[..12]);
    assert_ne!(first.id.len(), second.id.len());
    let again = ask(&two).await.unwrap();
    assert_eq!((again.created, again.schedule.id), (false, second.id));
}

#[tokio::test(start_paused = true)]
async fn run_watch_follows_a_run_to_its_end() {
    let world = world().await;
    let id = add(&world, every("1h", "wait")).await;
    run_engine(&world, async {
        let run = fire(&world, &id).await;
        let mut states = vec![run.state.as_str()];
        let watching = async {
            let mut seen = None;
            loop {
                let asked = RunWatch { id: run.id.clone(), seen, wait_ms: 20_000 };
                let answer = world.send(asked).await.unwrap();
                states.push(answer.run.state.as_str());
                seen = Some(answer.seen);
                if answer.ended {
                    return;
                }
            }
        };
        let ending = async {
            wait_until_idle().await;
            world.backend.release(1);
        };
        join(watching, ending).await;
        states.dedup();
        assert_eq!(states, ["queued", "running", "done"]);
    })
    .await;
}

/// Schedules of others do not exist for an agent, not even as a dependency.
#[tokio::test(start_paused = true)]
async fn an_agent_can_depend_on_its_own_schedules_only() {
    let world = world().await;
    world.send(builtin("two")).await.unwrap();
    let own = add(&world, named("own", "ada", every("1h", "hello"))).await;
    let theirs = add(&world, named("theirs", "two", every("1h", "hello"))).await;
    let ada = world.engine.handle(Actor::token_holder("ada".parse().unwrap(), Role::Runner));
    let follow = |of: &str| after_run("after", of, None);
    let all = |of: &str| ScheduleAddAll { schedules: vec![follow(of)], dry_run: false };
    let dry = |of: &str| ScheduleAdd { dry_run: true, ..follow(of) };
    let edit = |of: &str| ScheduleEdit {
        id: own.clone(),
        event_trigger: EventTrigger { after: Some(of.to_owned()), ..EventTrigger::default() },
        ..ScheduleEdit::default()
    };
    let missing = "sch_00000000";
    for request in [
        follow(&theirs).into_request(),
        all(&theirs).into_request(),
        dry(&theirs).into_request(),
        edit(&theirs).into_request(),
    ] {
        let refused = ada.call(call(request)).await.unwrap_err();
        let theirs = refused.message.replace(&theirs, missing);
        let unknown = ada.call(call(follow(missing).into_request())).await.unwrap_err();
        assert_eq!((refused.code, theirs), (Code::NotFound, unknown.message));
    }
    for request in [dry(&own).into_request(), all(&own).into_request()] {
        ada.call(call(request)).await.unwrap();
    }
}

fn call(request: Request) -> Call {
    Call { request, key: None, version: None, tool: None, progress: Default::default() }
}
