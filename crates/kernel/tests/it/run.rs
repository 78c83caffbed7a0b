//! A run from the queue to its end: allowed commands, retries, recovery.

use kernel::approval::Command as ApproveCommand;
use kernel::backend::{Backend, BackendKind, Settings, Tier};
use kernel::policy_decision::Verdict;
use kernel::run::{
    Cause, Command, Failure, FailureKind, MESSAGE_BYTES_MAX, OUTPUT_BYTES_MAX, Outcome, Output,
    RETRY_WAIT_US_MAX, Report, RunContext, State, apply, finish, requeue,
};
use kernel::schedule::Action;
use kernel::schedule::terms::{Overlap, Retry, Terms};
use kernel::{Actor, EventBody, Role, RunId};

use crate::support::{Op, World, at, every, failed_attempt};
use Op::{
    Add, ApprovalCommand, Finish, Fire, Interrupt, OnRun, Recover, Remove, Start, StartUnder,
    StartWithoutAgent, Tick,
};

/// Runs a story about the first run of a schedule: second, operation, decided events.
fn check(world: &mut World, story: &[(i64, Op, &str)]) {
    world.perform(0, &Add);
    assert_eq!(world.perform(60, &Tick), "slot fires 60");
    for (second, op, expected) in story {
        assert_eq!(&world.perform(*second, op), expected, "at {second}: {op:?}");
    }
}

fn world(terms: Terms) -> World {
    World::new(every(60), terms)
}

fn attempts(attempts: u32) -> Terms {
    Terms { retry: Retry { attempts: Some(attempts), ..Retry::default() }, ..Terms::default() }
}

/// A world with an agent whose attempts are not repeatable.
fn effectful() -> World {
    let mut world = world(Terms::default());
    let settings = Settings { argv: vec!["run".into()], ..Settings::default() };
    let agent = world.agent.as_mut().unwrap();
    agent.backend = Backend::parse(BackendKind::Command, settings).unwrap();
    agent.tier = Tier::LocalWrite;
    world
}

fn cancel() -> Op {
    OnRun(1, Command::Cancel { note: Some("too slow".into()) })
}

fn retry() -> Op {
    OnRun(1, Command::Retry)
}

fn settle(outcome: Outcome) -> Op {
    OnRun(1, Command::Settle { outcome, note: None })
}

const STARTED: &str = "started 1 1 tier 0 repeatable";
const CANCELLED: &str = "cancelled (uid:7 cancelled it: too slow)";
const UNKNOWN: &str = "unknown (interrupted after it started; whether it took effect is unknown)";
const STALE: &str = "no: run `R` has a newer attempt";

#[test]
fn failed_attempt_is_retried_with_a_new_epoch() {
    check(
        &mut world(attempts(2)),
        &[
            (60, Finish(1, 0, Ok(())), STALE),
            (61, Start(1), STARTED),
            (61, Start(1), ""),
            (62, Finish(1, 1, failed_attempt(false)), "retried from 65 (it broke)"),
            (62, Finish(1, 1, failed_attempt(false)), STALE),
            (64, Start(1), ""),
            (65, Start(1), "started 2 2 tier 0 repeatable"),
            // An earlier claim of the run.
            (65, Finish(1, 1, Ok(())), STALE),
            (65, Finish(1, 3, Ok(())), STALE),
            (65, Finish(1, 2, failed_attempt(false)), "failed (it broke)"),
            (66, Finish(1, 2, Ok(())), STALE),
            (66, Start(1), ""),
            (66, Recover(1), ""),
            (67, retry(), "requeued"),
            // The count continues, and the retry limit starts anew.
            (68, Start(1), "started 3 3 tier 0 repeatable"),
            (69, Finish(1, 3, failed_attempt(false)), "retried from 72 (it broke)"),
            (72, Start(1), "started 4 4 tier 0 repeatable"),
            (73, Finish(1, 4, failed_attempt(false)), "failed (it broke)"),
            (74, retry(), "requeued"),
            (75, Start(1), "started 5 5 tier 0 repeatable"),
            (76, Recover(1), "retried from 76 (interrupted, and the run is repeatable)"),
            (76, Start(1), "started 6 6 tier 0 repeatable"),
            (77, Finish(1, 6, Ok(())), "done"),
        ],
    );
    check(
        &mut world(Terms::default()),
        &[(61, Start(1), STARTED), (62, Finish(1, 1, failed_attempt(true)), "failed (it broke)")],
    );
}

