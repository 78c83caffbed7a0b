//! Metrics: what a scrape shows after known events.

use std::collections::BTreeMap;

use api::{ApprovalDecide, ApprovalList, Decision, Terms};
use kernel::budget::Limits;

use crate::steps::*;
use crate::world::{World, builtin, run_engine};

/// The samples of a scrape by name and labels, without those at zero.
async fn scrape(world: &World) -> BTreeMap<String, f64> {
    let text = world.engine.metrics().await.unwrap();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let samples = samples.map(|line| line.rsplit_once(' ').unwrap());
    let samples = samples.map(|(series, value)| (series.to_owned(), value.parse().unwrap()));
    samples.filter(|(_, value)| *value != 0.0).collect()
}

/// Checks samples, each as `name{labels} value` without the prefix of all names, and that the metrics whose names are given
/// have no others.
async fn check(world: &World, complete: &[&str], expected: &[&str]) {
    let samples = scrape(world).await;
    let expected: BTreeMap<String, f64> = expected
        .iter()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(series, value)| (format!("midwatch_{series}"), value.parse().unwrap()))
        .collect();
    for (series, value) in &expected {
        assert_eq!(samples.get(series).copied().unwrap_or(0.0), *value, "{series}");
    }
    for name in complete.iter().map(|name| format!("midwatch_{name}")) {
        let of = |series: &str| series.split('{').next() == Some(&name);
        for series in samples.keys().filter(|series| of(series)) {
            assert!(expected.contains_key(series), "{series}: {samples:#?}");
        }
    }
}

/// A world in which this schedule has been due once, an hour after the start.
async fn fired(world: World, prompt: &str) -> World {
    add(&world, every("1h", prompt)).await;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
    })
    .await;
    world
}

const COUNTED: &[&str] =
    &["slots_total", "runs_total", "policy_decisions_total", "approvals_total", "tokens_total"];

#[tokio::test(start_paused = true)]
async fn a_fire_counts_its_slot_its_run_and_what_it_used() {
    let run = r#"outcome="done",backend="builtin",tier="0""#;
    let world = fired(world().await, "use 7").await;
    check(
        &world,
        COUNTED,
        &[
            r#"slots_total{disposition="ran",trigger="slot"} 1"#,
            &format!("runs_total{{{run}}} 1"),
            &format!("run_duration_seconds_count{{{run}}} 1"),
            r#"slot_lateness_seconds_count{stage="decided"} 1"#,
            r#"slot_lateness_seconds_bucket{stage="decided",le="0.001"} 1"#,
            r#"slot_lateness_seconds_count{stage="started"} 1"#,
            r#"policy_decisions_total{verdict="allow",posture="staging"} 1"#,
            r#"tokens_total{backend="builtin"} 8"#,
            "log_check_ok 1",
            "checkpoint_copy_ok 1",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn outcomes_are_counted_by_what_became_of_the_run() {
    for (prompt, outcome, unknown) in
        [("fail for good", "failed", 0), ("lose", "unknown", 1), ("hello", "done", 0)]
    {
        let world = World::new().await;
        let disposition = if outcome == "done" { "ran" } else { outcome };
        world.send(of_tier(1, program("ada"))).await.unwrap();
        let world = fired(world, prompt).await;
        check(
            &world,
            &["slots_total", "runs_total", "runs"],
            &[
                &format!(r#"slots_total{{disposition="{disposition}",trigger="slot"}} 1"#),
                &format!(r#"runs_total{{outcome="{outcome}",backend="command",tier="1"}} 1"#),
                &format!(r#"runs{{state="unknown"}} {unknown}"#),
            ],
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_pending_until_it_is_decided() {
    let world = World::new().await;
    world.send(of_tier(2, builtin("ada"))).await.unwrap();
    add(&world, every("1h", "hello")).await;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        set(&world, HOUR_US + 90 * SECOND_US).await;
        let pending = &[
            r#"approvals_pending{tier="2"} 1"#,
            r#"approval_oldest_seconds{tier="2"} 90"#,
            r#"runs{state="waiting_permission"} 1"#,
            r#"policy_decisions_total{verdict="ask",posture="staging"} 1"#,
        ];
        let complete = [COUNTED, &["approvals_pending", "runs"]].concat();
        check(&world, &complete, pending).await;
        let approval = world.send(ApprovalList::default()).await.unwrap().approvals.remove(0);
        let decide = ApprovalDecide::new(&approval.id, Decision::Approve);
        let decide = ApprovalDecide { plan_hash: Some(approval.plan_hash), ..decide };
        world.send(decide).await.unwrap();
        wait_until_idle().await;
        let decided = &[
            r#"approvals_pending{tier="2"} 0"#,
            r#"approval_oldest_seconds{tier="2"} 0"#,
            r#"approvals_total{result="approved"} 1"#,
            r#"approval_wait_seconds_sum{tier="2"} 90"#,
            r#"approval_wait_seconds_bucket{tier="2",le="60"} 0"#,
            r#"approval_wait_seconds_bucket{tier="2",le="300"} 1"#,
            r#"slots_total{disposition="ran_late",trigger="slot"} 1"#,
            r#"runs_total{outcome="done",backend="builtin",tier="2"} 1"#,
            r#"policy_decisions_total{verdict="ask",posture="staging"} 1"#,
            r#"policy_decisions_total{verdict="allow",posture="staging"} 0"#,
        ];
        check(&world, &["approvals_total", "approvals_pending", "runs_total"], decided).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn slots_without_a_run_are_counted_each() {
    let world = world().await;
    let terms = Terms { missed: Some("skip".into()), ..Terms::default() };
    let schedule = api::ScheduleAdd { terms, ..every("1h", "hello") };
    add(&world, schedule).await;
    set(&world, 5 * HOUR_US + 30 * MINUTE_US).await;
    check(&world, &[], &["slot_overdue_oldest_seconds 16200"]).await;
    run_engine(&world, wait_until_idle()).await;
    let skipped = r#"slots_total{disposition="skipped_missed",trigger="slot"} 5"#;
    check(&world, COUNTED, &[skipped, "slot_overdue_oldest_seconds 0"]).await;
}

#[tokio::test(start_paused = true)]
async fn waiting_runs_and_used_budgets_are_gauges() {
    let mut world = world().await;
    world.limits = Limits { tokens: 40, ..Limits::default() };
    world.reopen().await.unwrap();
    let uses = add(&world, every("24h", "use 7")).await;
    run_engine(&world, async {
        wait_until_idle().await;
        fire(&world, &uses).await;
        wait_until_idle().await;
        let free = check(
            &world,
            &["queue_depth", "budget_used_ratio"],
            &[r#"budget_used_ratio{scope_kind="installation",unit="tokens"} 0.2"#],
        );
        free.await;
        for number in 0..CONCURRENCY_MAX + 3 {
            let name = format!("waits {number}");
            let waits = add(&world, named(&name, "smith", every("24h", "wait"))).await;
            fire(&world, &waits).await;
        }
        set(&world, 20 * SECOND_US).await;
        let waiting = &[
            r#"queue_depth{queue_kind="agent"} 3"#,
            r#"queue_oldest_seconds{queue_kind="agent"} 20"#,
            r#"runs{state="queued"} 3"#,
            r#"runs{state="running"} 16"#,
        ];
        check(&world, &["queue_depth", "queue_oldest_seconds", "runs"], waiting).await;
        world.backend.release(CONCURRENCY_MAX + 3);
        wait_until_idle().await;
        check(&world, &["queue_depth", "queue_oldest_seconds", "runs"], &[]).await;
    })
    .await;
}
