//! Schedules that call a tool: once for each run, under the policy, and only the tool that was configured.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use api::{
    ApiRequest, ApprovalDecide, ApprovalList, Call, Code, Decision, Error, Request, RunRetry,
    ScheduleAdd, ScheduleEdit, ScheduleFire, SchedulePause, StatusShow, send,
};
use futures::future::{BoxFuture, FutureExt, pending};
use kernel::budget::Limits;
use kernel::{Actor, Role};
use runtime::{NoTools, ResolvedCall, ScheduledCall, Tools};

use crate::steps::*;
use crate::world::{World, run_engine};

/// A few tools, whose hash a test can change.
#[derive(Debug)]
struct TestTools {
    hash: Mutex<String>,
    /// Calls hang after their effect, as in a process that dies there.
    hangs_after_effect: AtomicBool,
}

impl TestTools {
    fn on(world: &World) -> Arc<TestTools> {
        let tools = Arc::new(TestTools {
            hash: Mutex::new("first".to_owned()),
            hangs_after_effect: AtomicBool::new(false),
        });
        world.set_tools(tools.clone());
        tools
    }
}

fn request(tool: &str, payload: &str) -> Result<Request, Error> {
    let payload: serde_json::Value = serde_json::from_str(payload).unwrap();
    let id = payload["id"].as_str().unwrap_or_default().to_owned();
    Ok(match tool {
        "start" => ScheduleFire { id }.into_request(),
        "pause" => SchedulePause { id, note: None }.into_request(),
        "look" => StatusShow {}.into_request(),
        "add" => every("1h", "made").into_request(),
        "add_call" => call("nested", "look", "").into_request(),
        _ => return Err(Error::new(Code::NotFound, format!("there is no tool `{tool}`"))),
    })
}

impl Tools for TestTools {
    fn is_known(&self, tool: &str) -> bool {
        request(tool, "{}").is_ok()
    }

    fn resolve(&self, tool: &str, payload: &str) -> Result<ResolvedCall, Error> {
        let hash = self.hash.lock().unwrap().clone();
        Ok(ResolvedCall { hash, request: request(tool, payload)? })
    }

    fn call<'a>(&'a self, call: ScheduledCall<'a>) -> BoxFuture<'a, Result<String, Error>> {
        async move {
            let ScheduledCall { tool, payload, key, handle } = call;
            let request = request(tool, payload)?;
            let call = Call {
                request,
                key: Some(key.to_owned()),
                version: None,
                tool: Some(tool.to_owned()),
                progress: Default::default(),
            };
            let answer = handle.call(call).await?;
            if self.hangs_after_effect.load(Ordering::Relaxed) {
                return pending().await;
            }
            Ok(serde_json::to_string(&answer).unwrap())
        }
        .boxed()
    }
}

/// A schedule that calls a tool every hour, with the id of another schedule.
fn call(name: &str, tool: &str, id: &str) -> ScheduleAdd {
    let payload = Some(serde_json::json!({"id": id}).try_into().unwrap());
    let action = api::Action { tool: Some(tool.to_owned()), payload, ..api::Action::default() };
    ScheduleAdd { name: name.to_owned(), action, ..every("1h", "") }
}

/// A schedule that does not fire during a test.
async fn idle_schedule(world: &World) -> String {
    add(world, every("1000h", "hello")).await
}

