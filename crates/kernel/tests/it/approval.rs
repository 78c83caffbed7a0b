//! An approval is requested once, decided once, and allows one start of one plan.

use std::collections::BTreeMap;

use kernel::agent::DENIALS_MAX;
use kernel::approval::{
    APPROVE_WITHIN_US, Command, Directory, EXECUTE_WITHIN_US, Executable, ExecutionFingerprint,
    Signature, Signed,
};
use kernel::backend::Tier;
use kernel::policy_decision::{Approvers, Verdict};
use kernel::posture::Posture;
use kernel::run::{Cause, Command as RunCommand};
use kernel::schedule::Action;
use kernel::schedule::terms::{Overlap, Terms};
use kernel::slot::Disposition;
use kernel::{Actor, Counter, Principal, Role, RunId, TokenId};

use crate::support::{DENIED_FOR_US, Op, PolicySetup, World, at, every, failed_attempt};
use Op::{Add, ApprovalCommand, Expire, Fire, OnRun, Recover, StartUnder, Tick};
use Verdict::{Allow, Ask as Asks, Deny};

const REQUESTED: &str = "asked, until 86461";
const APPROVED: &str = "approved, until 970";
const STARTED: &str = "consumed by 1, started 1 1 tier 0 repeatable";
const DAY_S: i64 = APPROVE_WITHIN_US / 1_000_000;
const SOON_S: i64 = EXECUTE_WITHIN_US / 1_000_000;

/// A run that is parked since second 61.
fn parked() -> World {
    let mut world = World::new(every(60), Terms::default());
    world.perform(0, &Add);
    assert_eq!(world.perform(60, &Tick), "slot fires 60");
    assert_eq!(world.perform(61, &StartUnder(1, Asks)), REQUESTED);
    world
}

fn shown(world: &World) -> String {
    world.approval(1).unwrap().1.plan_hash
}

fn approve(world: &World) -> Op {
    ApprovalCommand(1, Command::Approve { shown: shown(world), note: None, signed: None })
}

fn deny(world: &World) -> Op {
    ApprovalCommand(1, Command::Deny { shown: shown(world), note: Some("no".into()) })
}

fn revoke() -> Op {
    ApprovalCommand(1, Command::Revoke { note: None })
}

fn disposition(world: &World) -> Disposition {
    world.slot(60).unwrap().disposition(world.run(1).as_ref())
}

fn check(world: &mut World, story: &[(i64, Op, &str)]) {
    for (second, op, expected) in story {
        assert_eq!(&world.perform(*second, op), expected, "at {second}: {op:?}");
    }
}

#[test]
fn a_parked_run_starts_once_after_approval() {
    let mut world = parked();
    assert_eq!(world.run(1).unwrap().state.name(), "waiting_permission");
    assert_eq!(disposition(&world), Disposition::Parked);
    let approval = approve(&world);
    check(
        &mut world,
        &[
            (62, StartUnder(1, Asks), ""),
            (63, StartUnder(1, Allow), ""),
            (64, Recover(1), ""),
            (70, approval.clone(), APPROVED),
            (71, approval.clone(), ""),
            (72, StartUnder(1, Asks), STARTED),
            (73, StartUnder(1, Asks), ""),
            (74, approval, ""),
            (
                75,
                revoke(),
                "no: approval `A` was approved by uid:7 and its run has started, so it cannot be revoked",
            ),
        ],
    );
    assert_eq!(world.run(1).unwrap().approval, None);
}

#[test]
fn a_denied_run_is_cancelled_and_its_slot_is_skipped_by_policy() {
    let mut world = parked();
    let (approval, denial) = (approve(&world), deny(&world));
    let denied = "denied, cancelled (uid:7 denied it: no)";
    check(
        &mut world,
        &[
            (70, denial.clone(), denied),
            (71, denial, ""),
            (72, approval, "no: approval `A` was denied by uid:7, so it cannot be approved"),
            (73, StartUnder(1, Allow), ""),
        ],
    );
    assert_eq!(disposition(&world), Disposition::SkippedPolicy);
}

#[test]
fn a_run_denied_by_policy_never_starts() {
    let mut world = World::new(every(60), Terms::default());
    world.perform(0, &Add);
    world.perform(60, &Tick);
    let refused = "cancelled (denied by policy: `test/all`)";
    check(&mut world, &[(61, StartUnder(1, Deny), refused), (62, StartUnder(1, Allow), "")]);
    assert_eq!(disposition(&world), Disposition::SkippedPolicy);
    assert_eq!(world.run(1).unwrap().ruling.unwrap().verdict, Verdict::Deny);
}

