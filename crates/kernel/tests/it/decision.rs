//! What the log tells of a decision of the standing orders is what they were asked and what they said.

use std::cell::RefCell;

use kernel::approval;
use kernel::authority::{Authority, Lease, Said};
use kernel::backend::Tier;
use kernel::budget::Limits;
use kernel::ruling::{Approvers, Posture, Request, Ruling, Verdict};
use kernel::run::{
    self, Event, Foretold, Ground, Occurrence, Orders, Queued, Run, foretell, requested, ruled,
};
use kernel::schedule::terms::Terms;
use kernel::{ApprovalId, Body, RunId, Timestamp};

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
        judge: &judge,
        hash: &hashes,
        approval: None,
        is_signed: &|_| false,
        new_approval: &|| ApprovalId::of(1),
        authors: &[],
        limits: &Limits::default(),
        called: None,
        looked: Some(&Ok(None)),
        questions: &[],
    };
    let definition = Some(&world.definition);
    let ground = Ground { id: &RunId::of(1), run, definition, progress: None, now: at(1) };
    let agent = world.agent.as_ref();
    let foretold = foretell(&run.schedule, &world.definition, agent, &orders, at(1));
    let foretold_asked = asked.take();
    let bodies = run::start(ground, agent, "me", &orders);
    let asked = asked.into_inner();
    assert!(asked.is_none() || foretold_asked == asked, "{foretold_asked:?}");
    (bodies, asked, foretold)
}

#[test]
fn what_was_asked_can_be_told_from_the_log() {
    let run = queued("ada");
    for tier in [Tier::ReadOnly, Tier::LocalWrite, Tier::External] {
        for verdict in [Verdict::Allow, Verdict::Ask, Verdict::Deny] {
            let (bodies, asked) = decided(tier, verdict, &run);
            let [body] = bodies.as_slice() else { panic!("{bodies:?}") };
            assert_eq!(requested(body, &run), asked, "{body:?}");
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
