//! Paged lists.

use api::{
    AgentList, ApprovalList, Code, Error, RunList, ScheduleAddAll, ScheduleList, SchedulePause,
    ScheduleRemove, ScheduleResume, TokenList,
};
use kernel::Role;

use crate::steps::*;
use crate::world::World;

#[tokio::test]
async fn an_invalid_cursor_is_refused_by_every_list() {
    let world = world().await;
    add(&world, every("1h", "hello")).await;
    let check = |refused: Error| {
        assert_eq!(refused.code, Code::InvalidInput, "{refused:?}");
        assert_eq!(refused.message, "`No Cursor` is not a cursor of this list");
        assert!(refused.hint.is_some());
    };
    let cursor = || Some("No Cursor".to_owned());
    let runs = RunList { cursor: cursor(), ..RunList::default() };
    check(world.send(runs).await.unwrap_err());
    let schedules = ScheduleList { cursor: cursor(), ..ScheduleList::default() };
    check(world.send(schedules).await.unwrap_err());
    let agents = AgentList { cursor: cursor(), ..AgentList::default() };
    check(world.send(agents).await.unwrap_err());
    let approvals = ApprovalList { cursor: cursor(), ..ApprovalList::default() };
    check(world.send(approvals).await.unwrap_err());
    let tokens = TokenList { cursor: cursor(), ..TokenList::default() };
    check(world.send_as(Role::Maintainer, tokens).await.unwrap_err());
}

/// More schedules of others than one read returns, before, between and after.
#[tokio::test]
async fn a_page_of_one_agents_schedules_is_full_and_has_no_others() {
    let world = world().await;
    let list = |agent: &str, count: usize| ScheduleAddAll {
        schedules: (0..count)
            .map(|it| named(&format!("{agent}{it}"), agent, every("1h", "x")))
            .collect(),
        dry_run: false,
    };
    world.send(list("ada", 900)).await.unwrap();
    let own = world.send(list("smith", 7)).await.unwrap().schedules;
    let (mut shown, mut pages, mut cursor) = (Vec::new(), Vec::new(), None);
    loop {
        let agent = Some("smith".to_owned());
        let list = ScheduleList { agent, limit: Some(3), cursor, by_id: true };
        let page = world.send(list).await.unwrap();
        pages.push(page.schedules.len());
        shown.extend(page.schedules.into_iter().map(|it| it.id));
        cursor = page.cursor;
        match &cursor {
            Some(cursor) => assert_eq!(Some(cursor), shown.last()),
            None => break,
        }
    }
    let mut expected: Vec<String> = own.into_iter().map(|it| it.id).collect();
    expected.sort();
    assert_eq!((shown, pages), (expected.clone(), vec![3, 3, 1]));
    // All are due at the same time, so the order of both lists is the same.
    let (shown, pages) = by_due_time(&world, Some("smith"), 3).await;
    assert_eq!((shown, pages), (expected, vec![3, 3, 1]));
}

/// The ids of all schedules, the next due first, and the sizes of the pages.
async fn by_due_time(world: &World, agent: Option<&str>, limit: u32) -> (Vec<String>, Vec<usize>) {
    let (mut shown, mut pages, mut cursor) = (Vec::new(), Vec::new(), None);
    loop {
        let agent = agent.map(str::to_owned);
        let list = ScheduleList { agent, limit: Some(limit), cursor, by_id: false };
        let page = world.send(list).await.unwrap();
        pages.push(page.schedules.len());
        shown.extend(page.schedules.into_iter().map(|it| it.id));
        cursor = page.cursor;
        if cursor.is_none() {
            return (shown, pages);
        }
    }
}

/// These schedules as they should be listed: by their next time and id, and those without one last.
async fn expected_order(world: &World, ids: &[String]) -> Vec<String> {
    let mut sorted = Vec::new();
    for id in ids {
        let next = schedule(world, id).await.next_run_at;
        sorted.push((next.is_none(), next, id.clone()));
    }
    sorted.sort();
    sorted.into_iter().map(|(_, _, id)| id).collect()
}