#[test]
fn a_pending_approval_expires_exactly_at_its_deadline() {
    let expired = "lapsed expired, cancelled (the approval was not decided in time)";
    for (second, expected) in [
        (61 + DAY_S - 1, "approved, until 87360"),
        (61 + DAY_S, expired),
        (61 + DAY_S + 9, expired),
    ] {
        let mut world = parked();
        let approval = approve(&world);
        assert_eq!(world.perform(second, &approval), expected);
    }
    let mut world = parked();
    assert_eq!(world.perform(61 + DAY_S - 1, &Expire(1)), "");
    assert_eq!(world.perform(61 + DAY_S, &Expire(1)), expired);
    // Setting the clock back does not revive it.
    let approval = approve(&world);
    assert_eq!(
        world.perform(62, &approval),
        "no: approval `A` has expired, so it cannot be approved"
    );
    assert_eq!(disposition(&world), Disposition::SkippedPolicy);
}

#[test]
fn an_approved_run_must_start_before_its_deadline() {
    let late = "lapsed expired, cancelled (it was approved but did not start in time)";
    for (second, expected) in [(70 + SOON_S - 1, STARTED), (70 + SOON_S, late)] {
        let mut world = parked();
        let approval = approve(&world);
        world.perform(70, &approval);
        assert_eq!(world.perform(second, &StartUnder(1, Asks)), expected);
    }
}

#[test]
fn approving_another_plan_hash_is_refused() {
    let mut world = parked();
    let other =
        ApprovalCommand(1, Command::Approve { shown: "another".into(), note: None, signed: None });
    let refused = "no: approval `A` is for another plan than the one that was shown";
    check(&mut world, &[(70, other, refused)]);
    assert_eq!(world.approval(1).unwrap().1.state.name(), "pending");
}

#[test]
fn a_plan_that_changed_after_approval_does_not_start() {
    let mut world = parked();
    let approval = approve(&world);
    world.perform(70, &approval);
    world.agent.as_mut().unwrap().credential = "env:OTHER".parse().ok();
    let changed = "lapsed changed, cancelled (the plan is not the approved one)";
    check(&mut world, &[(71, StartUnder(1, Asks), changed)]);
    assert_eq!(disposition(&world), Disposition::SkippedPolicy);
}

fn fingerprint(program: &str, inode: &str, variables: &[(&str, &str)]) -> ExecutionFingerprint {
    ExecutionFingerprint {
        program: Executable { path: "/bin/tool".to_owned(), sha256: program.to_owned() },
        arguments: BTreeMap::new(),
        directory: Some(Directory { device: "1".to_owned(), inode: inode.to_owned() }),
        variables: variables
            .iter()
            .map(|(name, hash)| (name.to_string(), hash.to_string()))
            .collect(),
    }
}

#[test]
fn a_changed_execution_fingerprint_voids_the_approval() {
    const PATH: (&str, &str) = ("PATH", "p");
    const TZ: (&str, &str) = ("TZ", "t");
    let before = || fingerprint("aa", "7", &[PATH, TZ]);
    let with_script = |hash: &str| ExecutionFingerprint {
        arguments: BTreeMap::from([("job.sh".to_owned(), hash.to_owned())]),
        ..before()
    };
    let not = "lapsed changed, cancelled (the plan is not the approved one";
    let changed = |parts: &str| format!("{not}: changed since the request: {parts})");
    let missing = || Err(Cause::new("not_started", "there is no program"));
    let gone = "lapsed changed, cancelled (the approved plan cannot be executed any more: there is no program)";
    let table = [
        (Ok(Some(before())), Ok(Some(before())), STARTED.to_owned()),
        (Ok(Some(before())), Ok(Some(fingerprint("bb", "7", &[PATH, TZ]))), changed("program")),
        (Ok(Some(before())), Ok(Some(fingerprint("aa", "8", &[PATH, TZ]))), changed("directory")),
        (
            Ok(Some(before())),
            Ok(Some(fingerprint("aa", "7", &[("PATH", "q"), TZ]))),
            changed("PATH"),
        ),
        (Ok(Some(before())), Ok(Some(fingerprint("aa", "7", &[PATH]))), changed("TZ")),
        (
            Ok(Some(before())),
            Ok(Some(fingerprint("bb", "7", &[PATH, TZ, ("X", "x")]))),
            changed("program, X"),
        ),
        (Ok(Some(with_script("ss"))), Ok(Some(with_script("ss"))), STARTED.to_owned()),
        (Ok(Some(with_script("ss"))), Ok(Some(with_script("tt"))), changed("job.sh")),
        (Ok(Some(with_script("ss"))), Ok(Some(before())), changed("job.sh")),
        (Ok(Some(before())), Ok(Some(with_script("ss"))), changed("job.sh")),
        (Ok(Some(before())), Ok(None), format!("{not})")),
        (Ok(Some(before())), missing(), gone.to_owned()),
        // Requested by a version without fingerprints.
        (Ok(None), Ok(Some(before())), changed("program, directory, PATH, TZ")),
    ];
    for (at_request, at_start, expected) in table {
        let mut world = World::new(every(60), Terms::default());
        world.policy.looked = at_request;
        world.perform(0, &Add);
        world.perform(60, &Tick);
        assert_eq!(world.perform(61, &StartUnder(1, Asks)), REQUESTED);
        let approval = approve(&world);
        assert_eq!(world.perform(70, &approval), APPROVED);
        world.policy.looked = at_start;
        assert_eq!(world.perform(71, &StartUnder(1, Asks)), expected);
        let changed = world.approval(1).unwrap().1.changed.join(", ");
        assert!(expected.contains(&changed), "{changed}");
    }
}

