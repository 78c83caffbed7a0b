//! A run from the queue to its end: who may do what to it, and when it is tried again.

use kernel::Role;
use kernel::backend::{Backend, BackendKind, Settings, Tier};
use kernel::run::{
    Cause, Command, Failure, Ground, Kind, MESSAGE_BYTES_MAX, OUTPUT_BYTES_MAX, Outcome, Output,
    Report, State, WAIT_US_MAX, apply, finish, give_back,
};
use kernel::schedule::Action;
use kernel::schedule::terms::{Overlap, Retry, Terms};
use kernel::{Body, RunId};

use crate::support::{Ask, World, at, broken, every};
use Ask::{Add, Finish, Fire, Interrupt, Recover, Remove, Run, Start, StartAlone, Tick};

/// A story about the first run of a schedule: second, what is asked, what is decided.
fn check(world: &mut World, story: &[(i64, Ask, &str)]) {
    world.ask(0, &Add);
    assert_eq!(world.ask(60, &Tick), "slot fires 60");
    for (second, ask, expected) in story {
        assert_eq!(&world.ask(*second, ask), expected, "at {second}: {ask:?}");
    }
}

fn world(terms: Terms) -> World {
    World::new(every(60), terms)
}

fn tries(attempts: u32) -> Terms {
    Terms { retry: Retry { attempts, ..Retry::default() }, ..Terms::default() }
}

/// With an agent whose work may not be done twice.
fn effectful() -> World {
    let mut world = world(Terms::default());
    let settings = Settings { argv: vec!["run".into()], ..Settings::default() };
    let agent = world.agent.as_mut().unwrap();
    agent.backend = Backend::parse(BackendKind::Command, settings).unwrap();
    agent.tier = Tier::LocalWrite;
    world
}

fn cancel() -> Ask {
    Run(1, Command::Cancel { note: Some("too slow".into()) })
}

fn retry() -> Ask {
    Run(1, Command::Retry)
}

fn settle(outcome: Outcome) -> Ask {
    Run(1, Command::Settle { outcome, note: None })
}

const STARTED: &str = "started 1 1 tier 0 repeatable";
const CANCELLED: &str = "cancelled (uid:7 cancelled it: too slow)";
const UNKNOWN: &str =
    "unknown (it was cut off after it had begun; whether it took effect is not known)";
const STALE: &str = "no: run `R` is another's by now";

#[test]
fn a_try_that_failed_is_repeated_with_a_new_epoch() {
    check(
        &mut world(tries(2)),
        &[
            (60, Finish(1, 0, Ok(())), STALE),
            (61, Start(1), STARTED),
            (61, Start(1), ""),
            (62, Finish(1, 1, broken(false)), "retried from 62.5 (it broke)"),
            (62, Finish(1, 1, broken(false)), STALE),
            (62, Start(1), ""),
            (63, Start(1), "started 2 2 tier 0 repeatable"),
            // Whoever had it before.
            (64, Finish(1, 1, Ok(())), STALE),
            (64, Finish(1, 3, Ok(())), STALE),
            (65, Finish(1, 2, broken(false)), "failed (it broke)"),
            (66, Finish(1, 2, Ok(())), STALE),
            (66, Start(1), ""),
            (66, Recover(1), ""),
            (67, retry(), "requeued"),
            // The count goes on, and as many more may fail.
            (68, Start(1), "started 3 3 tier 0 repeatable"),
            (69, Finish(1, 3, broken(false)), "retried from 69.5 (it broke)"),
            (70, Start(1), "started 4 4 tier 0 repeatable"),
            (71, Finish(1, 4, broken(false)), "failed (it broke)"),
            (72, retry(), "requeued"),
            (73, Start(1), "started 5 5 tier 0 repeatable"),
            (74, Recover(1), "retried from 74 (it was cut off, and may be done twice)"),
            (74, Start(1), "started 6 6 tier 0 repeatable"),
            (75, Finish(1, 6, Ok(())), "done"),
        ],
    );
    check(
        &mut world(Terms::default()),
        &[(61, Start(1), STARTED), (62, Finish(1, 1, broken(true)), "failed (it broke)")],
    );
}

