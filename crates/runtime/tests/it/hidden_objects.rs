//! Whether an object of another agent exists cannot be found out: every response about it equals that about an unknown id.

use api::{
    Action, AgentAdd, AgentEdit, AgentList, AgentRemove, AgentShow, AgentTest, ApprovalDecide,
    ApprovalList, ApprovalShow, BudgetList, Call, Cleanup, Code, ConfigReload, ConfigShow,
    DaemonStop, DeviceLink, DeviceList, DeviceRevoke, EventPublish, EventTrigger, Freeze, Handle,
    HealthShow, LeaseRenew, LedgerCheckpoint, LedgerExport, LedgerRebuild, LedgerTail, NoticeList,
    NoticeTest, PolicyDecide, PolicyExplain, PolicyList, PolicyReplay, Request, RunCancel,
    RunEvents, RunList, RunRead, RunRetry, RunSettle, RunShow, RunWatch, ScheduleAdd,
    ScheduleAddAll, ScheduleBackfill, ScheduleBackfillEnd, ScheduleEdit, ScheduleFire,
    ScheduleList, SchedulePause, ScheduleRemove, ScheduleResume, ScheduleShow, ScheduleSlots,
    SetupCheck, StatusSeen, StatusShow, Thaw, TimelineShow, TokenCreate, TokenList, TokenRevoke,
    ToolList, WaitForChanges, When, Why,
};
use kernel::{Actor, Role};
use serde_json::{Value, json};

use crate::scope::{Others, others, table};
use crate::steps::*;
use crate::world::{World, builtin, run_engine};

/// What a field of a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Agent,
    Schedule,
    Run,
    Approval,
    Token,
    Device,
    Event,
}

/// Ids of existing objects of one owner.
struct Ids {
    agents: Vec<String>,
    schedules: Vec<String>,
    runs: Vec<String>,
    approvals: Vec<String>,
    tokens: Vec<String>,
    devices: Vec<String>,
    events: Vec<String>,
}

impl Ids {
    fn of(&self, kind: Kind) -> &[String] {
        match kind {
            Kind::Agent => &self.agents,
            Kind::Schedule => &self.schedules,
            Kind::Run => &self.runs,
            Kind::Approval => &self.approvals,
            Kind::Token => &self.tokens,
            Kind::Device => &self.devices,
            Kind::Event => &self.events,
        }
    }
}

/// A field that names an object.
enum Field<'a> {
    Required(&'a mut String),
    Optional(&'a mut Option<String>),
}

impl Field<'_> {
    fn set(self, id: &str) {
        match self {
            Field::Required(field) => id.clone_into(field),
            Field::Optional(field) => *field = Some(id.to_owned()),
        }
    }

    fn is_set(&self) -> bool {
        !matches!(self, Field::Optional(None))
    }
}