#[test]
fn no_approval_is_requested_for_a_plan_that_cannot_be_executed() {
    let mut world = World::new(every(60), Terms::default());
    world.perform(0, &Add);
    world.perform(60, &Tick);
    world.policy.looked = Err(Cause::new("not_started", "there is no program"));
    assert_eq!(world.perform(61, &StartUnder(1, Asks)), "failed (there is no program)");
}

#[test]
fn a_revoked_approval_starts_nothing() {
    let mut world = parked();
    let approval = approve(&world);
    let revoked = "lapsed revoked, cancelled (uid:7 revoked the approval)";
    check(
        &mut world,
        &[
            (70, approval.clone(), APPROVED),
            (71, revoke(), revoked),
            (72, revoke(), ""),
            (73, StartUnder(1, Asks), ""),
            (74, approval, "no: approval `A` was revoked, so it cannot be approved"),
        ],
    );
}

#[test]
fn denying_an_approved_run_before_its_start_cancels_it() {
    let mut world = parked();
    let (approval, denial) = (approve(&world), deny(&world));
    check(
        &mut world,
        &[(70, approval, APPROVED), (71, denial, "denied, cancelled (uid:7 denied it: no)")],
    );
}

#[test]
fn deciding_requires_operator() {
    let actors = [
        ("observer", Role::Observer, false),
        ("run:unknown", Role::Runner, false),
        ("ada", Role::Operator, true),
        ("ada", Role::Maintainer, true),
    ];
    for (name, role, may) in actors {
        let mut world = parked();
        world.actor = Actor::new(Principal::parse(name), role);
        for op in [approve(&world), deny(&world), revoke()] {
            let mut world = parked();
            world.actor = Actor::new(Principal::parse(name), role);
            let op = match op {
                ApprovalCommand(_, Command::Approve { .. }) => approve(&world),
                ApprovalCommand(_, Command::Deny { .. }) => deny(&world),
                other => other,
            };
            let result = world.perform(70, &op);
            assert_eq!(!result.starts_with("no: this needs a human"), may, "{name}: {result}");
            assert_eq!(world.approval(1).unwrap().1.state.name() == "pending", !may);
        }
    }
}

#[test]
fn another_attempt_needs_another_approval() {
    let mut world = parked();
    let approval = approve(&world);
    world.perform(70, &approval);
    assert_eq!(world.perform(71, &StartUnder(1, Asks)), STARTED);
    let failed = Op::Finish(1, 1, failed_attempt(true));
    assert!(world.perform(72, &failed).starts_with("failed"));
    world.perform(73, &OnRun(1, RunCommand::Retry));
    assert!(world.perform(74, &StartUnder(1, Asks)).starts_with("asked"));
}

/// A run whose first attempt was approved and failed, and which waits for approval of another one since
/// second 76.
fn parked_again() -> World {
    let mut world = parked();
    let approval = approve(&world);
    world.perform(70, &approval);
    assert_eq!(world.perform(71, &StartUnder(1, Asks)), STARTED);
    let failed = Op::Finish(1, 1, failed_attempt(false));
    assert_eq!(world.perform(72, &failed), "retried from 75 (it broke)");
    assert!(world.perform(76, &StartUnder(1, Asks)).starts_with("asked"));
    world
}

