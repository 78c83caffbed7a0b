//! Schedules that wait for something else than the time, and those that are changed while they wait.

use api::{
    Ask, Call, Code, EventTell, Explained, Handle, Happening, Request, Run, RunSettle, RunWatch,
    ScheduleAdd, ScheduleAddAll, ScheduleBackfill, ScheduleBackfillEnd, ScheduleEdit,
    SchedulePause, ScheduleRemove, ScheduleResume, ScheduleShow, Terms, When, Why,
};
use futures::future::join;
use kernel::{Actor, Role};
use sha2::{Digest, Sha256};

use crate::steps::*;
use crate::world::{OCTOBER_US, World, builtin, keep};

fn happening(name: &str, happening: Happening) -> ScheduleAdd {
    ScheduleAdd { when: When::default(), happening, ..named(name, "ada", every("1h", name)) }
}

fn after_run(name: &str, of: &str, ending: Option<&str>) -> ScheduleAdd {
    let (after, ending) = (Some(of.to_owned()), ending.map(str::to_owned));
    happening(name, Happening { after, ending, ..Happening::default() })
}

fn on_event(name: &str) -> ScheduleAdd {
    happening(name, Happening { event: Some("mail/new".into()), ..Happening::default() })
}

async fn tell(world: &World, id: &str) -> Vec<Run> {
    let asked = EventTell { name: "mail/new".into(), id: Some(id.to_owned()) };
    world.ask(asked).await.unwrap().runs
}

/// What each run was told to do, and how it ended, oldest first.
async fn told(world: &World) -> Vec<(String, String)> {
    let begun: Vec<_> = world.hands.begun.lock().unwrap().clone();
    let prompt =
        |run: &Run| begun.iter().find(|work| work.run == run.id).map(|it| it.prompt.clone());
    let runs = runs(world).await;
    runs.iter().map(|run| (prompt(run).unwrap_or_default(), run.state.clone())).collect()
}

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_starts_those_that_follow_it() {
    let world = world().await;
    let first = add(&world, every("1h", "first")).await;
    let fails = add(&world, every("1h", "fail for good")).await;
    let second = add(&world, after_run("second", &first, None)).await;
    add(&world, after_run("third", &second, Some("any"))).await;
    add(&world, after_run("never", &fails, None)).await;
    add(&world, after_run("sorry", &fails, Some("failure"))).await;
    keep(&world, async {
        fire(&world, &first).await;
        settle().await;
        assert_eq!(
            told(&world).await,
            pairs(&[("first", "done"), ("second", "done"), ("third", "done")])
        );
        fire(&world, &fails).await;
        settle().await;
        assert_eq!(
            told(&world).await[3..],
            pairs(&[("fail for good", "failed"), ("sorry", "done")])
        );
    })
    .await;
    let followed = schedule(&world, &first).await.followers;
    assert_eq!(followed, [second]);
    let refused = world.ask(ScheduleRemove { id: first }).await.unwrap_err();
    assert_eq!((refused.code, refused.hint.is_some()), (Code::NotNow, true));
    check_log(&world).await;
}

/// The end and what follows from it are one commit, so there is nothing between them to lose.
#[tokio::test(start_paused = true)]
async fn a_crash_loses_nothing_that_follows_a_run() {
    let mut world = world().await;
    let first = add(&world, every("1h", "wait")).await;
    add(&world, after_run("second", &first, Some("any"))).await;
    crash(&mut world, async |world| {
        fire(world, &first).await;
        set(world, SECOND_US).await;
    })
    .await;
    world.hands.let_go(1);
    keep(&world, settle()).await;
    assert_eq!(told(&world).await, pairs(&[("wait", "done"), ("second", "done")]));
    check_log(&world).await;
}

