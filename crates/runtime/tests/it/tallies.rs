//! How tools do: every change is an entry, and looking costs none.

use std::sync::Arc;
use std::time::Duration;

use api::{Answer, Ask, Call, Code, Error, Handle, Request, SchedulePause, StatusAsk, ToolList};
use futures::future::{BoxFuture, FutureExt};
use kernel::{Actor, Role};
use runtime::{Meant, Tools};
use tokio::time::sleep;

use crate::steps::*;
use crate::world::{World, keep};

#[derive(Debug)]
struct Names;

impl Tools for Names {
    fn is_known(&self, tool: &str) -> bool {
        ["look", "pause"].contains(&tool)
    }

    fn meant(&self, _: &str, _: &str) -> Result<Meant, Error> {
        Err(Error::new(Code::NotFound, "none"))
    }

    fn call<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: String,
        _: &'a dyn Handle,
    ) -> BoxFuture<'a, Result<String, Error>> {
        async { Err(Error::new(Code::NotFound, "none")) }.boxed()
    }
}

async fn called(world: &World, tool: &str, request: Request) -> Result<Answer, Error> {
    let mia = Actor { name: "mia".into(), role: Role::Operator }.assistant();
    let call =
        Call { request, key: None, tool: Some(tool.to_owned()), progress: Default::default() };
    world.watch.handle(mia).call(call).await
}

async fn called_with(world: &World, key: &str, request: Request) -> Result<Answer, Error> {
    let mia = Actor { name: "mia".into(), role: Role::Operator }.assistant();
    let (key, tool) = (Some(key.to_owned()), Some("pause".to_owned()));
    let call = Call { request, key, tool, progress: Default::default() };
    world.watch.handle(mia).call(call).await
}

fn pause(id: &str) -> Request {
    SchedulePause { id: id.to_owned(), note: None }.into_request()
}

async fn tools(world: &World) -> Vec<api::ToolUse> {
    world.ask(ToolList {}).await.unwrap().tools
}

async fn told(world: &World, kind: &str) -> Vec<api::Event> {
    world.events().await.into_iter().filter(|event| event.kind == kind).collect()
}

#[tokio::test(start_paused = true)]
async fn looking_costs_no_entry_but_one_a_minute() {
    let world = world().await;
    world.watch.set_tools(Arc::new(Names));
    keep(&world, async {
        settle().await;
        let before = entries(&world).await;
        for _ in 0..50 {
            called(&world, "look", StatusAsk {}.into_request()).await.unwrap();
        }
        called(&world, "made up", StatusAsk {}.into_request()).await.unwrap();
        assert_eq!(entries(&world).await, before);
        let [look] = tools(&world).await.try_into().unwrap();
        assert_eq!((look.tool.as_str(), look.today.calls, look.today.failures), ("look", 50, 0));
        assert!(0 < look.today.bytes_in && look.today.bytes_in < look.today.bytes_out);
        sleep(Duration::from_secs(61)).await;
        let [used] = told(&world, "tool.used").await.try_into().unwrap();
        assert_eq!(used.body["tools"][0]["tally"]["calls"], 50);
        sleep(Duration::from_secs(180)).await;
        assert_eq!(told(&world, "tool.used").await.len(), 1, "nothing was called since");
        called(&world, "look", StatusAsk {}.into_request()).await.unwrap();
    })
    .await;
    // The rest when it stops.
    assert_eq!(told(&world, "tool.used").await.len(), 2);
    assert_eq!(tools(&world).await[0].all.calls, 51);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn every_change_is_in_the_log_with_who_and_what_came_of_it() {
    let world = world().await;
    world.watch.set_tools(Arc::new(Names));
    let id = add(&world, every("1h", "hello")).await;
    called(&world, "pause", pause(&id)).await.unwrap();
    called(&world, "pause", pause("sch_00000000")).await.unwrap_err();
    let calls = told(&world, "tool.called").await;
    let codes: Vec<_> = calls.iter().map(|event| event.body["code"].as_str()).collect();
    assert_eq!(codes, [None, Some("not_found")]);
    for call in &calls {
        assert_eq!((call.actor.as_str(), call.id.as_str()), ("mcp:mia", "pause"));
        assert!(call.body["bytes_in"].as_u64() < call.body["bytes_out"].as_u64(), "{call:?}");
        assert!(!call.body.to_string().contains(&id), "nothing of what it was called with");
    }
    let [pause] = tools(&world).await.try_into().unwrap();
    assert_eq!((pause.all.calls, pause.all.failures), (2, 1));
    // A command that leaves writes what it has counted.
    world.watch.leave().await.unwrap();
    assert_eq!(told(&world, "tool.used").await.len(), 1);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_key_that_is_none_is_in_the_log_too() {
    let world = world().await;
    world.watch.set_tools(Arc::new(Names));
    let id = add(&world, every("1h", "hello")).await;
    for key in ["bad key!", "", "\u{e4}", &"k".repeat(129)] {
        let refused = called_with(&world, key, pause(&id)).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidInput, "{key}");
    }
    let calls = told(&world, "tool.called").await;
    let codes: Vec<_> = calls.iter().map(|event| event.body["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["invalid_input"; 4]);
    called_with(&world, "!#$%&/()=?.:;~", pause(&id)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_calls_is_counted_and_not_written_one_by_one() {
    let world = world().await;
    world.watch.set_tools(Arc::new(Names));
    for _ in 0..1_200 {
        called(&world, "pause", pause("sch_00000000")).await.unwrap_err();
    }
    assert_eq!(tools(&world).await[0].all.failures, 1_200);
    assert!(entries(&world).await < 1_050);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_far_more_often_than_usual_calls_for_a_human() {
    let world = world().await;
    world.watch.set_tools(Arc::new(Names));
    keep(&world, async {
        settle().await;
        for minute in 0..3 {
            for _ in 0..10 {
                called(&world, "pause", pause("sch_00000000")).await.unwrap_err();
            }
            sleep(Duration::from_secs(61)).await;
            assert_eq!(told(&world, "tool.alerted").await.len(), 1, "{minute}");
        }
    })
    .await;
    assert!(tools(&world).await[0].alerted_at.is_some());
    check_log(&world).await;
}