#[test]
fn the_request_for_another_attempt_says_what_ran_before() {
    let mut world = parked_again();
    let [first, second] = [parked(), parked_again()].map(|world| world.approval(1).unwrap().1);
    assert_eq!(first.plan.previous, None);
    let previous = second.plan.previous.as_ref().unwrap();
    assert_eq!(previous.describe(), "attempt 1 ran and failed: it broke");
    assert_eq!(first.action_hash, second.action_hash, "it is the same action");
    let approval = approve(&world);
    assert!(world.perform(80, &approval).starts_with("approved"));
    let started = "consumed by 2, started 2 2 tier 0 repeatable";
    assert_eq!(world.perform(81, &StartUnder(1, Asks)), started);
}

/// However another attempt is refused, the run ends as its last attempt did, with the output of that.
#[test]
fn a_run_that_had_run_ends_failed_if_another_attempt_is_refused() {
    let denied = "denied, failed (it broke; no other attempt: uid:7 denied it: no)";
    let expired = "lapsed expired, failed (it broke; no other attempt: the approval was not \
                   decided in time)";
    let revoked = "lapsed revoked, failed (it broke; no other attempt: uid:7 revoked the approval)";
    let table = [
        (80, deny as fn(&World) -> Op, denied),
        (76 + DAY_S, |_| Expire(1), expired),
        (80, |_| revoke(), revoked),
    ];
    for (second, op, expected) in table {
        let mut world = parked_again();
        let op = op(&world);
        let output = world.run(1).unwrap().output;
        assert!(output.is_some());
        assert_eq!(world.perform(second, &op), expected);
        let run = world.run(1).unwrap();
        assert_eq!((run.state.name(), run.cause.unwrap().code.as_str()), ("failed", "oops"));
        assert_eq!(run.output, output);
        assert_eq!(disposition(&world), Disposition::Failed);
    }
}

/// The daemon gave the second attempt back before it did anything; the first still ran.
#[test]
fn an_attempt_that_did_nothing_does_not_hide_an_earlier_one() {
    let mut world = parked_again();
    let approval = approve(&world);
    world.perform(80, &approval);
    world.perform(81, &StartUnder(1, Asks));
    assert!(world.perform(82, &Op::Requeue(1)).starts_with("retried"));
    assert!(world.perform(83, &StartUnder(1, Asks)).starts_with("asked"));
    let third = world.approval(1).unwrap().1;
    let previous = third.plan.previous.as_ref().unwrap();
    assert_eq!(previous.describe(), "attempt 1 ran and failed: it broke");
}

#[test]
fn cancelling_a_run_closes_its_approval() {
    let cancel = OnRun(1, RunCommand::Cancel { note: None });
    let cancelled = "lapsed runended, cancelled (uid:7 cancelled it)";
    let mut world = parked();
    check(&mut world, &[(70, cancel.clone(), cancelled), (71, Expire(1), "")]);
    assert_eq!(disposition(&world), Disposition::Cancelled);
    let mut world = parked();
    let approval = approve(&world);
    check(&mut world, &[(70, approval, APPROVED), (71, cancel, cancelled)]);
}

#[test]
fn a_parked_run_counts_for_overlap() {
    let mut world = parked();
    assert_eq!(world.perform(120, &Tick), "skipped_overlap 120");
    assert!(world.perform(121, &Fire("k")).starts_with("no:"));
    let mut world =
        World::new(every(60), Terms { overlap: Overlap::CancelOther, ..Terms::default() });
    world.perform(0, &Add);
    world.perform(60, &Tick);
    world.perform(61, &StartUnder(1, Asks));
    let decided = world.perform(120, &Tick);
    assert!(decided.contains("lapsed runended, cancelled"), "{decided}");
}

#[test]
fn an_approval_lapses_when_the_policy_no_longer_requires_it() {
    let mut world = parked();
    let approval = approve(&world);
    world.perform(70, &approval);
    let started = "lapsed notneeded, started 1 1 tier 0 repeatable";
    assert_eq!(world.perform(71, &StartUnder(1, Allow)), started);
    assert_eq!(world.run(1).unwrap().approval, None);
    assert_eq!(world.approval(1).unwrap().1.plan.run, RunId::of(1));
}

#[test]
fn tier_2_needs_approval_even_if_the_policy_allows_it() {
    let mut world = World::new(every(60), Terms::default());
    world.agent.as_mut().unwrap().tier = Tier::External;
    world.perform(0, &Add);
    world.perform(60, &Tick);
    assert_eq!(world.perform(61, &StartUnder(1, Allow)), REQUESTED);
    assert_eq!(world.approval(1).unwrap().1.plan.tier, Tier::External);
}