/// The fields of a request that name objects. It lists every field of every request, so a new one does not compile until
/// it is here.
fn named_objects(request: &mut Request) -> Vec<(Kind, Field<'_>)> {
    use Field::{Optional, Required};
    use Kind::{Agent, Approval, Device, Event, Run, Schedule, Token};
    match request {
        Request::HealthShow(HealthShow {})
        | Request::StatusShow(StatusShow {})
        | Request::StatusSeen(StatusSeen { until: _ })
        | Request::BudgetList(BudgetList {})
        | Request::ToolList(ToolList {})
        | Request::ConfigReload(ConfigReload {})
        | Request::ConfigShow(ConfigShow {})
        | Request::PolicyList(PolicyList {})
        | Request::NoticeList(NoticeList {})
        | Request::NoticeTest(NoticeTest {})
        | Request::Cleanup(Cleanup { dry_run: _ })
        | Request::SetupCheck(SetupCheck {})
        | Request::LedgerCheckpoint(LedgerCheckpoint {})
        | Request::LedgerRebuild(LedgerRebuild {})
        | Request::Freeze(Freeze { note: _ })
        | Request::Thaw(Thaw { note: _ })
        | Request::LeaseRenew(LeaseRenew { note: _ })
        | Request::DaemonStop(DaemonStop { now: _, wait: _ })
        | Request::LedgerExport(LedgerExport { dir: _ })
        | Request::TimelineShow(TimelineShow {
            after: _,
            since: _,
            all: _,
            limit: _,
            wait_ms: _,
        })
        | Request::PolicyReplay(PolicyReplay { since: _, rules: _, posture: _ }) => Vec::new(),

        Request::AgentAdd(AgentAdd { name, backend: _, settings: _, look: _ })
        | Request::AgentEdit(AgentEdit { name, backend: _, settings: _, look: _ })
        | Request::AgentShow(AgentShow { name })
        | Request::AgentRemove(AgentRemove { name })
        | Request::AgentTest(AgentTest { name, prompt: _ })
        | Request::TokenCreate(TokenCreate { name, role: _, hash: _, key: _, client: _ }) => {
            vec![(Agent, Required(name))]
        }
        Request::AgentList(AgentList { name, limit: _, cursor }) => {
            vec![(Agent, Optional(name)), (Agent, Optional(cursor))]
        }

        Request::ScheduleAdd(add) => named_in_definition(add),
        Request::ScheduleAddAll(ScheduleAddAll { schedules, dry_run: _ }) => {
            schedules.iter_mut().flat_map(named_in_definition).collect()
        }
        Request::ScheduleEdit(ScheduleEdit {
            id,
            name: _,
            when: _,
            event_trigger,
            action,
            sensitive: _,
            tier: _,
            terms: _,
            unset: _,
        }) => {
            let mut fields = named_in_action(event_trigger, action);
            fields.push((Schedule, Required(id)));
            fields
        }
        Request::ScheduleList(ScheduleList { agent, limit: _, cursor, by_id: _ }) => {
            vec![(Agent, Optional(agent)), (Schedule, Optional(cursor))]
        }
        Request::ScheduleShow(ScheduleShow { id })
        | Request::ScheduleSlots(ScheduleSlots { id, limit: _ })
        | Request::SchedulePause(SchedulePause { id, note: _ })
        | Request::ScheduleResume(ScheduleResume { id })
        | Request::ScheduleRemove(ScheduleRemove { id })
        | Request::ScheduleFire(ScheduleFire { id })
        | Request::ScheduleBackfillEnd(ScheduleBackfillEnd { id })
        | Request::Why(Why { id, at: _ }) => vec![(Schedule, Required(id))],
        Request::ScheduleBackfill(ScheduleBackfill {
            id,
            from: _,
            to: _,
            at_once: _,
            gap: _,
            dry_run: _,
            confirm: _,
        }) => vec![(Schedule, Required(id))],
        Request::EventPublish(EventPublish { name: _, id }) => vec![(Event, Optional(id))],

        Request::RunList(RunList { agent, schedule, state: _, limit: _, cursor }) => {
            vec![(Agent, Optional(agent)), (Schedule, Optional(schedule)), (Run, Optional(cursor))]
        }
        Request::LedgerTail(LedgerTail {
            after: _,
            limit: _,
            wait_ms: _,
            kind: _,
            schedule,
            run,
            log: _,
        }) => vec![(Schedule, Optional(schedule)), (Run, Optional(run))],
        Request::RunShow(RunShow { id })
        | Request::RunRead(RunRead { id, from: _ })
        | Request::RunWatch(RunWatch { id, seen: _, wait_ms: _ })
        | Request::RunEvents(RunEvents { id })
        | Request::RunCancel(RunCancel { id, note: _ })
        | Request::RunRetry(RunRetry { id })
        | Request::RunSettle(RunSettle { id, state: _, note: _ })
        | Request::PolicyExplain(PolicyExplain { run: id }) => vec![(Run, Required(id))],

        Request::ApprovalList(ApprovalList { agent, all: _, limit: _, cursor }) => {
            vec![(Agent, Optional(agent)), (Approval, Optional(cursor))]
        }
        Request::ApprovalShow(ApprovalShow { id }) => vec![(Approval, Required(id))],
        Request::ApprovalDecide(ApprovalDecide {
            id,
            decision: _,
            plan_hash: _,
            note: _,
            signature: _,
            remember: _,
        }) => vec![(Approval, Required(id))],

        Request::PolicyDecide(PolicyDecide {
            capability: _,
            resource,
            host: _,
            path: _,
            argv: _,
        }) => {
            vec![(Schedule, Optional(resource))]
        }

        Request::TokenList(TokenList { limit: _, cursor }) => vec![(Token, Optional(cursor))],
        Request::TokenRevoke(TokenRevoke { id, note: _ }) => vec![(Token, Required(id))],

        Request::DeviceLink(DeviceLink { at_terminal: _ }) => Vec::new(),
        Request::DeviceList(DeviceList { limit: _, cursor }) => vec![(Device, Optional(cursor))],
        Request::DeviceRevoke(DeviceRevoke { id }) => vec![(Device, Required(id))],

        Request::WaitForChanges(WaitForChanges { after: _, about, any: _, wait_ms: _ }) => {
            let kind = |id: &str| if id.starts_with("run_") { Run } else { Schedule };
            about.iter_mut().map(|id| (kind(id), Required(id))).collect()
        }
    }
}

fn named_in_definition(add: &mut ScheduleAdd) -> Vec<(Kind, Field<'_>)> {
    let ScheduleAdd {
        name: _,
        when: _,
        event_trigger,
        action,
        sensitive: _,
        tier: _,
        terms: _,
        paused: _,
        dry_run: _,
    } = add;
    named_in_action(event_trigger, action)
}

