//! Event triggers, edits, backfills, time zone changes, and slots that end the previous run.

use calendar::Trigger;
use kernel::schedule::terms::{Missed, Overlap, Resume, Terms};
use kernel::schedule::trigger::{EventTrigger, Since};
use kernel::schedule::{self, CHAIN_MAX, Command, Definition, Schedule, decide};
use kernel::slot::{Disposition, SlotOutcome};
use kernel::tick::{Tick, rebase, tick};
use kernel::{Actor, EventBody, RunId, ScheduleId};

use crate::support::{Op, World, at, every, failed_attempt};
use Op::{
    Add, After, Backfill, Edit, EndBackfill, Event, Fire, Pause, Remove, Resume as ResumeSchedule,
    Tick as RunTick,
};

type Step = (i64, Op, &'static str);

fn check(mut world: World, story: &[Step]) -> World {
    for (second, op, expected) in story {
        assert_eq!(&world.perform(*second, op), expected, "at {second}: {op:?}");
    }
    world
}

fn on_event() -> schedule::trigger::Trigger {
    schedule::trigger::Trigger::Event(EventTrigger::Event { name: "mail/new".parse().unwrap() })
}

fn after_own_run(seconds: i64, since: Since) -> schedule::trigger::Trigger {
    let every = format!("{seconds}s").parse().unwrap();
    schedule::trigger::Trigger::Event(EventTrigger::AfterOwnRun { every, since })
}

fn overlapping(overlap: Overlap) -> Terms {
    Terms { overlap, ..Terms::default() }
}

fn start(number: u128) -> Op {
    Op::Start(number)
}

fn done(number: u128) -> Op {
    Op::Finish(number, 1, Ok(()))
}

const STARTED: &str = "started 1 1 tier 0 repeatable";

#[test]
fn event_fires_at_once_and_a_second_follows_the_overlap_policy() {
    check(
        World::new(on_event(), Terms::default()),
        &[
            (0, Add, "added"),
            (60, RunTick, ""),
            (60, Event("a"), "event fires 60"),
            (61, Event("b"), "skipped_overlap 61"),
            (62, start(1), STARTED),
            (63, done(1), "done"),
            (63, Event("c"), "event fires 63"),
            (63, Event("d"), "skipped_overlap 63.000001"),
        ],
    );
    check(
        World::new(on_event(), overlapping(Overlap::BufferAll(2))),
        &[
            (0, Add, "added"),
            (1, Event("a"), "event fires 1"),
            (2, Event("b"), "waits 2"),
            (3, Event("c"), "waits 3"),
            (4, Event("d"), "skipped_full 4"),
            (5, start(1), STARTED),
            (6, done(1), "done"),
            (6, RunTick, "buffer fires 2 late 4"),
        ],
    );
}

/// A chain within its limit may run longer than it, because each schedule of it can be edited.
#[test]
fn event_after_too_long_a_chain_of_runs_is_skipped() {
    let deepest = u32::try_from(CHAIN_MAX).unwrap();
    let mut world = check(
        World::new(on_event(), Terms::default()),
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
            // An event outside the chain still fires.
            (9, Event("a"), "event fires 9"),
        ],
    );
    assert_eq!(world.run(2).unwrap().depth, deepest);
    let skipped = world.slot(7).unwrap().outcome;
    assert!(matches!(
        skipped,
        SlotOutcome::Passed { disposition: Disposition::SkippedDependency, .. }
    ));

    // A pause takes precedence.
    world.perform(10, &Pause);
    assert_eq!(world.perform(11, &After(deepest + 1)), "skipped_paused 11");
}

#[test]
fn event_in_a_pause_is_skipped_or_buffered() {
    check(
        World::new(on_event(), Terms::default()),
        &[
            (0, Add, "added"),
            (1, Pause, "paused"),
            (2, Event("a"), "skipped_paused 2"),
            (3, ResumeSchedule, "resumed"),
            (3, RunTick, ""),
        ],
    );
    check(
        World::new(on_event(), Terms { resume: Resume::AsMissed, ..Terms::default() }),
        &[
            (0, Add, "added"),
            (1, Pause, "paused"),
            (2, Event("a"), "waits 2"),
            (2, RunTick, ""),
            (3, ResumeSchedule, "resumed"),
            (3, RunTick, "buffer fires 2 late 1"),
        ],
    );
}

