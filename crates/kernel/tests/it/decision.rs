//! What the log tells of a decision of the standing orders is what they were asked and what they said.

use std::cell::RefCell;

use kernel::approval;
use kernel::authority::{Authority, Lease, Said, Step};
use kernel::backend::Tier;
use kernel::budget::{Left, Limits, day};
use kernel::money::Money;
use kernel::ruling::{Approvers, Details, Posture, Request, Ruling, Verdict};
use kernel::run::{
    self, Event, Foretold, Ground, Occurrence, Orders, Queued, Run, asked_of, facts, foretell,
    judged, requested, ruled,
};
use kernel::schedule::terms::Terms;
use kernel::{ApprovalId, Body, Counter, Noun, Row, RunId, State, Tables, Timestamp};

use crate::support::{World, at, every, hashes};

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
};

fn today() -> i64 {
    day(at(1))
}

/// What the machine tells of an agent.
fn details_of(agent: &str) -> Details {
    let argv = ["/bin/look", agent].map(str::to_owned).to_vec();
    let path = Some("/srv".to_owned());
    Details { resource: None, host: Some("a.org".to_owned()), path, argv }
}

/// What is decided of a run of `ada` when the orders say this of it, and what they were asked.
fn decided(tier: Tier, verdict: Verdict, run: &Run) -> (Vec<Body>, Option<Request>) {
    let (bodies, asked, _) = decided_under(&Authority::default(), tier, verdict, run);
    (bodies, asked)
}

/// The same under an authority with a lease, and what was foretold of it.
fn decided_under(
    authority: &Authority,
    tier: Tier,
    verdict: Verdict,
    run: &Run,
) -> (Vec<Body>, Option<Request>, Foretold) {
    let mut world = World::new(every(60), Terms::default());
    world.definition.tier = Some(tier);
    let asked = RefCell::new(None);
    let ada = "ada".parse().unwrap();
    let used = [(Counter::Runs(today()), 4), (Counter::AgentRuns(ada, today()), 2)];
    let judge = |request: &Request| {
        asked.replace(Some(request.clone()));
        let rules = vec!["test/all".to_owned()];
        Ruling {
            verdict,
            rules,
            posture: Posture::Staging,
            policy: "0123".to_owned(),
            approvers: Approvers::default(),
        }
    };
    let orders = Orders {
        authority,
        lease: Lease { ask_after_us: 10, pause_after_us: 20 },
        clock: at(1),
        instance: "here",
        place: None,
        judge: &judge,
        hash: &hashes,
        approval: None,
        is_signed: &|_| false,
        new_approval: &|| ApprovalId::of(1),
        authors: &[],
        limits: &LIMITS,
        called: None,
        used: &used,
        trust: Posture::StrictProd.trust(),
        details: &|agent| details_of(agent.name.as_str()),
        looked: Some(&Ok(None)),
        questions: &[],
    };
    let definition = Some(&world.definition);
    let ground = Ground { id: &RunId::of(1), run, definition, progress: None, now: at(1) };
    let agent = world.agent.as_ref();
    let foretold = foretell(&run.schedule, &world.definition, agent, &orders, at(1));
    let foretold_asked = asked.take();
    let bodies = run::start(ground, agent, "me", &orders, ground.now);
    let asked = asked.into_inner();
    assert!(asked.is_none() || foretold_asked == asked, "{foretold_asked:?}");
    (bodies, asked, foretold)
}

/// The run after an event about it.
fn after(run: &Run, body: &Body) -> Run {
    let mut tables = Tables::default();
    let row = Row { version: 1, state: Some(State::Run(run.clone())) };
    let key = (Noun::Run, RunId::of(1).to_string());
    tables.rows.insert(key.clone(), row);
    tables.apply(body);
    tables.rows.remove(&key).unwrap().state.and_then(State::run).unwrap()
}

