//! Which events send a notice, and which settle one: every golden sample is tested, so later event kinds are
//! included.

use std::collections::BTreeMap;

use kernel::event::Label;
use kernel::notice::{notice_for, settled_subject};
use kernel::run::{Cause, Ended, Event as RunEvent, Outcome};
use kernel::{EventBody, RunId, Timestamp};

use crate::golden::samples;

pub(crate) const CANARY: &str = "canary-4f1d0c";
const APPROVAL: &str = "apr_00064b4b6d9a4000000000000000000b";
const DEVICE: &str = "dev_00064b4b6d9a4000000000000000000d";
const RUN: &str = "run_019a86a14c00700080000000000000ab";
const INSTANCE: &str = "0198f0c2-6a1e-7c3a-9d52-0a4b8c1d2e3f";
const SCHEDULE: &str = "sch_0123abcd";

/// All samples, with a canary in every private field.
pub(crate) fn bodies() -> Vec<(String, EventBody)> {
    let mut bodies = Vec::new();
    for (name, sample) in samples() {
        let label = Label { kind: &sample.kind, version: sample.version, noun_id: &sample.noun_id };
        let mut body = EventBody::decode(label, sample.facts.clone()).unwrap();
        let fields = ["prompt", "payload", "note", "message", "output"];
        body.put_private_fields(fields.map(|field| (field.to_owned(), CANARY.to_owned())).into());
        bodies.push((name, body));
    }
    bodies
}

fn notice_fields(body: &EventBody) -> Option<[String; 4]> {
    let notice = notice_for(body)?;
    Some([notice.kind.name().to_owned(), notice.subject, notice.text, notice.command])
}

#[test]
fn only_these_events_send_a_notice() {
    let found: BTreeMap<String, [String; 4]> = bodies()
        .into_iter()
        .filter_map(|(name, body)| Some((name, notice_fields(&body)?)))
        .collect();
    let expected = [
        (
            "approval.asked.1.plain.json",
            "approval_asked",
            APPROVAL,
            "Run run_00064b4b6d9a4000000000000000000a of agent ada waits for approval.".to_owned(),
            format!("midwatch approval show {APPROVAL}"),
        ),
        (
            "approval.asked.1.agent-authors.json",
            "approval_asked",
            APPROVAL,
            "Run run_00064b4b6d9a4000000000000000000a of agent ada waits for approval.".to_owned(),
            format!("midwatch approval show {APPROVAL}"),
        ),
        (
            "approval.asked.1.footing-arguments.json",
            "approval_asked",
            APPROVAL,
            "Run run_00064b4b6d9a4000000000000000000a of agent ada waits for approval.".to_owned(),
            format!("midwatch approval show {APPROVAL}"),
        ),
        (
            "approval.asked.1.facts.json",
            "approval_asked",
            APPROVAL,
            "Run run_00064b4b6d9a4000000000000000000a of agent ada waits for approval.".to_owned(),
            format!("midwatch approval show {APPROVAL}"),
        ),
        (
            "approval.asked.1.footing.json",
            "approval_asked",
            APPROVAL,
            "Run run_00064b4b6d9a4000000000000000000a of agent ada waits for approval.".to_owned(),
            format!("midwatch approval show {APPROVAL}"),
        ),
        (
            "approval.asked.1.place.json",
            "approval_asked",
            APPROVAL,
            "Run run_00064b4b6d9a4000000000000000000a of agent ada waits for approval.".to_owned(),
            format!("midwatch approval show {APPROVAL}"),
        ),
        (
            "approval.asked.1.previous.json",
            "approval_asked",
            APPROVAL,
            "Run run_00064b4b6d9a4000000000000000000a of agent ada waits for approval of another \
             attempt; attempt 1 ran and failed (exit)."
                .to_owned(),
            format!("midwatch approval show {APPROVAL}"),
        ),
        (
            "approval.asked.1.sealed.json",
            "approval_asked",
            APPROVAL,
            "Run run_00064b4b6d9a4000000000000000000a of agent ada waits for approval.".to_owned(),
            format!("midwatch approval show {APPROVAL}"),
        ),
        (
            "approval.asked.1.two-persons.json",
            "approval_asked",
            APPROVAL,
            "Run run_00064b4b6d9a4000000000000000000a of agent ada waits for approval.".to_owned(),
            format!("midwatch approval show {APPROVAL}"),
        ),
        (
            "approval.asked.1.tool.json",
            "approval_asked",
            APPROVAL,
            "Run run_00064b4b6d9a4000000000000000000a of tool schedule_pause waits for approval."
                .to_owned(),
            format!("midwatch approval show {APPROVAL}"),
        ),
        (
            "run.ended.1.failed.json",
            "run_failed",
            RUN,
            format!("Run {RUN} of {SCHEDULE} failed (agent_missing)."),
            format!("midwatch run show {RUN}"),
        ),
        (
            "run.ended.1.unknown.json",
            "run_unknown",
            RUN,
            format!("Run {RUN} of {SCHEDULE} was interrupted; its outcome is unknown."),
            format!("midwatch run show {RUN}"),
        ),
        // Paused by Midwatch; the other sample was paused by a human.
        (
            "schedule.paused.1.note.json",
            "schedule_paused",
            SCHEDULE,
            format!("Schedule {SCHEDULE} was paused because its runs failed."),
            format!("midwatch schedule show {SCHEDULE}"),
        ),
        (
            "tool.alerted.1.plain.json",
            "tool_failing",
            "run_start",
            "15 of 20 calls of run_start failed in this hour.".to_owned(),
            "midwatch status --tools".to_owned(),
        ),
        (
            "budget.used_up.1.plain.json",
            "budget_used_up",
            "runs",
            "The daily budget of runs of all agents together is used up (3 of 3); runs that need it \
             start again at 2026-09-10T00:26:40.000001Z."
                .to_owned(),
            "midwatch status --budgets".to_owned(),
        ),
        (
            "budget.used_up.1.agent.json",
            "budget_used_up",
            "ada/money",
            "The daily budget of money of agent ada is used up (4.80 of 5.00); runs that need it start \
             again at 2026-09-10T00:26:40.000001Z."
                .to_owned(),
            "midwatch status --budgets".to_owned(),
        ),
        (
            "device.added.1.plain.json",
            "device_added",
            DEVICE,
            "uid:1000 signed in as maintainer with Firefox on Linux.".to_owned(),
            format!("midwatch device revoke {DEVICE}"),
        ),
        (
            "device.added.1.key.json",
            "device_added",
            DEVICE,
            "ada signed in as operator with Firefox on Linux.".to_owned(),
            format!("midwatch device revoke {DEVICE}"),
        ),
        (
            "notice.failing.1.plain.json",
            "channel_failing",
            "url",
            "Notices through the channel url are not delivered.".to_owned(),
            "midwatch notice list".to_owned(),
        ),
        (
            "authority.warned.1.plain.json",
            "lease_low",
            INSTANCE,
            "Confirm that you are still there, or from 2026-10-02T00:00:00Z on every run needs approval."
                .to_owned(),
            "midwatch lease renew".to_owned(),
        ),
    ];
    let expected = expected.map(|(name, kind, subject, text, command)| {
        (name.to_owned(), [kind.to_owned(), subject.to_owned(), text, command])
    });
    assert_eq!(found, expected.into());
}

