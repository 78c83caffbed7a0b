//! Dispositions of slots and their descriptions.

use kernel::backend::{Backend, BackendKind, Settings};
use kernel::run::{Command, Outcome};
use kernel::schedule::terms::{Missed, Overlap, Terms};
use kernel::slot::{Disposition, Slot, SlotOutcome};

use crate::support::{Op, World, at, every, failed_attempt};
use Op::{
    Add, Finish, Fire, OnRun, Pause, Recover, Remove, Resume, Start, StartWithoutAgent, Tick,
};

/// Second and operation.
type Step = (i64, Op);

/// Checks disposition and description of the slot row that ends at `second` after a story.
fn check(terms: Terms, story: &[Step], second: i64, disposition: Disposition, sentence: &str) {
    let mut world = World::new(every(600), terms);
    // A backend that is not repeatable.
    let settings = Settings { argv: vec!["run".into()], ..Settings::default() };
    world.agent.as_mut().unwrap().backend = Backend::parse(BackendKind::Command, settings).unwrap();
    for (second, op) in [(0, Add)].iter().chain(story) {
        let events = world.perform(*second, op);
        assert!(!events.is_empty() && !events.starts_with("no"), "at {second}: {op:?}: {events}");
    }
    let slot = world.slot(second).expect("a slot");
    let run = match &slot.outcome {
        SlotOutcome::Run { .. } => world.run(1),
        SlotOutcome::Passed { .. } | SlotOutcome::Buffered => None,
    };
    assert_eq!(slot.disposition(run.as_ref()), disposition);
    let description = slot.describe(run.as_ref(), &world.progress().unwrap());
    assert_eq!(description.replace("run_00000000000000000000000000000001", "R"), sentence);
}

fn terms() -> Terms {
    Terms::default()
}

fn missed(missed: Missed) -> Terms {
    Terms { missed, ..terms() }
}

fn overlap(overlap: Overlap) -> Terms {
    Terms { overlap, ..terms() }
}

#[test]
fn fired_slot_describes_the_state_of_its_run() {
    use Disposition::*;
    let slot = "the slot of 2026-01-05T00:10:00Z fired run R";
    let cases: [(&[Step], Disposition, &str); 11] = [
        (&[(600, Tick)], Fired, "; it is queued"),
        (&[(600, Tick), (600, Start(1))], Fired, "; it is running"),
        (
            &[(600, Tick), (600, Start(1)), (601, Finish(1, 1, failed_attempt(false)))],
            Fired,
            "; it waits for another attempt: it broke",
        ),
        (
            &[(600, Tick), (601, Start(1)), (609, Finish(1, 1, Ok(())))],
            Ran,
            " 1 second late; it is done",
        ),
        // Decided in time, but late in the queue.
        (
            &[(600, Tick), (602, Start(1)), (609, Finish(1, 1, Ok(())))],
            RanLate,
            " 2 seconds late; it is done",
        ),
        (
            &[(602, Tick), (602, Start(1)), (609, Finish(1, 1, Ok(())))],
            RanLate,
            " 2 seconds late; it is done",
        ),
        (
            &[(600, Tick), (600, Start(1)), (609, Finish(1, 1, failed_attempt(true)))],
            Failed,
            "; it failed: it broke",
        ),
        (
            &[(600, Tick), (600, StartWithoutAgent(1))],
            Failed,
            "; it failed: agent `ada` does not exist",
        ),
        (
            &[(600, Tick), (601, OnRun(1, Command::Cancel { note: Some("too slow".into()) }))],
            Cancelled,
            "; uid:7 cancelled it: too slow",
        ),
        (
            &[(600, Tick), (601, Remove), (602, Start(1))],
            Cancelled,
            "; it was cancelled: its schedule was removed before it started",
        ),
        (
            &[(600, Tick), (600, Start(1)), (601, Recover(1))],
            Unknown,
            "; its outcome is unknown: interrupted after it started; whether it took effect is unknown",
        ),
    ];
    for (story, disposition, rest) in cases {
        check(terms(), story, 600, disposition, &format!("{slot}{rest}"));
    }
}

#[test]
fn first_outcome_decides_the_disposition() {
    for (note, suffix) in [(None, ""), (Some("I have seen it"), ": I have seen it")] {
        let note = note.map(str::to_owned);
        let settled = OnRun(1, Command::Settle { outcome: Outcome::Done, note });
        let fired = "the slot of 2026-01-05T00:10:00Z fired run R; it is done, settled by uid:7";
        check(
            terms(),
            &[(600, Tick), (600, Start(1)), (601, Recover(1)), (602, settled)],
            600,
            Disposition::Unknown,
            &format!("{fired}{suffix}"),
        );
    }
    check(
        terms(),
        &[
            (600, Tick),
            (600, Start(1)),
            (601, Finish(1, 1, failed_attempt(true))),
            (602, OnRun(1, Command::Retry)),
            (603, Start(1)),
            (604, Finish(1, 2, Ok(()))),
        ],
        600,
        Disposition::Failed,
        "the slot of 2026-01-05T00:10:00Z fired run R; it is done",
    );
}