#[test]
fn external_work_is_attempted_once_unless_attempts_are_given() {
    let external = |terms| {
        let mut world = world(terms);
        world.agent.as_mut().unwrap().tier = Tier::External;
        world.perform(0, &Add);
        world.perform(60, &Tick);
        world.perform(61, &StartUnder(1, Verdict::Ask));
        let shown = world.approval(1).unwrap().1.plan_hash;
        let approve = ApproveCommand::Approve { shown, note: None, signed: None };
        world.perform(62, &ApprovalCommand(1, approve));
        assert_eq!(
            world.perform(63, &StartUnder(1, Verdict::Ask)),
            "consumed by 1, started 1 1 tier 2"
        );
        world
    };
    let failed = Finish(1, 1, failed_attempt(false));
    assert_eq!(external(Terms::default()).perform(64, &failed), "failed (it broke)");
    assert_eq!(external(attempts(5)).perform(64, &failed), "retried from 67 (it broke)");
}

/// A cancelled run that had run before says so, and keeps the output of that attempt.
#[test]
fn cancelling_between_attempts_says_that_the_run_had_run() {
    let ran = "attempt 1 ran and failed: it broke";
    let cancelled = format!("cancelled (uid:7 cancelled it: too slow; {ran})");
    let removed = format!("cancelled (its schedule was removed before it started; {ran})");
    for (story, expected) in [(vec![cancel()], cancelled), (vec![Remove, Start(1)], removed)] {
        let mut world = world(Terms::default());
        check(&mut world, &[(61, Start(1), STARTED)]);
        world.perform(62, &Finish(1, 1, failed_attempt(false)));
        let output = world.run(1).unwrap().output;
        assert!(output.is_some());
        let decided: Vec<String> = story.iter().map(|op| world.perform(70, op)).collect();
        assert!(decided.last().unwrap().contains(&expected), "{decided:?}");
        assert_eq!(world.run(1).unwrap().output, output);
    }
}

