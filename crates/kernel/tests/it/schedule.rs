//! Commands about a schedule.

use calendar::Trigger;
use kernel::backend::Tier;
use kernel::schedule::terms::{ATTEMPTS_MAX, Overlap, PRIORITY_MAX, Resume, Terms};
use kernel::schedule::{
    Action, Command, Definition, KEY_BYTES_MAX, NAME_CHARS_MAX, NOTE_BYTES_MAX, PAYLOAD_BYTES_MAX,
    PROMPT_BYTES_MAX, ScheduleContext, decide,
};
use kernel::sealable_text::SealableText;
use kernel::{Actor, Role, RunId};

use crate::support::{Op, World, at, every};
use Op::{Add, Fire, Pause, Remove, Tick};

/// Runs a story: second, operation, decided events.
fn check(terms: Terms, story: &[(i64, Op, &str)]) {
    let mut world = World::new(every(60), terms);
    for (second, op, expected) in story {
        assert_eq!(&world.perform(*second, op), expected, "at {second}: {op:?}");
    }
}

const UNKNOWN: &str = "no: schedule `sch_0123abcd` does not exist";
const STARTED: &str = "started 1 1 tier 0 repeatable";
const LIVE: &str = "no: run `run_00000000000000000000000000000001` is live, and the overlap policy allows no other run beside it";

#[test]
fn schedule_is_added_once_and_continues_after_removal() {
    check(
        Terms::default(),
        &[
            (0, Pause, UNKNOWN),
            (0, Op::Resume, UNKNOWN),
            (0, Remove, UNKNOWN),
            (0, Fire("k"), UNKNOWN),
            (0, Add, "added, next 60"),
            (1, Add, ""),
            (60, Tick, "slot fires 60"),
            (200, Remove, "superseded 120..180 ×2 (removed), removed"),
            (200, Remove, UNKNOWN),
            (240, Tick, ""),
            // Instants in between are not slots; decided ones stay decided although the clock was set back.
            (100, Add, "added, next 240"),
            // The run from before the removal is still live.
            (240, Tick, "skipped_overlap 240"),
            (241, Op::Start(1), STARTED),
            (242, Op::Finish(1, 1, Ok(())), "done"),
            (300, Tick, "slot fires 300"),
        ],
    );
    let terms = Terms { max_fires: Some(1), ..Terms::default() };
    check(
        terms,
        &[
            (0, Add, "added, next 60"),
            (60, Tick, "slot fires 60"),
            (90, Remove, "removed"),
            (91, Op::Start(1), "cancelled (its schedule was removed before it started)"),
            // Adding it again restarts the count of fires.
            (130, Add, "added, next 180"),
            (180, Tick, "slot fires 180"),
        ],
    );
}

#[test]
fn removal_supersedes_waiting_and_jittered_slots() {
    let terms = Terms { overlap: Overlap::BufferAll(9), ..Terms::default() };
    check(
        terms,
        &[
            (0, Add, "added, next 60"),
            (60, Tick, "slot fires 60"),
            (120, Tick, "waits 120"),
            (
                190,
                Remove,
                "superseded 120 that waited (removed), superseded 180 (removed), removed",
            ),
        ],
    );
    let jitter = "50s".parse().ok();
    check(
        Terms { jitter, ..Terms::default() },
        &[(0, Add, "added, next 60"), (60, Remove, "superseded 60 (removed), removed")],
    );
}

#[test]
fn slots_due_in_a_pause_are_skipped_or_treated_as_missed() {
    check(
        Terms::default(),
        &[
            (0, Add, "added, next 60"),
            (1, Op::Resume, ""),
            (70, Pause, "paused"),
            (80, Pause, ""),
            (130, Tick, ""),
            (140, Fire("k"), "manual fires k"),
            (200, Op::Resume, "skipped_paused 60..180 ×3, resumed"),
            (200, Op::Resume, ""),
            (240, Tick, "skipped_overlap 240"),
        ],
    );
    let resume = Resume::AsMissed;
    check(
        Terms { resume, ..Terms::default() },
        &[
            (0, Add, "added, next 60"),
            (70, Pause, "paused"),
            (200, Op::Resume, "resumed"),
            (200, Tick, "coalesced 60..120 ×2 into 180, slot fires 180 late 20"),
        ],
    );
    // The pause ends before a slot is missed.
    check(
        Terms::default(),
        &[
            (0, Add, "added, next 60"),
            (10, Pause, "paused"),
            (20, Op::Resume, "resumed"),
            (60, Tick, "slot fires 60"),
        ],
    );
}

