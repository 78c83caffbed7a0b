//! What people ask of a schedule.

use calendar::Trigger;
use kernel::backend::Tier;
use kernel::schedule::terms::{ATTEMPTS_MAX, Overlap, PRIORITY_MAX, Resume, Terms};
use kernel::schedule::{
    Action, Command, Definition, Ground, KEY_BYTES_MAX, NAME_CHARS_MAX, NOTE_BYTES_MAX,
    PAYLOAD_BYTES_MAX, PROMPT_BYTES_MAX, decide,
};
use kernel::wording::Wording;
use kernel::{Actor, Role, RunId};

use crate::support::{Ask, World, at, every};
use Ask::{Add, Fire, Pause, Remove, Tick};

/// A story: second, what is asked, what is decided.
fn check(terms: Terms, story: &[(i64, Ask, &str)]) {
    let mut world = World::new(every(60), terms);
    for (second, ask, expected) in story {
        assert_eq!(&world.ask(*second, ask), expected, "at {second}: {ask:?}");
    }
}

const NONE: &str = "no: there is no schedule `sch_0123abcd`";
const STARTED: &str = "started 1 1 tier 0 repeatable";
const LIVE: &str = "no: run `run_00000000000000000000000000000001` is live, and the overlap policy lets no other run beside it";

#[test]
fn a_schedule_is_added_once_and_comes_back_where_it_was() {
    check(
        Terms::default(),
        &[
            (0, Pause, NONE),
            (0, Ask::Resume, NONE),
            (0, Remove, NONE),
            (0, Fire("k"), NONE),
            (0, Add, "added, next 60"),
            (1, Add, ""),
            (60, Tick, "slot fires 60"),
            (200, Remove, "superseded 120..180 ×2 (removed), removed"),
            (200, Remove, NONE),
            (240, Tick, ""),
            // What came in between is no slot; what was decided stays so, though the clock went back.
            (100, Add, "added, next 240"),
            // The run of its former life is live.
            (240, Tick, "skipped_overlap 240"),
            (241, Ask::Start(1), STARTED),
            (242, Ask::Finish(1, 1, Ok(())), "done"),
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
            (91, Ask::Start(1), "cancelled (its schedule was removed before it began)"),
            // A new life has new fires.
            (130, Add, "added, next 180"),
            (180, Tick, "slot fires 180"),
        ],
    );
}

#[test]
fn what_waits_or_is_kept_back_goes_with_the_schedule() {
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
fn a_pause_is_a_barrier() {
    check(
        Terms::default(),
        &[
            (0, Add, "added, next 60"),
            (1, Ask::Resume, ""),
            (70, Pause, "paused"),
            (80, Pause, ""),
            (130, Tick, ""),
            (140, Fire("k"), "manual fires k"),
            (200, Ask::Resume, "skipped_paused 60..180 ×3, resumed"),
            (200, Ask::Resume, ""),
            (240, Tick, "skipped_overlap 240"),
        ],
    );
    let resume = Resume::AsMissed;
    check(
        Terms { resume, ..Terms::default() },
        &[
            (0, Add, "added, next 60"),
            (70, Pause, "paused"),
            (200, Ask::Resume, "resumed"),
            (200, Tick, "coalesced 60..120 ×2 into 180, slot fires 180 late 20"),
        ],
    );
    // Over before anything was missed.
    check(
        Terms::default(),
        &[
            (0, Add, "added, next 60"),
            (10, Pause, "paused"),
            (20, Ask::Resume, "resumed"),
            (60, Tick, "slot fires 60"),
        ],
    );
}

#[test]
fn by_hand_as_far_as_room_and_budget_go() {
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
        (Ask::Start(1), STARTED),
        (Ask::Finish(1, 1, Ok(())), "done"),
        (
            Fire("k"),
            "no: run `run_00000000000000000000000000000001` was started with this key before",
        ),
        (Fire("l"), "no: the schedule has run as often today as it may (1)"),
    ];
    for (ask, expected) in story {
        assert_eq!(world.ask(0, &ask), expected, "{ask:?}");
    }
    // The next slot is where it was.
    assert_eq!(world.progress().unwrap().ahead.next, Some(at(60)));
}

#[test]
fn a_key_is_a_row_of_its_own() {
    let mut world = World::new(every(60), Terms { overlap: Overlap::Allow(9), ..Terms::default() });
    world.ask(0, &Add);
    world.ask(1, &Fire("k"));
    world.ask(60, &Tick);
    assert_eq!(world.manual("k").unwrap().first, at(1));
    assert_eq!(world.manual("l"), None);
}

#[test]
fn only_operators_ask() {
    for role in [Role::Observer, Role::Runner] {
        let mut world = World::new(every(60), Terms::default());
        world.actor = Actor { name: "bob".into(), role };
        let expected =
            format!("no: this needs the role `operator`, and `bob` has the role `{}`", role.name());
        assert_eq!(world.ask(0, &Add), expected);
    }
}

/// What is said of a definition that is so.
fn check_limit(expected: &str, change: impl FnOnce(&mut Definition)) {
    let mut world = World::new(every(60), Terms::default());
    change(&mut world.definition);
    let said = world.ask(0, &Add);
    assert_eq!(said.strip_prefix("no: ").unwrap_or("fine"), expected);
}

