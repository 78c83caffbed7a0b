//! What `status` reports to each person, and the timeline.

use api::{
    ApiRequest, Call, Code, Failures, Handle, RunList, RunSettle, ScheduleAdd, ScheduleRemove,
    SettledState, Status, StatusRun, StatusSeen, StatusShow, Terms, TimelineShow,
};
use kernel::{Actor, Role};

use crate::steps::*;
use crate::world::{DAY_US, World, builtin, run_engine};

/// The answer to a request by this actor.
async fn send_by<R: ApiRequest>(
    world: &World,
    actor: &Actor,
    request: R,
) -> Result<R::Response, Code> {
    let request = request.into_request();
    let call = Call { request, key: None, version: None, tool: None, progress: Default::default() };
    let answer = world.engine.handle(actor.clone()).call(call).await.map_err(|error| error.code)?;
    Ok(R::from_response(answer).unwrap())
}

async fn status_of(world: &World, actor: &Actor) -> Status {
    send_by(world, actor, StatusShow {}).await.unwrap()
}

/// Name and state of each failure.
fn failed<'a>(failures: &'a Failures) -> Vec<(&'a str, &'a str)> {
    let pair = |run: &'a StatusRun| (run.schedule_name.as_deref().unwrap(), run.state.as_str());
    failures.runs.iter().map(pair).collect()
}

fn people() -> (Actor, Actor) {
    let bob = Actor::token_holder("bob".parse().unwrap(), Role::Operator);
    (Actor::local_user(1000), bob)
}

#[tokio::test(start_paused = true)]
async fn failures_are_reported_to_each_person_until_they_have_seen_them() {
    let world = world().await;
    let (ada, bob) = people();
    run_engine(&world, async {
        let bad = add(&world, every("100d", "fail for good")).await;
        let good = add(&world, every("100d", "work")).await;
        fire(&world, &good).await;
        let run = fire(&world, &bad).await;
        set(&world, MINUTE_US).await;

        let first = status_of(&world, &ada).await;
        assert!(!first.failures.seen && !first.failures.incomplete);
        assert_eq!(failed(&first.failures), [("fail for good", "failed")]);
        let shown = &first.failures.runs[0];
        assert_eq!((&shown.run_id, shown.agent.as_deref()), (&run.id, Some("ada")));
        assert_eq!(shown.reason.as_deref(), Some("script"));

        // Another run fails after the status was shown and before it is marked as seen.
        set(&world, 2 * MINUTE_US).await;
        let later = fire(&world, &bad).await;
        wait_until_idle().await;
        send_by(&world, &ada, StatusSeen { until: first.at.clone() }).await.unwrap();
        let second = status_of(&world, &ada).await.failures;
        assert_eq!((second.seen, &second.since), (true, &first.at));
        assert_eq!(second.runs.iter().map(|run| &run.run_id).collect::<Vec<_>>(), [&later.id]);

        let all = status_of(&world, &bob).await.failures;
        assert_eq!((all.seen, all.runs.len()), (false, 2));
        let at = status_of(&world, &ada).await.at;
        send_by(&world, &ada, StatusSeen { until: at }).await.unwrap();
        assert_eq!(status_of(&world, &ada).await.failures.runs, []);
        assert_eq!(status_of(&world, &bob).await.failures.runs.len(), 2);
        // Without a position, those of the last day.
        set(&world, DAY_US + 90 * SECOND_US).await;
        assert_eq!(status_of(&world, &bob).await.failures.runs.len(), 1);
    })
    .await;
}

