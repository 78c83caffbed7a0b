//! Paged lists.

use api::{AgentList, ApprovalList, Code, Error, RunList, ScheduleAddAll, ScheduleList, TokenList};
use kernel::Role;

use crate::steps::*;

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
        let page = world.send(ScheduleList { agent, limit: Some(3), cursor }).await.unwrap();
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
    assert_eq!((shown, pages), (expected, vec![3, 3, 1]));
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