#[test]
fn event_outside_start_and_end_is_ignored() {
    let terms = Terms {
        start_at: Some(at(10)),
        end_at: Some(at(20)),
        max_fires: Some(1),
        ..Terms::default()
    };
    check(
        World::new(on_event(), terms),
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
fn interval_counts_from_the_schedules_own_last_run() {
    check(
        World::new(after_own_run(60, Since::Finish), Terms::default()),
        &[
            (0, Add, "added, next 60"),
            (60, RunTick, "slot fires 60"),
            (500, RunTick, ""),
            (500, start(1), STARTED),
            (512, done(1), "done, moved to 572"),
            (572, RunTick, "slot fires 572"),
            (573, start(2), STARTED),
            (574, Op::Finish(2, 1, failed_attempt(true)), "failed (it broke), moved to 634"),
            // A manual run counts as the last run.
            (600, Fire("now"), "manual fires now"),
            (634, RunTick, "skipped_overlap 634"),
            (640, start(3), STARTED),
            (641, done(3), "done, moved to 701"),
            // After two days without a daemon it is missed once, and counts from then on.
            (701 + 200_000, RunTick, "skipped_missed 701 (window)"),
            (701 + 200_060, RunTick, "slot fires 200761"),
        ],
    );
    // The clock is set back; decided slots stay decided.
    let mut world = check(
        World::new(after_own_run(60, Since::Finish), Terms::default()),
        &[
            (900, Add, "added, next 960"),
            (960, RunTick, "slot fires 960"),
            (961, start(1), STARTED),
            (100, done(1), "done, moved to 960.000001"),
        ],
    );
    world.definition.trigger = after_own_run(30, Since::Start);
    assert_eq!(world.perform(200, &Edit), "changed, next 960.000001");
    check(
        World::new(after_own_run(60, Since::Start), overlapping(Overlap::Allow(2))),
        &[
            (0, Add, "added, next 60"),
            (63, RunTick, "slot fires 60 late 3"),
            (122, RunTick, ""),
            (123, RunTick, "slot fires 123"),
            (183, RunTick, "skipped_overlap 183"),
            (243, RunTick, "skipped_overlap 243"),
        ],
    );
}

#[test]
fn interval_after_own_run_continues_after_a_pause() {
    check(
        World::new(after_own_run(60, Since::Finish), Terms::default()),
        &[
            (0, Add, "added, next 60"),
            (10, Pause, "paused"),
            (100, ResumeSchedule, "skipped_paused 60, resumed"),
            (159, RunTick, ""),
            (160, RunTick, "slot fires 160"),
            (161, Pause, "paused"),
            (162, start(1), STARTED),
            (163, done(1), "done, moved to 223"),
            (300, ResumeSchedule, "skipped_paused 223, resumed"),
            (360, RunTick, "slot fires 360"),
        ],
    );
}

#[test]
fn slot_ends_the_previous_run_by_overlap_policy() {
    check(
        World::new(every(60), overlapping(Overlap::CancelOther)),
        &[
            (0, Add, "added, next 60"),
            (60, RunTick, "slot fires 60"),
            // A queued run is cancelled at once.
            (
                120,
                RunTick,
                "cancelled (midwatch cancelled it: a newer slot replaced it), slot fires 120",
            ),
            (121, start(2), STARTED),
            (180, RunTick, "cancel requested, waits 180"),
            (240, RunTick, "coalesced 180 that waited into 240, waits 240"),
            (241, done(2), "cancelled (midwatch cancelled it: a newer slot replaced it)"),
            (241, RunTick, "buffer fires 240 late 1"),
        ],
    );
    check(
        World::new(every(60), overlapping(Overlap::TerminateOther)),
        &[
            (0, Add, "added, next 60"),
            (60, RunTick, "slot fires 60"),
            (61, start(1), STARTED),
            (
                120,
                RunTick,
                "cancelled (midwatch cancelled it: a newer slot replaced it), slot fires 120",
            ),
            (121, done(1), "no: run `R` has a newer attempt"),
        ],
    );
    // A run ends once, however many slots are due.
    let missed = Missed::Earliest;
    check(
        World::new(every(60), Terms { missed, ..overlapping(Overlap::TerminateOther) }),
        &[
            (0, Add, "added, next 60"),
            (60, RunTick, "slot fires 60"),
            (61, start(1), STARTED),
            (
                250,
                RunTick,
                "cancelled (midwatch cancelled it: a newer slot replaced it), \
                 catch_up fires 120 late 130, coalesced 180 into 120, waits 240",
            ),
        ],
    );
}

#[test]
fn terminated_unrepeatable_run_ends_unknown() {
    let mut world = World::new(every(60), overlapping(Overlap::TerminateOther));
    if let Some(agent) = &mut world.agent {
        agent.tier = kernel::backend::Tier::External;
    }
    check(
        world,
        &[
            (0, Add, "added, next 60"),
            (60, RunTick, "slot fires 60"),
            (61, start(1), "started 1 1 tier 2"),
            (
                120,
                RunTick,
                "unknown (a newer slot replaced it after it started; whether it took effect is unknown), slot fires 120",
            ),
        ],
    );
}

#[test]
fn edit_supersedes_undecided_slots() {
    let mut world = World::new(every(60), overlapping(Overlap::BufferOne));
    for (second, op, expected) in [
        (0, Add, "added, next 60"),
        (60, RunTick, "slot fires 60"),
        (120, RunTick, "waits 120"),
        (130, Edit, ""),
    ] {
        assert_eq!(world.perform(second, &op), expected);
    }
    world.definition.trigger = every(45).into();
    let events = world.perform(200, &Edit);
    assert_eq!(
        events,
        "superseded 120 that waited (changed), superseded 180 (changed), changed, next 225"
    );
    let (schedule, progress) = (world.schedule().unwrap(), world.progress().unwrap());
    assert_eq!((schedule.revision, progress.revision), (2, 2));
    assert_eq!(world.perform(225, &RunTick), "waits 225");
    // It continues after the decided slots: no instant is decided twice.
    world.definition.trigger = every(1).into();
    assert_eq!(
        world.perform(100, &Edit),
        "superseded 225 that waited (changed), changed, next 226"
    );
    world.definition.trigger = Trigger::Once { at_us: at(50).as_micros() }.into();
    assert!(world.perform(300, &Edit).starts_with("no: the schedule never fires after"));
    assert_eq!(world.perform(400, &Remove), "superseded 226..400 ×175 (removed), removed");
    assert_eq!(world.perform(500, &Edit), "no: schedule `sch_0123abcd` does not exist");
}

#[test]
fn backfill_runs_slots_without_a_run_and_only_delays_others() {
    check(
        World::new(every(60), Terms::default()),
        &[
            (200, Add, "added, next 240"),
            (240, RunTick, "slot fires 240"),
            (241, Backfill(280, 400), "no: the range has no slots to backfill"),
            (241, Backfill(60, 1_000), "backfill 60..240 ×4"),
            (
                241,
                Backfill(0, 10),
                "no: a backfill is already running, next slot 2026-01-05T00:01:00Z",
            ),
            // The backfill waits while a run is live.
            (241, RunTick, ""),
            (242, start(1), STARTED),
            (243, done(1), "done"),
            (243, RunTick, "backfill fires 60"),
            (244, start(2), STARTED),
            (300, RunTick, "waits 300"),
            (305, done(2), "done"),
            (305, RunTick, "buffer fires 300 late 5"),
            (306, start(3), STARTED),
            (307, done(3), "done"),
            (307, RunTick, "backfill fires 120"),
            (308, start(4), STARTED),
            (309, done(4), "done"),
            (309, RunTick, "backfill fires 180"),
            (310, start(5), STARTED),
            (311, done(5), "done"),
            (311, RunTick, "backfill ends"),
            (311, RunTick, ""),
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
                "no: the range has 10001 slots; a backfill runs at most 10000",
            ),
            (900_001, Backfill(60, 600_000), "backfill 60..600000 ×10000"),
            (900_001, EndBackfill, "backfill ends"),
            (900_001, RunTick, ""),
        ],
    );
}

#[test]
fn backfill_starts_after_the_clock_was_set_back() {
    check(
        World::new(every(60), Terms::default()),
        &[
            (0, Add, "added, next 60"),
            (130, RunTick, "coalesced 60 into 120, slot fires 120 late 10"),
            (131, start(1), STARTED),
            (132, done(1), "done"),
            (900, Backfill(60, 60), "backfill 60..60 ×1"),
            (150, RunTick, "backfill fires 60"),
        ],
    );
}

/// S11.
#[test]
fn changed_zone_rules_move_the_next_slot_and_repeat_no_wall_time() {
    let daily = Trigger::Daily {
        times: "09:00".parse().unwrap(),
        weekdays: Default::default(),
        dst: Default::default(),
    };
    let mut world = World::new(daily, Terms::default());
    world.definition.zone = "Europe/Berlin".parse().unwrap();
    // 09:00 in Berlin is 08:00 in UTC.
    assert_eq!(world.perform(0, &Add), "added, next 28800");
    assert_eq!(world.perform(28_800, &RunTick), "slot fires 28800");
    let schedule = world.schedule().unwrap();
    let progress = world.progress().unwrap();
    let id: ScheduleId = "sch_0123abcd".parse().unwrap();
    let moved = |zone: &str, wall: Option<&str>, second: i64| {
        // As if Berlin had these rules from now on.
        let definition = Definition { zone: zone.parse().unwrap(), ..schedule.definition.clone() };
        let calendar = definition.calendar(None).unwrap();
        let tick = Tick::new(&id, &schedule, &calendar, at(second));
        let body = rebase(Tick { decided_wall: wall, ..tick }, &progress)?;
        let EventBody::Schedule(_, schedule::Event::Moved(moved)) = body else { return None };
        moved.next_fire.slot.map(|next| (next.as_micros() - at(0).as_micros()) / 1_000_000)
    };
    const DAY: i64 = 86_400;
    let wall = Some("2026-01-05T09:00:00+01:00");
    assert_eq!(moved("Europe/Berlin", wall, 30_000), None);
    // An hour later in UTC: today's 09:00 was decided already.
    assert_eq!(moved("UTC", None, 30_000), Some(32_400));
    assert_eq!(moved("UTC", wall, 30_000), Some(DAY + 32_400));
    // An hour earlier in UTC: tomorrow's slot comes an hour earlier.
    assert_eq!(moved("Europe/Helsinki", wall, 30_000), Some(DAY + 25_200));
    // A tick moves too, if its next slot no longer exists.
    let definition = Definition { zone: "UTC".parse().unwrap(), ..schedule.definition.clone() };
    let calendar = definition.calendar(None).unwrap();
    let later = Tick::new(&id, &schedule, &calendar, at(DAY + 28_800));
    let bodies = tick(Tick { decided_wall: wall, ..later }, &progress, &mut || RunId::of(9));
    let [EventBody::Schedule(_, schedule::Event::Moved(moved))] = bodies.as_slice() else {
        panic!("{bodies:?}");
    };
    assert_eq!(moved.next_fire.slot, Some(at(DAY + 32_400)));
}

#[test]
fn schedule_depends_on_an_existing_one_and_never_on_itself() {
    let upstream = |count: usize| -> Vec<_> {
        let mut world = World::new(every(60), Terms::default());
        world.perform(0, &Add);
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
    let decide_add = |world: &World, id: &ScheduleId, upstream: &[(ScheduleId, Schedule, _)]| {
        let context = schedule::ScheduleContext {
            id,
            schedule: None,
            progress: None,
            agent: world.agent.as_ref(),
            tool: None,
            upstream,
            fired: None,
            caller: None,
            now: at(0),
        };
        let definition = Box::new(world.definition.clone());
        let decided =
            decide(context, &Actor::local_user(1), Command::Add { definition, paused: false });
        decided
            .map_or_else(|refusal| refusal.to_string(), |bodies| format!("{} events", bodies.len()))
    };
    let (world, me) = (follower("sch_00000001"), "sch_0123abcd".parse().unwrap());
    assert_eq!(decide_add(&world, &me, &[]), "schedule `sch_00000001` does not exist");
    assert_eq!(decide_add(&world, &me, &upstream(CHAIN_MAX)), "1 events");
    assert_eq!(
        decide_add(&world, &me, &upstream(CHAIN_MAX + 1)),
        "a schedule can follow a chain of at most 16 others"
    );
    let third = "sch_00000003".parse().unwrap();
    assert_eq!(
        decide_add(&world, &third, &upstream(3)),
        "a schedule cannot follow itself: sch_00000003 follows sch_00000001 follows sch_00000002 follows sch_00000003"
    );
    let mut crowded = upstream(1);
    crowded[0].2.dependents = (0..100).map(|_| third.clone()).collect();
    assert_eq!(
        decide_add(&world, &me, &crowded),
        "schedule `sch_00000001` has the most dependents allowed (100)"
    );
}
