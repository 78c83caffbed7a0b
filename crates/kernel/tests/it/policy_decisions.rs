//! Events and rows record the request and the result of each policy decision.

use std::cell::RefCell;

use kernel::approval;
use kernel::authority::{Attribution, Authority, Lease, LeaseState};
use kernel::backend::Tier;
use kernel::budget::{Limits, Remaining, day};
use kernel::money::Money;
use kernel::policy_decision::{Approvers, Details, PolicyDecision, Request, Verdict};
use kernel::posture::Posture;
use kernel::run::{
    self, Event, Occurrence, PolicyPreview, Queued, Run, RunContext, StartContext, evaluate,
    last_request, preview, recorded_decision, recorded_facts, recorded_request,
};
use kernel::schedule::terms::Terms;
use kernel::{ApprovalId, Counter, EventBody, Noun, Row, RunId, State, Tables, Timestamp};

use crate::support::{World, at, every, hash_plan};

fn queued(agent: &str) -> Run {
    let queued = Queued {
        schedule: "sch_0123abcd".parse().unwrap(),
        revision: 1,
        occurrence: Occurrence::Manual { key: "k".into() },
        agent: Some(agent.parse().unwrap()),
        priority: 5,
        keys: Vec::new(),
        depth: 0,
        by_runner: false,
        at: at(0),
    };
    run::apply(None, &Event::Queued(queued)).unwrap()
}

const LIMITS: Limits = Limits {
    runs: 10,
    runs_per_agent: 9,
    asks_per_agent: 0,
    pending_per_agent: 0,
    denied_for_us: 0,
    tokens: 100,
    tokens_per_agent: 0,
    money: Money::ZERO,
    money_per_agent: Money::ZERO,
    changes_per_agent: 0,
    bytes_per_agent: 0,
};

fn today() -> i64 {
    day(at(1))
}

/// Details of an agent that rules can match.
fn details_of(agent: &str) -> Details {
    let argv = ["/bin/look", agent].map(str::to_owned).to_vec();
    let path = Some("/srv".to_owned());
    Details { resource: None, host: Some("a.org".to_owned()), path, argv }
}

/// Starts a run of `ada` under a policy with this verdict. Returns the events and the policy request.
fn decide_start(tier: Tier, verdict: Verdict, run: &Run) -> (Vec<EventBody>, Option<Request>) {
    let (bodies, request, _) = decide_under(&Authority::default(), tier, verdict, run);
    (bodies, request)
}

/// Like [`decide_start`], under an authority with a lease; also returns the preview.
fn decide_under(
    authority: &Authority,
    tier: Tier,
    verdict: Verdict,
    run: &Run,
) -> (Vec<EventBody>, Option<Request>, PolicyPreview) {
    let mut world = World::new(every(60), Terms::default());
    world.definition.tier = Some(tier);
    let evaluated_request = RefCell::new(None);
    let ada = "ada".parse().unwrap();
    let used = [(Counter::Runs(today()), 4), (Counter::AgentRuns(ada, today()), 2)];
    let evaluate = |request: &Request| {
        evaluated_request.replace(Some(request.clone()));
        let rules = vec!["test/all".to_owned()];
        PolicyDecision {
            verdict,
            rules,
            posture: Posture::Staging,
            policy: "0123".to_owned(),
            approvers: Approvers::default(),
        }
    };
    let start_context = StartContext {
        authority,
        lease: Lease { ask_after_us: 10, pause_after_us: 20 },
        clock: at(1),
        instance: "here",
        data_directory: None,
        evaluate: &evaluate,
        hash_plan: &hash_plan,
        approval: None,
        is_signed: &|_| false,
        new_approval: &|| ApprovalId::of(1),
        authors: &[],
        limits: &LIMITS,
        tool_call: None,
        counters: &used,
        trust: Posture::StrictProd.trust(),
        agent_details: &|agent| details_of(agent.name.as_str()),
        preflight: Some(&Ok(None)),
        other_approvals: &[],
    };
    let definition = Some(&world.definition);
    let context = RunContext { id: &RunId::of(1), run, definition, progress: None, now: at(1) };
    let agent = world.agent.as_ref();
    let preview_result = preview(&run.schedule, &world.definition, agent, &start_context, at(1));
    let previewed_request = evaluated_request.take();
    let bodies = run::start(context, agent, "me", &start_context, context.now);
    let request = evaluated_request.into_inner();
    assert!(request.is_none() || previewed_request == request, "{previewed_request:?}");
    (bodies, request, preview_result)
}

/// Applies an event to a run.
fn after(run: &Run, body: &EventBody) -> Run {
    let mut tables = Tables::default();
    let row = Row { version: 1, state: Some(State::Run(run.clone())) };
    let key = (Noun::Run, RunId::of(1).to_string());
    tables.rows.insert(key.clone(), row);
    tables.apply(body);
    tables.rows.remove(&key).unwrap().state.and_then(State::into_inner).unwrap()
}

