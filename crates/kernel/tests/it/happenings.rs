//! Schedules that fire because something happened, changes of a schedule, backfills, and slots that
//! end the run before them.

use calendar::Trigger;
use kernel::schedule::terms::{Missed, Overlap, Resume, Terms};
use kernel::schedule::trigger::{Happening, Since};
use kernel::schedule::{self, CHAIN_MAX, Command, Definition, Schedule, decide};
use kernel::slot::{Disposition, Fate};
use kernel::tick::{Tick, rebase, tick};
use kernel::{Actor, Body, RunId, ScheduleId};

use crate::support::{Ask, World, at, broken, every};
use Ask::{
    Add, After, Backfill, Edit, EndBackfill, Event, Fire, Pause, Remove, Resume as Go, Tick as Ring,
};

type Step = (i64, Ask, &'static str);

fn check(mut world: World, story: &[Step]) -> World {
    for (second, ask, expected) in story {
        assert_eq!(&world.ask(*second, ask), expected, "at {second}: {ask:?}");
    }
    world
}

fn event() -> schedule::trigger::Trigger {
    schedule::trigger::Trigger::Happens(Happening::Event { name: "mail/new".parse().unwrap() })
}

fn again(seconds: i64, since: Since) -> schedule::trigger::Trigger {
    let every = format!("{seconds}s").parse().unwrap();
    schedule::trigger::Trigger::Happens(Happening::Again { every, since })
}

fn with(overlap: Overlap) -> Terms {
    Terms { overlap, ..Terms::default() }
}

fn start(number: u128) -> Ask {
    Ask::Start(number)
}

fn done(number: u128) -> Ask {
    Ask::Finish(number, 1, Ok(()))
}

const STARTED: &str = "started 1 1 tier 0 repeatable";

#[test]
fn an_event_fires_at_once_and_a_second_one_by_the_overlap_policy() {
    check(
        World::new(event(), Terms::default()),
        &[
            (0, Add, "added"),
            (60, Ring, ""),
            (60, Event("a"), "event fires 60"),
            (61, Event("b"), "skipped_overlap 61"),
            (62, start(1), STARTED),
            (63, done(1), "done"),
            (63, Event("c"), "event fires 63"),
            (63, Event("d"), "skipped_overlap 63.000001"),
        ],
    );
    check(
        World::new(event(), with(Overlap::BufferAll(2))),
        &[
            (0, Add, "added"),
            (1, Event("a"), "event fires 1"),
            (2, Event("b"), "waits 2"),
            (3, Event("c"), "waits 3"),
            (4, Event("d"), "skipped_full 4"),
            (5, start(1), STARTED),
            (6, done(1), "done"),
            (6, Ring, "buffer fires 2 late 4"),
        ],
    );
}

/// A chain that was made within its limit may be longer when it runs, as any link of it can be changed.
#[test]
fn what_too_many_runs_in_a_row_have_led_to_is_skipped() {
    let deepest = u32::try_from(CHAIN_MAX).unwrap();
    let mut world = check(
        World::new(event(), Terms::default()),
        &[
            (0, Add, "added"),
            (1, After(1), "after fires 1"),
            (2, start(1), STARTED),
            (3, done(1), "done"),
            (4, After(deepest), "after fires 4"),
            (5, start(2), STARTED),
            (6, done(2), "done"),
            (7, After(deepest + 1), "skipped_dependency 7"),
            (8, After(u32::MAX), "skipped_dependency 8"),
            // What is not in a row with them goes on.
            (9, Event("a"), "event fires 9"),
        ],
    );
    assert_eq!(world.run(2).unwrap().depth, deepest);
    let skipped = world.slot(7).unwrap().fate;
    assert!(matches!(skipped, Fate::Passed { disposition: Disposition::SkippedDependency, .. }));

    // A pause comes first, and leaves it what it would be.
    world.ask(10, &Pause);
    assert_eq!(world.ask(11, &After(deepest + 1)), "skipped_paused 11");
}

#[test]
fn what_happens_in_a_pause_is_skipped_or_waits() {
    check(
        World::new(event(), Terms::default()),
        &[
            (0, Add, "added"),
            (1, Pause, "paused"),
            (2, Event("a"), "skipped_paused 2"),
            (3, Go, "resumed"),
            (3, Ring, ""),
        ],
    );
    check(
        World::new(event(), Terms { resume: Resume::AsMissed, ..Terms::default() }),
        &[
            (0, Add, "added"),
            (1, Pause, "paused"),
            (2, Event("a"), "waits 2"),
            (2, Ring, ""),
            (3, Go, "resumed"),
            (3, Ring, "buffer fires 2 late 1"),
        ],
    );
}

#[test]
fn what_happens_outside_its_time_is_nothing() {
    let terms = Terms {
        start_at: Some(at(10)),
        end_at: Some(at(20)),
        max_fires: Some(1),
        ..Terms::default()
    };
    check(
        World::new(event(), terms),
        &[
            (0, Add, "added"),
            (9, Event("a"), ""),
            (10, Event("b"), "event fires 10"),
            (20, Event("c"), ""),
            (21, Event("d"), ""),
        ],
    );
}

#[test]
fn a_schedule_may_go_by_its_own_last_run() {
    check(
        World::new(again(60, Since::Finish), Terms::default()),
        &[
            (0, Add, "added, next 60"),
            (60, Ring, "slot fires 60"),
            (500, Ring, ""),
            (500, start(1), STARTED),
            (512, done(1), "done, moved to 572"),
            (572, Ring, "slot fires 572"),
            (573, start(2), STARTED),
            (574, Ask::Finish(2, 1, broken(true)), "failed (it broke), moved to 634"),
            // A run by hand is a run.
            (600, Fire("now"), "manual fires now"),
            (634, Ring, "skipped_overlap 634"),
            (640, start(3), STARTED),
            (641, done(3), "done, moved to 701"),
            // Nobody was there for two days: once, and from then on.
            (701 + 200_000, Ring, "skipped_missed 701 (window)"),
            (701 + 200_060, Ring, "slot fires 200761"),
        ],
    );
    // The clock goes back; what is decided stays decided.
    let mut world = check(
        World::new(again(60, Since::Finish), Terms::default()),
        &[
            (900, Add, "added, next 960"),
            (960, Ring, "slot fires 960"),
            (961, start(1), STARTED),
            (100, done(1), "done, moved to 960.000001"),
        ],
    );
    world.definition.trigger = again(30, Since::Start);
    assert_eq!(world.ask(200, &Edit), "changed, next 960.000001");
    check(
        World::new(again(60, Since::Start), with(Overlap::Allow(2))),
        &[
            (0, Add, "added, next 60"),
            (63, Ring, "slot fires 60 late 3"),
            (122, Ring, ""),
            (123, Ring, "slot fires 123"),
            (183, Ring, "skipped_overlap 183"),
            (243, Ring, "skipped_overlap 243"),
        ],
    );
}

#[test]
fn a_paused_schedule_that_goes_by_its_last_run_goes_on() {
    check(
        World::new(again(60, Since::Finish), Terms::default()),
        &[
            (0, Add, "added, next 60"),
            (10, Pause, "paused"),
            (100, Go, "skipped_paused 60, resumed"),
            (159, Ring, ""),
            (160, Ring, "slot fires 160"),
            (161, Pause, "paused"),
            (162, start(1), STARTED),
            (163, done(1), "done, moved to 223"),
            (300, Go, "skipped_paused 223, resumed"),
            (360, Ring, "slot fires 360"),
        ],
    );
}

#[test]
fn a_slot_may_end_the_run_before_it() {
    check(
        World::new(every(60), with(Overlap::CancelOther)),
        &[
            (0, Add, "added, next 60"),
            (60, Ring, "slot fires 60"),
            // What has not begun is gone at once.
            (
                120,
                Ring,
                "cancelled (midwatch cancelled it: a newer slot takes its place), slot fires 120",
            ),
            (121, start(2), STARTED),
            (180, Ring, "cancel asked, waits 180"),
            (240, Ring, "coalesced 180 that waited into 240, waits 240"),
            (241, done(2), "cancelled (midwatch cancelled it: a newer slot takes its place)"),
            (241, Ring, "buffer fires 240 late 1"),
        ],
    );
    check(
        World::new(every(60), with(Overlap::TerminateOther)),
        &[
            (0, Add, "added, next 60"),
            (60, Ring, "slot fires 60"),
            (61, start(1), STARTED),
            (
                120,
                Ring,
                "cancelled (midwatch cancelled it: a newer slot takes its place), slot fires 120",
            ),
            (121, done(1), "no: run `R` is another's by now"),
        ],
    );
    // A run ends once, however many slots are due.
    let missed = Missed::Earliest;
    check(
        World::new(every(60), Terms { missed, ..with(Overlap::TerminateOther) }),
        &[
            (0, Add, "added, next 60"),
            (60, Ring, "slot fires 60"),
            (61, start(1), STARTED),
            (
                250,
                Ring,
                "cancelled (midwatch cancelled it: a newer slot takes its place), \
                 catch_up fires 120 late 130, coalesced 180 into 120, waits 240",
            ),
        ],
    );
}

#[test]
fn a_run_that_is_terminated_in_the_middle_of_an_effect_is_unknown() {
    let mut world = World::new(every(60), with(Overlap::TerminateOther));
    if let Some(agent) = &mut world.agent {
        agent.tier = kernel::backend::Tier::External;
    }
    check(
        world,
        &[
            (0, Add, "added, next 60"),
            (60, Ring, "slot fires 60"),
            (61, start(1), "started 1 1 tier 2"),
            (
                120,
                Ring,
                "unknown (a newer slot took its place after it had begun; whether it took effect is not known), slot fires 120",
            ),
        ],
    );
}

#[test]
fn an_edit_supersedes_what_was_not_decided() {
    let mut world = World::new(every(60), with(Overlap::BufferOne));
    for (second, ask, expected) in [
        (0, Add, "added, next 60"),
        (60, Ring, "slot fires 60"),
        (120, Ring, "waits 120"),
        (130, Edit, ""),
    ] {
        assert_eq!(world.ask(second, &ask), expected);
    }
    world.definition.trigger = every(45).into();
    let said = world.ask(200, &Edit);
    assert_eq!(
        said,
        "superseded 120 that waited (changed), superseded 180 (changed), changed, next 225"
    );
    let (schedule, progress) = (world.schedule().unwrap(), world.progress().unwrap());
    assert_eq!((schedule.revision, progress.revision), (2, 2));
    assert_eq!(world.ask(225, &Ring), "waits 225");
    // It goes on from where it is: no instant is decided twice.
    world.definition.trigger = every(1).into();
    assert_eq!(world.ask(100, &Edit), "superseded 225 that waited (changed), changed, next 226");
    world.definition.trigger = Trigger::Once { at_us: at(50).as_micros() }.into();
    assert!(world.ask(300, &Edit).starts_with("no: the schedule never fires after"));
    assert_eq!(world.ask(400, &Remove), "superseded 226..400 ×175 (removed), removed");
    assert_eq!(world.ask(500, &Edit), "no: there is no schedule `sch_0123abcd`");
}

#[test]
fn a_backfill_runs_what_has_no_run_and_lets_slots_wait_at_most() {
    check(
        World::new(every(60), Terms::default()),
        &[
            (200, Add, "added, next 240"),
            (240, Ring, "slot fires 240"),
            (241, Backfill(280, 400), "no: there is no slot to run in that time"),
            (241, Backfill(60, 1_000), "backfill 60..240 ×4"),
            (241, Backfill(0, 10), "no: slots from 2026-01-05T00:01:00Z on are being run already"),
            // As long as a run is live it waits.
            (241, Ring, ""),
            (242, start(1), STARTED),
            (243, done(1), "done"),
            (243, Ring, "backfill fires 60"),
            (244, start(2), STARTED),
            (300, Ring, "waits 300"),
            (305, done(2), "done"),
            (305, Ring, "buffer fires 300 late 5"),
            (306, start(3), STARTED),
            (307, done(3), "done"),
            (307, Ring, "backfill fires 120"),
            (308, start(4), STARTED),
            (309, done(4), "done"),
            (309, Ring, "backfill fires 180"),
            (310, start(5), STARTED),
            (311, done(5), "done"),
            (311, Ring, "backfill ends"),
            (311, Ring, ""),
            (312, EndBackfill, ""),
        ],
    );
    check(
        World::new(every(60), Terms::default()),
        &[
            (900_000, Add, "added, next 900060"),
            (
                900_001,
                Backfill(0, 600_000),
                "no: these are 10001 slots, and at most 10000 are run at a time",
            ),
            (900_001, Backfill(60, 600_000), "backfill 60..600000 ×10000"),
            (900_001, EndBackfill, "backfill ends"),
            (900_001, Ring, ""),
        ],
    );
}

/// It was asked for while the clock was ahead.
#[test]
fn a_backfill_does_not_wait_for_a_clock_that_was_set_back() {
    check(
        World::new(every(60), Terms::default()),
        &[
            (0, Add, "added, next 60"),
            (130, Ring, "coalesced 60 into 120, slot fires 120 late 10"),
            (131, start(1), STARTED),
            (132, done(1), "done"),
            (900, Backfill(60, 60), "backfill 60..60 ×1"),
            (150, Ring, "backfill fires 60"),
        ],
    );
}

/// S11.
#[test]
fn other_rules_of_a_zone_move_the_next_slot_and_repeat_no_wall_time() {
    let daily = Trigger::Daily {
        times: "09:00".parse().unwrap(),
        weekdays: Default::default(),
        dst: Default::default(),
    };
    let mut world = World::new(daily, Terms::default());
    world.definition.zone = "Europe/Berlin".parse().unwrap();
    // 09:00 in Berlin is 08:00 in UTC.
    assert_eq!(world.ask(0, &Add), "added, next 28800");
    assert_eq!(world.ask(28_800, &Ring), "slot fires 28800");
    let schedule = world.schedule().unwrap();
    let progress = world.progress().unwrap();
    let id: ScheduleId = "sch_0123abcd".parse().unwrap();
    let moved = |zone: &str, wall: Option<&str>, second: i64| {
        // As if these were the rules of Berlin from now on.
        let definition = Definition { zone: zone.parse().unwrap(), ..schedule.definition.clone() };
        let calendar = definition.calendar(None).unwrap();
        let at_once = Tick::new(&id, &schedule, &calendar, at(second));
        let body = rebase(Tick { decided_wall: wall, ..at_once }, &progress)?;
        let Body::Schedule(_, schedule::Event::Moved(moved)) = body else { return None };
        moved.ahead.next.map(|next| (next.as_micros() - at(0).as_micros()) / 1_000_000)
    };
    const DAY: i64 = 86_400;
    let wall = Some("2026-01-05T09:00:00+01:00");
    assert_eq!(moved("Europe/Berlin", wall, 30_000), None);
    // An hour later in the day: 09:00 of today has been.
    assert_eq!(moved("UTC", None, 30_000), Some(32_400));
    assert_eq!(moved("UTC", wall, 30_000), Some(DAY + 32_400));
    // An hour earlier: tomorrow's comes an hour earlier.
    assert_eq!(moved("Europe/Helsinki", wall, 30_000), Some(DAY + 25_200));
    // A tick finds the same when the slot that it waits for is none any more.
    let definition = Definition { zone: "UTC".parse().unwrap(), ..schedule.definition.clone() };
    let calendar = definition.calendar(None).unwrap();
    let later = Tick::new(&id, &schedule, &calendar, at(DAY + 28_800));
    let bodies = tick(Tick { decided_wall: wall, ..later }, &progress, &mut || RunId::of(9));
    let [Body::Schedule(_, schedule::Event::Moved(moved))] = bodies.as_slice() else {
        panic!("{bodies:?}");
    };
    assert_eq!(moved.ahead.next, Some(at(DAY + 32_400)));
}

#[test]
fn a_schedule_follows_one_that_is_there_and_never_itself() {
    let upstream = |count: usize| -> Vec<_> {
        let mut world = World::new(every(60), Terms::default());
        world.ask(0, &Add);
        let id = |number: usize| format!("sch_{number:08x}").parse::<ScheduleId>().unwrap();
        let (schedule, progress) = (world.schedule().unwrap(), world.progress().unwrap());
        (1..=count).map(|number| (id(number), schedule.clone(), progress.clone())).collect()
    };
    let follower = |id: &str| {
        let after = serde_json::json!({"kind": "after", "schedule": id, "on": "success"});
        let mut world = World::new(every(60), Terms::default());
        world.definition.trigger = serde_json::from_value(after).unwrap();
        world
    };
    let said = |world: &World, id: &ScheduleId, upstream: &[(ScheduleId, Schedule, _)]| {
        let ground = schedule::Ground {
            id,
            schedule: None,
            progress: None,
            agent: world.agent.as_ref(),
            upstream,
            fired: None,
            maker: None,
            now: at(0),
        };
        let definition = Box::new(world.definition.clone());
        let decided =
            decide(ground, &Actor::local_user(1), Command::Add { definition, paused: false });
        decided
            .map_or_else(|refusal| refusal.to_string(), |bodies| format!("{} events", bodies.len()))
    };
    let (world, me) = (follower("sch_00000001"), "sch_0123abcd".parse().unwrap());
    assert_eq!(said(&world, &me, &[]), "there is no schedule `sch_00000001`");
    assert_eq!(said(&world, &me, &upstream(CHAIN_MAX)), "1 events");
    assert_eq!(
        said(&world, &me, &upstream(CHAIN_MAX + 1)),
        "a schedule follows at most 16 others in a row"
    );
    let third = "sch_00000003".parse().unwrap();
    assert_eq!(
        said(&world, &third, &upstream(3)),
        "a schedule cannot follow itself: sch_00000003 follows sch_00000001 follows sch_00000002 follows sch_00000003"
    );
    let mut crowded = upstream(1);
    crowded[0].2.followers = (0..100).map(|_| third.clone()).collect();
    assert_eq!(
        said(&world, &me, &crowded),
        "schedule `sch_00000001` has as many followers as it may (100)"
    );
}
