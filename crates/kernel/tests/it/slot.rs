//! What became of a slot, in a word and in a sentence.

use kernel::backend::{Backend, BackendKind, Settings};
use kernel::run::{Command, Outcome};
use kernel::schedule::terms::{Missed, Overlap, Terms};
use kernel::slot::{Disposition, Fate, Slot};

use crate::support::{Ask, World, at, broken, every};
use Ask::{Add, Finish, Fire, Pause, Recover, Remove, Resume, Run, Start, StartAlone, Tick};

/// At a second, something is asked.
type Step = (i64, Ask);

/// What the row that ends with this second says after the story, and why.
fn check(terms: Terms, story: &[Step], second: i64, disposition: Disposition, sentence: &str) {
    let mut world = World::new(every(600), terms);
    // Of those that may not be done twice.
    let settings = Settings { argv: vec!["run".into()], ..Settings::default() };
    world.agent.as_mut().unwrap().backend = Backend::parse(BackendKind::Command, settings).unwrap();
    for (second, ask) in [(0, Add)].iter().chain(story) {
        let said = world.ask(*second, ask);
        assert!(!said.is_empty() && !said.starts_with("no"), "at {second}: {ask:?}: {said}");
    }
    let slot = world.slot(second).expect("a slot");
    let run = match &slot.fate {
        Fate::Run { .. } => world.run(1),
        Fate::Passed { .. } | Fate::Buffered => None,
    };
    assert_eq!(slot.disposition(run.as_ref()), disposition);
    let said = slot.sentence(run.as_ref(), &world.progress().unwrap());
    assert_eq!(said.replace("run_00000000000000000000000000000001", "R"), sentence);
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
fn a_slot_that_fired_says_how_its_run_stands() {
    use Disposition::*;
    let slot = "the slot of 2026-01-05T00:10:00Z fired run R";
    let told: [(&[Step], Disposition, &str); 11] = [
        (&[(600, Tick)], Fired, "; it is queued"),
        (&[(600, Tick), (600, Start(1))], Fired, "; it is running"),
        (
            &[(600, Tick), (600, Start(1)), (601, Finish(1, 1, broken(false)))],
            Fired,
            "; it waits for another try: it broke",
        ),
        (
            &[(600, Tick), (601, Start(1)), (609, Finish(1, 1, Ok(())))],
            Ran,
            " 1 second late; it is done",
        ),
        // Decided in time, and kept in the queue.
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
            &[(600, Tick), (600, Start(1)), (609, Finish(1, 1, broken(true)))],
            Failed,
            "; it failed: it broke",
        ),
        (&[(600, Tick), (600, StartAlone(1))], Failed, "; it failed: there is no agent `ada`"),
        (
            &[(600, Tick), (601, Run(1, Command::Cancel { note: Some("too slow".into()) }))],
            Cancelled,
            "; uid:7 cancelled it: too slow",
        ),
        (
            &[(600, Tick), (601, Remove), (602, Start(1))],
            Cancelled,
            "; it was cancelled: its schedule was removed before it began",
        ),
        (
            &[(600, Tick), (600, Start(1)), (601, Recover(1))],
            Unknown,
            "; nobody knows how it ended: it was cut off after it had begun; whether it took effect is not known",
        ),
    ];
    for (story, disposition, rest) in told {
        check(terms(), story, 600, disposition, &format!("{slot}{rest}"));
    }
}

#[test]
fn how_a_run_ended_first_stays_with_its_slot() {
    for (note, said) in [(None, ""), (Some("I have seen it"), ": I have seen it")] {
        let note = note.map(str::to_owned);
        let settled = Run(1, Command::Settle { outcome: Outcome::Done, note });
        let fired = "the slot of 2026-01-05T00:10:00Z fired run R; it is done, as uid:7 says";
        check(
            terms(),
            &[(600, Tick), (600, Start(1)), (601, Recover(1)), (602, settled)],
            600,
            Disposition::Unknown,
            &format!("{fired}{said}"),
        );
    }
    check(
        terms(),
        &[
            (600, Tick),
            (600, Start(1)),
            (601, Finish(1, 1, broken(true))),
            (602, Run(1, Command::Retry)),
            (603, Start(1)),
            (604, Finish(1, 2, Ok(()))),
        ],
        600,
        Disposition::Failed,
        "the slot of 2026-01-05T00:10:00Z fired run R; it is done",
    );
}