/// A process that has lost its run has nothing to break off, however it was lost.
#[test]
fn only_the_try_at_work_is_broken_off() {
    let stopped = "retried from 63 (the watch stopped, and it may be done twice)";
    check(
        &mut world(Terms::default()),
        &[
            (60, Interrupt(1, 0), STALE),
            (61, Start(1), STARTED),
            (62, Recover(1), "retried from 62 (it was cut off, and may be done twice)"),
            (62, Interrupt(1, 1), STALE),
            (62, Start(1), "started 2 2 tier 0 repeatable"),
            (63, Interrupt(1, 1), STALE),
            (63, Interrupt(1, 3), STALE),
            (63, Interrupt(1, 2), stopped),
            (63, Interrupt(1, 2), STALE),
            (64, Start(1), "started 3 2 tier 0 repeatable"),
            (65, Finish(1, 3, Ok(())), "done"),
            (66, Interrupt(1, 3), STALE),
        ],
    );
    check(
        &mut effectful(),
        &[
            (61, Start(1), "started 1 1 tier 1"),
            (62, Interrupt(1, 0), STALE),
            (62, Interrupt(1, 1), UNKNOWN),
        ],
    );
}

/// What is known of a failed try decides; whether it may be done twice only where it may have been done.
#[test]
fn a_try_that_may_have_taken_effect_is_repeated_only_if_that_does_no_harm() {
    let failed = |kind| Err(Failure { cause: Cause::new("oops", "it broke"), kind });
    let hour = WAIT_US_MAX / 1_000_000;
    for (kind, effectful_says, repeatable_says) in [
        (Kind::Permanent, "failed (it broke)", "failed (it broke)"),
        (Kind::Delivered, "failed (it broke)", "retried from 62.5 (it broke)"),
        (Kind::Doubtful, "unknown (it broke)", "retried from 62.5 (it broke)"),
    ] {
        let effectful_start = "started 1 1 tier 1";
        for (mut world, started, expected) in [
            (effectful(), effectful_start, effectful_says),
            (world(Terms::default()), STARTED, repeatable_says),
        ] {
            let finish = Finish(1, 1, failed(kind));
            check(&mut world, &[(61, Start(1), started), (62, finish, expected)]);
        }
    }
    for (wait_s, expected) in [
        (0, "retried from 62.5 (it broke)".to_owned()),
        (30, "retried from 92 (it broke)".to_owned()),
        (hour, format!("retried from {} (it broke)", 62 + hour)),
        (hour + 1, format!("retried from {} (it broke)", 62 + hour)),
        (-1, "retried from 62.5 (it broke)".to_owned()),
    ] {
        let finish = Finish(1, 1, failed(Kind::Passing { wait_us: wait_s * 1_000_000 }));
        check(&mut effectful(), &[(61, Start(1), "started 1 1 tier 1"), (62, finish, &expected)]);
    }
}

/// The runs that follow would fail as well; but a schedule that shall never be paused goes on.
#[test]
fn a_schedule_that_nobody_pays_for_is_paused_at_once() {
    let unpaid = || Err(Failure { cause: Cause::new("oops", "it broke"), kind: Kind::Unpaid });
    let paused = "failed (it broke), paused (nobody pays for its agent any more: resume it when \
                  somebody does)";
    for (pause_after, expected) in [(5, paused), (1, paused), (0, "failed (it broke)")] {
        let mut world = world(Terms { pause_after, ..Terms::default() });
        let finish = Finish(1, 1, unpaid());
        check(&mut world, &[(61, Start(1), STARTED), (62, finish, expected)]);
    }
}

#[test]
fn what_people_may_ask_depends_on_the_state() {
    let wrong = |state: &str| {
        format!(
            "no: run `R` is {state}, and only a run that has failed or was cancelled can be tried again"
        )
    };
    let unsettled = |state: &str| {
        format!("no: run `R` is {state}, and only a run that ended unknown can be settled")
    };
    let over = |state: &str| {
        format!("no: run `R` is {state}, and only a run that has not ended can be cancelled")
    };
    let ways: [(&[Ask], &str, &str, &str); 6] = [
        (&[], "queued", CANCELLED, ""),
        (&[Start(1)], "running", "cancel asked", ""),
        (&[Start(1), Finish(1, 1, Ok(()))], "done", &over("done"), ""),
        (&[Start(1), Finish(1, 1, broken(true))], "failed", &over("failed"), "requeued"),
        (&[cancel()], "cancelled", "", "requeued"),
        (&[Start(1), Recover(1)], "unknown", &over("unknown"), ""),
    ];
    for (way, state, cancelled, retried) in ways {
        let begin = || {
            let mut world = effectful();
            check(&mut world, &[]);
            way.iter().for_each(|ask| drop(world.ask(60, ask)));
            assert_eq!(world.run(1).unwrap().state.name(), state);
            world
        };
        assert_eq!(begin().ask(61, &cancel()), cancelled, "{state}");
        let retried = if retried.is_empty() { wrong(state) } else { retried.to_owned() };
        assert_eq!(begin().ask(61, &retry()), retried, "{state}");
        let settled = if state == "unknown" { "settled done".to_owned() } else { unsettled(state) };
        assert_eq!(begin().ask(61, &settle(Outcome::Done)), settled, "{state}");
        let unknown = "no: a run is settled as done, failed or cancelled";
        assert_eq!(begin().ask(61, &settle(Outcome::Unknown)), unknown, "{state}");
    }
}