#[test]
fn manual_start_respects_overlap_and_daily_limit() {
    check(
        Terms { per_day: Some(1), ..Terms::default() },
        &[
            (0, Add, "added, next 60"),
            (1, Fire(""), "no: a key has 1 to 256 bytes of printable text"),
            (1, Fire("a\nb"), "no: a key has 1 to 256 bytes of printable text"),
        ],
    );
    let mut world = World::new(every(60), Terms { per_day: Some(1), ..Terms::default() });
    let story = [
        (Add, "added, next 60"),
        (Fire("k"), "manual fires k"),
        (Fire("l"), LIVE),
        (Op::Start(1), STARTED),
        (Op::Finish(1, 1, Ok(())), "done"),
        (Fire("k"), "no: this key has already started run `run_00000000000000000000000000000001`"),
        (Fire("l"), "no: the schedule has reached its limit of 1 runs today"),
    ];
    for (op, expected) in story {
        assert_eq!(world.perform(0, &op), expected, "{op:?}");
    }
    // The next slot has not changed.
    assert_eq!(world.progress().unwrap().next_fire.slot, Some(at(60)));
}

#[test]
fn manual_key_has_its_own_slot_row() {
    let mut world = World::new(every(60), Terms { overlap: Overlap::Allow(9), ..Terms::default() });
    world.perform(0, &Add);
    world.perform(1, &Fire("k"));
    world.perform(60, &Tick);
    assert_eq!(world.manual("k").unwrap().first, at(1));
    assert_eq!(world.manual("l"), None);
}

#[test]
fn schedule_commands_need_an_operator() {
    for role in [Role::Observer, Role::Runner] {
        let mut world = World::new(every(60), Terms::default());
        world.actor = Actor::token_holder("bob".parse().unwrap(), role);
        let expected =
            format!("no: this needs the role `operator`, but `bob` has the role `{}`", role.name());
        assert_eq!(world.perform(0, &Add), expected);
    }
}

/// Checks whether a changed definition is valid, or the refusal.
fn check_limit(expected: &str, change: impl FnOnce(&mut Definition)) {
    let mut world = World::new(every(60), Terms::default());
    change(&mut world.definition);
    let outcome = world.perform(0, &Add);
    assert_eq!(outcome.strip_prefix("no: ").unwrap_or("valid"), expected);
}

#[test]
fn definition_limits_hold_at_the_limit_and_one_past_it() {
    let name = "the name of a schedule has 1 to 120 characters";
    check_limit("valid", |it| it.name = "ü".repeat(NAME_CHARS_MAX));
    check_limit(name, |it| it.name = "ü".repeat(NAME_CHARS_MAX + 1));
    check_limit(name, |it| it.name = String::new());
    let line = "the name of a schedule is one line of printable text";
    check_limit(line, |it| it.name = "a\nb".into());
    check_limit(line, |it| it.name = "a\u{202e}b".into());
    check_limit(line, |it| it.name = "a\u{2066}b".into());

    check_limit("valid", |it| it.terms.priority = PRIORITY_MAX);
    check_limit("a priority is from 0 to 9", |it| it.terms.priority = PRIORITY_MAX + 1);
    let tried = "a run has 1 to 100 attempts";
    check_limit("valid", |it| it.terms.retry.attempts = Some(ATTEMPTS_MAX));
    check_limit(tried, |it| it.terms.retry.attempts = Some(ATTEMPTS_MAX + 1));
    check_limit(tried, |it| it.terms.retry.attempts = Some(0));
    let backoff = |text: &'static str| {
        move |it: &mut Definition| it.terms.retry = it.terms.retry.with_backoff(text).unwrap()
    };
    check_limit("valid", backoff("1d:1:1d"));
    check_limit("valid", backoff("1s:10:1s"));
    let factor = "the factor of a backoff is from 1 to 10";
    check_limit(factor, backoff("1s:0:1s"));
    check_limit(factor, backoff("1s:11:1s"));
    let cap = "the cap of a backoff is from its first delay to a day";
    check_limit(cap, backoff("1001ms:2:1s"));
    check_limit(cap, backoff("1s:2:86400001ms"));
    check_limit("valid", |it| it.terms.per_day = Some(1));
    check_limit("a schedule runs at least once a day", |it| it.terms.per_day = Some(0));
    check_limit("valid", |it| it.terms.max_fires = Some(1));
    check_limit("a schedule fires at least once", |it| it.terms.max_fires = Some(0));

    let between = |start, end| {
        move |it: &mut Definition| {
            (it.terms.start_at, it.terms.end_at) = (Some(at(start)), Some(at(end)));
        }
    };
    check_limit("valid", between(120, 120));
    check_limit("a schedule ends after it starts", between(121, 120));
    check_limit("the schedule never fires after 2026-01-05T00:00:00Z", between(61, 119));
    check_limit("the schedule never fires after 2026-01-05T00:00:00Z", |it| {
        it.trigger = Trigger::Once { at_us: at(0).as_micros() }.into();
    });
    check_limit("an interval of 999ms is too short", |it| {
        let every = "999ms".parse().unwrap();
        it.trigger = Trigger::Interval { every, anchor_us: 0 }.into();
    });

    let prompt = |prompt: String| {
        |it: &mut Definition| {
            it.action = Action::Prompt { agent: "ada".parse().unwrap(), prompt: prompt.into() };
        }
    };
    check_limit("valid", prompt("p".repeat(PROMPT_BYTES_MAX)));
    check_limit("a prompt has at most 64 KiB", prompt("p".repeat(PROMPT_BYTES_MAX + 1)));
    check_limit("the prompt is empty", prompt(" \n".into()));

    let tool = |tool: String, bytes| {
        move |it: &mut Definition| {
            it.action = Action::Tool { tool, payload: " ".repeat(bytes).into(), hash: None };
        }
    };
    // Sealed text is longer, and its content is not checked.
    let sealed = |bytes: usize| {
        let prompt = SealableText::Sealed { sealed: "s".repeat(bytes) };
        move |it: &mut Definition| {
            it.action = Action::Prompt { agent: "ada".parse().unwrap(), prompt };
        }
    };
    let most = PROMPT_BYTES_MAX.div_ceil(3) * 4 + 128;
    check_limit("valid", sealed(0));
    check_limit("valid", sealed(most));
    check_limit("a prompt has at most 64 KiB", sealed(most + 1));

    let named = "a tool name has 1 to 128 of a-z, A-Z, 0-9, `.`, `_`, `-`";
    check_limit("valid", tool("t".repeat(128), PAYLOAD_BYTES_MAX));
    check_limit("a payload has at most 64 KiB", tool("t".into(), PAYLOAD_BYTES_MAX + 1));
    check_limit(named, tool("t".repeat(129), 0));
    check_limit(named, tool(String::new(), 0));
    check_limit(named, tool("a b".into(), 0));
}

