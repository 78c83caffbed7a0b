//! Schedules that runs add: few, and none of theirs adds more.

use kernel::agent::Agent;
use kernel::run::{Run, State};
use kernel::schedule::terms::Terms;
use kernel::schedule::{
    Action, AtWork, Command, Definition, Event, Ground, Maker, Schedule, decide,
};
use kernel::{Actor, Body, Role, RunId};

use crate::support::{Ask, World, at, every};

fn run(schedules_made: u32, state: State) -> Run {
    let queued = serde_json::json!({
        "schedule": "sch_0123abcd", "revision": 1, "origin": "manual", "agent": "ada",
        "priority": 5, "queued_at": 0, "state": {"queued": {"from": 0}},
    });
    let queued: Run = serde_json::from_value(queued).unwrap();
    Run { schedules_made, state, ..queued }
}

fn running() -> State {
    State::Running { holder: "us".into(), repeatable: false }
}

/// Whether a run as it is here may add a schedule, and why not.
fn check(run: Run, made: u32, beside: u32, parent: Option<&Schedule>) -> String {
    check_with(true, run, made, beside, parent)
}

fn check_with(
    may_add: bool,
    run: Run,
    made: u32,
    beside: u32,
    parent: Option<&Schedule>,
) -> String {
    let world = World::new(every(60), Terms::default());
    let agent = Agent { schedules_made: made, ..world.agent.clone().unwrap() };
    let (id, other) = (RunId::of(42), "sch_00000001".parse().unwrap());
    let at_work = AtWork { id: &id, run: &run, schedule: parent };
    let maker = Maker { agent: &agent, run: Some(at_work), beside, reaches_others: false, may_add };
    let ground = Ground {
        id: &other,
        schedule: None,
        progress: None,
        agent: Some(&agent),
        upstream: &[],
        fired: None,
        maker: Some(maker),
        now: at(1),
    };
    let definition = Box::new(world.definition.clone());
    match decide(ground, &Actor::of_run(&id), Command::Add { definition, paused: false }) {
        Ok(bodies) => match bodies.as_slice() {
            [Body::Schedule(_, Event::Added(added))] => {
                let by = added.made_by.as_ref().unwrap();
                format!("{} of {}", by.run.as_ref().unwrap(), by.agent)
            }
            other => panic!("{other:?}"),
        },
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn a_run_adds_a_few_while_it_is_at_work() {
    let added = format!("{} of ada", RunId::of(42));
    assert_eq!(check(run(0, running()), 0, 0, None), added);
    assert_eq!(check(run(9, running()), 99, 0, None), added);
    assert_eq!(check(run(10, running()), 0, 0, None), "a run adds at most 10 schedules");
    assert_eq!(check(run(5, running()), 0, 4, None), added);
    assert_eq!(check(run(5, running()), 0, 5, None), "a run adds at most 10 schedules");
    let most = "agent `ada` has added as many schedules as there may be (100)";
    assert_eq!(check(run(0, running()), 100, 0, None), most);
    assert_eq!(check(run(0, running()), 98, 2, None), most);
    let idle = format!("run `{}` is not at work, so it can add nothing", RunId::of(42));
    assert_eq!(check(run(0, State::Queued { from: at(0) }), 0, 0, None), idle);
}

#[test]
fn a_run_adds_nothing_where_that_is_switched_off() {
    let refused = check_with(false, run(0, running()), 0, 0, None);
    assert_eq!(refused, "runs add no schedules: that is switched off");
}

#[test]
fn what_a_run_has_added_adds_nothing() {
    let mut world = World::new(every(60), Terms::default());
    world.ask(0, &Ask::Add);
    let parent = world.schedule().unwrap();
    assert!(check(run(0, running()), 0, 0, Some(&parent)).ends_with("of ada"));
    let made_by = serde_json::json!({"run": RunId::of(7), "agent": "ada"});
    let made_by = serde_json::from_value(made_by).unwrap();
    let parent = Schedule { made_by: Some(made_by), ..parent };
    assert_eq!(
        check(run(0, running()), 0, 0, Some(&parent)),
        "schedule `sch_0123abcd` was added by an agent, so its own runs can add none"
    );
}

#[test]
fn whoever_is_named_like_a_run_is_none() {
    let name = Actor::of_run(&RunId::of(42)).name;
    assert_eq!(Actor { name: name.clone(), role: Role::Runner }.run(), Some(RunId::of(42)));
    assert_eq!(Actor { name, role: Role::Operator }.run(), None);
    assert_eq!(Actor::system().run(), None);
}

/// What somebody with the token of agent `ada` may ask of a schedule for this agent.
fn by_token(of: &str, reaches_others: bool, command: impl Fn(&World) -> Command) -> String {
    let mut world = World::new(every(60), Terms::default());
    world.ask(0, &Ask::Add);
    let ada = world.agent.clone().unwrap();
    world.definition.action = Action::Prompt { agent: of.parse().unwrap(), prompt: "look".into() };
    let schedule = Schedule { definition: world.definition.clone(), ..world.schedule().unwrap() };
    let target = Agent { name: of.parse().unwrap(), ..ada.clone() };
    let command = command(&world);
    let is_add = matches!(command, Command::Add { .. });
    let (id, progress) = ("sch_0123abcd".parse().unwrap(), world.progress());
    let ground = Ground {
        id: &id,
        schedule: Some(&schedule).filter(|_| !is_add),
        progress: progress.as_ref().filter(|_| !is_add),
        agent: Some(&target),
        upstream: &[],
        fired: None,
        maker: Some(Maker { agent: &ada, run: None, beside: 0, reaches_others, may_add: false }),
        now: at(1),
    };
    let actor = Actor { name: "ada".to_owned(), role: Role::Runner };
    match decide(ground, &actor, command) {
        Ok(bodies) => format!("{} done", bodies.len()),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn an_agent_reaches_its_own_schedules_and_no_others() {
    let add = |world: &World| Command::Add {
        definition: Box::new(world.definition.clone()),
        paused: false,
    };
    let edit = |world: &World| {
        let definition = Definition { name: "other".to_owned(), ..world.definition.clone() };
        Command::Edit { definition: Box::new(definition) }
    };
    let fire = |_: &World| Command::Fire { run: RunId::of(1), key: "now".to_owned() };
    let too_low = "this needs the role `operator`, and `ada` has the role `runner`";
    let unknown = "there is no schedule `sch_0123abcd`";
    let for_itself = "agent `ada` adds schedules for itself only";
    type Asks<'a> = &'a dyn Fn(&World) -> Command;
    let table: [(Asks<'_>, [&str; 3]); 6] = [
        (&add, ["1 done", for_itself, "1 done"]),
        (&|_| Command::Pause { note: None }, ["1 done", unknown, "1 done"]),
        (&|_| Command::Remove, ["1 done", unknown, "1 done"]),
        (&fire, ["1 done", unknown, "1 done"]),
        // What would do more than before is a human's to say.
        (&|_| Command::Resume, [too_low, too_low, too_low]),
        (&edit, [too_low, too_low, too_low]),
    ];
    for (command, expected) in table {
        let found = [
            by_token("ada", false, command),
            by_token("bob", false, command),
            by_token("bob", true, command),
        ];
        assert_eq!(found, expected);
    }
}

/// A person's assistant does what a person would, except what is for people alone.
#[test]
fn an_assistant_changes_schedules_and_runs_none_of_the_past() {
    let assistant = Actor { name: "mia".to_owned(), role: Role::Maintainer }.assistant();
    assert_eq!((assistant.name.as_str(), assistant.role), ("mcp:mia", Role::Runner));
    assert!(assistant.is_assistant());
    assert_eq!(Actor::person(&assistant.name), "mia");
    // Whoever is no more than a runner speaks for themselves.
    let ada = Actor { name: "ada".to_owned(), role: Role::Runner };
    assert_eq!(ada.clone().assistant(), ada);
    let mut world = World::new(every(60), Terms::default());
    world.ask(0, &Ask::Add);
    let (id, schedule, progress) =
        ("sch_0123abcd".parse().unwrap(), world.schedule(), world.progress());
    let said = |command: Command| {
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
        decide(ground, &assistant, command).is_ok()
    };
    assert!(said(Command::Pause { note: None }));
    assert!(said(Command::Fire { run: RunId::of(1), key: "now".to_owned() }));
    assert!(said(Command::Remove));
    assert!(!said(Command::EndBackfill));
}

/// What people have bound is not an assistant's to unbind.
#[test]
fn an_assistant_loosens_nothing() {
    let bound = Terms {
        per_day: Some(4),
        tokens_per_day: Some(1_000),
        max_fires: Some(10),
        end_at: Some(at(9_000)),
        pause_after: 3,
        ..Terms::default()
    };
    let human = Actor { name: "mia".to_owned(), role: Role::Operator };
    type Edits<'a> = &'a dyn Fn(&mut Definition);
    let table: [(Edits<'_>, bool); 12] = [
        (&|it| it.name = "other".to_owned(), true),
        (&|it| it.terms.per_day = Some(3), true),
        (&|it| it.terms.per_day = Some(5), false),
        (&|it| it.terms.per_day = None, false),
        (&|it| it.terms.tokens_per_day = None, false),
        (&|it| it.terms.max_fires = Some(11), false),
        (&|it| it.terms.end_at = None, false),
        (&|it| it.terms.pause_after = 0, false),
        (&|it| it.tier = None, false),
        (&|it| it.tier = Some(kernel::backend::Tier::LocalWrite), false),
        (&|it| *it.action.words_mut() = kernel::wording::Wording::Plain("x".to_owned()), false),
        (
            &|it| {
                let prompt = it.action.words().clone();
                it.action = Action::Prompt { agent: "bob".parse().unwrap(), prompt };
            },
            false,
        ),
    ];
    for (number, (edit, is_let)) in table.into_iter().enumerate() {
        let mut world = World::new(every(60), bound.clone());
        world.definition.tier = Some(kernel::backend::Tier::External);
        *world.definition.action.words_mut() =
            kernel::wording::Wording::Sealed { sealed: "c2VhbGVk".to_owned() };
        world.actor = human.clone();
        world.ask(0, &Ask::Add);
        world.actor = human.clone().assistant();
        edit(&mut world.definition);
        let said = world.ask(1, &Ask::Edit);
        assert_eq!(!said.starts_with("no:"), is_let, "{number}: {said}");
        if !is_let {
            assert!(said.contains("a human's to loosen"), "{number}: {said}");
        }
    }
    // Nor does it let go on what a human has paused.
    let mut world = World::new(every(60), Terms::default());
    world.actor = human.clone();
    world.ask(0, &Ask::Add);
    world.ask(1, &Ask::Pause);
    world.actor = human.clone().assistant();
    for ask in [Ask::Resume, Ask::Fire("k")] {
        assert!(world.ask(2, &ask).contains("this needs the role `operator`"), "{ask:?}");
    }
    world.actor = human;
    world.ask(3, &Ask::Resume);
    world.actor = world.actor.clone().assistant();
    world.ask(4, &Ask::Pause);
    assert!(!world.ask(5, &Ask::Resume).starts_with("no:"), "what it has paused itself");
}