#[test]
fn cancel_wins_unless_the_end_came_first() {
    let ends = [Ok(()), broken(false), broken(true)];
    for result in ends {
        let story = [
            (61, Start(1), STARTED),
            (62, cancel(), "cancel asked"),
            (62, cancel(), ""),
            (63, Finish(1, 1, result), CANCELLED),
            (64, cancel(), ""),
        ];
        check(&mut world(Terms::default()), &story);
    }
    check(
        &mut world(Terms::default()),
        &[(61, Start(1), STARTED), (62, cancel(), "cancel asked"), (63, Recover(1), CANCELLED)],
    );
    // A cancel that was asked is not asked of a new try.
    check(
        &mut world(Terms::default()),
        &[
            (61, Start(1), STARTED),
            (62, cancel(), "cancel asked"),
            (63, Finish(1, 1, Ok(())), CANCELLED),
            (64, retry(), "requeued"),
            (65, Start(1), "started 2 2 tier 0 repeatable"),
            (66, Finish(1, 2, Ok(())), "done"),
        ],
    );
}

#[test]
fn what_was_cut_off_is_repeated_only_if_that_does_no_harm() {
    check(
        &mut world(tries(2)),
        &[
            (60, Recover(1), ""),
            (61, Start(1), STARTED),
            (62, Recover(1), "retried from 62 (it was cut off, and may be done twice)"),
            (62, Start(1), "started 2 2 tier 0 repeatable"),
            // It may be what brings the watch down.
            (63, Recover(1), "failed (it was cut off as often as it may be tried)"),
        ],
    );
    check(
        &mut effectful(),
        &[
            (61, Start(1), "started 1 1 tier 1"),
            (62, cancel(), "cancel asked"),
            (63, Recover(1), UNKNOWN),
            (64, settle(Outcome::Failed), "settled failed"),
            (65, settle(Outcome::Failed), ""),
            (
                65,
                settle(Outcome::Done),
                "no: run `R` is failed, and only a run that ended unknown can be settled",
            ),
        ],
    );
    let mut external = world(Terms::default());
    external.definition.tier = Some(Tier::External);
    check(&mut external, &[(61, Start(1), "started 1 1 tier 2"), (62, Recover(1), UNKNOWN)]);
}

#[test]
fn what_somebody_said_is_forgotten_when_it_is_tried_again() {
    let mut world = effectful();
    check(
        &mut world,
        &[
            (61, Start(1), "started 1 1 tier 1"),
            (62, Recover(1), UNKNOWN),
            (63, settle(Outcome::Failed), "settled failed"),
            (64, retry(), "requeued"),
            (65, Start(1), "started 2 2 tier 1"),
            (66, Finish(1, 2, Ok(())), "done"),
        ],
    );
    let run = world.run(1).unwrap();
    assert_eq!((run.settled_by, run.settled), (None, None));
    assert_eq!(world.run(1).unwrap().first_outcome, Some(Outcome::Unknown));
}

#[test]
fn a_run_without_what_it_needs_ends() {
    let mut alone = world(Terms { pause_after: 1, ..Terms::default() });
    check(
        &mut alone,
        &[(61, StartAlone(1), "failed (there is no agent `ada`), paused (the last run failed)")],
    );
    let mut tool = world(Terms::default());
    tool.definition.action = Action::Tool { tool: "mail".into(), payload: "{}".into(), hash: None };
    check(&mut tool, &[(61, Start(1), "failed (there is no tool `mail`)")]);
    check(
        &mut world(Terms::default()),
        &[
            (61, Remove, "removed"),
            (62, Start(1), "cancelled (its schedule was removed before it began)"),
            (63, retry(), "no: there is no schedule `sch_0123abcd`"),
        ],
    );
    // One that is at work goes on, but not again.
    check(
        &mut world(Terms::default()),
        &[
            (61, Start(1), STARTED),
            (62, Remove, "removed"),
            (63, Finish(1, 1, broken(false)), "failed (it broke)"),
        ],
    );
}