#[test]
fn editing_the_schedule_voids_the_approval() {
    let mut world = parked();
    let approval = approve(&world);
    world.perform(70, &approval);
    world.definition.terms.priority = 9;
    assert!(world.perform(71, &Op::Edit).starts_with("changed"));
    assert!(world.perform(72, &StartUnder(1, Asks)).starts_with("lapsed changed"));
}

/// An approval by this person, submitted by themselves, or signed and submitted by the local user.
fn approval_by(world: &mut World, name: &str, role: Role, is_signed: bool) -> Op {
    let by = Actor::new(Principal::parse(name), role);
    let signed = is_signed.then(|| Signed {
        by: by.clone(),
        signature: Signature {
            token: TokenId::of(1),
            text: "mws_00".to_owned(),
            expires_at: at(61 + DAY_S),
        },
    });
    world.actor = if is_signed { Actor::local_user(7) } else { by };
    ApprovalCommand(1, Command::Approve { shown: shown(world), note: None, signed })
}

/// A run parked under this posture and these approvers, of a schedule that `authors` wrote.
fn parked_by(authors: &[&str], posture: Posture, approvers: Approvers) -> World {
    parked_with_agent_of(vec![Principal::parse("tom")], authors, posture, approvers)
}

/// The same, where these principals registered and changed the agent.
fn parked_with_agent_of(
    agent_authors: Vec<Principal>,
    authors: &[&str],
    posture: Posture,
    approvers: Approvers,
) -> World {
    let mut world = World::new(every(60), Terms::default());
    world.agent.as_mut().unwrap().changed_by = agent_authors;
    world.policy =
        PolicySetup { posture, approvers, signatures_hold: true, ..PolicySetup::default() };
    let (first, later) = authors.split_first().unwrap();
    world.actor = Actor::new(Principal::parse(first), Role::Maintainer);
    world.perform(0, &Add);
    for (edit, author) in later.iter().enumerate() {
        world.actor = Actor::new(Principal::parse(author), Role::Maintainer);
        world.definition.name = format!("edit {edit}");
        world.perform(0, &Op::Edit);
    }
    assert!(world.perform(60, &Tick).contains("fires 60"));
    assert_eq!(world.perform(61, &StartUnder(1, Asks)), REQUESTED);
    world
}

#[test]
fn two_approvers_must_be_different_people() {
    let two = Approvers { persons: 2, role: Role::Operator };
    let mut world = parked_by(&["eve"], Posture::Staging, two);
    let story = [
        (70, "ada", "assented by ada"),
        (71, "ada", ""),
        (72, "bob", "approved, until 972"),
        (73, "bob", ""),
        (74, "cyd", ""),
    ];
    for (second, name, expected) in story {
        let approval = approval_by(&mut world, name, Role::Operator, false);
        assert_eq!(world.perform(second, &approval), expected, "{name} at {second}");
        let state = world.run(1).unwrap().state.name();
        assert_eq!(state, if second < 72 { "waiting_permission" } else { "queued" });
    }
    assert_eq!(world.perform(75, &StartUnder(1, Asks)), STARTED);
    let state = world.approval(1).unwrap().1.describe_state();
    assert_eq!(state, "was approved by ada and bob and its run has started");

    let mut world = parked_by(&["eve"], Posture::Staging, two);
    let approval = approval_by(&mut world, "ada", Role::Operator, false);
    world.perform(70, &approval);
    let denial = deny(&world);
    assert!(world.perform(71, &denial).starts_with("denied, cancelled"), "one denial is enough");
}

#[test]
fn authors_cannot_approve_where_personal_tokens_are_needed() {
    let two = Approvers { persons: 2, role: Role::Operator };
    let one = Approvers::default();
    // Authors, posture, required approvers, whether signed, and the results for the author, a local user and
    // another person.
    let author = "no: `eve` wrote the schedule, but approval `A` needs another person";
    let not_personal = "no: approval `A` needs a person with a personal token";
    let unsigned = "no: approval `A` needs a signature made with the approver's own key";
    type Case<'a> = (&'a [&'a str], Posture, Approvers, bool, [&'a str; 3]);
    let table: [Case<'_>; 9] = [
        (&["eve"], Posture::Staging, one, false, [APPROVED, APPROVED, APPROVED]),
        (&["eve"], Posture::Staging, two, false, [author, not_personal, "assented by ada"]),
        (&["bob", "eve"], Posture::Staging, two, false, [author, not_personal, "assented by ada"]),
        (&["eve"], Posture::StrictProd, one, false, [unsigned, unsigned, unsigned]),
        (&["eve"], Posture::StrictProd, one, true, [author, not_personal, APPROVED]),
        // An assistant acts for its person.
        (&["mcp:eve"], Posture::StrictProd, one, true, [author, not_personal, APPROVED]),
        // An agent cannot approve with a person's token of the same name.
        (&["agent:eve"], Posture::Staging, one, false, [author, APPROVED, APPROVED]),
        (&["agent:eve"], Posture::StrictProd, one, true, [author, not_personal, "assented by ada"]),
        // The unknown author could be ada.
        (
            &["uid:7"],
            Posture::StrictProd,
            one,
            true,
            ["assented by eve", not_personal, "assented by ada"],
        ),
    ];
    for (authors, posture, approvers, is_signed, expected) in table {
        for (name, expected) in ["eve", "uid:9", "ada"].into_iter().zip(expected) {
            let mut world = parked_by(authors, posture, approvers);
            let approval = approval_by(&mut world, name, Role::Operator, is_signed);
            assert_eq!(world.perform(70, &approval), expected, "{authors:?} {posture} {name}");
        }
    }
}