#[test]
fn schedule_raises_only_the_tier_of_an_existing_agent() {
    let mut world = World::new(every(60), Terms::default());
    world.agent.as_mut().unwrap().tier = Tier::LocalWrite;
    world.definition.tier = Some(Tier::ReadOnly);
    assert_eq!(
        world.perform(0, &Add),
        "no: agent `ada` has tier 1, and a schedule may only raise it"
    );
    world.definition.tier = Some(Tier::External);
    world.agent = None;
    assert_eq!(world.perform(0, &Add), "no: agent `ada` does not exist");
}

#[test]
fn note_and_key_lengths_are_limited() {
    let mut world = World::new(every(60), Terms::default());
    world.perform(0, &Add);
    let (schedule, progress) = (world.schedule(), world.progress());
    let id = "sch_0123abcd".parse().unwrap();
    let is_accepted = |command| {
        let context = ScheduleContext {
            id: &id,
            schedule: schedule.as_ref(),
            progress: progress.as_ref(),
            agent: None,
            tool: None,
            upstream: &[],
            fired: None,
            caller: None,
            now: at(1),
        };
        decide(context, &Actor::local_user(1), command).is_ok()
    };
    for (over, expected) in [(0, true), (1, false)] {
        let note = Some("n".repeat(NOTE_BYTES_MAX + over));
        assert_eq!(is_accepted(Command::Pause { note }), expected);
        let key = "k".repeat(KEY_BYTES_MAX + over);
        assert_eq!(is_accepted(Command::Fire { run: RunId::of(1), key }), expected);
    }
}

#[test]
fn extreme_instants_do_not_overflow() {
    let far = [i64::MIN, i64::MIN + 1, -1, 0, calendar::END_US, i64::MAX - 1, i64::MAX];
    let far = far.map(kernel::Timestamp::from_micros);
    for (start_at, end_at) in far.iter().flat_map(|start| far.map(|end| (Some(*start), Some(end))))
    {
        for now in far {
            let terms = Terms { start_at, end_at, jitter: "1h".parse().ok(), ..Terms::default() };
            let mut world = World::new(every(60), terms);
            let outcome = world.perform_at(now, &Add);
            assert!(outcome.starts_with("added") || outcome.starts_with("no: "), "{outcome}");
            for later in far {
                for op in [Tick, Pause, Op::Resume, Fire("k"), Remove, Add] {
                    world.perform_at(later, &op);
                }
            }
        }
    }
}