fn named_in_action<'a>(
    trigger: &'a mut EventTrigger,
    action: &'a mut Action,
) -> Vec<(Kind, Field<'a>)> {
    let EventTrigger { after, ending: _, event: _, again: _, since: _ } = trigger;
    let Action { agent, prompt: _, tool: _, payload: _ } = action;
    vec![(Kind::Schedule, Field::Optional(after)), (Kind::Agent, Field::Optional(agent))]
}

/// Every request, and more than one form of those that name objects in several ways.
fn requests(eve: &Others) -> Vec<Request> {
    let parse = |name: &str, with: &Value| -> Request {
        serde_json::from_value(json!({ "call": name, "with": with })).unwrap()
    };
    let mut requests: Vec<Request> =
        table(eve).iter().map(|(name, with, ..)| parse(name, with)).collect();
    // A schedule that follows another one has no other trigger.
    let followers = |request: &Request| {
        let (mut request, mut dry_run) = (request.clone(), request.clone());
        let follow = |add: &mut ScheduleAdd| {
            add.when = When::default();
            add.event_trigger.after = Some(eve.schedule.clone());
        };
        match (&mut request, &mut dry_run) {
            (Request::ScheduleAdd(add), Request::ScheduleAdd(dry)) => {
                [&mut *add, &mut *dry].into_iter().for_each(follow);
                dry.dry_run = true;
            }
            (Request::ScheduleAddAll(list), Request::ScheduleAddAll(dry)) => {
                list.schedules.iter_mut().chain(&mut dry.schedules).for_each(follow);
                dry.dry_run = true;
            }
            (Request::ScheduleEdit(edit), Request::ScheduleEdit(_)) => {
                edit.event_trigger.after = Some(eve.schedule.clone());
            }
            _ => return Vec::new(),
        }
        vec![request, dry_run]
    };
    let more: Vec<Request> = requests.iter().flat_map(followers).collect();
    requests.extend(more);
    let run = json!({ "about": [eve.run], "wait_ms": 50 });
    requests.push(parse("news", &run));
    requests.push(parse("run.watch", &json!({ "id": eve.run, "wait_ms": 50 })));
    requests.push(parse("approval.list", &json!({ "all": true })));
    requests
}

/// A well-formed id beside this one, which no object has.
fn unknown(id: &str) -> String {
    let (start, last) = id.split_at(id.len() - 1);
    format!("{start}{}", if last == "0" { "1" } else { "0" })
}

/// Everything that the caller learns, with the id that it asked for left out.
async fn response(world: &World, actor: &Actor, request: &Request, id: &str) -> String {
    let request = request.clone();
    let call = Call { request, key: None, version: None, tool: None, progress: Default::default() };
    let response = match world.engine.handle(actor.clone()).call(call).await {
        Ok(response) => serde_json::to_string(&response).unwrap(),
        Err(error) => format!("{:?}: {} ({:?})", error.code, error.message, error.hint),
    };
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words = response.split_inclusive(|c| !is_word(c)).map(|word| match word.strip_prefix(id) {
        Some(end) if !end.starts_with(is_word) => format!("ID{end}"),
        _ => word.to_owned(),
    });
    words.collect()
}

/// Rules that name objects of `eve`, and one under which the assistant of `otto` may see nothing.
fn rules(schedule: &str) -> String {
    format!(
        r#"
        [[rule]]
        id = "not-this-one"
        deny = ["schedule.change", "run.start"]
        resource = ["{schedule}"]
        match = [{{ capability = "schedule.change", resource = "{schedule}" }}]
        not_match = [{{ capability = "schedule.change", resource = "sch_00000000" }}]

        [[rule]]
        id = "not-eve"
        deny = ["schedule.change", "run.start", "run.cancel"]
        agent = ["eve"]
        match = [{{ capability = "schedule.change", agent = "eve" }}]
        not_match = [{{ capability = "schedule.change", agent = "ada" }}]

        [[rule]]
        id = "blind"
        deny = ["schedule.read", "ledger.read"]
        principal = ["mcp:otto"]
        match = [{{ capability = "schedule.read", principal = "mcp:otto" }}]
        not_match = [{{ capability = "schedule.read", principal = "mcp:olga" }}]
        "#
    )
}