#[test]
fn one_that_was_caught_up_or_has_waited_says_so() {
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

/// Between the slots of a range there is none, and which they are does not change with the schedule.
#[test]
fn several_slots_know_which_instants_they_are() {
    let mut world = World::new(every(600), terms());
    for (second, ask) in [(0, Add), (0, Pause), (1_900, Resume)] {
        world.ask(second, &ask);
    }
    let slot = world.slot(1_800).unwrap();
    let calendar = slot.timing.as_ref().and_then(|timing| timing.calendar());
    for (second, has_it) in
        [(0, false), (600, true), (601, false), (1_200, true), (1_800, true), (2_400, false)]
    {
        assert_eq!(slot.has(at(second), calendar.as_ref()), has_it, "{second}");
    }
    assert!(slot.has(at(600), None) && slot.has(at(1_800), None) && !slot.has(at(1_200), None));
}

#[test]
fn a_slot_without_a_run_says_why() {
    use Disposition::*;
    let live = (0, Fire("k"));
    let one = "the slot of 2026-01-05T00:10:00Z did not run";
    let three = "the 3 slots from 2026-01-05T00:10:00Z to 2026-01-05T00:30:00Z did not run";
    let beside =
        ": an earlier run was still live, and the overlap policy lets no other start beside it";
    let cases: Vec<(Terms, Vec<Step>, i64, Disposition, String)> = vec![
        (terms(), vec![(1_200, Tick)], 600, Coalesced,
            format!("{one} on its own: the slot of 2026-01-05T00:20:00Z stands for it")),
        (terms(), vec![(2_400, Tick)], 1_800, Coalesced,
            format!("{three} on their own: the slot of 2026-01-05T00:40:00Z stands for them")),
        (overlap(Overlap::BufferOne), vec![live.clone(), (600, Tick), (1_200, Tick)], 600, Coalesced,
            format!("{one} on its own: the slot of 2026-01-05T00:20:00Z stands for it")),
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
            SkippedBudget, format!("{one}: the schedule had already run as often that day as it may")),
        (overlap(Overlap::BufferAll(1)), vec![live, (600, Tick), (1_200, Tick)], 1_200, SkippedFull,
            "the slot of 2026-01-05T00:20:00Z did not run: as many slots were waiting as the schedule lets wait".into()),
        (terms(), vec![(1_900, Remove)], 1_800, Superseded,
            format!("{three}: the schedule was removed before they could run")),
    ];
    for (terms, story, second, disposition, sentence) in cases {
        check(terms, &story, second, disposition, &sentence);
    }
}

#[test]
fn a_start_by_hand_is_told_as_one() {
    let mut world = World::new(every(600), terms());
    world.ask(0, &Add);
    world.ask(7, &Fire("k"));
    let said = world.manual("k").unwrap();
    let said = said.sentence(world.run(1).as_ref(), &world.progress().unwrap());
    assert_eq!(
        said,
        "run run_00000000000000000000000000000001 was started by hand at 2026-01-05T00:00:07Z; it is queued"
    );
}

#[test]
fn every_disposition_has_a_sentence() {
    let mut world = World::new(every(600), terms());
    world.ask(0, &Add);
    let progress = world.progress().unwrap();
    for disposition in Disposition::ALL {
        let fate = Fate::Passed { disposition: *disposition, reason: None, into: None };
        let slot = Slot {
            revision: 1,
            first: at(0),
            last: at(0),
            count: 1,
            wall: String::new(),
            decided_at: at(0),
            timing: None,
            fate,
        };
        let said = slot.sentence(None, &progress);
        let begins = "the slot of 2026-01-05T00:00:00Z did not run";
        assert!(said.starts_with(begins) && begins.len() + 5 < said.len(), "{said}");
        assert_eq!(slot.disposition(None), *disposition);
    }
}