/// Its end is told of twice: as unknown, and when somebody says how it was.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_settled_starts_its_followers_once() {
    let mut world = world().await;
    let first = add(&world, named("first", "smith", every("1h", "hang"))).await;
    add(&world, after_run("success", &first, None)).await;
    add(&world, after_run("any", &first, Some("any"))).await;
    crash(&mut world, async |world| {
        fire(world, &first).await;
        set(world, SECOND_US).await;
    })
    .await;
    keep(&world, async {
        settle().await;
        assert_eq!(told(&world).await, pairs(&[("hang", "unknown"), ("any", "done")]));
        let id = runs(&world).await[0].id.clone();
        world.ask(RunSettle { id, state: "done".into(), note: None }).await.unwrap();
        settle().await;
    })
    .await;
    assert_eq!(told(&world).await[1..], pairs(&[("any", "done"), ("success", "done")]));
}

#[tokio::test(start_paused = true)]
async fn nobody_follows_themselves_and_no_chain_is_endless() {
    let world = world().await;
    let mut chain = vec![add(&world, every("1h", "0")).await];
    for number in 1..=16 {
        let last = chain.last().unwrap().clone();
        chain.push(add(&world, after_run(&number.to_string(), &last, None)).await);
    }
    let too_long = world.ask(after_run("17", &chain[16], None)).await.unwrap_err();
    assert_eq!(too_long.code, Code::InvalidInput, "{too_long:?}");
    let edit = |id: &str, after: &str| ScheduleEdit {
        id: id.to_owned(),
        happening: Happening { after: Some(after.to_owned()), ..Happening::default() },
        ..ScheduleEdit::default()
    };
    let cycle = world.ask(edit(&chain[0], &chain[3])).await.unwrap_err();
    assert_eq!(cycle.code, Code::InvalidInput);
    assert!(cycle.message.starts_with("a schedule cannot follow itself"), "{}", cycle.message);
    let unknown = world.ask(after_run("x", "sch_00000000", None)).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_fires_all_who_wait_for_it_once() {
    let mut world = world().await;
    let one = add(&world, on_event("one")).await;
    add(&world, on_event("two")).await;
    keep(&world, async {
        let ids = |runs: Vec<Run>| runs.into_iter().map(|run| run.id).collect::<Vec<_>>();
        let led_to = ids(tell(&world, "message 1").await);
        assert_eq!(led_to.len(), 2);
        settle().await;
        assert_eq!(ids(tell(&world, "message 1").await), led_to, "it is the same event");
        settle().await;
        assert_eq!(begun(&world), 2);
        world.ask(SchedulePause { id: one.clone(), note: None }).await.unwrap();
        assert_eq!(tell(&world, "message 2").await.len(), 1);
        settle().await;
    })
    .await;
    // Nobody keeps the watch: the run is queued, and done later.
    world.reopen().await.unwrap();
    assert_eq!(tell(&world, "message 3").await.len(), 1);
    assert_eq!(begun(&world), 3);
    keep(&world, settle()).await;
    assert_eq!((begun(&world), states(&world).await.len()), (4, 4));
    let nobody = EventTell { name: "mail/gone".into(), id: None };
    assert_eq!(world.ask(nobody).await.unwrap().told, 0);
    let bad = EventTell { name: "Mail New".into(), id: None };
    assert_eq!(world.ask(bad).await.unwrap_err().code, Code::InvalidInput);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn what_happens_in_a_pause_waits_for_the_resume() {
    let world = world().await;
    let terms = Terms { resume: Some("as_missed".into()), ..Terms::default() };
    let id = add(&world, ScheduleAdd { terms, ..on_event("post") }).await;
    world.ask(SchedulePause { id: id.clone(), note: None }).await.unwrap();
    keep(&world, async {
        set(&world, MINUTE_US).await;
        assert!(tell(&world, "message").await.is_empty());
        let slot = last(&world, &id).await;
        let waits = format!("the slot of {} runs when the schedule is resumed", after(MINUTE_US));
        assert_eq!((slot.disposition.as_str(), slot.sentence), ("buffered", waits));
        let resume = || world.ask(ScheduleResume { id: id.clone() });
        assert_eq!(resume().await.unwrap().released, [after(MINUTE_US)]);
        assert!(resume().await.unwrap().released.is_empty(), "it was not paused");
        settle().await;
        assert_eq!(tell(&world, "message").await[0].state, "done", "it has waited, and run");
    })
    .await;
    assert_eq!(last(&world, &id).await.disposition, "ran");
}

/// One more than are looked up at once, both of those who wait and of the runs that they lead to.
#[tokio::test(start_paused = true)]
async fn more_schedules_than_a_page_hear_of_an_event() {
    let world = world().await;
    let list = |from: u32, to: u32| {
        let schedules = (from..to).map(|number| on_event(&number.to_string())).collect();
        ScheduleAddAll { schedules, dry_run: false }
    };
    world.ask(list(0, 1_000)).await.unwrap();
    assert_eq!(tell(&world, "message 1").await.len(), 1_000);
    world.ask(list(1_000, 1_001)).await.unwrap();
    let events = EventTell { name: "mail/new".into(), id: Some("message 1".into()) };
    let told = world.ask(events).await.unwrap();
    assert_eq!((told.told, told.runs.len()), (1_001, 1_001), "with those that knew of it");
    keep(&world, async {
        settle().await;
        assert_eq!(begun(&world), 1_001);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_goes_by_its_last_run_never_meets_it() {
    let world = world().await;
    let again = Happening { again: Some("10m".into()), ..Happening::default() };
    let id = add(
        &world,
        ScheduleAdd {
            action: api::Action { prompt: Some("wait".into()), ..every("1h", "x").action },
            ..happening("loop", again)
        },
    )
    .await;
    keep(&world, async {
        set(&world, 10 * MINUTE_US).await;
        assert_eq!(begun(&world), 1);
        set(&world, 35 * MINUTE_US).await;
        assert_eq!(begun(&world), 1, "it is still at work");
        world.hands.let_go(1);
        settle().await;
        set(&world, 45 * MINUTE_US - 1).await;
        assert_eq!(begun(&world), 1);
        set(&world, 45 * MINUTE_US).await;
        assert_eq!(begun(&world), 2, "ten minutes after it ended");
        world.hands.let_go(1);
        settle().await;
    })
    .await;
    assert_eq!(schedule(&world, &id).await.next_run_at, Some(after(55 * MINUTE_US)));
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_newer_slot_may_take_the_place_of_a_run() {
    for (overlap, agent, first) in [
        ("cancel_other", "ada", "cancelled"),
        ("cancel_other", "smith", "cancelled"),
        ("terminate_other", "ada", "cancelled"),
        ("terminate_other", "smith", "unknown"),
    ] {
        let world = world().await;
        let terms = Terms { overlap: Some(overlap.into()), ..Terms::default() };
        add(&world, ScheduleAdd { terms, ..named("x", agent, every("10m", "hang")) }).await;
        keep(&world, async {
            set(&world, 10 * MINUTE_US).await;
            set(&world, 20 * MINUTE_US).await;
            assert_eq!(states(&world).await, [first, "running"], "{overlap} {agent}");
            assert_eq!(begun(&world), 2);
        })
        .await;
        check_log(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn runs_that_share_a_key_work_one_at_a_time() {
    let world = world().await;
    let keyed = |name: &str, agent: &str| {
        let terms = Terms { keys: Some(vec!["printer".into()]), ..Terms::default() };
        ScheduleAdd { terms, ..named(name, agent, every("1h", "wait")) }
    };
    for (name, agent) in [("one", "ada"), ("two", "smith"), ("three", "ada")] {
        add(&world, keyed(name, agent)).await;
    }
    keep(&world, async {
        set(&world, HOUR_US).await;
        for done in 1..=3 {
            assert_eq!(begun(&world), done);
            world.hands.let_go(1);
            settle().await;
        }
    })
    .await;
    assert_eq!(states(&world).await, ["done"; 3]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_keeps_the_past_and_changes_what_comes() {
    let world = world().await;
    let id = add(&world, every("10m", "before")).await;
    keep(&world, async {
        set(&world, 10 * MINUTE_US).await;
        set(&world, 15 * MINUTE_US).await;
        let edit = ScheduleEdit {
            id: id.clone(),
            when: Some(When { every: Some("1h".into()), ..When::default() }),
            action: api::Action { prompt: Some("after".into()), ..api::Action::default() },
            terms: Terms { priority: Some(9), ..Terms::default() },
            ..ScheduleEdit::default()
        };
        let edited = world.ask(edit.clone()).await.unwrap();
        let told = (edited.changed, edited.schedule.revision, edited.schedule.id.as_str());
        assert_eq!(told, (true, 2, id.as_str()));
        assert_eq!((edited.next.len(), &edited.next[0]), (5, &after(HOUR_US)));
        assert!(!world.ask(edit).await.unwrap().changed);
        set(&world, 20 * MINUTE_US).await;
        assert_eq!(begun(&world), 1);
        set(&world, HOUR_US).await;
    })
    .await;
    assert_eq!(told(&world).await, pairs(&[("before", "done"), ("after", "done")]));
    assert_eq!(why(&world, &id, 10 * MINUTE_US).await.disposition, "ran", "of the old trigger");
    let unset = |term: &str| ScheduleEdit {
        id: id.clone(),
        unset: vec![term.to_owned()],
        ..ScheduleEdit::default()
    };
    let when = Some(When { tz: Some("Asia/Kolkata".into()), ..When::default() });
    let edited = world.ask(ScheduleEdit { id: id.clone(), when, ..ScheduleEdit::default() });
    let edited = edited.await.unwrap().schedule;
    assert_eq!((edited.tz.as_str(), edited.describe.as_str()), ("Asia/Kolkata", "every hour"));
    let edited = world.ask(unset("priority")).await.unwrap();
    assert_eq!(edited.schedule.terms.priority, Some(5));
    assert_eq!(world.ask(unset("colour")).await.unwrap_err().code, Code::InvalidInput);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn slots_are_explained_also_after_their_schedule_is_gone() {
    let world = world().await;
    let timed = add(&world, every("10m", "hello")).await;
    let waits = add(&world, on_event("post")).await;
    keep(&world, async {
        set(&world, 10 * MINUTE_US).await;
        tell(&world, "message").await;
        settle().await;
    })
    .await;
    for id in [&timed, &waits] {
        let ask = || world.ask(Why { id: id.clone(), at: None });
        let before = ask().await.unwrap();
        assert_eq!(before.disposition, "ran", "{before:?}");
        world.ask(ScheduleRemove { id: id.clone() }).await.unwrap();
        assert_eq!(ask().await.unwrap().run_id, before.run_id);
    }
    assert_eq!(why(&world, &timed, 10 * MINUTE_US).await.disposition, "ran");
    assert_eq!(why(&world, &timed, 15 * MINUTE_US).await.disposition, "none");
    let nobody = Why { id: "sch_00000000".into(), at: None };
    assert_eq!(world.ask(nobody).await.unwrap_err().code, Code::NotFound);
}

async fn last(world: &World, id: &str) -> Explained {
    world.ask(Why { id: id.to_owned(), at: None }).await.unwrap()
}

/// Five slots of ten minutes that were left out in a pause, and then it is due each quarter of an hour.
#[tokio::test(start_paused = true)]
async fn slots_are_explained_by_what_their_schedule_was_then() {
    let world = world().await;
    let id = add(&world, every("10m", "hello")).await;
    world.ask(SchedulePause { id: id.clone(), note: None }).await.unwrap();
    let edit = |every: &str| ScheduleEdit {
        id: id.clone(),
        when: Some(When { every: Some(every.to_owned()), ..When::default() }),
        ..ScheduleEdit::default()
    };
    keep(&world, async {
        set(&world, 55 * MINUTE_US).await;
        assert_eq!(world.ask(ScheduleResume { id: id.clone() }).await.unwrap().skipped, 5);
        world.ask(edit("15m")).await.unwrap();
    })
    .await;
    let check = async || {
        for (minute, disposition) in [(10, "skipped_paused"), (15, "none"), (20, "skipped_paused")]
        {
            let told = why(&world, &id, minute * MINUTE_US).await;
            assert_eq!(told.disposition, disposition, "{minute}: {told:?}");
        }
        let between = why(&world, &id, 15 * MINUTE_US).await.sentence;
        assert!(between.ends_with("which then was due every 10 minutes"), "{between}");
        assert_eq!(last(&world, &id).await.slot, after(50 * MINUTE_US));
    };
    check().await;
    let early = why(&world, &id, -MINUTE_US).await.sentence;
    assert!(early.contains("was before this schedule was added"), "{early}");
    world.ask(ScheduleRemove { id: id.clone() }).await.unwrap();
    check().await;
}

#[tokio::test(start_paused = true)]
async fn what_became_a_slot_by_an_edit_was_none_before_it() {
    let world = world().await;
    let id = add(&world, every("1h", "hello")).await;
    keep(&world, set(&world, 25 * MINUTE_US)).await;
    let when = Some(When { every: Some("10m".into()), ..When::default() });
    world.ask(ScheduleEdit { id: id.clone(), when, ..ScheduleEdit::default() }).await.unwrap();
    let told = why(&world, &id, 20 * MINUTE_US).await;
    let (at, changed) = (after(20 * MINUTE_US), after(25 * MINUTE_US));
    assert_eq!(told.sentence, format!("{at} was no slot of it then; it was changed at {changed}"));
    assert_eq!(why(&world, &id, 30 * MINUTE_US).await.disposition, "upcoming");
    world.ask(SchedulePause { id: id.clone(), note: None }).await.unwrap();
    let told = why(&world, &id, 30 * MINUTE_US).await.sentence;
    assert!(told.ends_with("is not decided: the schedule is paused"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_something_to_happen_is_explained_in_its_own_words() {
    let world = world().await;
    let first = add(&world, every("1h", "first")).await;
    let second = add(&world, after_run("second", &first, None)).await;
    let again = Happening { again: Some("10m".into()), ..Happening::default() };
    let again = add(&world, happening("again", again)).await;
    let trigger = format!("after each run of {first} that is done");
    let told = last(&world, &second).await;
    let yet = format!("nothing has happened yet that the schedule waits for: {trigger}");
    assert_eq!((told.disposition.as_str(), told.sentence), ("none", yet));
    let told = why(&world, &second, MINUTE_US).await.sentence;
    assert_eq!(told, format!("{} is no slot of this schedule: {trigger}", after(MINUTE_US)));
    assert_eq!(last(&world, &again).await.disposition, "upcoming");
    keep(&world, async {
        set(&world, 10 * MINUTE_US).await;
        fire(&world, &first).await;
        settle().await;
    })
    .await;
    for id in [&second, &again] {
        let told = last(&world, id).await;
        assert_eq!((told.disposition.as_str(), told.run_id.is_some()), ("ran", true), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_backfill_runs_what_was_skipped_and_nothing_twice() {
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
    keep(&world, async {
        set(&world, 10 * MINUTE_US).await;
        set(&world, 65 * MINUTE_US).await;
        let before = entries(&world).await;
        let dry = world.ask(ask(true, HOUR_US)).await.unwrap();
        assert_eq!((dry.slots, dry.taken, dry.begun), (7, 1, false), "the first is of the start");
        assert_eq!(entries(&world).await, before);
    })
    .await;
    let begun_before = begun(&world);
    assert!(world.ask(ask(false, HOUR_US)).await.unwrap().begun);
    assert_eq!(world.ask(ask(false, HOUR_US)).await.unwrap_err().code, Code::NotNow);
    // A crash in the middle of it loses nothing.
    crash(&mut world, async |_| settle().await).await;
    keep(&world, settle()).await;
    assert_eq!(begun(&world) - begun_before, 6);
    assert!(schedule(&world, &id).await.backfill.is_none());
    assert!(world.ask(ask(false, HOUR_US)).await.unwrap().begun);
    keep(&world, settle()).await;
    assert_eq!(begun(&world) - begun_before, 6, "all have a run by now");
    let end = world.ask(ScheduleBackfillEnd { id: id.clone() }).await.unwrap();
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
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn many_slots_are_filled_only_when_that_is_confirmed() {
    let world = world().await;
    let terms = Terms { missed: Some("skip".into()), ..Terms::default() };
    let id = add(&world, ScheduleAdd { terms, ..every("10s", "fill") }).await;
    keep(&world, set(&world, HOUR_US)).await;
    let ask = |confirm: Option<String>, to| ScheduleBackfill {
        id: id.clone(),
        from: after(10 * SECOND_US),
        to: after(to),
        confirm,
        dry_run: false,
        ..ScheduleBackfill::default()
    };
    let refused = world.ask(ask(None, 1_010 * SECOND_US)).await.unwrap_err();
    assert_eq!(refused.code, Code::NotNow);
    let dry = ScheduleBackfill { dry_run: true, ..ask(None, 1_010 * SECOND_US) };
    let token = world.ask(dry).await.unwrap().token;
    let other = world.ask(ask(Some(token.clone()), 1_020 * SECOND_US)).await.unwrap_err();
    assert_eq!(other.code, Code::NotNow, "it confirms exactly what was shown");
    assert!(world.ask(ask(None, 1_000 * SECOND_US)).await.unwrap().begun, "a hundred need none");
    assert!(world.ask(ScheduleBackfillEnd { id: id.clone() }).await.unwrap().changed);
    assert!(world.ask(ask(Some(token), 1_010 * SECOND_US)).await.unwrap().begun);
}

/// Whoever adds or edits one sees at once whether it fires when they meant.
#[tokio::test(start_paused = true)]
async fn a_paused_schedule_shows_what_would_come_after_a_resume() {
    let world = world().await;
    let added = ScheduleAdd { paused: true, ..every("10m", "hello") };
    let added = world.ask(added).await.unwrap();
    let id = added.schedule.id;
    assert_eq!((added.schedule.status.as_str(), added.next.len()), ("paused", 5));
    assert_eq!(added.next[0], after(10 * MINUTE_US));
    let bounds = added.bounds.unwrap();
    assert_eq!((bounds.window.as_deref(), bounds.per_day), (Some("30m"), 288));
    world.set_now(OCTOBER_US + 65 * MINUTE_US);
    let shown = world.ask(ScheduleShow { id: id.clone() }).await.unwrap();
    assert_eq!(shown.next[0], after(70 * MINUTE_US), "the pause is left out");
    assert_eq!(shown.schedule.next_run_at, None);
    let edit = ScheduleEdit {
        id: id.clone(),
        when: Some(When { every: Some("1h".into()), ..When::default() }),
        terms: Terms { missed: Some("skip".into()), per_day: Some(3), ..Terms::default() },
        ..ScheduleEdit::default()
    };
    let edited = world.ask(edit).await.unwrap();
    assert_eq!((edited.next.len(), &edited.next[0]), (5, &after(2 * HOUR_US)));
    let bounds = edited.bounds.unwrap();
    assert_eq!((bounds.window, bounds.per_day), (None, 3));
    let resumed = world.ask(ScheduleResume { id }).await.unwrap();
    assert_eq!(resumed.next, edited.next, "it is what comes");
}

/// There is no default zone, whatever the instant is for.
#[tokio::test(start_paused = true)]
async fn a_start_and_an_end_without_an_offset_need_a_zone() {
    let world = world().await;
    let at = || Some("2027-03-28T02:30".to_owned());
    let with = |terms: Terms, tz: Option<&str>| {
        let when = When { tz: tz.map(str::to_owned), ..every("1h", "x").when };
        world.ask(ScheduleAdd { when, terms, ..every("1h", "x") })
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
async fn a_list_is_added_as_a_whole_or_not_at_all() {
    let world = world().await;
    let list = |names: &[&str]| ScheduleAddAll {
        schedules: names.iter().map(|name| named(name, "ada", every("1h", name))).collect(),
        dry_run: false,
    };
    let added = world.ask(list(&["one", "two", "one"])).await.unwrap().schedules;
    let created: Vec<bool> = added.iter().map(|it| it.created).collect();
    assert_eq!((created, added[0].next.len()), (vec![true, true, false], 5));
    assert_eq!(added[0].id, added[2].id, "the same one twice is one");
    let again = world.ask(list(&["two", "three"])).await.unwrap().schedules;
    assert_eq!(again.iter().map(|it| it.created).collect::<Vec<_>>(), [false, true]);

    let before = entries(&world).await;
    let mut wrong = list(&["four", "five"]);
    wrong.schedules[1].when.every = Some("ten".into());
    let refused = world.ask(wrong).await.unwrap_err();
    assert_eq!(refused.message, "schedule 2 of the list, `five`: `ten` is not a span");
    let mut wrong = list(&["four", "five"]);
    wrong.schedules[1].action.agent = Some("nobody".into());
    let refused = world.ask(wrong).await.unwrap_err();
    assert_eq!(refused.message, "schedule 2 of the list, `five`: there is no agent `nobody`");
    assert_eq!(entries(&world).await, before, "nothing is half done");

    let many = |count: usize| ScheduleAddAll {
        schedules: (0..count).map(|it| named(&format!("n{it}"), "ada", every("1h", "x"))).collect(),
        dry_run: false,
    };
    assert_eq!(world.ask(many(1_001)).await.unwrap_err().code, Code::InvalidInput);
    assert_eq!(world.ask(many(1_000)).await.unwrap().schedules.len(), 1_000);
    check_log(&world).await;
}

/// Two names whose schedules begin with the same eight digits, of which there are some among a hundred
/// thousand.
async fn namesakes(world: &World) -> [String; 2] {
    add(world, named("sample", "ada", every("1h", "x"))).await;
    let added = world.events().await.pop().unwrap();
    let mut definition = added.body["definition"].clone();
    definition["action"]["prompt"] = "x".into();
    let mut seen = std::collections::HashMap::new();
    for number in 0.. {
        let name = format!("n{number}");
        definition["name"] = name.clone().into();
        let hash = Sha256::digest(ledger::canonical(&definition).unwrap());
        if let Some(other) = seen.insert(hash[..4].to_vec(), name.clone()) {
            return [other, name];
        }
    }
    unreachable!("there are not that many ids")
}

#[tokio::test(start_paused = true)]
async fn an_id_that_another_has_becomes_longer() {
    let world = world().await;
    let [one, two] = namesakes(&world).await;
    let ask = |name: &str| world.ask(named(name, "ada", every("1h", "x")));
    let (first, second) = join(ask(&one), ask(&two)).await;
    let (first, second) = (first.unwrap().schedule, second.unwrap().schedule);
    assert_eq!((&first.name, &second.name), (&one, &two));
    assert_eq!(first.id[..12], second.id[..12]);
    assert_ne!(first.id.len(), second.id.len());
    let again = ask(&two).await.unwrap();
    assert_eq!((again.created, again.schedule.id), (false, second.id));
}

#[tokio::test(start_paused = true)]
async fn a_run_is_watched_to_its_end() {
    let world = world().await;
    let id = add(&world, every("1h", "wait")).await;
    keep(&world, async {
        let run = fire(&world, &id).await;
        let mut states = vec![run.state.clone()];
        let watching = async {
            let mut seen = None;
            loop {
                let asked = RunWatch { id: run.id.clone(), seen, wait_ms: 20_000 };
                let answer = world.ask(asked).await.unwrap();
                states.push(answer.run.state.clone());
                seen = Some(answer.seen);
                if answer.ended {
                    return;
                }
            }
        };
        let ending = async {
            settle().await;
            world.hands.let_go(1);
        };
        join(watching, ending).await;
        states.dedup();
        assert_eq!(states, ["queued", "running", "done"]);
    })
    .await;
}

/// What is not an agent's own is not there for it, also not to be followed.
#[tokio::test(start_paused = true)]
async fn an_agent_follows_its_own_schedules_alone() {
    let world = world().await;
    world.ask(builtin("two")).await.unwrap();
    let own = add(&world, named("own", "ada", every("1h", "hello"))).await;
    let theirs = add(&world, named("theirs", "two", every("1h", "hello"))).await;
    let ada = world.watch.handle(Actor { name: "ada".into(), role: Role::Runner });
    let follow = |of: &str| after_run("after", of, None);
    let all = |of: &str| ScheduleAddAll { schedules: vec![follow(of)], dry_run: false };
    let dry = |of: &str| ScheduleAdd { dry_run: true, ..follow(of) };
    let edit = |of: &str| ScheduleEdit {
        id: own.clone(),
        happening: Happening { after: Some(of.to_owned()), ..Happening::default() },
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
    Call { request, key: None, tool: None, progress: Default::default() }
}