/// As an author of the schedule is: `ada` wrote it here, and `eve` or another registered or changed the agent.
#[test]
fn authors_of_the_agent_cannot_approve_where_personal_tokens_are_needed() {
    let two = Approvers { persons: 2, role: Role::Operator };
    let one = Approvers::default();
    let author = "no: `eve` registered or changed the agent, but approval `A` needs another person";
    // Authors of the agent, posture, required approvers, whether signed, and the results for eve and bob.
    type Case<'a> = (&'a [&'a str], Posture, Approvers, bool, [&'a str; 2]);
    let table: [Case<'_>; 8] = [
        (&["eve"], Posture::Staging, one, false, [APPROVED, APPROVED]),
        (&["eve"], Posture::Staging, two, false, [author, "assented by bob"]),
        (&["tom", "eve"], Posture::Staging, two, false, [author, "assented by bob"]),
        (&["eve"], Posture::StrictProd, one, true, [author, APPROVED]),
        (&["tom"], Posture::StrictProd, one, true, [APPROVED, APPROVED]),
        (&["mcp:eve", "tom"], Posture::StrictProd, one, true, [author, APPROVED]),
        // The unknown author could be any of them; an agent of an older version has no known author.
        (&["uid:7"], Posture::StrictProd, one, true, ["assented by eve", "assented by bob"]),
        (&[], Posture::StrictProd, one, true, ["assented by eve", "assented by bob"]),
    ];
    for (agent_authors, posture, approvers, is_signed, expected) in table {
        for (name, expected) in ["eve", "bob"].into_iter().zip(expected) {
            let changed_by = agent_authors.iter().map(|it| Principal::parse(it)).collect();
            let mut world = parked_with_agent_of(changed_by, &["ada"], posture, approvers);
            let approval = approval_by(&mut world, name, Role::Operator, is_signed);
            let done = world.perform(70, &approval);
            assert_eq!(done, expected, "{agent_authors:?} {posture} {name}");
        }
    }
}