/// `ada` has a schedule and a running run. `eve` has runs in several states, a paused schedule and one with a follower.
/// `finn` has a run in progress.
async fn check_all(world: &World, watched: &str) {
    let eve = others(world).await;
    let own = add(world, every("9h", "hang")).await;
    let ada_run = fire(world, &own).await.id;
    let busy = add(world, named("busy", "finn", every("9h", "hang"))).await;
    let running = fire(world, &busy).await.id;
    let brief = add(world, named("brief", "finn", every("8h", "x"))).await;
    let done = fire(world, &brief).await.id;
    wait_until_idle().await;
    world.send(SchedulePause { id: brief.clone(), note: None }).await.unwrap();
    let after = EventTrigger { after: Some(busy.clone()), ..EventTrigger::default() };
    let follower = ScheduleAdd {
        when: When::default(),
        event_trigger: after,
        ..named("follower", "finn", every("1h", "x"))
    };
    add(world, follower).await;
    let event = EventPublish { name: "eve.done".to_owned(), id: Some("e1".to_owned()) };
    world.send(event).await.unwrap();
    let token = TokenCreate {
        name: "eve".to_owned(),
        role: api::Role::Runner,
        hash: "ab".repeat(32),
        ..serde_json::from_value(json!({ "name": "x", "role": "runner", "hash": "x" })).unwrap()
    };
    let token = world.send_as(Role::Maintainer, token).await.unwrap().token.id;
    let theirs = Ids {
        agents: vec!["eve".to_owned(), "finn".to_owned()],
        schedules: vec![watched.to_owned(), eve.schedule.clone(), busy, brief],
        runs: vec![eve.run.clone(), running, done],
        approvals: vec![eve.approval.clone()],
        tokens: vec![token],
        // An agent is refused before any is looked for.
        devices: vec!["dev_00064b4b6d9a4000000000000000000d".to_owned()],
        events: vec!["e1".to_owned()],
    };
    let person = |name: &str, role| Actor::token_holder(name.parse().unwrap(), role);
    let callers = [
        person("ada", Role::Runner),
        person("no-agent", Role::Runner),
        Actor::for_run(&ada_run.parse().unwrap()),
        Actor::for_unknown_run(),
        person("otto", Role::Operator).into_assistant(),
    ];
    let mut compared = 0;
    for actor in &callers {
        for mut request in requests(&eve) {
            for (kind, field) in named_objects(&mut request).into_iter().filter(|it| it.1.is_set())
            {
                match kind {
                    Kind::Agent => field.set("ada"),
                    Kind::Schedule => field.set(&own),
                    Kind::Run => field.set(&ada_run),
                    Kind::Approval | Kind::Token | Kind::Device | Kind::Event => {}
                }
            }
            let kinds: Vec<Kind> = named_objects(&mut request).iter().map(|it| it.0).collect();
            for (index, kind) in kinds.into_iter().enumerate() {
                for id in theirs.of(kind) {
                    let about = |id: &str| {
                        let mut request = request.clone();
                        named_objects(&mut request).swap_remove(index).1.set(id);
                        request
                    };
                    let missing = unknown(id);
                    let found = response(world, actor, &about(id), id).await;
                    let expected = response(world, actor, &about(&missing), &missing).await;
                    assert_eq!(found, expected, "{} as {}: {request:?}", id, actor.name());
                    compared += 1;
                }
            }
        }
    }
    assert!(callers.len() * Request::NAMES.len() < compared, "{compared}");
}

#[tokio::test(start_paused = true)]
async fn response_for_another_agents_object_equals_that_for_an_unknown_id() {
    let mut world = World::new().await;
    for agent in [builtin("ada"), of_tier(2, builtin("eve")), builtin("finn")] {
        world.send(agent).await.unwrap();
    }
    let watched = add(&world, named("watched", "eve", every("7h", "x"))).await;
    world.policy = rules(&watched);
    world.reopen().await.unwrap();
    run_engine(&world, check_all(&world, &watched)).await;
}

#[tokio::test(start_paused = true)]
async fn idempotency_key_of_another_caller_reveals_nothing() {
    let world = World::new().await;
    for agent in [builtin("ada"), builtin("eve")] {
        world.send(agent).await.unwrap();
    }
    let theirs = add(&world, named("x", "eve", every("1h", "x"))).await;
    let pause = |id: &str| SchedulePause { id: id.to_owned(), note: None };
    let send = async |name: &str, id: &str| {
        let actor = Actor::token_holder(name.parse().unwrap(), Role::Runner);
        let call = Call { key: Some("the-key".to_owned()), ..Call::new(pause(id)) };
        call.send::<SchedulePause>(&world.engine.handle(actor)).await
    };
    assert!(send("eve", &theirs).await.unwrap().changed);
    let missing = unknown(&theirs);
    let [found, expected] = [send("ada", &theirs).await, send("ada", &missing).await]
        .map(|refused| refused.unwrap_err());
    assert_eq!((found.code, found.hint), (Code::NotFound, expected.hint));
    assert_eq!(found.message.replace(&theirs, &missing), expected.message);
    let own = add(&world, every("1h", "x")).await;
    assert!(send("ada", &own).await.unwrap().changed, "the key is free for `ada`");
}