/// A process that has lost its run cannot interrupt it.
#[test]
fn interrupt_affects_only_the_running_attempt() {
    let stopped = "retried from 63 (the daemon stopped, and the run is repeatable)";
    check(
        &mut world(Terms::default()),
        &[
            (60, Interrupt(1, 0), STALE),
            (61, Start(1), STARTED),
            (62, Recover(1), "retried from 62 (interrupted, and the run is repeatable)"),
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

/// The failure kind decides; repeatability matters only if the attempt may have taken effect.
#[test]
fn attempt_that_may_have_taken_effect_is_retried_only_if_repeatable() {
    let failed = |kind| Err(Failure { cause: Cause::new("oops", "it broke"), kind });
    let hour = RETRY_WAIT_US_MAX / 1_000_000;
    for (kind, effectful_outcome, repeatable_outcome) in [
        (FailureKind::Permanent, "failed (it broke)", "failed (it broke)"),
        (FailureKind::Delivered, "failed (it broke)", "retried from 65 (it broke)"),
        (FailureKind::Indeterminate, "unknown (it broke)", "retried from 65 (it broke)"),
    ] {
        let effectful_start = "started 1 1 tier 1";
        for (mut world, started, expected) in [
            (effectful(), effectful_start, effectful_outcome),
            (world(Terms::default()), STARTED, repeatable_outcome),
        ] {
            let finish = Finish(1, 1, failed(kind));
            check(&mut world, &[(61, Start(1), started), (62, finish, expected)]);
        }
    }
    for (wait_s, expected) in [
        (0, "retried from 65 (it broke)".to_owned()),
        (30, "retried from 92 (it broke)".to_owned()),
        (hour, format!("retried from {} (it broke)", 62 + hour)),
        (hour + 1, format!("retried from {} (it broke)", 62 + hour)),
        (-1, "retried from 65 (it broke)".to_owned()),
    ] {
        let finish = Finish(1, 1, failed(FailureKind::Transient { wait_us: wait_s * 1_000_000 }));
        check(&mut effectful(), &[(61, Start(1), "started 1 1 tier 1"), (62, finish, &expected)]);
    }
}

/// Later runs would fail as well; but a schedule with `pause_after` 0 is never paused.
#[test]
fn payment_required_pauses_the_schedule_at_once() {
    let unpaid = || {
        Err(Failure { cause: Cause::new("oops", "it broke"), kind: FailureKind::PaymentRequired })
    };
    let paused = "failed (it broke), paused (its agent needs payment: resume the schedule \
                  when the provider is paid)";
    for (pause_after, expected) in [(5, paused), (1, paused), (0, "failed (it broke)")] {
        let mut world = world(Terms { pause_after, ..Terms::default() });
        let finish = Finish(1, 1, unpaid());
        check(&mut world, &[(61, Start(1), STARTED), (62, finish, expected)]);
    }
}

#[test]
fn allowed_commands_depend_on_the_state() {
    let not_retryable = |state: &str| {
        format!("no: run `R` is {state}; only a run that failed or was cancelled can be retried")
    };
    let unsettled = |state: &str| {
        format!("no: run `R` is {state}; only a run that ended unknown can be settled")
    };
    let ended = |state: &str| {
        format!("no: run `R` is {state}; only a run that has not ended can be cancelled")
    };
    let cases: [(&[Op], &str, &str, &str); 6] = [
        (&[], "queued", CANCELLED, ""),
        (&[Start(1)], "running", "cancel requested", ""),
        (&[Start(1), Finish(1, 1, Ok(()))], "done", &ended("done"), ""),
        (&[Start(1), Finish(1, 1, failed_attempt(true))], "failed", &ended("failed"), "requeued"),
        (&[cancel()], "cancelled", "", "requeued"),
        (&[Start(1), Recover(1)], "unknown", &ended("unknown"), ""),
    ];
    for (history, state, cancelled, retried) in cases {
        let world_in_state = || {
            let mut world = effectful();
            check(&mut world, &[]);
            history.iter().for_each(|op| drop(world.perform(60, op)));
            assert_eq!(world.run(1).unwrap().state.name(), state);
            world
        };
        assert_eq!(world_in_state().perform(61, &cancel()), cancelled, "{state}");
        let retried = if retried.is_empty() { not_retryable(state) } else { retried.to_owned() };
        assert_eq!(world_in_state().perform(61, &retry()), retried, "{state}");
        let settled = if state == "unknown" { "settled done".to_owned() } else { unsettled(state) };
        assert_eq!(world_in_state().perform(61, &settle(Outcome::Done)), settled, "{state}");
        let unknown = "no: a run is settled as done, failed or cancelled";
        assert_eq!(world_in_state().perform(61, &settle(Outcome::Unknown)), unknown, "{state}");
    }
}

#[test]
fn cancel_wins_unless_the_end_was_committed_first() {
    let ends = [Ok(()), failed_attempt(false), failed_attempt(true)];
    for result in ends {
        let story = [
            (61, Start(1), STARTED),
            (62, cancel(), "cancel requested"),
            (62, cancel(), ""),
            (63, Finish(1, 1, result), CANCELLED),
            (64, cancel(), ""),
        ];
        check(&mut world(Terms::default()), &story);
    }
    check(
        &mut world(Terms::default()),
        &[(61, Start(1), STARTED), (62, cancel(), "cancel requested"), (63, Recover(1), CANCELLED)],
    );
    // A cancel request does not apply to a later retry.
    check(
        &mut world(Terms::default()),
        &[
            (61, Start(1), STARTED),
            (62, cancel(), "cancel requested"),
            (63, Finish(1, 1, Ok(())), CANCELLED),
            (64, retry(), "requeued"),
            (65, Start(1), "started 2 2 tier 0 repeatable"),
            (66, Finish(1, 2, Ok(())), "done"),
        ],
    );
}

#[test]
fn interrupted_run_is_repeated_only_if_repeatable() {
    check(
        &mut world(attempts(2)),
        &[
            (60, Recover(1), ""),
            (61, Start(1), STARTED),
            (62, Recover(1), "retried from 62 (interrupted, and the run is repeatable)"),
            (62, Start(1), "started 2 2 tier 0 repeatable"),
            // The run itself may be what crashes the daemon.
            (63, Recover(1), "failed (interrupted in its last allowed attempt)"),
        ],
    );
    check(
        &mut effectful(),
        &[
            (61, Start(1), "started 1 1 tier 1"),
            (62, cancel(), "cancel requested"),
            (63, Recover(1), UNKNOWN),
            (64, settle(Outcome::Failed), "settled failed"),
            (65, settle(Outcome::Failed), ""),
            (
                65,
                settle(Outcome::Done),
                "no: run `R` is failed; only a run that ended unknown can be settled",
            ),
        ],
    );
    let mut external = world(Terms::default());
    external.definition.tier = Some(Tier::External);
    check(&mut external, &[(61, Start(1), "started 1 1 tier 2"), (62, Recover(1), UNKNOWN)]);
}

#[test]
fn retry_clears_the_settlement() {
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
fn run_without_agent_tool_or_schedule_ends() {
    let mut alone = world(Terms { pause_after: 1, ..Terms::default() });
    check(
        &mut alone,
        &[(
            61,
            StartWithoutAgent(1),
            "failed (agent `ada` does not exist), paused (the last run failed)",
        )],
    );
    let mut tool = world(Terms::default());
    tool.definition.action = Action::Tool { tool: "mail".into(), payload: "{}".into(), hash: None };
    check(&mut tool, &[(61, Start(1), "failed (tool `mail` does not exist)")]);
    check(
        &mut world(Terms::default()),
        &[
            (61, Remove, "removed"),
            (62, Start(1), "cancelled (its schedule was removed before it started)"),
            (63, retry(), "no: schedule `sch_0123abcd` does not exist"),
        ],
    );
    // A running run continues, but is not retried.
    check(
        &mut world(Terms::default()),
        &[
            (61, Start(1), STARTED),
            (62, Remove, "removed"),
            (63, Finish(1, 1, failed_attempt(false)), "failed (it broke)"),
        ],
    );
}

#[test]
fn consecutive_failures_pause_the_schedule() {
    let mut world = world(Terms { pause_after: 2, ..attempts(1) });
    let failed = "failed (it broke)";
    check(
        &mut world,
        &[
            (61, Start(1), STARTED),
            (62, Finish(1, 1, failed_attempt(false)), failed),
            (120, Tick, "slot fires 120"),
            (121, Start(2), STARTED),
            (122, Finish(2, 1, Ok(())), "done"),
            (180, Tick, "slot fires 180"),
            (181, Start(3), STARTED),
            (182, Finish(3, 1, failed_attempt(false)), failed),
            (240, Tick, "slot fires 240"),
            (241, Start(4), STARTED),
            (
                242,
                Finish(4, 1, failed_attempt(false)),
                "failed (it broke), paused (the last 2 runs failed)",
            ),
            // The schedule is already paused.
            (243, Fire("k"), "manual fires k"),
            (244, Start(5), STARTED),
            (245, Finish(5, 1, failed_attempt(false)), failed),
            (300, Op::Resume, "skipped_paused 300, resumed"),
            (360, Tick, "slot fires 360"),
            (361, Start(6), STARTED),
            (362, Finish(6, 1, failed_attempt(false)), failed),
        ],
    );
    assert_eq!(world.progress().unwrap().failures, 1);
}

#[test]
fn retry_respects_the_overlap_policy() {
    let live = "no: run `run_00000000000000000000000000000002` is live, and the overlap policy allows no other run beside it";
    let story = |second: &'static str| {
        [
            (61, Start(1), STARTED),
            (62, Finish(1, 1, failed_attempt(true)), "failed (it broke)"),
            (120, Tick, "slot fires 120"),
            (121, retry(), second),
        ]
    };
    check(&mut world(Terms::default()), &story(live));
    let overlap = Overlap::Allow(2);
    check(&mut world(Terms { overlap, ..Terms::default() }), &story("requeued"));
}

#[test]
fn run_commands_need_an_operator() {
    let mut world = world(Terms::default());
    check(&mut world, &[]);
    world.actor = Actor::token_holder("bob".parse().unwrap(), Role::Runner);
    for op in [cancel(), retry(), settle(Outcome::Done)] {
        let expected = "no: this needs the role `operator`, but `bob` has the role `runner`";
        assert_eq!(world.perform(61, &op), expected);
    }
}

#[test]
fn report_is_truncated_to_its_limits() {
    let mut world = world(Terms::default());
    check(&mut world, &[(61, Start(1), STARTED)]);
    let (id, run) = (RunId::of(1), world.run(1).unwrap());
    for over in [0, 1] {
        let context =
            RunContext { id: &id, run: &run, definition: None, progress: None, now: at(62) };
        let cause = Cause { code: "c".into(), message: "m".repeat(MESSAGE_BYTES_MAX + over) };
        let text = "t".repeat(OUTPUT_BYTES_MAX + over);
        let output = Some(Output { bytes: text.len() as u64, text: text.into(), file: None });
        let result = Err(Failure { cause, kind: FailureKind::Permanent });
        let report = Report { result, output, usage: None };
        let bodies = finish(context, 1, report, 0).unwrap();
        let [EventBody::Run(_, kernel::run::Event::Ended(ended))] = bodies.as_slice() else {
            unreachable!("it ended")
        };
        assert_eq!(ended.output.as_ref().unwrap().text.plain().unwrap().len(), OUTPUT_BYTES_MAX);
        assert_eq!(ended.output.as_ref().unwrap().bytes, (OUTPUT_BYTES_MAX + over) as u64);
        assert_eq!(ended.cause.as_ref().unwrap().message.len(), MESSAGE_BYTES_MAX);
    }
}

/// A run that is not repeatable is requeued too, because its attempt did nothing.
#[test]
fn only_the_holder_can_requeue_a_run() {
    let mut world = world(Terms::default());
    world.agent.as_mut().unwrap().tier = Tier::External;
    let id = RunId::of(1);
    let requeued = |world: &World, holder: &str| {
        let run = world.run(1).unwrap();
        let context =
            RunContext { id: &id, run: &run, definition: None, progress: None, now: at(62) };
        requeue(context, holder)
    };
    check(&mut world, &[]);
    assert_eq!(requeued(&world, "me"), [], "it is queued");
    world.perform(61, &Start(1));
    let State::Running { holder, .. } = world.run(1).unwrap().state else {
        unreachable!("not running")
    };
    assert_eq!(requeued(&world, "another"), []);
    let bodies = requeued(&world, &holder);
    let after = apply(
        world.run(1),
        match bodies.as_slice() {
            [EventBody::Run(_, event)] => event,
            other => unreachable!("{other:?}"),
        },
    );
    assert_eq!(after.unwrap().state, State::Queued { from: at(62) });
    // With a pending cancel request, it ends instead.
    world.perform(62, &cancel());
    assert_eq!(requeued(&world, "another"), []);
    let bodies = requeued(&world, &holder);
    let [EventBody::Run(_, kernel::run::Event::Ended(ended))] = bodies.as_slice() else {
        panic!("{bodies:?}")
    };
    assert_eq!(ended.outcome, Outcome::Cancelled);
    // Its charge is refunded, because the attempt did nothing.
    let charge = world.run(1).unwrap().charge;
    assert!(charge.is_some() && ended.refund == charge, "{ended:?}");
}
