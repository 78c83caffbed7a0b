//! Schedule commands by runs, agents and assistants.

use kernel::agent::Agent;
use kernel::progress::Progress;
use kernel::run::{Run, State};
use kernel::schedule::terms::Terms;
use kernel::schedule::{
    Action, AgentCaller, CallingRun, Command, Definition, Event, Schedule, ScheduleContext, decide,
};
use kernel::tool::ToolStats;
use kernel::{Actor, EventBody, Principal, Role, RunId, Tables};

use crate::support::{Op, World, at, every};

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

/// Returns the author of the schedule that a run adds, or the refusal.
fn check(run: Run, added_by_agent: u32, added_in_batch: u32, parent: Option<&Schedule>) -> String {
    check_with(true, run, added_by_agent, added_in_batch, parent)
}

fn check_with(
    may_add: bool,
    run: Run,
    added_by_agent: u32,
    added_in_batch: u32,
    parent: Option<&Schedule>,
) -> String {
    let world = World::new(every(60), Terms::default());
    let agent = Agent { schedules_made: added_by_agent, ..world.agent.clone().unwrap() };
    let (id, other) = (RunId::of(42), "sch_00000001".parse().unwrap());
    let calling_run = CallingRun { id: &id, run: &run, schedule: parent };
    let maker = AgentCaller {
        agent: &agent,
        run: Some(calling_run),
        added_in_batch,
        may_manage_others: false,
        runs_may_add: may_add,
    };
    let context = ScheduleContext {
        id: &other,
        schedule: None,
        progress: None,
        agent: Some(&agent),
        tool: None,
        upstream: &[],
        fired: None,
        caller: Some(maker),
        now: at(1),
    };
    let definition = Box::new(world.definition.clone());
    match decide(context, &Actor::for_run(&id), Command::Add { definition, paused: false }) {
        Ok(bodies) => match bodies.as_slice() {
            [EventBody::Schedule(_, Event::Added(added))] => {
                let by = added.added_by_agent.as_ref().unwrap();
                format!("{} of {}", by.run.as_ref().unwrap(), by.agent)
            }
            other => panic!("{other:?}"),
        },
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn running_run_adds_schedules_up_to_the_limits() {
    let added = format!("{} of ada", RunId::of(42));
    assert_eq!(check(run(0, running()), 0, 0, None), added);
    assert_eq!(check(run(9, running()), 99, 0, None), added);
    assert_eq!(check(run(10, running()), 0, 0, None), "a run may add at most 10 schedules");
    assert_eq!(check(run(5, running()), 0, 4, None), added);
    assert_eq!(check(run(5, running()), 0, 5, None), "a run may add at most 10 schedules");
    let most = "agent `ada` has added the most schedules allowed (100)";
    assert_eq!(check(run(0, running()), 100, 0, None), most);
    assert_eq!(check(run(0, running()), 98, 2, None), most);
    let idle = format!("run `{}` is not running, so it cannot add schedules", RunId::of(42));
    assert_eq!(check(run(0, State::Queued { from: at(0) }), 0, 0, None), idle);
}

#[test]
fn run_adds_no_schedule_if_switched_off() {
    let refused = check_with(false, run(0, running()), 0, 0, None);
    assert_eq!(refused, "runs may not add schedules: this is switched off");
}

#[test]
fn schedule_added_by_an_agent_cannot_add_schedules() {
    let mut world = World::new(every(60), Terms::default());
    world.perform(0, &Op::Add);
    let parent = world.schedule().unwrap();
    assert!(check(run(0, running()), 0, 0, Some(&parent)).ends_with("of ada"));
    let made_by = serde_json::json!({"run": RunId::of(7), "agent": "ada"});
    let made_by = serde_json::from_value(made_by).unwrap();
    let parent = Schedule { added_by_agent: Some(made_by), ..parent };
    assert_eq!(
        check(run(0, running()), 0, 0, Some(&parent)),
        "schedule `sch_0123abcd` was added by an agent, so its runs may not add schedules"
    );
}

/// The result of a command by a caller with the token of `ada`, about a schedule of agent `of`.
fn by_token(of: &str, reaches_others: bool, command: impl Fn(&World) -> Command) -> String {
    let mut world = World::new(every(60), Terms::default());
    world.perform(0, &Op::Add);
    let ada = world.agent.clone().unwrap();
    world.definition.action = Action::Prompt { agent: of.parse().unwrap(), prompt: "look".into() };
    let schedule = Schedule { definition: world.definition.clone(), ..world.schedule().unwrap() };
    let target = Agent { name: of.parse().unwrap(), ..ada.clone() };
    let command = command(&world);
    let is_add = matches!(command, Command::Add { .. });
    let (id, progress) = ("sch_0123abcd".parse().unwrap(), world.progress());
    let context = ScheduleContext {
        id: &id,
        schedule: Some(&schedule).filter(|_| !is_add),
        progress: progress.as_ref().filter(|_| !is_add),
        agent: Some(&target),
        tool: None,
        upstream: &[],
        fired: None,
        caller: Some(AgentCaller {
            agent: &ada,
            run: None,
            added_in_batch: 0,
            may_manage_others: reaches_others,
            runs_may_add: false,
        }),
        now: at(1),
    };
    let actor = Actor::token_holder("ada".parse().unwrap(), Role::Runner);
    match decide(context, &actor, command) {
        Ok(bodies) => format!("{} done", bodies.len()),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn agent_token_manages_only_its_own_schedules() {
    let add = |world: &World| Command::Add {
        definition: Box::new(world.definition.clone()),
        paused: false,
    };
    let edit = |world: &World| {
        let definition = Definition { name: "other".to_owned(), ..world.definition.clone() };
        Command::Edit { definition: Box::new(definition) }
    };
    let fire = |_: &World| Command::Fire { run: RunId::of(1), key: "now".to_owned() };
    let too_low = "this needs the role `operator`, but `ada` has the role `runner`";
    let unknown = "schedule `sch_0123abcd` does not exist";
    let own_only = "agent `ada` may add schedules for itself only";
    type MakeCommand<'a> = &'a dyn Fn(&World) -> Command;
    let table: [(MakeCommand<'_>, [&str; 3]); 6] = [
        (&add, ["1 done", own_only, "1 done"]),
        (&|_| Command::Pause { note: None }, ["1 done", unknown, "1 done"]),
        (&|_| Command::Remove, ["1 done", unknown, "1 done"]),
        (&fire, ["1 done", unknown, "1 done"]),
        // Commands that extend what a schedule does need a human.
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

#[test]
fn assistant_manages_schedules_but_starts_no_backfill() {
    let assistant = Actor::token_holder("mia".parse().unwrap(), Role::Maintainer).into_assistant();
    assert_eq!((assistant.name(), assistant.role), ("mcp:mia", Role::Runner));
    assert!(assistant.is_assistant());
    assert_eq!(assistant.principal().responsible_person(), Principal::parse("mia"));
    // The assistant of a runner is the runner itself.
    let ada = Actor::token_holder("ada".parse().unwrap(), Role::Runner);
    assert_eq!(ada.clone().into_assistant(), ada);
    let mut world = World::new(every(60), Terms::default());
    world.perform(0, &Op::Add);
    let (id, schedule, progress) =
        ("sch_0123abcd".parse().unwrap(), world.schedule(), world.progress());
    let is_allowed = |command: Command| {
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
        decide(context, &assistant, command).is_ok()
    };
    assert!(is_allowed(Command::Pause { note: None }));
    assert!(is_allowed(Command::Fire { run: RunId::of(1), key: "now".to_owned() }));
    assert!(is_allowed(Command::Remove));
    assert!(!is_allowed(Command::EndBackfill));
}

#[test]
fn assistant_cannot_loosen_limits() {
    let bound = Terms {
        per_day: Some(4),
        tokens_per_day: Some(1_000),
        max_fires: Some(10),
        end_at: Some(at(9_000)),
        pause_after: 3,
        ..Terms::default()
    };
    let human = Actor::token_holder("mia".parse().unwrap(), Role::Operator);
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
        (
            &|it| {
                *it.action.text_mut() = kernel::sealable_text::SealableText::Plain("x".to_owned())
            },
            false,
        ),
        (
            &|it| {
                let prompt = it.action.text().clone();
                it.action = Action::Prompt { agent: "bob".parse().unwrap(), prompt };
            },
            false,
        ),
    ];
    for (number, (edit, is_allowed)) in table.into_iter().enumerate() {
        let mut world = World::new(every(60), bound.clone());
        world.definition.tier = Some(kernel::backend::Tier::External);
        *world.definition.action.text_mut() =
            kernel::sealable_text::SealableText::Sealed { sealed: "c2VhbGVk".to_owned() };
        world.actor = human.clone();
        world.perform(0, &Op::Add);
        world.actor = human.clone().into_assistant();
        edit(&mut world.definition);
        let outcome = world.perform(1, &Op::Edit);
        assert_eq!(!outcome.starts_with("no:"), is_allowed, "{number}: {outcome}");
        if !is_allowed {
            assert!(outcome.contains("only a human may raise a limit"), "{number}: {outcome}");
        }
    }
    // It cannot resume or fire a schedule that a human paused.
    let mut world = World::new(every(60), Terms::default());
    world.actor = human.clone();
    world.perform(0, &Op::Add);
    world.perform(1, &Op::Pause);
    world.actor = human.clone().into_assistant();
    for op in [Op::Resume, Op::Fire("k")] {
        assert!(world.perform(2, &op).contains("this needs the role `operator`"), "{op:?}");
    }
    world.actor = human;
    world.perform(3, &Op::Resume);
    world.actor = world.actor.clone().into_assistant();
    world.perform(4, &Op::Pause);
    assert!(
        !world.perform(5, &Op::Resume).starts_with("no:"),
        "an assistant may resume what it paused itself"
    );
}

/// Each step with who takes it ("mia" is a person, "mcp:mia" her assistant), and the tier that the agent's
/// schedules then have at least.
#[test]
fn runners_cannot_avoid_a_tier_that_a_person_raised() {
    use kernel::backend::Tier::{External, LocalWrite};
    let tables = &mut Tables::default();
    let agent = World::new(every(60), Terms::default()).agent.unwrap();
    let registered = kernel::agent::Definition {
        backend: agent.backend,
        tier: agent.tier,
        credential: None,
        repeatable: false,
        price: agent.price,
        by: None,
        at: at(0),
    };
    let event = kernel::agent::Event::Registered(registered);
    tables.apply(&EventBody::Agent(agent.name.clone(), event));
    let refused = "no: a person gave a schedule of agent `ada` tier 2; only a person may add one with a lower tier";
    type Step<'a> = (&'a str, u8, &'a str, Option<kernel::backend::Tier>, &'a str);
    let story: [Step<'_>; 16] = [
        ("mcp:mia", 1, "add", None, "none"),
        ("mia", 2, "add", None, "none"),
        ("mia", 2, "edit", Some(External), "2"),
        ("mcp:mia", 3, "add", None, refused),
        ("mcp:mia", 3, "add", Some(LocalWrite), refused),
        ("agent", 3, "add", None, refused),
        ("mcp:mia", 3, "add", Some(External), "2"),
        // An edit of the time is no way around it, but another prompt is.
        ("mcp:mia", 1, "rename", None, "2"),
        ("mcp:mia", 1, "edit", None, refused),
        // A person may.
        ("mia", 4, "add", None, "2"),
        // Removing the raised schedule is no way around it either, unless a person does it.
        ("mcp:mia", 2, "remove", None, "2"),
        ("mcp:mia", 5, "add", None, refused),
        ("mia", 6, "add", Some(LocalWrite), "2"),
        ("mia", 7, "add", Some(External), "2"),
        ("mia", 7, "edit", None, "2"),
        ("mia", 6, "remove", None, "2"),
    ];
    for (step, (by, number, what, tier, expected)) in story.into_iter().enumerate() {
        let done = take_step(tables, (by, number, what, tier));
        assert_eq!(done, expected, "step {step}: {by} {what} {number}");
    }
    // Without the raise that an assistant removed, each raise ends when a person lowers or removes it.
    let mut agent: Agent = tables.get::<Agent>(&agent.name).cloned().unwrap();
    assert_eq!((agent.raised_to_1, agent.raised_to_2), (0, 1));
    agent.raised_to_2 = 0;
    assert_eq!(agent.raised_tier(), None);
}

#[test]
fn assistants_cannot_avoid_a_tier_that_a_person_gave_calls_of_a_tool() {
    use kernel::backend::Tier::{External, LocalWrite, ReadOnly};
    let tables = &mut Tables::default();
    let refused = "no: a person gave a schedule that calls `schedule_list` tier 2; only a person may add one with a lower tier";
    type Step<'a> = (&'a str, u8, &'a str, &'a str, Option<kernel::backend::Tier>, &'a str);
    let story: [Step<'_>; 13] = [
        ("mcp:mia", 1, "add", "schedule_list", None, "none"),
        ("mcp:mia", 2, "add", "schedule_list", Some(External), "none"),
        ("mia", 3, "add", "schedule_list", Some(External), "2"),
        ("mcp:mia", 4, "add", "schedule_list", None, refused),
        ("mcp:mia", 4, "add", "schedule_list", Some(LocalWrite), refused),
        ("mcp:mia", 4, "add", "run_list", None, "2"),
        // Neither a change to this tool nor another payload is a way around it; another name is none.
        ("mcp:mia", 4, "edit", "schedule_list", Some(ReadOnly), refused),
        ("mcp:mia", 1, "edit", "schedule_list", None, refused),
        ("mcp:mia", 1, "rename", "schedule_list", None, "2"),
        ("mcp:mia", 5, "add", "schedule_list", Some(External), "2"),
        // Only a person ends it.
        ("mia", 6, "add", "schedule_list", None, "2"),
        ("mia", 3, "edit", "run_list", None, "none"),
        ("mcp:mia", 7, "add", "schedule_list", None, "none"),
    ];
    for (step, (by, number, what, tool, tier, expected)) in story.into_iter().enumerate() {
        let id = format!("sch_0000000{number}").parse().unwrap();
        let payload = if what == "edit" { "{\"limit\": 2}" } else { "{}" };
        let definition = Definition {
            name: if what == "rename" { "other" } else { "calls" }.to_owned(),
            action: Action::Tool { tool: tool.to_owned(), payload: payload.into(), hash: None },
            tier,
            ..World::new(every(60), Terms::default()).definition
        };
        let person = Actor::token_holder("mia".parse().unwrap(), Role::Operator);
        let actor = if by == "mia" { person } else { person.into_assistant() };
        let context = ScheduleContext {
            id: &id,
            schedule: tables.get::<Schedule>(&id),
            progress: tables.get::<Progress>(&id),
            agent: None,
            tool: tables.get::<ToolStats>(&tool.parse().unwrap()),
            upstream: &[],
            fired: None,
            caller: None,
            now: at(1),
        };
        let definition = Box::new(definition);
        let command = match what {
            "add" => Command::Add { definition, paused: false },
            _ => Command::Edit { definition },
        };
        let done = match decide(context, &actor, command) {
            Ok(events) => {
                events.iter().for_each(|event| tables.apply(event));
                let stats = tables.get::<ToolStats>(&"schedule_list".parse().unwrap());
                let raised = stats.and_then(ToolStats::raised_tier);
                raised.map_or("none".to_owned(), |tier| tier.to_string())
            }
            Err(refusal) => format!("no: {refusal}"),
        };
        assert_eq!(done, expected, "step {step}: {by} {what} {number}");
    }
}

/// Returns the tier that people gave the agent's schedules after the step, or the refusal.
fn take_step(
    tables: &mut Tables,
    (by, number, what, tier): (&str, u8, &str, Option<kernel::backend::Tier>),
) -> String {
    let id = format!("sch_0000000{number}").parse().unwrap();
    let agent = tables.get::<Agent>(&"ada".parse().unwrap()).cloned().unwrap();
    let schedule = tables.get::<Schedule>(&id).cloned();
    let progress = tables.get::<Progress>(&id).cloned();
    let world = World::new(every(60), Terms::default());
    let mut definition = Definition { tier, ..world.definition.clone() };
    match what {
        "rename" => definition.name = "other".to_owned(),
        "edit" => *definition.action.text_mut() = "another prompt".into(),
        _ => {}
    }
    let definition = Box::new(definition);
    let caller = AgentCaller {
        agent: &agent,
        run: None,
        added_in_batch: 0,
        may_manage_others: false,
        runs_may_add: true,
    };
    let is_agent = by == "agent";
    let person = Actor::token_holder("mia".parse().unwrap(), Role::Operator);
    let actor = match by {
        "mia" => person,
        "agent" => Actor::token_holder("ada".parse().unwrap(), Role::Runner),
        _ => person.into_assistant(),
    };
    let context = ScheduleContext {
        id: &id,
        schedule: schedule.as_ref(),
        progress: progress.as_ref(),
        agent: Some(&agent),
        tool: None,
        upstream: &[],
        fired: None,
        caller: is_agent.then_some(caller),
        now: at(1),
    };
    let command = match what {
        "add" => Command::Add { definition, paused: false },
        "remove" => Command::Remove,
        _ => Command::Edit { definition },
    };
    match decide(context, &actor, command) {
        Ok(events) => {
            events.iter().for_each(|event| tables.apply(event));
            let agent = tables.get::<Agent>(&agent.name).unwrap();
            agent.raised_tier().map_or("none".to_owned(), |tier| tier.to_string())
        }
        Err(refusal) => format!("no: {refusal}"),
    }
}