/// However many authors follow. Only the list of runs is shortened, and runs cannot approve.
#[test]
fn no_person_who_changed_a_schedule_is_forgotten() {
    let two = Approvers { persons: 2, role: Role::Operator };
    let others: Vec<String> = (0..40).map(|it| format!("person-{it}")).collect();
    let runs: Vec<String> = (0..40).map(|it| format!("run:{}", RunId::of(it))).collect();
    for later in [others, runs] {
        let all: Vec<&str> =
            ["bob", "eve"].into_iter().chain(later.iter().map(String::as_str)).collect();
        for early in ["bob", "eve"] {
            let mut world = parked_by(&all, Posture::Staging, two);
            let authors = world.approval(1).unwrap().1.authors;
            assert!(authors.len() <= all.len() && 32 < authors.len(), "{authors:?}");
            let approval = approval_by(&mut world, early, Role::Operator, false);
            let refused =
                format!("no: `{early}` wrote the schedule, but approval `A` needs another person");
            assert_eq!(world.perform(70, &approval), refused);
        }
    }
    let many: Vec<String> = (0..90).map(|it| format!("run:{}", RunId::of(it))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let authors = parked_by(&many, Posture::Staging, two).approval(1).unwrap().1.authors;
    assert_eq!(authors.len(), 33, "the number of runs among the authors is limited");
}

#[test]
fn a_rule_can_require_a_maintainer() {
    let maintainer = Approvers { persons: 1, role: Role::Maintainer };
    let mut world = parked_by(&["eve"], Posture::Staging, maintainer);
    let approval = approval_by(&mut world, "ada", Role::Operator, false);
    assert!(
        world
            .perform(70, &approval)
            .starts_with("no: this needs a human with the role `maintainer`")
    );
    let approval = approval_by(&mut world, "ada", Role::Maintainer, false);
    assert_eq!(world.perform(70, &approval), APPROVED);
}

#[test]
fn a_copy_of_the_data_directory_cannot_use_the_approval() {
    let mut world = parked();
    let approval = approve(&world);
    assert_eq!(world.perform(70, &approval), APPROVED);
    world.policy.place = Some("7/8");
    let elsewhere = world.perform(71, &StartUnder(1, Asks));
    assert!(elsewhere.starts_with("lapsed changed, cancelled"), "{elsewhere}");
    assert!(elsewhere.contains("changed since the request: data directory"), "{elsewhere}");
}

#[test]
fn an_approval_requested_under_other_rules_can_only_be_denied() {
    let mut world = parked();
    world.active_rules = Some("4567".to_owned());
    let (approval, denial) = (approve(&world), deny(&world));
    let refused = "no: approval `A` was requested under other rules than the active ones, so approving it \
                   would start nothing";
    assert_eq!(world.perform(70, &approval), refused);
    assert!(world.perform(71, &denial).starts_with("denied, cancelled"));
    // With the original rules it can be approved.
    let mut world = parked();
    let approval = approve(&world);
    assert_eq!(world.perform(70, &approval), APPROVED);
}

#[test]
fn signatures_must_still_be_valid_at_the_start() {
    for (holds, expected) in [
        (true, STARTED),
        (false, "lapsed unsigned, cancelled (a signature of its approval is no longer valid)"),
    ] {
        let mut world = parked_by(&["eve"], Posture::StrictProd, Approvers::default());
        let approval = approval_by(&mut world, "ada", Role::Operator, true);
        assert_eq!(world.perform(70, &approval), APPROVED);
        world.policy.signatures_hold = holds;
        assert_eq!(world.perform(71, &StartUnder(1, Asks)), expected);
    }
}

#[test]
fn a_denied_action_is_not_requested_again_for_a_while() {
    let mut world = parked();
    let denial = deny(&world);
    world.perform(70, &denial);
    assert_eq!(world.perform(120, &Tick), "slot fires 120");
    let suppressed = "cancelled (a human denied the same action before)";
    assert_eq!(world.perform(121, &StartUnder(2, Asks)), suppressed);
    // A manual start shows that a human is present.
    world.perform(122, &Fire("now"));
    assert!(world.perform(123, &StartUnder(3, Asks)).starts_with("asked"));
    world.perform(124, &OnRun(3, RunCommand::Cancel { note: None }));
    // Another prompt is another action.
    world.definition.action =
        Action::Prompt { agent: "ada".parse().unwrap(), prompt: "else".into() };
    world.perform(130, &Op::Edit);
    assert!(world.perform(180, &Tick).starts_with("slot fires 180"));
    assert!(world.perform(181, &StartUnder(4, Asks)).starts_with("asked"));
}

#[test]
fn a_denied_action_is_requested_again_later() {
    let mut world = parked();
    let denial = deny(&world);
    world.perform(70, &denial);
    let until = 70 + DENIED_FOR_US / 1_000_000;
    assert!(world.perform(until - 10, &Tick).contains("fires"));
    assert!(world.perform(until - 1, &StartUnder(2, Asks)).starts_with("cancelled"));
    assert!(world.perform(until + 50, &Tick).contains("fires"));
    assert!(world.perform(until + 51, &StartUnder(3, Asks)).starts_with("asked"));
}

/// Two runs: the first is parked, the second would request approval next.
fn two_runs() -> World {
    let mut world = World::new(every(60), Terms { overlap: Overlap::Allow(3), ..Terms::default() });
    world.perform(0, &Add);
    world.perform(60, &Tick);
    assert_eq!(world.perform(61, &StartUnder(1, Asks)), REQUESTED);
    assert_eq!(world.perform(120, &Tick), "slot fires 120");
    world
}

#[test]
fn one_action_has_at_most_one_pending_approval() {
    let already = |world: &World| {
        let id = world.approval(1).unwrap().0;
        format!("cancelled (approval `{id}` for the same action is still pending)")
    };
    let mut world = two_runs();
    assert_eq!(world.perform(121, &StartUnder(2, Asks)), already(&world));
    assert_eq!(world.counter(&Counter::PendingApprovals("ada".parse().unwrap())), 1);
    // Not for a manual start either, and one approval starts one run.
    world.perform(122, &Fire("now"));
    assert_eq!(world.perform(123, &StartUnder(3, Asks)), already(&world));
    let approval = approve(&world);
    assert_eq!(world.perform(130, &approval), "approved, until 1030");
    let started = [1, 2, 3].map(|run| world.perform(131, &StartUnder(run, Asks)));
    assert_eq!(started, [STARTED, "", ""]);
}

#[test]
fn only_a_pending_approval_of_the_same_action_suppresses_another() {
    type Change = fn(&mut World);
    let table: [Change; 6] = [
        |world| {
            let approval = approve(world);
            world.perform(121, &approval);
        },
        |world| drop(world.perform(121, &revoke())),
        |world| drop(world.perform(121, &OnRun(1, RunCommand::Cancel { note: None }))),
        |world| world.policy.looked = Ok(Some(fingerprint("aa", "7", &[]))),
        |world| world.agent.as_mut().unwrap().tier = Tier::External,
        |world| {
            world.definition.action =
                Action::Prompt { agent: "ada".parse().unwrap(), prompt: "else".into() };
            world.perform(121, &Op::Edit);
        },
    ];
    for (index, change) in table.iter().enumerate() {
        let mut world = two_runs();
        change(&mut world);
        assert!(world.perform(122, &StartUnder(2, Asks)).starts_with("asked"), "{index}");
    }
    // Nor does an expired approval, even before its expiry is recorded.
    let mut world = two_runs();
    let late = world.perform(61 + DAY_S, &StartUnder(2, Asks));
    assert!(late.starts_with("asked"), "{late}");
}

#[test]
fn after_repeated_denials_only_a_manual_start_requests_approval() {
    let often = DENIED_FOR_US / 1_000_000 + 100;
    let denied = || {
        let mut world = World::new(every(60), Terms::default());
        world.perform(0, &Add);
        for number in 1..=u128::from(DENIALS_MAX) {
            let second = i64::try_from(number).unwrap() * often / 60 * 60;
            assert!(world.perform(second, &Tick).contains("fires"), "{number}");
            assert!(
                world.perform(second, &StartUnder(number, Asks)).starts_with("asked"),
                "{number}"
            );
            let shown = world.approval(number).unwrap().1.plan_hash;
            let denial = ApprovalCommand(number, Command::Deny { shown, note: None });
            assert!(world.perform(second + 1, &denial).starts_with("denied"));
        }
        (world, i64::from(DENIALS_MAX + 1) * often / 60 * 60)
    };
    let eleventh = u128::from(DENIALS_MAX) + 1;
    let (mut world, later) = denied();
    world.perform(later, &Tick);
    let suppressed = "cancelled (the last 10 approval requests for agent `ada` were denied)";
    assert_eq!(world.perform(later, &StartUnder(eleventh, Asks)), suppressed);
    // Runs that need no approval still start.
    world.perform(later + 60, &Tick);
    assert!(world.perform(later + 60, &StartUnder(eleventh + 1, Allow)).starts_with("started"));
    // A start by an assistant is not a manual start.
    let (mut world, later) = denied();
    let human = world.actor.clone();
    world.actor = human.clone().into_assistant();
    assert!(world.actor.is_assistant());
    world.perform(later, &Fire("now"));
    world.actor = human;
    assert_eq!(world.perform(later, &StartUnder(eleventh, Asks)), suppressed);
    // A human starts one and approves it.
    let (mut world, later) = denied();
    world.perform(later, &Fire("now"));
    assert!(world.perform(later, &StartUnder(eleventh, Asks)).starts_with("asked"));
    assert_eq!(world.agent.as_ref().unwrap().denials, DENIALS_MAX);
    let shown = world.approval(eleventh).unwrap().1.plan_hash;
    world.perform(
        later,
        &ApprovalCommand(eleventh, Command::Approve { shown, note: None, signed: None }),
    );
    assert_eq!(world.agent.as_ref().unwrap().denials, 0);
}

#[test]
fn pending_approvals_are_counted_until_they_close() {
    let pending = |world: &World| world.counter(&Counter::PendingApprovals("ada".parse().unwrap()));
    let ends: [fn(&World) -> Op; 4] =
        [approve, deny, |_| revoke(), |_| OnRun(1, RunCommand::Cancel { note: None })];
    for end in ends {
        let mut world = parked();
        assert_eq!(pending(&world), 1);
        let end = end(&world);
        world.perform(70, &end);
        assert_eq!(pending(&world), 0, "{end:?}");
        world.perform(71, &StartUnder(1, Asks));
        world.perform(71 + SOON_S, &Expire(1));
        assert_eq!(pending(&world), 0, "{end:?}");
    }
    let mut world = parked();
    world.perform(61 + DAY_S, &Expire(1));
    assert_eq!(pending(&world), 0);
}