#[test]
fn failures_in_a_row_pause_the_schedule() {
    let mut world = world(Terms { pause_after: 2, ..tries(1) });
    let failed = "failed (it broke)";
    check(
        &mut world,
        &[
            (61, Start(1), STARTED),
            (62, Finish(1, 1, broken(false)), failed),
            (120, Tick, "slot fires 120"),
            (121, Start(2), STARTED),
            (122, Finish(2, 1, Ok(())), "done"),
            (180, Tick, "slot fires 180"),
            (181, Start(3), STARTED),
            (182, Finish(3, 1, broken(false)), failed),
            (240, Tick, "slot fires 240"),
            (241, Start(4), STARTED),
            (
                242,
                Finish(4, 1, broken(false)),
                "failed (it broke), paused (the last 2 runs failed)",
            ),
            // It is paused already.
            (243, Fire("k"), "manual fires k"),
            (244, Start(5), STARTED),
            (245, Finish(5, 1, broken(false)), failed),
            (300, Ask::Resume, "skipped_paused 300, resumed"),
            (360, Tick, "slot fires 360"),
            (361, Start(6), STARTED),
            (362, Finish(6, 1, broken(false)), failed),
        ],
    );
    assert_eq!(world.progress().unwrap().failures, 1);
}

#[test]
fn a_run_that_is_tried_again_needs_room() {
    let live = "no: run `run_00000000000000000000000000000002` is live, and the overlap policy lets no other run beside it";
    let story = |second: &'static str| {
        [
            (61, Start(1), STARTED),
            (62, Finish(1, 1, broken(true)), "failed (it broke)"),
            (120, Tick, "slot fires 120"),
            (121, retry(), second),
        ]
    };
    check(&mut world(Terms::default()), &story(live));
    let overlap = Overlap::Allow(2);
    check(&mut world(Terms { overlap, ..Terms::default() }), &story("requeued"));
}

#[test]
fn only_operators_ask() {
    let mut world = world(Terms::default());
    check(&mut world, &[]);
    (world.actor.name, world.actor.role) = ("bob".into(), Role::Runner);
    for ask in [cancel(), retry(), settle(Outcome::Done)] {
        let said = "no: this needs the role `operator`, and `bob` has the role `runner`";
        assert_eq!(world.ask(61, &ask), said);
    }
}

#[test]
fn a_report_is_kept_within_limits() {
    let mut world = world(Terms::default());
    check(&mut world, &[(61, Start(1), STARTED)]);
    let (id, run) = (RunId::of(1), world.run(1).unwrap());
    for over in [0, 1] {
        let ground = Ground { id: &id, run: &run, definition: None, progress: None, now: at(62) };
        let cause = Cause { code: "c".into(), message: "m".repeat(MESSAGE_BYTES_MAX + over) };
        let text = "t".repeat(OUTPUT_BYTES_MAX + over);
        let output = Some(Output { bytes: text.len() as u64, text: text.into(), file: None });
        let result = Err(Failure { cause, kind: Kind::Permanent });
        let report = Report { result, output, usage: None };
        let bodies = finish(ground, 1, report, 0).unwrap();
        let [Body::Run(_, kernel::run::Event::Ended(ended))] = bodies.as_slice() else {
            unreachable!("it ended")
        };
        assert_eq!(ended.output.as_ref().unwrap().text.plain().unwrap().len(), OUTPUT_BYTES_MAX);
        assert_eq!(ended.output.as_ref().unwrap().bytes, (OUTPUT_BYTES_MAX + over) as u64);
        assert_eq!(ended.cause.as_ref().unwrap().message.len(), MESSAGE_BYTES_MAX);
    }
}

/// What may not be done twice is queued again all the same: nothing was done about it.
#[test]
fn only_its_holder_gives_a_run_back() {
    let mut world = world(Terms::default());
    world.agent.as_mut().unwrap().tier = Tier::External;
    let id = RunId::of(1);
    let given_back = |world: &World, holder: &str| {
        let run = world.run(1).unwrap();
        let ground = Ground { id: &id, run: &run, definition: None, progress: None, now: at(62) };
        give_back(ground, holder)
    };
    check(&mut world, &[]);
    assert_eq!(given_back(&world, "me"), [], "it is queued");
    world.ask(61, &Start(1));
    let State::Running { holder, .. } = world.run(1).unwrap().state else { unreachable!("begun") };
    assert_eq!(given_back(&world, "another"), []);
    let bodies = given_back(&world, &holder);
    let after = apply(
        world.run(1),
        match bodies.as_slice() {
            [Body::Run(_, event)] => event,
            other => unreachable!("{other:?}"),
        },
    );
    assert_eq!(after.unwrap().state, State::Queued { from: at(62) });
    // Somebody wants it to stop: then it does not wait again.
    world.ask(62, &cancel());
    assert_eq!(given_back(&world, "another"), []);
    let bodies = given_back(&world, &holder);
    let [Body::Run(_, kernel::run::Event::Ended(ended))] = bodies.as_slice() else {
        panic!("{bodies:?}")
    };
    assert_eq!(ended.outcome, Outcome::Cancelled);
    // And is not counted, as nothing was done.
    let charge = world.run(1).unwrap().charge;
    assert!(charge.is_some() && ended.refund == charge, "{ended:?}");
}