#[test]
fn what_was_asked_can_be_told_from_the_log() {
    let run = queued("ada");
    for tier in [Tier::ReadOnly, Tier::LocalWrite, Tier::External] {
        for verdict in [Verdict::Allow, Verdict::Ask, Verdict::Deny] {
            let (bodies, asked) = decided(tier, verdict, &run);
            let [body] = bodies.as_slice() else { panic!("{bodies:?}") };
            assert_eq!(requested(body, &run), asked, "{body:?}");
            let told = asked.as_ref().unwrap();
            let details = Details { resource: Some("ada".to_owned()), ..details_of("ada") };
            assert_eq!(told.details, details);
            let facts = facts(body).unwrap();
            assert_eq!((facts.unattended, facts.lease), (false, Step::Full));
            assert_eq!(facts.off, ["local_approvals", "token_files"]);
            // Of tokens nobody has looked how many are used, and what only reads is not counted.
            let runs = (Tier::ReadOnly < tier).then_some(6);
            assert_eq!(facts.left, Left { runs, ..Left::default() });
            // The row tells the same.
            let after = after(&run, body);
            assert_eq!(asked_of(&after), Some((told.clone(), facts)));
            assert!(asked.is_some_and(|asked| asked.tier == tier));
            // Nothing reaches outside because rules let it.
            let least = if tier == Tier::External { Verdict::Ask } else { Verdict::Allow };
            let (id, ruling) = ruled(body).unwrap();
            assert_eq!((id, ruling.verdict), (&RunId::of(1), verdict.max(least)));
        }
    }
}

/// Whatever holds, and however far it reaches: the run is told what was foretold.
#[test]
fn what_was_foretold_is_what_is_decided() {
    let run = queued("ada");
    for ago_us in [0, 15, 20] {
        let said = |us| {
            Some(Said {
                by: "uid:1".into(),
                note: None,
                at: Timestamp::from_micros(us),
                clock: None,
            })
        };
        let authority =
            Authority { renewed: said(at(1).as_micros() - ago_us), ..Authority::default() };
        for tier in [Tier::ReadOnly, Tier::LocalWrite, Tier::External] {
            for verdict in [Verdict::Allow, Verdict::Ask, Verdict::Deny] {
                let (bodies, _, foretold) = decided_under(&authority, tier, verdict, &run);
                let ruling = match &bodies[..] {
                    [Body::Run(_, Event::Started(started))] => started.ruling.clone(),
                    [Body::Run(_, Event::Ended(ended))] => ended.ruling.clone(),
                    [Body::Approval(_, approval::Event::Asked(asked))] => {
                        Some(asked.ruling.clone())
                    }
                    other => panic!("{other:?}"),
                };
                let begins = matches!(bodies[0], Body::Run(_, Event::Started(_)));
                assert_eq!(foretold.is_by_itself(), begins, "{bodies:?}");
                // Made again with what was so then, it is the same decision.
                if let Some((_, was)) = ruled(&bodies[0]) {
                    let asked = requested(&bodies[0], &run).unwrap();
                    let lease = facts(&bodies[0]).unwrap().lease;
                    let again = judged(&asked, lease, |_| Ruling {
                        verdict,
                        rules: vec!["test/all".to_owned()],
                        ..was.clone()
                    });
                    assert_eq!(&again, was);
                }
                assert_eq!(foretold.ruling.ok(), ruling);
                let frozen = Authority { frozen: said(0), ..authority.clone() };
                let (bodies, _, foretold) = decided_under(&frozen, tier, verdict, &run);
                assert_eq!((bodies, foretold.ruling.ok()), (Vec::new(), ruling));
                assert!(foretold.is_frozen);
            }
        }
    }
}

#[test]
fn a_run_that_begins_with_an_answer_is_no_second_decision() {
    let (mut bodies, _) = decided(Tier::ReadOnly, Verdict::Allow, &queued("ada"));
    let Body::Run(_, Event::Started(started)) = &mut bodies[0] else { panic!("{bodies:?}") };
    started.ruling.as_mut().unwrap().verdict = Verdict::Ask;
    assert_eq!(ruled(&bodies[0]), None);
    let Body::Run(_, Event::Started(started)) = &mut bodies[0] else { panic!("{bodies:?}") };
    started.ruling = None;
    assert_eq!(ruled(&bodies[0]), None);
}

#[test]
fn a_run_is_begun_with_the_agent_that_it_was_queued_for() {
    let (bodies, asked) = decided(Tier::ReadOnly, Verdict::Allow, &queued("eve"));
    let Body::Run(_, Event::Ended(ended)) = &bodies[0] else { panic!("{bodies:?}") };
    assert_eq!((ended.cause.as_ref().unwrap().code.as_str(), asked), ("agent_missing", None));
}
