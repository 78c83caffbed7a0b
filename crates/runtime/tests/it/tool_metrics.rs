//! Metrics of tool calls: every change is recorded, reads are counted.

use std::sync::Arc;
use std::time::Duration;

use api::{
    ApiRequest, Call, Code, Error, Handle, Request, Response, SchedulePause, StatusShow, ToolList,
};
use futures::future::{BoxFuture, FutureExt};
use kernel::{Actor, Role};
use runtime::{ResolvedCall, ScheduledCall, Tools};
use tokio::time::sleep;

use crate::steps::*;
use crate::world::{World, run_engine};

#[derive(Debug)]
struct Names;

impl Tools for Names {
    fn is_known(&self, tool: &str) -> bool {
        ["look", "pause"].contains(&tool)
    }

    fn resolve(&self, _: &str, _: &str) -> Result<ResolvedCall, Error> {
        Err(Error::new(Code::NotFound, "none"))
    }

    fn call<'a>(&'a self, _: ScheduledCall<'a>) -> BoxFuture<'a, Result<String, Error>> {
        async { Err(Error::new(Code::NotFound, "none")) }.boxed()
    }
}

async fn called(world: &World, tool: &str, request: Request) -> Result<Response, Error> {
    let mia = Actor::token_holder("mia".parse().unwrap(), Role::Operator).into_assistant();
    let call = Call {
        request,
        key: None,
        version: None,
        tool: Some(tool.to_owned()),
        progress: Default::default(),
    };
    world.engine.handle(mia).call(call).await
}

async fn called_with(world: &World, key: &str, request: Request) -> Result<Response, Error> {
    let mia = Actor::token_holder("mia".parse().unwrap(), Role::Operator).into_assistant();
    let (key, tool) = (Some(key.to_owned()), Some("pause".to_owned()));
    let call = Call { request, key, version: None, tool, progress: Default::default() };
    world.engine.handle(mia).call(call).await
}

fn pause(id: &str) -> Request {
    SchedulePause { id: id.to_owned(), note: None }.into_request()
}

async fn tools(world: &World) -> Vec<api::ToolUse> {
    world.send(ToolList {}).await.unwrap().tools
}

async fn events_of(world: &World, kind: &str) -> Vec<api::Event> {
    world.events().await.into_iter().filter(|event| event.kind == kind).collect()
}

#[tokio::test(start_paused = true)]
async fn reads_are_recorded_once_a_minute() {
    let world = world().await;
    world.set_tools(Arc::new(Names));
    run_engine(&world, async {
        wait_until_idle().await;
        let before = entries(&world).await;
        for _ in 0..50 {
            called(&world, "look", StatusShow {}.into_request()).await.unwrap();
        }
        called(&world, "made up", StatusShow {}.into_request()).await.unwrap();
        assert_eq!(entries(&world).await, before);
        let [look] = tools(&world).await.try_into().unwrap();
        assert_eq!((look.tool.as_str(), look.today.calls, look.today.failures), ("look", 50, 0));
        assert!(0 < look.today.bytes_in && look.today.bytes_in < look.today.bytes_out);
        sleep(Duration::from_secs(61)).await;
        let [used] = events_of(&world, "tool.used").await.try_into().unwrap();
        assert_eq!(used.body["tools"][0]["tally"]["calls"], 50);
        sleep(Duration::from_secs(180)).await;
        assert_eq!(events_of(&world, "tool.used").await.len(), 1, "no call since the last record");
        called(&world, "look", StatusShow {}.into_request()).await.unwrap();
    })
    .await;
    // The rest is recorded at the stop.
    assert_eq!(events_of(&world, "tool.used").await.len(), 2);
    assert_eq!(tools(&world).await[0].all.calls, 51);
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn every_change_is_recorded_with_caller_and_result() {
    let world = world().await;
    world.set_tools(Arc::new(Names));
    let id = add(&world, every("1h", "hello")).await;
    called(&world, "pause", pause(&id)).await.unwrap();
    called(&world, "pause", pause("sch_00000000")).await.unwrap_err();
    let calls = events_of(&world, "tool.called").await;
    let codes: Vec<_> = calls.iter().map(|event| event.body["code"].as_str()).collect();
    assert_eq!(codes, [None, Some("not_found")]);
    for call in &calls {
        assert_eq!((call.actor.as_str(), call.id.as_str()), ("mcp:mia", "pause"));
        assert!(call.body["bytes_in"].as_u64() < call.body["bytes_out"].as_u64(), "{call:?}");
        assert!(!call.body.to_string().contains(&id), "the arguments are not recorded");
    }
    let [pause] = tools(&world).await.try_into().unwrap();
    assert_eq!((pause.all.calls, pause.all.failures), (2, 1));
    // A command without a daemon records its counts when it closes.
    world.engine.close().await.unwrap();
    assert_eq!(events_of(&world, "tool.used").await.len(), 1);
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_with_an_invalid_key_is_recorded() {
    let world = world().await;
    world.set_tools(Arc::new(Names));
    let id = add(&world, every("1h", "hello")).await;
    for key in ["bad key!", "", "\u{e4}", &"k".repeat(129)] {
        let refused = called_with(&world, key, pause(&id)).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidInput, "{key}");
    }
    let calls = events_of(&world, "tool.called").await;
    let codes: Vec<_> = calls.iter().map(|event| event.body["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["invalid_input"; 4]);
    called_with(&world, "!#$%&/()=?.:;~", pause(&id)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn many_calls_are_counted_instead_of_recorded_one_by_one() {
    let world = world().await;
    world.set_tools(Arc::new(Names));
    for _ in 0..1_200 {
        called(&world, "pause", pause("sch_00000000")).await.unwrap_err();
    }
    assert_eq!(tools(&world).await[0].all.failures, 1_200);
    assert!(entries(&world).await < 1_050);
}

#[tokio::test(start_paused = true)]
async fn an_unusual_failure_rate_of_a_tool_raises_an_alert() {
    let world = world().await;
    world.set_tools(Arc::new(Names));
    run_engine(&world, async {
        wait_until_idle().await;
        for minute in 0..3 {
            for _ in 0..10 {
                called(&world, "pause", pause("sch_00000000")).await.unwrap_err();
            }
            sleep(Duration::from_secs(61)).await;
            assert_eq!(events_of(&world, "tool.alerted").await.len(), 1, "{minute}");
        }
    })
    .await;
    assert!(tools(&world).await[0].alerted_at.is_some());
    verify_ledger(&world).await;
}