#[test]
fn request_and_facts_are_restored_from_event_and_row() {
    let run = queued("ada");
    for tier in [Tier::ReadOnly, Tier::LocalWrite, Tier::External] {
        for verdict in [Verdict::Allow, Verdict::Ask, Verdict::Deny] {
            let (bodies, request) = decide_start(tier, verdict, &run);
            let [body] = bodies.as_slice() else { panic!("{bodies:?}") };
            assert_eq!(recorded_request(body, &run), request, "{body:?}");
            let request = request.as_ref().unwrap();
            let details = Details { resource: Some("ada".to_owned()), ..details_of("ada") };
            assert_eq!(request.details, details);
            let facts = recorded_facts(body).unwrap();
            assert_eq!((facts.unattended, facts.lease), (false, LeaseState::Full));
            assert_eq!(facts.off, ["local_approvals"]);
            // The token counter was not read, and read-only runs are not counted.
            let runs = (Tier::ReadOnly < tier).then_some(6);
            assert_eq!(facts.left, Remaining { runs, ..Remaining::default() });
            // The row has the same.
            let after = after(&run, body);
            assert_eq!(last_request(&after), Some((request.clone(), facts)));
            assert_eq!(request.tier, tier);
            // An external run needs approval even if the rules allow it.
            let least = if tier == Tier::External { Verdict::Ask } else { Verdict::Allow };
            let (id, ruling) = recorded_decision(body).unwrap();
            assert_eq!((id, ruling.verdict), (&RunId::of(1), verdict.max(least)));
        }
    }
}

#[test]
fn preview_equals_the_later_decision() {
    let run = queued("ada");
    for ago_us in [0, 15, 20] {
        let attribution = |us| {
            Some(Attribution {
                by: "uid:1".into(),
                note: None,
                at: Timestamp::from_micros(us),
                clock: None,
            })
        };
        let authority =
            Authority { renewed: attribution(at(1).as_micros() - ago_us), ..Authority::default() };
        for tier in [Tier::ReadOnly, Tier::LocalWrite, Tier::External] {
            for verdict in [Verdict::Allow, Verdict::Ask, Verdict::Deny] {
                let (bodies, _, preview_result) = decide_under(&authority, tier, verdict, &run);
                let ruling = match &bodies[..] {
                    [EventBody::Run(_, Event::Started(started))] => started.ruling.clone(),
                    [EventBody::Run(_, Event::Ended(ended))] => ended.ruling.clone(),
                    [EventBody::Approval(_, approval::Event::Requested(requested))] => {
                        Some(requested.ruling.clone())
                    }
                    other => panic!("{other:?}"),
                };
                let starts = matches!(bodies[0], EventBody::Run(_, Event::Started(_)));
                assert_eq!(preview_result.starts_without_human(), starts, "{bodies:?}");
                // Evaluated again with the recorded facts, the decision is the same.
                if let Some((_, was)) = recorded_decision(&bodies[0]) {
                    let request = recorded_request(&bodies[0], &run).unwrap();
                    let lease = recorded_facts(&bodies[0]).unwrap().lease;
                    let again = evaluate(&request, lease, |_| PolicyDecision {
                        verdict,
                        rules: vec!["test/all".to_owned()],
                        ..was.clone()
                    });
                    assert_eq!(&again, was);
                }
                assert_eq!(preview_result.ruling.ok(), ruling);
                let frozen = Authority { frozen: attribution(0), ..authority.clone() };
                let (bodies, _, preview_result) = decide_under(&frozen, tier, verdict, &run);
                assert_eq!((bodies, preview_result.ruling.ok()), (Vec::new(), ruling));
                assert!(preview_result.is_frozen);
            }
        }
    }
}

#[test]
fn start_after_approval_records_no_second_decision() {
    let (mut bodies, _) = decide_start(Tier::ReadOnly, Verdict::Allow, &queued("ada"));
    let EventBody::Run(_, Event::Started(started)) = &mut bodies[0] else { panic!("{bodies:?}") };
    started.ruling.as_mut().unwrap().verdict = Verdict::Ask;
    assert_eq!(recorded_decision(&bodies[0]), None);
    let EventBody::Run(_, Event::Started(started)) = &mut bodies[0] else { panic!("{bodies:?}") };
    started.ruling = None;
    assert_eq!(recorded_decision(&bodies[0]), None);
}

#[test]
fn run_starts_only_with_the_agent_it_was_queued_for() {
    let (bodies, request) = decide_start(Tier::ReadOnly, Verdict::Allow, &queued("eve"));
    let EventBody::Run(_, Event::Ended(ended)) = &bodies[0] else { panic!("{bodies:?}") };
    assert_eq!((ended.cause.as_ref().unwrap().code.as_str(), request), ("agent_missing", None));
}