/// The newest 2,000 runs are searched; if there are more, the status says so.
#[tokio::test(start_paused = true)]
async fn failures_are_searched_among_the_newest_runs() {
    const SEARCHED_MAX: usize = 2_000;
    let world = world().await;
    let (ada, _) = people();
    let terms = Terms { per_day: Some(10_000), ..Terms::default() };
    let add_run = |prompt: &str| ScheduleAdd { terms: terms.clone(), ..every("100d", prompt) };
    run_engine(&world, async {
        let bad = add(&world, add_run("fail for good")).await;
        let good = add(&world, add_run("work")).await;
        fire(&world, &bad).await;
        for _ in 1..SEARCHED_MAX {
            fire(&world, &good).await;
            wait_until_idle().await;
        }
        set(&world, MINUTE_US).await;
        let at_the_limit = status_of(&world, &ada).await.failures;
        assert_eq!((at_the_limit.runs.len(), at_the_limit.incomplete), (1, false));
        fire(&world, &good).await;
        wait_until_idle().await;
        let one_past = status_of(&world, &ada).await.failures;
        assert_eq!((one_past.runs.len(), one_past.incomplete), (0, true));
        // Older runs than those that are looked at do not matter.
        set(&world, 3 * DAY_US).await;
        fire(&world, &bad).await;
        wait_until_idle().await;
        let later = status_of(&world, &ada).await.failures;
        assert_eq!((later.runs.len(), later.incomplete), (1, false));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn position_survives_a_restart() {
    let mut world = world().await;
    let (ada, _) = people();
    let bad = add(&world, every("100d", "fail for good")).await;
    crash(&mut world, async |world| {
        fire(world, &bad).await;
        set(world, MINUTE_US).await;
        let status = status_of(world, &ada).await;
        assert_eq!(status.failures.runs.len(), 1);
        send_by(world, &ada, StatusSeen { until: status.at }).await.unwrap();
    })
    .await;
    let failures = status_of(&world, &ada).await.failures;
    assert_eq!((failures.seen, failures.runs.len()), (true, 0));
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn agents_and_assistants_have_no_position() {
    let world = world().await;
    let (ada, _) = people();
    let assistant = ada.clone().into_assistant();
    let until = status_of(&world, &ada).await.at;
    for actor in [&assistant, &Actor::token_holder("ada".parse().unwrap(), Role::Runner)] {
        let refused = send_by(&world, actor, StatusSeen { until: until.clone() }).await;
        assert_eq!(refused.unwrap_err(), Code::RoleTooLow);
    }
    send_by(&world, &ada, StatusSeen { until }).await.unwrap();
    assert!(!status_of(&world, &assistant).await.failures.seen);
}

#[tokio::test(start_paused = true)]
async fn unknown_outcome_is_reported_until_a_person_settles_it() {
    let world = world().await;
    let (ada, _) = people();
    run_engine(&world, async {
        let lost = add(&world, named("lost", "smith", every("100d", "lose"))).await;
        let run = fire(&world, &lost).await;
        set(&world, MINUTE_US).await;
        let status = status_of(&world, &ada).await;
        assert_eq!(failed(&status.failures), [("lost", "unknown")]);
        send_by(&world, &ada, StatusSeen { until: status.at }).await.unwrap();
        let status = status_of(&world, &ada).await;
        assert_eq!(status.failures.runs, []);
        assert_eq!(status.unknown_runs[0].schedule_name.as_deref(), Some("lost"));
        let settle = RunSettle { id: run.id, state: SettledState::Failed, note: None };
        send_by(&world, &ada, settle).await.unwrap();
        let status = status_of(&world, &people().1).await;
        assert_eq!((status.failures.runs, status.unknown_runs), (vec![], vec![]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn status_names_what_runs_waits_and_is_next() {
    let world = world().await;
    let (ada, _) = people();
    world.send(of_tier(2, builtin("eve"))).await.unwrap();
    run_engine(&world, async {
        let waits = add(&world, named("ask first", "eve", every("50d", "x"))).await;
        let long = add(&world, every("60d", "hang")).await;
        for id in [&waits, &long] {
            fire(&world, id).await;
        }
        wait_until_idle().await;
        let status = status_of(&world, &ada).await;
        assert_eq!(status.waiting[0].schedule_name.as_deref(), Some("ask first"));
        assert_eq!(status.approvals, [status.waiting[0].approval_id.clone()]);
        assert_eq!(status.running[0].schedule_name.as_deref(), Some("hang"));
        assert_eq!(status.runs.running, [status.running[0].run_id.clone()]);
        let next: Vec<_> = status.upcoming.iter().map(|it| it.schedule_name.as_deref()).collect();
        assert_eq!(next, [Some("ask first"), Some("hang")]);
        assert_eq!(status.next.as_ref(), status.upcoming.first());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn timeline_tells_what_happened_with_names_and_without_prompts() {
    let world = world().await;
    run_engine(&world, async {
        let bad = add(&world, named("nightly", "ada", every("100d", "fail for good"))).await;
        fire(&world, &bad).await;
        set(&world, MINUTE_US).await;
        let page = world.send(TimelineShow::default()).await.unwrap();
        let told: Vec<(&str, &str)> =
            page.lines.iter().map(|line| (&*line.about, &*line.text)).collect();
        let nightly: Vec<&str> =
            told.iter().filter(|(about, _)| *about == "nightly").map(|it| it.1).collect();
        let by = page.lines.iter().find(|line| line.kind == "schedule.added").unwrap();
        assert_eq!(
            nightly,
            [
                &*format!("schedule added by {}", by.actor),
                &*format!("run queued by {}", by.actor),
                "run started",
                "run failed: script",
            ]
        );
        assert!(!page.more && told.contains(&("midwatch", "installation created")), "{told:?}");
        assert!(told.iter().all(|(_, text)| !text.contains("for good")), "{told:?}");
        let run = world.send(RunList::default()).await.unwrap().runs.remove(0);
        assert_eq!(page.lines.last().unwrap().run_id.as_ref(), Some(&run.id));

        // Pages continue where the last one ended, also if a page shows nothing.
        let (mut after, mut paged) = (Some(0), Vec::new());
        loop {
            let request = TimelineShow { after, limit: Some(1), ..TimelineShow::default() };
            let one = world.send(request).await.unwrap();
            after = Some(one.cursor);
            paged.extend(one.lines);
            if !one.more {
                break;
            }
        }
        assert_eq!(paged, page.lines);
        // Only the last minute.
        let since = Some("30s".to_owned());
        let recent = world.send(TimelineShow { since, ..TimelineShow::default() }).await.unwrap();
        assert!(recent.lines.iter().all(|line| after_minute(&line.at)), "{recent:?}");
    })
    .await;
}

/// Its name is still known, also that of its runs, and also after the schedule was added again and removed again.
#[tokio::test(start_paused = true)]
async fn removed_schedule_keeps_its_name() {
    let mut world = world().await;
    let nightly = || named("nightly", "ada", every("100d", "work"));
    crash(&mut world, async |world| {
        for _ in 0..2 {
            let id = add(world, nightly()).await;
            fire(world, &id).await;
            wait_until_idle().await;
            world.send(ScheduleRemove { id }).await.unwrap();
        }
    })
    .await;
    let lines = world.send(TimelineShow::default()).await.unwrap().lines;
    let about: Vec<&str> =
        lines.iter().filter(|it| it.schedule_id.is_some()).map(|it| &*it.about).collect();
    assert!(10 <= about.len() && about.iter().all(|about| *about == "nightly"), "{about:?}");
    for run in runs(&world).await {
        assert_eq!(run.schedule_name.as_deref(), Some("nightly"));
    }
    verify_ledger(&world).await;
}

fn after_minute(at: &str) -> bool {
    after(30 * SECOND_US).as_str() <= at
}