#[test]
fn caught_up_and_buffered_slots_are_described_as_such() {
    check(
        terms(),
        &[(700, Tick), (700, Start(1)), (701, Finish(1, 1, Ok(())))],
        600,
        Disposition::RanLate,
        "the slot of 2026-01-05T00:10:00Z was caught up by run R 1 minute and 40 seconds late; it is done",
    );
    let story = [(600, Fire("k")), (600, Tick)];
    let waits = "the slot of 2026-01-05T00:10:00Z waits for an earlier run of the schedule to end";
    check(overlap(Overlap::BufferOne), &story, 600, Disposition::Buffered, waits);
    let paused = [&story[..], &[(601, Pause)]].concat();
    let waits = "the slot of 2026-01-05T00:10:00Z runs when an earlier run has ended and the schedule is resumed";
    check(overlap(Overlap::BufferOne), &paused, 600, Disposition::Buffered, waits);
    let ended = [(601, Start(1)), (602, Finish(1, 1, Ok(())))];
    let ended = [&story[..], &[(601, Pause)], &ended].concat();
    let waits = "the slot of 2026-01-05T00:10:00Z runs when the schedule is resumed";
    check(overlap(Overlap::BufferOne), &ended, 600, Disposition::Buffered, waits);
}

#[test]
fn range_of_slots_covers_exactly_its_instants() {
    let mut world = World::new(every(600), terms());
    for (second, op) in [(0, Add), (0, Pause), (1_900, Resume)] {
        world.perform(second, &op);
    }
    let slot = world.slot(1_800).unwrap();
    let calendar = slot.timing.as_ref().and_then(|timing| timing.calendar());
    for (second, is_covered) in
        [(0, false), (600, true), (601, false), (1_200, true), (1_800, true), (2_400, false)]
    {
        assert_eq!(slot.covers(at(second), calendar.as_ref()), is_covered, "{second}");
    }
    assert!(
        slot.covers(at(600), None) && slot.covers(at(1_800), None) && !slot.covers(at(1_200), None)
    );
}

#[test]
fn slot_without_a_run_describes_why() {
    use Disposition::*;
    let live = (0, Fire("k"));
    let one = "the slot of 2026-01-05T00:10:00Z did not run";
    let three = "the 3 slots from 2026-01-05T00:10:00Z to 2026-01-05T00:30:00Z did not run";
    let beside =
        ": an earlier run was still live, and the overlap policy allows no other run beside it";
    let cases: Vec<(Terms, Vec<Step>, i64, Disposition, String)> = vec![
        (terms(), vec![(1_200, Tick)], 600, Coalesced,
            format!("{one}: it was merged into the slot of 2026-01-05T00:20:00Z")),
        (terms(), vec![(2_400, Tick)], 1_800, Coalesced,
            format!("{three}: they were merged into the slot of 2026-01-05T00:40:00Z")),
        (overlap(Overlap::BufferOne), vec![live.clone(), (600, Tick), (1_200, Tick)], 600, Coalesced,
            format!("{one}: it was merged into the slot of 2026-01-05T00:20:00Z")),
        (terms(), vec![live.clone(), (600, Tick)], 600, SkippedOverlap, format!("{one}{beside}")),
        (terms(), vec![live.clone(), (1_800, Tick)], 1_800, SkippedOverlap, format!("{three}{beside}")),
        (terms(), vec![(2_401, Tick)], 600, SkippedMissed,
            format!("{one}: it was decided at 2026-01-05T00:40:01Z, outside the catch-up window")),
        (missed(Missed::Skip), vec![(1_900, Tick)], 1_800, SkippedMissed,
            format!("{three}: they were missed until 2026-01-05T00:31:40Z, and the schedule skips missed slots")),
        (missed(Missed::All(1)), vec![(1_300, Tick)], 600, SkippedMissed,
            format!("{one}: more slots were missed than the schedule catches up")),
        (terms(), vec![(0, Pause), (1_900, Resume)], 1_800, SkippedPaused,
            format!("{three}: they were due while the schedule was paused")),
        (Terms { per_day: Some(1), overlap: Overlap::Allow(9), ..terms() }, vec![live.clone(), (600, Tick)], 600,
            SkippedBudget, format!("{one}: a budget of the day was used up at 2026-01-05T00:10:00Z")),
        (overlap(Overlap::BufferAll(1)), vec![live, (600, Tick), (1_200, Tick)], 1_200, SkippedFull,
            "the slot of 2026-01-05T00:20:00Z did not run: the schedule already had the most waiting slots allowed".into()),
        (terms(), vec![(1_900, Remove)], 1_800, Superseded,
            format!("{three}: the schedule was removed before they could run")),
    ];
    for (terms, story, second, disposition, sentence) in cases {
        check(terms, &story, second, disposition, &sentence);
    }
}

#[test]
fn manual_start_is_described_as_one() {
    let mut world = World::new(every(600), terms());
    world.perform(0, &Add);
    world.perform(7, &Fire("k"));
    let slot = world.manual("k").unwrap();
    let description = slot.describe(world.run(1).as_ref(), &world.progress().unwrap());
    assert_eq!(
        description,
        "run run_00000000000000000000000000000001 was started by hand at 2026-01-05T00:00:07Z; it is queued"
    );
}

#[test]
fn every_disposition_has_a_description() {
    let mut world = World::new(every(600), terms());
    world.perform(0, &Add);
    let progress = world.progress().unwrap();
    for disposition in Disposition::ALL {
        let outcome = SlotOutcome::Passed { disposition: *disposition, reason: None, into: None };
        let slot = Slot {
            revision: 1,
            first: at(0),
            last: at(0),
            count: 1,
            wall: String::new(),
            decided_at: at(0),
            timing: None,
            outcome,
        };
        let description = slot.describe(None, &progress);
        let prefix = "the slot of 2026-01-05T00:00:00Z did not run";
        assert!(
            description.starts_with(prefix) && prefix.len() + 5 < description.len(),
            "{description}"
        );
        assert_eq!(slot.disposition(None), *disposition);
    }
}
