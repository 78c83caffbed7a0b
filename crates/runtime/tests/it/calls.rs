//! Schedules that call a tool: once for each run, under the standing orders, and only as the tool was meant.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use api::{
    ApprovalDecide, ApprovalList, Ask, Call, Code, Error, Handle, Request, RunRetry, ScheduleAdd,
    ScheduleEdit, ScheduleFire, SchedulePause, StatusAsk, ask,
};
use futures::future::{BoxFuture, FutureExt, pending};
use kernel::budget::Limits;
use kernel::{Actor, Role};
use runtime::{Meant, Tools};

use crate::steps::*;
use crate::world::{World, keep};

/// Tools as a test wants them.
#[derive(Debug)]
struct Shelf {
    hash: Mutex<String>,
    /// The process goes no further than the effect.
    is_cut_off: AtomicBool,
}

impl Shelf {
    fn on(world: &World) -> Arc<Shelf> {
        let shelf = Arc::new(Shelf {
            hash: Mutex::new("first".to_owned()),
            is_cut_off: AtomicBool::new(false),
        });
        world.watch.set_tools(shelf.clone());
        shelf
    }
}

fn request(tool: &str, payload: &str) -> Result<Request, Error> {
    let payload: serde_json::Value = serde_json::from_str(payload).unwrap();
    let id = payload["id"].as_str().unwrap_or_default().to_owned();
    Ok(match tool {
        "start" => ScheduleFire { id }.into_request(),
        "pause" => SchedulePause { id, note: None }.into_request(),
        "look" => StatusAsk {}.into_request(),
        "add" => every("1h", "made").into_request(),
        "add_call" => call("nested", "look", "").into_request(),
        _ => return Err(Error::new(Code::NotFound, format!("there is no tool `{tool}`"))),
    })
}

impl Tools for Shelf {
    fn is_known(&self, tool: &str) -> bool {
        request(tool, "{}").is_ok()
    }

    fn meant(&self, tool: &str, payload: &str) -> Result<Meant, Error> {
        let hash = self.hash.lock().unwrap().clone();
        Ok(Meant { hash, request: request(tool, payload)? })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        payload: &'a str,
        key: String,
        handle: &'a dyn Handle,
    ) -> BoxFuture<'a, Result<String, Error>> {
        async move {
            let request = request(tool, payload)?;
            let call = Call {
                request,
                key: Some(key),
                tool: Some(tool.to_owned()),
                progress: Default::default(),
            };
            let answer = handle.call(call).await?;
            if self.is_cut_off.load(Ordering::Relaxed) {
                return pending().await;
            }
            Ok(serde_json::to_string(&answer).unwrap())
        }
        .boxed()
    }
}

