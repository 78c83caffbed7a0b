//! Attacks on plans, rules and schedules, each named by its id in the list of attacks.

use api::wire::Secret;
use api::{
    Action, AgentAdd, AgentRemove, AgentSettings, ApiRequest, ApprovalDecide, ApprovalList,
    ApprovalShow, Call, Code, Decision, EventPublish, Freeze, Handle, LeaseRenew, LedgerCheckpoint,
    LedgerExport, LedgerRebuild, Request, RunCancel, RunRetry, RunSettle, ScheduleAdd,
    ScheduleEdit, ScheduleFire, SchedulePause, ScheduleRemove, ScheduleResume, SettledState,
    StatusShow, Terms, Thaw, TokenCreate, TokenList, TokenRevoke,
};
use kernel::budget::Limits;
use kernel::{Actor, Role, RunId};
use runtime::{Credentials, TOKEN_DIGITS, TOKEN_PREFIX, token_hash};

use crate::steps::*;
use crate::world::{DAY_US, OCTOBER_US, World, builtin, run_engine};

fn agent(settings: AgentSettings) -> Request {
    edit_settings("ada", settings).into_request()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Changes between an approval and the start, each with whether the approved action stays the same.
fn edits(schedule: &str) -> Vec<(Option<Request>, bool)> {
    let id = schedule.to_owned();
    let prompt = |text: &str| Action { prompt: Some(text.to_owned()), ..Action::default() };
    let edit = |action| ScheduleEdit { id: id.clone(), action, ..ScheduleEdit::default() };
    let argv = |argv: &[&str]| AgentSettings { argv: words(argv), ..AgentSettings::default() };
    vec![
        (None, true),
        (Some(agent(argv(&["tool", "--to", "ada@example.org"]))), true),
        (Some(agent(argv(&["tool", "--to", "bda@example.org"]))), false),
        (Some(agent(argv(&["tool", "--to", "ada@example.org", ""]))), false),
        (Some(agent(argv(&["tool", "--to ada@example.org"]))), false),
        (Some(agent(argv(&["./tool", "--to", "ada@example.org"]))), false),
        (
            Some(agent(AgentSettings { cwd: Some("/srv".into()), ..AgentSettings::default() })),
            false,
        ),
        (Some(agent(AgentSettings { env: words(&["X"]), ..AgentSettings::default() })), false),
        (
            Some(agent(AgentSettings {
                credential: Some("env:X".into()),
                ..AgentSettings::default()
            })),
            false,
        ),
        (
            Some(agent(AgentSettings {
                prompt_as: Some("argument".into()),
                ..AgentSettings::default()
            })),
            false,
        ),
        (Some(edit(prompt("hello")).into_request()), true),
        (Some(edit(prompt("hellp")).into_request()), false),
        (Some(edit(prompt("hello ")).into_request()), false),
        (Some(edit(prompt("hell\u{43e}")).into_request()), false),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_run_that_differs_by_one_byte_from_its_approval_does_not_start() {
    for place in 0..edits("").len() {
        let mut world = World::new().await;
        let argv = words(&["tool", "--to", "ada@example.org"]);
        let settings = AgentSettings { argv, tier: Some(2), ..AgentSettings::default() };
        let backend = "command".to_owned();
        let ada = AgentAdd { name: "ada".into(), backend, settings, ..AgentAdd::default() };
        world.send(ada).await.unwrap();
        let schedule = add(&world, every("1h", "hello")).await;
        crash(&mut world, async |world| set(world, HOUR_US).await).await;
        let approval = world.send(ApprovalList::default()).await.unwrap().approvals.remove(0);
        let approve = ApprovalDecide {
            plan_hash: Some(approval.plan_hash.clone()),
            ..ApprovalDecide::new(&approval.id, Decision::Approve)
        };
        world.send(approve).await.unwrap();
        let (edit, is_the_same) = edits(&schedule).remove(place);
        if let Some(request) = edit.clone() {
            let operator = Actor::token_holder("olga".parse().unwrap(), kernel::Role::Operator);
            world.engine.handle(operator).call(call(request)).await.unwrap();
        }
        run_engine(&world, async {
            set(&world, HOUR_US + SECOND_US).await;
        })
        .await;
        let state = world.send(ApprovalShow { id: approval.id }).await.unwrap().approval.state;
        let (kinds, run) = (world.kinds().await, only_run(&world).await);
        let found =
            (started(&world), state.as_str(), kinds.contains(&"approval.consumed".to_owned()));
        match is_the_same {
            true => assert_eq!(found, (1, "consumed", true), "{edit:?}"),
            false => {
                assert_eq!(found, (0, "changed", false), "{edit:?}");
                assert_eq!(run.reason.as_deref(), Some("plan_changed"), "{edit:?}");
            }
        }
        verify_ledger(&world).await;
    }
}

/// The entry names the caller and the plan, whatever the reason of the refusal.
#[tokio::test(start_paused = true)]
async fn a_refused_decision_is_recorded() {
    let mut world = World::new().await;
    for name in ["ada", "bob"] {
        world.send(of_tier(2, builtin(name))).await.unwrap();
    }
    add(&world, every("1h", "hello")).await;
    crash(&mut world, async |world| set(world, HOUR_US).await).await;
    let approval = world.send(ApprovalList::default()).await.unwrap().approvals.remove(0);
    let (id, other) = (approval.id, "0".repeat(64));
    let answer = |plan_hash: &str| {
        let (decision, plan_hash) = (Decision::Approve, Some(plan_hash.to_owned()));
        ApprovalDecide { plan_hash, ..ApprovalDecide::new(&id, decision) }.into_request()
    };
    let show = ApprovalShow { id: id.clone() }.into_request();
    let actor = |name: &str, role| Actor::token_holder(name.parse().unwrap(), role);
    for (by, asked, about, code) in [
        (actor("mia", Role::Operator), answer(&other), Some(&*other), "not_now"),
        (actor("zoe", Role::Operator), answer(&"\n".repeat(9)), None, "not_now"),
        (actor("bob", Role::Runner), show, None, "not_found"),
    ] {
        let call_name = asked.name();
        let refused = world.engine.handle(by.clone()).call(call(asked)).await.unwrap_err();
        assert_eq!(refused.code.name(), code);
        let noted = world.events().await.pop().unwrap();
        assert_eq!((noted.kind.as_str(), &noted.body["by"]), ("watch.refused", &by.name().into()));
        assert_eq!((&noted.body["call"], &noted.body["code"]), (&call_name.into(), &code.into()));
        assert_eq!(noted.body["about"].as_str(), about);
    }
    verify_ledger(&world).await;
}

fn call(request: Request) -> Call {
    Call { request, key: None, version: None, tool: None, progress: Default::default() }
}

/// A hundred schedules with a hundred undecided slots each after three days.
#[tokio::test(start_paused = true)]
async fn ten_thousand_missed_slots_stay_within_limits() {
    const SCHEDULES: usize = 100;
    const AWAKE_US: i64 = 3 * DAY_US;
    // The `missed` term, the budget, and how many runs start.
    for (missed, window, budget, expected) in [
        ("skip", None, 0, 0),
        ("latest", None, 0, SCHEDULES),
        ("earliest", None, 0, SCHEDULES),
        ("all:5", Some("4d"), 0, 5 * SCHEDULES),
        ("latest", None, 30, 30),
        ("all:5", Some("4d"), 30, 30),
    ] {
        let mut world = World::new().await;
        world.limits = Limits { runs_per_agent: budget, ..Limits::default() };
        world.reopen().await.unwrap();
        world.send(program("ada")).await.unwrap();
        let terms = Terms {
            missed: Some(missed.into()),
            window: window.map(str::to_owned),
            overlap: Some("allow:5".into()),
            ..Terms::default()
        };
        for number in 0..SCHEDULES {
            let schedule = named(&format!("s{number}"), "ada", every("43m", "wait"));
            add(&world, ScheduleAdd { terms: terms.clone(), ..schedule }).await;
        }
        let slots = SCHEDULES * usize::try_from(AWAKE_US / (43 * MINUTE_US)).unwrap();
        assert_eq!(slots, 10_000);
        run_engine(&world, async {
            world.set_clock(OCTOBER_US + AWAKE_US);
            wait_until_idle().await;
            let live = world.send(StatusShow {}).await.unwrap().runs;
            let is_bounded = live.running.len() <= CONCURRENCY_MAX && live.queued <= 5 * SCHEDULES;
            assert!(is_bounded, "{missed} {budget}: {live:?}");
            world.backend.release(slots);
            wait_until_idle().await;
            assert_eq!(started(&world), expected, "{missed} {budget}");
            // The other slots are recorded in a few entries for each schedule.
            let entries = entries(&world).await;
            assert!(entries < (40 * SCHEDULES) as u64, "{missed} {budget}: {entries}");
        })
        .await;
        let spent = runs(&world).await;
        let spent = spent.iter().filter(|run| run.reason.as_deref() == Some("budget_used_up"));
        let wanted = if missed.starts_with("all") { 5 * SCHEDULES } else { SCHEDULES };
        assert_eq!(spent.count(), if budget == 0 { 0 } else { wanted - 30 }, "{missed} {budget}");
        verify_ledger(&world).await;
    }
}

/// The token was valid when the request came, and is revoked before its commit.
#[tokio::test(start_paused = true)]
async fn a_token_that_is_revoked_before_the_commit_changes_nothing() {
    let world = world().await;
    let schedule = add(&world, every("1h", "hello")).await;
    let secret = format!("{TOKEN_PREFIX}{}", "ab".repeat(TOKEN_DIGITS / 2));
    let create = TokenCreate {
        name: "mia".into(),
        role: api::Role::Operator,
        hash: token_hash(&secret),
        key: None,
        client: None,
    };
    let token = world.send_as(Role::Maintainer, create).await.unwrap().token;
    let secret = Secret(secret);
    let credentials = Credentials { token: Some(&secret), ..Credentials::unknown() };
    let mia = world.engine.authenticate(credentials).await.unwrap();
    let by_mia = world.engine.handle(mia);
    let pause = || SchedulePause { id: schedule.clone(), note: None };
    let resume = ScheduleResume { id: schedule.clone() };
    assert!(api::send(&by_mia, pause()).await.unwrap().changed);
    assert!(api::send(&by_mia, resume).await.unwrap().changed);
    let revoke = TokenRevoke { id: token.id, note: None };
    world.send_as(Role::Maintainer, revoke).await.unwrap();
    let before = world.kinds().await;
    let refused = api::send(&by_mia, pause()).await.unwrap_err();
    assert_eq!(refused.code, Code::TokenInvalid);
    let changes = |kinds: Vec<String>| kinds.iter().filter(|it| *it == "schedule.paused").count();
    assert_eq!(changes(world.kinds().await), changes(before));
}

/// Tries every request that changes something. A run may only add schedules within its limits.
#[tokio::test(start_paused = true)]
async fn a_run_cannot_change_its_own_constraints() {
    let world = world().await;
    let schedule = add(&world, every("1h", "hang")).await;
    run_engine(&world, async {
        let run = fire(&world, &schedule).await.id;
        wait_until_idle().await;
        let by_id = || schedule.clone();
        let token = TokenCreate {
            name: "eve".into(),
            role: api::Role::Maintainer,
            hash: "ab".repeat(32),
            key: None,
            client: None,
        };
        let decide = ApprovalDecide {
            plan_hash: Some("0".repeat(64)),
            ..ApprovalDecide::new("apr_00064b4b6d9a4000000000000000000a", Decision::Approve)
        };
        let settle_run = RunSettle { id: run.clone(), state: SettledState::Done, note: None };
        for request in [
            AgentAdd { name: "eve".into(), backend: "builtin".into(), ..AgentAdd::default() }
                .into_request(),
            agent(AgentSettings { tier: Some(0), ..AgentSettings::default() }),
            AgentRemove { name: "ada".into() }.into_request(),
            ScheduleEdit { id: by_id(), tier: Some(0), ..ScheduleEdit::default() }.into_request(),
            SchedulePause { id: by_id(), note: None }.into_request(),
            ScheduleResume { id: by_id() }.into_request(),
            ScheduleRemove { id: by_id() }.into_request(),
            ScheduleFire { id: by_id() }.into_request(),
            EventPublish { name: "x".into(), id: None }.into_request(),
            RunCancel { id: run.clone(), note: None }.into_request(),
            RunRetry { id: run.clone() }.into_request(),
            settle_run.into_request(),
            Freeze::default().into_request(),
            Thaw::default().into_request(),
            LeaseRenew::default().into_request(),
            token.into_request(),
            TokenList::default().into_request(),
            TokenRevoke { id: "tok_00064b4b6d9a4000000000000000000a".into(), note: None }
                .into_request(),
            LedgerRebuild {}.into_request(),
            LedgerExport::default().into_request(),
            LedgerCheckpoint {}.into_request(),
            decide.into_request(),
        ] {
            let id: RunId = run.parse().unwrap();
            let name = request.name();
            let refused = world.engine.handle(Actor::for_run(&id)).call(call(request)).await;
            let code = refused.unwrap_err().code;
            // For a missing object it only learns that it does not exist.
            let is_nowhere = code == Code::NotFound && name.starts_with("approval");
            assert!(code == Code::RoleTooLow || is_nowhere, "{name}: {code:?}");
        }
        cancel(&world, &runs(&world).await[0]).await;
    })
    .await;
    let events = world.events().await;
    let refused = events.iter().filter(|it| it.kind == "watch.refused").count();
    assert!(20 < refused, "each refusal is recorded: {refused}");
    let kinds =
        ["agent.changed", "agent.removed", "schedule.changed", "schedule.paused", "token.created"];
    assert!(
        !events
            .iter()
            .any(|it| kinds.contains(&it.kind.as_str()) || it.kind.starts_with("authority"))
    );
    verify_ledger(&world).await;
}