#[test]
fn every_limit_holds_at_the_limit_and_one_past_it() {
    let name = "the name of a schedule has 1 to 120 characters";
    check_limit("fine", |it| it.name = "ü".repeat(NAME_CHARS_MAX));
    check_limit(name, |it| it.name = "ü".repeat(NAME_CHARS_MAX + 1));
    check_limit(name, |it| it.name = String::new());
    let line = "the name of a schedule is one line of printable text";
    check_limit(line, |it| it.name = "a\nb".into());
    check_limit(line, |it| it.name = "a\u{202e}b".into());
    check_limit(line, |it| it.name = "a\u{2066}b".into());

    check_limit("fine", |it| it.terms.priority = PRIORITY_MAX);
    check_limit("a priority is from 0 to 9", |it| it.terms.priority = PRIORITY_MAX + 1);
    let tried = "a run is tried 1 to 100 times";
    check_limit("fine", |it| it.terms.retry.attempts = ATTEMPTS_MAX);
    check_limit(tried, |it| it.terms.retry.attempts = ATTEMPTS_MAX + 1);
    check_limit(tried, |it| it.terms.retry.attempts = 0);
    let backoff = |text: &'static str| {
        move |it: &mut Definition| it.terms.retry = it.terms.retry.with_backoff(text).unwrap()
    };
    check_limit("fine", backoff("1d:1:1d"));
    check_limit("fine", backoff("1s:10:1s"));
    let factor = "the factor of a backoff is from 1 to 10";
    check_limit(factor, backoff("1s:0:1s"));
    check_limit(factor, backoff("1s:11:1s"));
    let cap = "the cap of a backoff is from its first delay to a day";
    check_limit(cap, backoff("1001ms:2:1s"));
    check_limit(cap, backoff("1s:2:86400001ms"));
    check_limit("fine", |it| it.terms.per_day = Some(1));
    check_limit("a schedule runs at least once a day", |it| it.terms.per_day = Some(0));
    check_limit("fine", |it| it.terms.max_fires = Some(1));
    check_limit("a schedule fires at least once", |it| it.terms.max_fires = Some(0));

    let between = |start, end| {
        move |it: &mut Definition| {
            (it.terms.start_at, it.terms.end_at) = (Some(at(start)), Some(at(end)));
        }
    };
    check_limit("fine", between(120, 120));
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
    check_limit("fine", prompt("p".repeat(PROMPT_BYTES_MAX)));
    check_limit("a prompt has at most 64 KiB", prompt("p".repeat(PROMPT_BYTES_MAX + 1)));
    check_limit("a prompt is not empty", prompt(" \n".into()));

    let tool = |tool: String, bytes| {
        move |it: &mut Definition| {
            it.action = Action::Tool { tool, payload: " ".repeat(bytes).into(), hash: None };
        }
    };
    // What is sealed is longer, and not looked into.
    let sealed = |bytes: usize| {
        let prompt = Wording::Sealed { sealed: "s".repeat(bytes) };
        move |it: &mut Definition| {
            it.action = Action::Prompt { agent: "ada".parse().unwrap(), prompt };
        }
    };
    let most = PROMPT_BYTES_MAX.div_ceil(3) * 4 + 128;
    check_limit("fine", sealed(0));
    check_limit("fine", sealed(most));
    check_limit("a prompt has at most 64 KiB", sealed(most + 1));

    let named = "the name of a tool has 1 to 128 of a-z, A-Z, 0-9, `.`, `_`, `-`";
    check_limit("fine", tool("t".repeat(128), PAYLOAD_BYTES_MAX));
    check_limit("a payload has at most 64 KiB", tool("t".into(), PAYLOAD_BYTES_MAX + 1));
    check_limit(named, tool("t".repeat(129), 0));
    check_limit(named, tool(String::new(), 0));
    check_limit(named, tool("a b".into(), 0));
}

#[test]
fn a_schedule_only_raises_the_tier_of_an_agent_that_there_is() {
    let mut world = World::new(every(60), Terms::default());
    world.agent.as_mut().unwrap().tier = Tier::LocalWrite;
    world.definition.tier = Some(Tier::ReadOnly);
    assert_eq!(world.ask(0, &Add), "no: agent `ada` has tier 1, and a schedule may only raise it");
    world.definition.tier = Some(Tier::External);
    world.agent = None;
    assert_eq!(world.ask(0, &Add), "no: there is no agent `ada`");
}

#[test]
fn notes_and_keys_have_a_limit() {
    let mut world = World::new(every(60), Terms::default());
    world.ask(0, &Add);
    let (schedule, progress) = (world.schedule(), world.progress());
    let id = "sch_0123abcd".parse().unwrap();
    let is_fine = |command| {
        let ground = Ground {
            id: &id,
            schedule: schedule.as_ref(),
            progress: progress.as_ref(),
            agent: None,
            upstream: &[],
            fired: None,
            maker: None,
            now: at(1),
        };
        decide(ground, &Actor::local_user(1), command).is_ok()
    };
    for (over, expected) in [(0, true), (1, false)] {
        let note = Some("n".repeat(NOTE_BYTES_MAX + over));
        assert_eq!(is_fine(Command::Pause { note }), expected);
        let key = "k".repeat(KEY_BYTES_MAX + over);
        assert_eq!(is_fine(Command::Fire { run: RunId::of(1), key }), expected);
    }
}

/// Nothing overflows where time ends.
#[test]
fn the_ends_of_time_are_no_trouble() {
    let far = [i64::MIN, i64::MIN + 1, -1, 0, calendar::END_US, i64::MAX - 1, i64::MAX];
    let far = far.map(kernel::Timestamp::from_micros);
    for (start_at, end_at) in far.iter().flat_map(|start| far.map(|end| (Some(*start), Some(end))))
    {
        for now in far {
            let terms = Terms { start_at, end_at, jitter: "1h".parse().ok(), ..Terms::default() };
            let mut world = World::new(every(60), terms);
            let said = world.ask_at(now, &Add);
            assert!(said.starts_with("added") || said.starts_with("no: "), "{said}");
            for later in far {
                for ask in [Tick, Pause, Ask::Resume, Fire("k"), Remove, Add] {
                    world.ask_at(later, &ask);
                }
            }
        }
    }
}