#[tokio::test]
async fn schedules_are_listed_by_their_next_time_across_pages() {
    let world = world().await;
    let mut ids = Vec::new();
    for minutes in [50, 10, 30, 70, 20, 60, 40, 5, 15] {
        ids.push(add(&world, every(&format!("{minutes}m"), &format!("in {minutes}"))).await);
    }
    for id in &ids[7..] {
        world.send(SchedulePause { id: id.clone(), note: None }).await.unwrap();
    }
    let removed = add(&world, every("7m", "removed")).await;
    world.send(ScheduleRemove { id: removed }).await.unwrap();
    let expected = expected_order(&world, &ids).await;
    assert_ne!(expected, ids);
    for limit in 1..=10 {
        let (shown, pages) = by_due_time(&world, None, limit).await;
        assert_eq!(shown, expected, "{limit}");
        let (last, full) = pages.split_last().unwrap();
        assert!(full.iter().all(|size| *size == limit as usize), "{limit}: {pages:?}");
        assert!((1..=limit as usize).contains(last), "{limit}: {pages:?}");
    }
    // A resumed schedule is due again.
    world.send(ScheduleResume { id: ids[7].clone() }).await.unwrap();
    let expected = expected_order(&world, &ids).await;
    assert_eq!(by_due_time(&world, None, 4).await.0, expected);
    // A cursor stays valid when its schedule is gone. One of the other order is refused.
    let first = ScheduleList { limit: Some(2), ..ScheduleList::default() };
    let cursor = world.send(first).await.unwrap().cursor;
    world.send(ScheduleRemove { id: expected[1].clone() }).await.unwrap();
    let rest = ScheduleList { cursor: cursor.clone(), ..ScheduleList::default() };
    let rest = world.send(rest).await.unwrap().schedules;
    assert_eq!(rest.into_iter().map(|it| it.id).collect::<Vec<_>>(), expected[2..]);
    for (cursor, by_id) in [(cursor, true), (Some(expected[0].clone()), false)] {
        let list = ScheduleList { cursor, by_id, ..ScheduleList::default() };
        assert_eq!(world.send(list).await.unwrap_err().code, Code::InvalidInput);
    }
}

/// The same for runs, newest first.
#[tokio::test]
async fn a_page_of_one_agents_runs_is_full_and_has_no_others() {
    let world = world().await;
    let fired = async |agent: &str, turn: usize, count: usize| {
        let schedules = (0..count)
            .map(|it| named(&format!("{agent}-{turn}-{it}"), agent, every("1h", "x")))
            .collect();
        let added = world.send(ScheduleAddAll { schedules, dry_run: false }).await.unwrap();
        let mut runs = Vec::new();
        for schedule in added.schedules {
            runs.push(fire(&world, &schedule.id).await.id);
        }
        runs
    };
    let mut expected = Vec::new();
    for turn in 0..5 {
        fired("ada", turn, 300).await;
        if turn < 4 {
            expected.extend(fired("smith", turn, 1).await);
        }
    }
    expected.reverse();
    let list = |limit, cursor| RunList {
        agent: Some("smith".to_owned()),
        limit: Some(limit),
        cursor,
        ..RunList::default()
    };
    let first = world.send(list(3, None)).await.unwrap();
    assert_eq!(first.cursor.as_ref(), Some(&expected[2]));
    let second = world.send(list(3, first.cursor.clone())).await.unwrap();
    assert_eq!(second.cursor, None);
    let shown: Vec<String> = first.runs.into_iter().chain(second.runs).map(|it| it.id).collect();
    assert_eq!(shown, expected);
    assert_eq!(world.send(list(4, None)).await.unwrap().cursor, None, "the agent has no more runs");
}
