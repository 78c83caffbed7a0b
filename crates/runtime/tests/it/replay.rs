//! Replaying past policy decisions with other rules.

use api::{
    AgentAdd, AgentSettings, ApprovalDecide, ApprovalList, Code, Decision, PolicyExplain,
    PolicyReplay, PolicyReplayed, Posture, ScheduleRemove,
};
use kernel::Role;
use kernel::authority::Lease;
use kernel::budget::Limits;

use crate::steps::*;
use crate::world::{World, builtin, run_engine};

fn rule(lines: &str) -> String {
    format!(
        "[[rule]]\nid = 'one'\n{lines}\nnot_match = [{{ capability = 'agent.prompt', agent = 'zoe' }}]"
    )
}

fn of_agent(verdict: &str, agent: &str) -> String {
    rule(&format!(
        "{verdict} = ['agent.prompt']\nagent = ['{agent}']\n\
         match = [{{ capability = 'agent.prompt', agent = '{agent}' }}]"
    ))
}

fn of_tier_1(verdict: &str) -> String {
    rule(&format!(
        "{verdict} = ['agent.prompt']\ntier = [1]\n\
         match = [{{ capability = 'agent.prompt', tier = 1 }}]"
    ))
}

fn replay_since(since: &str) -> PolicyReplay {
    PolicyReplay { since: since.to_owned(), rules: None, posture: None }
}

async fn with(world: &World, rules: &str) -> PolicyReplayed {
    let asked = PolicyReplay { rules: Some(rules.to_owned()), ..replay_since("7d") };
    world.send_as(Role::Observer, asked).await.unwrap()
}

/// The agent, the past and the new verdict, and the rule.
fn changed(found: &PolicyReplayed) -> Vec<(&str, &str, &str, &str)> {
    let rows = found.changed.iter();
    rows.map(|it| (it.agent.as_deref().unwrap(), it.was.as_str(), it.would_be.as_str(), &*it.rule))
        .collect()
}

/// After an hour `ada` was allowed, `eve` needed approval because of tier 2, and `bob` was denied.
async fn world_with_decisions() -> World {
    let mut world = World::new().await;
    world.policy = of_agent("deny", "bob");
    world.reopen().await.unwrap();
    world.send(builtin("ada")).await.unwrap();
    world.send(of_tier(2, builtin("eve"))).await.unwrap();
    world.send(of_tier(1, builtin("bob"))).await.unwrap();
    for agent in ["ada", "eve", "bob"] {
        add(&world, named(agent, agent, every("1h", "hello"))).await;
    }
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        let mut open = world.send(ApprovalList::default()).await.unwrap().approvals;
        let approval = open.remove(0);
        let (id, plan_hash) = (approval.id, Some(approval.plan_hash));
        let approve = ApprovalDecide { plan_hash, ..ApprovalDecide::new(id, Decision::Approve) };
        world.send(approve).await.unwrap();
        wait_until_idle().await;
    })
    .await;
    assert_eq!((started_by(&world, "ada"), started_by(&world, "eve")), (1, 1));
    world
}

#[tokio::test(start_paused = true)]
async fn replay_applies_other_rules_to_past_decisions() {
    let world = world_with_decisions().await;
    let before = entries(&world).await;
    let same = world.send(replay_since("7d")).await.unwrap();
    assert_eq!((same.decisions, same.untold, changed(&same)), (3, 0, vec![]), "{same:?}");
    assert!(same.sentence.starts_with("none of 3 decisions since 2026-09-24T01:00:00"));

    let found = with(&world, &of_agent("deny", "ada")).await;
    let (bob, ada) = (("bob", "deny", "allow", "baseline/agents"), "policy.toml/one");
    let mut rows = changed(&found);
    rows.sort_unstable();
    assert_eq!(rows, [("ada", "allow", "deny", ada), bob]);
    let counts: Vec<(&str, u64)> = found.counts.iter().map(|(key, n)| (&**key, *n)).collect();
    assert_eq!(counts, [("allow_to_deny", 1), ("deny_to_allow", 1)]);

    // Tier 2 needs approval, whatever the rules allow.
    let allowed = with(&world, &of_agent("allow", "eve")).await;
    assert_eq!(changed(&allowed), [bob]);
    let found = with(&world, &of_agent("deny", "eve")).await;
    assert!(changed(&found).contains(&("eve", "ask", "deny", ada)));
    assert_eq!(found.counts["ask_to_deny"], 1, "one decision is counted once: {found:?}");
    assert_eq!(entries(&world).await, before, "a replay records nothing");
}

#[tokio::test(start_paused = true)]
async fn replay_uses_the_recorded_request_not_the_present_state() {
    let world = world_with_decisions().await;
    let raised = edit_settings("bob", AgentSettings { tier: Some(2), ..AgentSettings::default() });
    world.send(raised).await.unwrap();
    for run in runs(&world).await.iter().filter(|run| run.agent.as_deref() == Some("ada")) {
        let id = run.schedule_id.clone().unwrap();
        world.send(ScheduleRemove { id }).await.unwrap();
    }
    let found = with(&world, &of_tier_1("ask")).await;
    assert_eq!(changed(&found), [("bob", "deny", "ask", "policy.toml/one")]);
    assert_eq!(found.untold, 0);
}