#[test]
fn only_these_events_settle_a_notice() {
    let settling = [
        "approval.decided",
        "approval.consumed",
        "approval.lapsed",
        "run.requeued",
        "run.settled",
        "schedule.resumed",
        "schedule.removed",
        "authority.renewed",
    ];
    for (name, body) in bodies() {
        let Label { kind, noun_id, .. } = body.label();
        let expected = settling.contains(&kind).then_some(noun_id);
        assert_eq!(settled_subject(&body), expected, "{name}");
    }
}

#[test]
fn a_notice_omits_a_code_that_is_not_a_plain_word() {
    let failed = |code: &str| {
        let ended = Ended {
            schedule: SCHEDULE.parse().unwrap(),
            outcome: Outcome::Failed,
            cause: Some(Cause { code: code.to_owned(), message: CANARY.to_owned() }),
            output: None,
            no_room: false,
            ruling: None,
            tier: None,
            decision_context: None,
            refused: false,
            blocked_by: None,
            denied: None,
            refund: None,
            spent: None,
            released: None,
            at: Timestamp::from_micros(7),
        };
        notice_for(&EventBody::Run(RunId::of(7), RunEvent::Ended(ended))).unwrap().text
    };
    let plain = format!("Run {} of {SCHEDULE} failed", RunId::of(7));
    assert_eq!(failed("timeout"), format!("{plain} (timeout)."));
    let at_the_limit = "x".repeat(40);
    assert_eq!(failed(&at_the_limit), format!("{plain} ({at_the_limit})."));
    for code in ["", "a b", "Exit", "curl|sh", "sk-1234", "x\n", &"x".repeat(41)] {
        assert_eq!(failed(code), format!("{plain}."), "{code}");
    }
}