async fn runs_of(world: &World, schedule: &str) -> Vec<api::Run> {
    let of = |run: &api::Run| run.schedule_id.as_deref() == Some(schedule);
    runs(world).await.into_iter().filter(of).collect()
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_takes_effect_once_despite_a_crash() {
    let mut world = world().await;
    let tools = TestTools::on(&world);
    let target = idle_schedule(&world).await;
    let caller = add(&world, call("start it", "start", &target)).await;
    tools.hangs_after_effect.store(true, Ordering::Relaxed);
    for crashes in 1..=3 {
        crash(&mut world, async |world| {
            set(world, HOUR_US).await;
            let [run] = runs_of(world, &caller).await.try_into().unwrap();
            assert_eq!((run.state.as_str(), run.attempt), ("running", crashes));
        })
        .await;
    }
    tools.hangs_after_effect.store(false, Ordering::Relaxed);
    run_engine(&world, wait_until_idle()).await;

    let [run] = runs_of(&world, &caller).await.try_into().unwrap();
    assert_eq!((run.state.as_str(), run.attempt), ("done", 4));
    let [started] = runs_of(&world, &target).await.try_into().unwrap();
    assert!(run.output.unwrap().text.contains(&started.id), "it returns the first response");
    let events = world.events().await;
    let queued: Vec<_> = events.iter().filter(|event| event.id == started.id).collect();
    assert_eq!(queued[0].actor, format!("tool:{}", run.id));
    verify_ledger(&world).await;
}

/// The stored response of the first attempt was deleted, so its effect is unknown.
#[tokio::test(start_paused = true)]
async fn an_interrupted_call_is_not_repeated_after_its_response_is_deleted() {
    let mut world = world().await;
    let tools = TestTools::on(&world);
    let target = idle_schedule(&world).await;
    let caller = add(&world, call("start it", "start", &target)).await;
    tools.hangs_after_effect.store(true, Ordering::Relaxed);
    crash(&mut world, async |world| set(world, HOUR_US).await).await;
    world.set_tools(tools.clone());
    world.send(SchedulePause { id: caller.clone(), note: None }).await.unwrap();
    world.set_now(crate::world::OCTOBER_US + 8 * 24 * HOUR_US);
    run_engine(&world, wait_until_idle()).await;
    assert_eq!(runs_of(&world, &caller).await[0].state.as_str(), "unknown");
    assert_eq!(runs_of(&world, &target).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_changed_tool_is_not_called_until_the_schedule_is_edited() {
    let mut world = world().await;
    let tools = TestTools::on(&world);
    let target = idle_schedule(&world).await;
    let caller = add(&world, call("pause it", "pause", &target)).await;
    *tools.hash.lock().unwrap() = "second".to_owned();
    run_engine(&world, set(&world, HOUR_US)).await;
    let run = only_run(&world).await;
    assert_eq!((run.state.as_str(), run.reason.as_deref()), ("failed", Some("tool_changed")));
    let message = run.message.unwrap();
    assert!(
        message.contains(&format!("midwatch schedule edit {caller} --tool pause")),
        "{message}"
    );
    assert_eq!(
        schedule(&world, &target).await.status.as_str(),
        "active",
        "the tool was not called"
    );

    // Adding it again changes nothing, and editing something else does not confirm the tool.
    let again = world.send(call("pause it", "pause", &target)).await.unwrap();
    assert_eq!((again.schedule.id.as_str(), again.created), (caller.as_str(), false));
    assert!(again.policy.unwrap().sentence.contains("has changed since the schedule was written"));
    let named = ScheduleEdit { id: caller.clone(), name: Some("n".into()), ..Default::default() };
    world.send(named).await.unwrap();
    world.reopen().await.unwrap();
    world.set_tools(tools.clone());
    run_engine(&world, set(&world, 2 * HOUR_US)).await;
    assert_eq!(runs_of(&world, &caller).await[1].reason.as_deref(), Some("tool_changed"));

    let action = api::Action { tool: Some("pause".into()), ..api::Action::default() };
    world.send(ScheduleEdit { id: caller.clone(), action, ..Default::default() }).await.unwrap();
    run_engine(&world, set(&world, 3 * HOUR_US)).await;
    assert_eq!(runs_of(&world, &caller).await[2].state.as_str(), "done");
    assert_eq!(schedule(&world, &target).await.status.as_str(), "paused");
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_of_an_unknown_tool_fails_until_the_tool_exists() {
    let world = world().await;
    let added = world.send(call("look", "look", "")).await.unwrap();
    let sentence = added.policy.unwrap().sentence;
    assert!(sentence.contains("there is no tool `look`"), "{sentence}");
    let id = added.schedule.id;
    run_engine(&world, set(&world, HOUR_US)).await;
    let run = only_run(&world).await;
    assert_eq!((run.state.as_str(), run.reason.as_deref()), ("failed", Some("tool_missing")));
    assert_eq!(why(&world, &id, HOUR_US).await.disposition.as_str(), "failed");
    TestTools::on(&world);
    run_engine(&world, set(&world, 2 * HOUR_US)).await;
    assert_eq!(runs_of(&world, &id).await[1].state.as_str(), "done", "the tool exists now");
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_removed_tool_fails() {
    let mut world = world().await;
    TestTools::on(&world);
    add(&world, call("look", "look", "")).await;
    world.set_tools(Arc::new(NoTools));
    world.reopen().await.unwrap();
    run_engine(&world, set(&world, HOUR_US)).await;
    let run = only_run(&world).await;
    assert_eq!((run.state.as_str(), run.reason.as_deref()), ("failed", Some("tool_missing")));
}

#[tokio::test(start_paused = true)]
async fn the_policy_decides_by_the_class_of_the_tool() {
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
    TestTools::on(&world);
    let target = idle_schedule(&world).await;
    let denied = add(&world, call("start it", "start", &target)).await;
    let asked = world.send(call("pause it", "pause", &target)).await.unwrap();
    let sentence = asked.policy.unwrap().sentence;
    assert!(sentence.contains("needs approval"), "{sentence}");
    let asked = asked.schedule.id;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        let run = &runs_of(&world, &denied).await[0];
        assert_eq!((run.state.as_str(), run.reason.as_deref()), ("cancelled", Some("refused")));
        let approval = world.send(ApprovalList::default()).await.unwrap().approvals.remove(0);
        assert_eq!((approval.tool.as_deref(), approval.agent.as_deref()), (Some("pause"), None));
        assert_eq!(approval.plan["prompt"], format!(r#"{{"id":"{target}"}}"#));
        assert_eq!(schedule(&world, &target).await.status.as_str(), "active");
        let yes = ApprovalDecide {
            plan_hash: Some(approval.plan_hash),
            ..ApprovalDecide::new(approval.id, Decision::Approve)
        };
        world.send(yes).await.unwrap();
        wait_until_idle().await;
    })
    .await;
    assert_eq!(runs_of(&world, &asked).await[0].state.as_str(), "done");
    assert_eq!(schedule(&world, &target).await.status.as_str(), "paused");
    let replayed = api::PolicyReplay { since: "2d".into(), rules: None, posture: None };
    let replayed = world.send(replayed).await.unwrap();
    assert_eq!(replayed.changed.len(), 0, "{replayed:?}");
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_counts_against_the_budget() {
    let mut world = world().await;
    world.limits = Limits { runs: 1, ..Limits::default() };
    world.reopen().await.unwrap();
    TestTools::on(&world);
    let target = idle_schedule(&world).await;
    let caller = add(&world, call("pause it", "pause", &target)).await;
    run_engine(&world, async {
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
async fn a_tool_call_cannot_add_another_tool_call() {
    let world = world().await;
    TestTools::on(&world);
    let adds = add(&world, call("adds", "add", "")).await;
    let nests = add(&world, call("nests", "add_call", "")).await;
    run_engine(&world, set(&world, HOUR_US)).await;
    let run = &runs_of(&world, &adds).await[0];
    assert_eq!(run.state.as_str(), "done");
    let text = run.output.as_ref().unwrap().text.clone();
    let added: serde_json::Value = serde_json::from_str(&text).unwrap();
    let made_by = &added["answer"]["schedule"]["made_by"];
    assert_eq!((&made_by["run"], &made_by["agent"]), (&run.id.as_str().into(), &"ada".into()));
    let run = &runs_of(&world, &nests).await[0];
    assert_eq!((run.state.as_str(), run.reason.as_deref()), ("failed", Some("role_too_low")));
    // Nothing was committed, so the run can be retried.
    let retried = world.send(RunRetry { id: run.id.clone() }).await.unwrap();
    assert!(retried.changed);
    verify_ledger(&world).await;
}

/// A schedule does not bypass a rule about assistants.
#[tokio::test(start_paused = true)]
async fn an_assistant_cannot_schedule_a_call_that_it_may_not_send() {
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
    TestTools::on(&world);
    let target = idle_schedule(&world).await;
    let mia = Actor::token_holder("mia".parse().unwrap(), Role::Operator).into_assistant();
    let handle = world.engine.handle(mia);
    let refused = send(&handle, call("start it", "start", &target)).await.unwrap_err();
    assert_eq!(refused.code, Code::Denied, "{refused:?}");
    let paused = send(&handle, call("pause it", "pause", &target)).await.unwrap().schedule.id;
    let action = api::Action { tool: Some("start".into()), ..api::Action::default() };
    let edit = ScheduleEdit { id: paused, action, ..Default::default() };
    assert_eq!(send(&handle, edit).await.unwrap_err().code, Code::Denied);
    // An agent cannot schedule any tool call.
    let ada = world.engine.handle(Actor::token_holder("ada".parse().unwrap(), Role::Runner));
    let refused = send(&ada, call("look", "look", "")).await.unwrap_err();
    assert_eq!(refused.code, Code::RoleTooLow, "{refused:?}");
}