#[tokio::test(start_paused = true)]
async fn replay_uses_the_active_rules_by_default() {
    let mut world = world_with_decisions().await;
    world.policy = of_agent("ask", "ada");
    world.reopen().await.unwrap();
    let found = world.send(replay_since("7d")).await.unwrap();
    assert_eq!(found.counts["allow_to_ask"], 1, "{found:?}");
    let strict = PolicyReplay { posture: Some(Posture::StrictProd), ..replay_since("7d") };
    let found = world.send(strict).await.unwrap();
    assert_eq!(
        (found.posture.as_str(), found.counts["allow_to_ask"]),
        ("strict-prod", 1),
        "own rules stay"
    );
}

#[tokio::test(start_paused = true)]
async fn replay_covers_decisions_since_the_given_time_only() {
    let world = world_with_decisions().await;
    for (since, decisions) in [(0, 3), (HOUR_US, 3), (HOUR_US + 1, 0), (9 * HOUR_US, 0)] {
        let found = world.send(replay_since(&after(since))).await.unwrap();
        assert_eq!(found.decisions, decisions, "{since}");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_replays_are_refused() {
    let world = world_with_decisions().await;
    let refused = async |asked: PolicyReplay| world.send(asked).await.unwrap_err().code;
    assert_eq!(refused(replay_since("ten")).await, Code::InvalidInput);
    let text = |text: String| PolicyReplay { rules: Some(text), ..replay_since("7d") };
    assert_eq!(refused(text("x = 1".into())).await, Code::PolicyInvalid);
    assert!(world.send(text(" ".repeat(1 << 20))).await.is_ok());
    assert_eq!(refused(text(" ".repeat((1 << 20) + 1))).await, Code::PolicyInvalid);
}

/// The details of a request, such as the host of an agent, are matched by rules, recorded, shown and replayed.
#[tokio::test(start_paused = true)]
async fn decision_details_are_recorded_shown_and_replayed() {
    let mut world = World::new().await;
    let on_host = |verdict: &str, host: &str| {
        let agent = "agent = ['letta']";
        format!(
            "[[rule]]\nid = 'host'\n{verdict} = ['agent.prompt']\n{agent}\nhost = ['{host}']\n\
             match = [{{ capability = 'agent.prompt', agent = 'letta', host = '{host}' }}]\n\
             not_match = [{{ capability = 'agent.prompt', agent = 'zoe' }}]"
        )
    };
    world.policy = on_host("deny", "elsewhere.example");
    world.limits = Limits { runs: 9, tokens: 1_000, ..Limits::default() };
    world.reopen().await.unwrap();
    let letta = AgentAdd {
        name: "letta".into(),
        backend: "letta".into(),
        settings: AgentSettings {
            url: Some("https://Letta.example:8283/v1".into()),
            remote_id: Some("agent-1".into()),
            ..AgentSettings::default()
        },
        look: false,
    };
    world.send(letta).await.unwrap();
    let id = add(&world, named("s", "letta", every("1h", "use 49"))).await;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        fire(&world, &id).await;
        wait_until_idle().await;
    })
    .await;
    let mut details = Vec::new();
    for run in runs(&world).await {
        let explained = world.send(PolicyExplain { run: run.id }).await.unwrap();
        let (request, facts) = (explained.request.unwrap(), explained.facts.unwrap());
        assert_eq!(request.host.as_deref(), Some("Letta.example"));
        assert_eq!((request.principal, request.tier), (format!("schedule:{id}"), 1));
        assert_eq!((request.resource.as_deref(), facts.lease.as_str()), (Some("letta"), "full"));
        details.push((facts.unattended, facts.runs_left, facts.tokens_left));
    }
    details.sort_unstable();
    assert_eq!(details, [(false, Some(8), Some(950)), (true, Some(9), Some(1_000))]);
    // These rules differ only by host.
    let found = with(&world, &on_host("deny", "letta.example")).await;
    assert_eq!(found.counts.get("allow_to_deny"), Some(&2), "{found:?}");
    assert_eq!(with(&world, &on_host("deny", "other.example")).await.changed, []);
}

/// A decision by the lease is replayed with the lease of that time.
#[tokio::test(start_paused = true)]
async fn replay_uses_the_lease_of_the_past_decision() {
    let mut world = World::new().await;
    world.lease = Lease { ask_after_us: HOUR_US / 2, pause_after_us: 10 * HOUR_US };
    world.reopen().await.unwrap();
    world.send(builtin("ada")).await.unwrap();
    add(&world, named("s", "ada", every("1h", "hello"))).await;
    run_engine(&world, async { set(&world, HOUR_US).await }).await;
    let open = world.send(ApprovalList::default()).await.unwrap().approvals.remove(0);
    let explained = world.send(PolicyExplain { run: open.run_id }).await.unwrap();
    assert_eq!(explained.facts.unwrap().lease.as_str(), "ask");
    let same = world.send(replay_since("7d")).await.unwrap();
    assert_eq!((same.decisions, same.changed), (1, vec![]));
    assert_eq!(with(&world, &of_agent("deny", "ada")).await.counts["ask_to_deny"], 1);
}