/// A schedule that calls a tool on another, every hour.
fn call(name: &str, tool: &str, id: &str) -> ScheduleAdd {
    let payload = Some(format!(r#"{{"id":"{id}"}}"#));
    let action = api::Action { tool: Some(tool.to_owned()), payload, ..api::Action::default() };
    ScheduleAdd { name: name.to_owned(), action, ..every("1h", "") }
}

/// One of a prompt that does nothing by itself for a long time.
async fn quiet(world: &World) -> String {
    add(world, every("1000h", "hello")).await
}

async fn runs_of(world: &World, schedule: &str) -> Vec<api::Run> {
    let of = |run: &api::Run| run.schedule_id.as_deref() == Some(schedule);
    runs(world).await.into_iter().filter(of).collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_takes_effect_once_whatever_becomes_of_the_process() {
    let mut world = world().await;
    let shelf = Shelf::on(&world);
    let target = quiet(&world).await;
    let caller = add(&world, call("start it", "start", &target)).await;
    shelf.is_cut_off.store(true, Ordering::Relaxed);
    for crashes in 1..=3 {
        crash(&mut world, async |world| {
            set(world, HOUR_US).await;
            let [run] = runs_of(world, &caller).await.try_into().unwrap();
            assert_eq!((run.state.as_str(), run.attempt), ("running", crashes));
        })
        .await;
        world.watch.set_tools(shelf.clone());
    }
    shelf.is_cut_off.store(false, Ordering::Relaxed);
    keep(&world, settle()).await;

    let [run] = runs_of(&world, &caller).await.try_into().unwrap();
    assert_eq!((run.state.as_str(), run.attempt), ("done", 4));
    let [started] = runs_of(&world, &target).await.try_into().unwrap();
    assert!(run.output.unwrap().text.contains(&started.id), "it says what it did the first time");
    let events = world.events().await;
    let queued: Vec<_> = events.iter().filter(|event| event.id == started.id).collect();
    assert_eq!(queued[0].actor, format!("tool:{}", run.id));
    check_log(&world).await;
}

/// Nobody can tell any more what the first try did: its answer is forgotten.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_off_long_ago_is_not_made_again() {
    let mut world = world().await;
    let shelf = Shelf::on(&world);
    let target = quiet(&world).await;
    let caller = add(&world, call("start it", "start", &target)).await;
    shelf.is_cut_off.store(true, Ordering::Relaxed);
    crash(&mut world, async |world| set(world, HOUR_US).await).await;
    world.watch.set_tools(shelf.clone());
    world.ask(SchedulePause { id: caller.clone(), note: None }).await.unwrap();
    world.set_now(crate::world::OCTOBER_US + 8 * 24 * HOUR_US);
    keep(&world, settle()).await;
    assert_eq!(runs_of(&world, &caller).await[0].state, "unknown");
    assert_eq!(runs_of(&world, &target).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c06_a_tool_that_has_changed_is_not_called_until_somebody_has_looked() {
    let mut world = world().await;
    let shelf = Shelf::on(&world);
    let target = quiet(&world).await;
    let caller = add(&world, call("pause it", "pause", &target)).await;
    *shelf.hash.lock().unwrap() = "second".to_owned();
    keep(&world, set(&world, HOUR_US)).await;
    let run = the_run(&world).await;
    assert_eq!((run.state.as_str(), run.reason.as_deref()), ("failed", Some("tool_changed")));
    let message = run.message.unwrap();
    assert!(
        message.contains(&format!("midwatch schedule edit {caller} --tool pause")),
        "{message}"
    );
    assert_eq!(schedule(&world, &target).await.status, "active", "nothing was done");

    // To add it again is to add nothing, and to change something else is not to look at the tool.
    let again = world.ask(call("pause it", "pause", &target)).await.unwrap();
    assert_eq!((again.schedule.id.as_str(), again.created), (caller.as_str(), false));
    assert!(again.orders.unwrap().sentence.contains("is not what it was"));
    let named = ScheduleEdit { id: caller.clone(), name: Some("n".into()), ..Default::default() };
    world.ask(named).await.unwrap();
    world.reopen().await.unwrap();
    world.watch.set_tools(shelf.clone());
    keep(&world, set(&world, 2 * HOUR_US)).await;
    assert_eq!(runs_of(&world, &caller).await[1].reason.as_deref(), Some("tool_changed"));

    let action = api::Action { tool: Some("pause".into()), ..api::Action::default() };
    world.ask(ScheduleEdit { id: caller.clone(), action, ..Default::default() }).await.unwrap();
    keep(&world, set(&world, 3 * HOUR_US)).await;
    assert_eq!(runs_of(&world, &caller).await[2].state, "done");
    assert_eq!(schedule(&world, &target).await.status, "paused");
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_tool_that_is_not_there_fails_until_it_is() {
    let world = world().await;
    let added = world.ask(call("look", "look", "")).await.unwrap();
    let sentence = added.orders.unwrap().sentence;
    assert!(sentence.contains("there is no tool `look`"), "{sentence}");
    let id = added.schedule.id;
    keep(&world, set(&world, HOUR_US)).await;
    let run = the_run(&world).await;
    assert_eq!((run.state.as_str(), run.reason.as_deref()), ("failed", Some("tool_missing")));
    assert_eq!(why(&world, &id, HOUR_US).await.disposition, "failed");
    Shelf::on(&world);
    keep(&world, set(&world, 2 * HOUR_US)).await;
    assert_eq!(runs_of(&world, &id).await[1].state, "done", "as soon as there is one");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_no_longer_there_fails() {
    let mut world = world().await;
    Shelf::on(&world);
    add(&world, call("look", "look", "")).await;
    world.reopen().await.unwrap();
    keep(&world, set(&world, HOUR_US)).await;
    let run = the_run(&world).await;
    assert_eq!((run.state.as_str(), run.reason.as_deref()), ("failed", Some("tool_missing")));
}

#[tokio::test(start_paused = true)]
async fn the_standing_orders_are_asked_for_the_class_of_the_tool() {
    let mut world = world().await;
    world.policy = r#"
        [[rule]]
        id = "asked"
        ask = ["schedule.change"]
        principal = ["schedule:*"]
        match = [{ capability = "schedule.change", principal = "schedule:sch_1" }]
        not_match = [{ capability = "schedule.change", principal = "mcp:mia" }]

        [[rule]]
        id = "none"
        deny = ["run.start"]
        role = ["runner"]
        match = [{ capability = "run.start", role = "runner" }]
        not_match = [{ capability = "run.start", role = "operator" }]
    "#
    .to_owned();
    world.reopen().await.unwrap();
    Shelf::on(&world);
    let target = quiet(&world).await;
    let denied = add(&world, call("start it", "start", &target)).await;
    let asked = world.ask(call("pause it", "pause", &target)).await.unwrap();
    let sentence = asked.orders.unwrap().sentence;
    assert!(sentence.contains("waits for a human's approval"), "{sentence}");
    let asked = asked.schedule.id;
    keep(&world, async {
        set(&world, HOUR_US).await;
        let run = &runs_of(&world, &denied).await[0];
        assert_eq!((run.state.as_str(), run.reason.as_deref()), ("cancelled", Some("refused")));
        let approval = world.ask(ApprovalList::default()).await.unwrap().approvals.remove(0);
        assert_eq!((approval.tool.as_deref(), approval.agent.as_deref()), (Some("pause"), None));
        assert_eq!(approval.plan["prompt"], format!(r#"{{"id":"{target}"}}"#));
        assert_eq!(schedule(&world, &target).await.status, "active");
        let yes = ApprovalDecide {
            id: approval.id,
            decision: "approve".into(),
            plan_hash: Some(approval.plan_hash),
            ..Default::default()
        };
        world.ask(yes).await.unwrap();
        settle().await;
    })
    .await;
    assert_eq!(runs_of(&world, &asked).await[0].state, "done");
    assert_eq!(schedule(&world, &target).await.status, "paused");
    let replayed = api::PolicyReplay { since: "2d".into(), rules: None, posture: None };
    let replayed = world.ask(replayed).await.unwrap();
    assert_eq!(replayed.changed.len(), 0, "{replayed:?}");
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_is_counted_like_any_run() {
    let mut world = world().await;
    world.limits = Limits { runs: 1, ..Limits::default() };
    world.reopen().await.unwrap();
    Shelf::on(&world);
    let target = quiet(&world).await;
    let caller = add(&world, call("pause it", "pause", &target)).await;
    keep(&world, async {
        set(&world, HOUR_US).await;
        set(&world, 2 * HOUR_US).await;
    })
    .await;
    let runs = runs_of(&world, &caller).await;
    assert_eq!(
        (runs[0].state.as_str(), runs[1].reason.as_deref()),
        ("done", Some("budget_used_up"))
    );
}

#[tokio::test(start_paused = true)]
async fn calls_do_not_breed() {
    let world = world().await;
    Shelf::on(&world);
    let adds = add(&world, call("adds", "add", "")).await;
    let nests = add(&world, call("nests", "add_call", "")).await;
    keep(&world, set(&world, HOUR_US)).await;
    let run = &runs_of(&world, &adds).await[0];
    assert_eq!(run.state, "done");
    let text = run.output.as_ref().unwrap().text.clone();
    let added: serde_json::Value = serde_json::from_str(&text).unwrap();
    let made_by = &added["answer"]["schedule"]["made_by"];
    assert_eq!((&made_by["run"], &made_by["agent"]), (&run.id.as_str().into(), &"ada".into()));
    let run = &runs_of(&world, &nests).await[0];
    assert_eq!((run.state.as_str(), run.reason.as_deref()), ("failed", Some("role_too_low")));
    // Nothing was committed, so another try is a first one.
    let retried = world.ask(RunRetry { id: run.id.clone() }).await.unwrap();
    assert!(retried.changed);
    check_log(&world).await;
}

/// A rule about assistants is not got round by a schedule that does the same.
#[tokio::test(start_paused = true)]
async fn an_assistant_has_nothing_called_that_it_may_not_do_itself() {
    let mut world = world().await;
    world.policy = r#"
        [[rule]]
        id = "mia"
        deny = ["run.start"]
        principal = ["mcp:*"]
        match = [{ capability = "run.start", principal = "mcp:mia" }]
        not_match = [{ capability = "run.start", principal = "schedule:sch_1" }]
    "#
    .to_owned();
    world.reopen().await.unwrap();
    Shelf::on(&world);
    let target = quiet(&world).await;
    let mia = Actor { name: "mia".into(), role: Role::Operator }.assistant();
    let handle = world.watch.handle(mia);
    let refused = ask(&handle, call("start it", "start", &target)).await.unwrap_err();
    assert_eq!(refused.code, Code::Denied, "{refused:?}");
    let paused = ask(&handle, call("pause it", "pause", &target)).await.unwrap().schedule.id;
    let action = api::Action { tool: Some("start".into()), ..api::Action::default() };
    let edit = ScheduleEdit { id: paused, action, ..Default::default() };
    assert_eq!(ask(&handle, edit).await.unwrap_err().code, Code::Denied);
    // Nor does an agent have a tool called at all.
    let ada = world.watch.handle(Actor { name: "ada".into(), role: Role::Runner });
    let refused = ask(&ada, call("look", "look", "")).await.unwrap_err();
    assert_eq!(refused.code, Code::RoleTooLow, "{refused:?}");
}
