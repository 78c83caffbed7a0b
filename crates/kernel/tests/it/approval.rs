//! A question to a human: asked once, answered once, good for one beginning of one plan.

use kernel::agent::DENIALS_MAX;
use kernel::approval::{
    APPROVE_WITHIN_US, Command, Directory, EXECUTE_WITHIN_US, Executable, Footing, Signature,
    Signed,
};
use kernel::backend::Tier;
use kernel::ruling::{Approvers, Posture, Verdict};
use kernel::run::{Cause, Command as RunCommand};
use kernel::schedule::Action;
use kernel::schedule::terms::{Overlap, Terms};
use kernel::slot::Disposition;
use kernel::{Actor, Counter, Role, RunId, TokenId};

use crate::support::{Ask, DENIED_FOR_US, Standing, World, at, broken, every};
use Ask::{Add, Answer, Expire, Fire, Recover, Run, StartUnder, Tick};
use Verdict::{Allow, Ask as Asks, Deny};

const ASKED: &str = "asked, until 86461";
const APPROVED: &str = "approved, until 970";
const BEGUN: &str = "consumed by 1, started 1 1 tier 0 repeatable";
const DAY_S: i64 = APPROVE_WITHIN_US / 1_000_000;
const SOON_S: i64 = EXECUTE_WITHIN_US / 1_000_000;

/// A run that waits for an answer since second 61.
fn parked() -> World {
    let mut world = World::new(every(60), Terms::default());
    world.ask(0, &Add);
    assert_eq!(world.ask(60, &Tick), "slot fires 60");
    assert_eq!(world.ask(61, &StartUnder(1, Asks)), ASKED);
    world
}

fn shown(world: &World) -> String {
    world.approval(1).unwrap().1.plan_hash
}

fn approve(world: &World) -> Ask {
    Answer(1, Command::Approve { shown: shown(world), note: None, signed: None })
}

fn deny(world: &World) -> Ask {
    Answer(1, Command::Deny { shown: shown(world), note: Some("no".into()) })
}

fn revoke() -> Ask {
    Answer(1, Command::Revoke { note: None })
}

fn disposition(world: &World) -> Disposition {
    world.slot(60).unwrap().disposition(world.run(1).as_ref())
}

fn check(world: &mut World, story: &[(i64, Ask, &str)]) {
    for (second, ask, expected) in story {
        assert_eq!(&world.ask(*second, ask), expected, "at {second}: {ask:?}");
    }
}

#[test]
fn a_run_waits_until_it_is_approved_and_begins_once() {
    let mut world = parked();
    assert_eq!(world.run(1).unwrap().state.name(), "waiting_permission");
    assert_eq!(disposition(&world), Disposition::Parked);
    let yes = approve(&world);
    check(
        &mut world,
        &[
            (62, StartUnder(1, Asks), ""),
            (63, StartUnder(1, Allow), ""),
            (64, Recover(1), ""),
            (70, yes.clone(), APPROVED),
            (71, yes.clone(), ""),
            (72, StartUnder(1, Asks), BEGUN),
            (73, StartUnder(1, Asks), ""),
            (74, yes, ""),
            (
                75,
                revoke(),
                "no: approval `A` was approved by uid:7, and its run has begun, so it cannot be revoked",
            ),
        ],
    );
    assert_eq!(world.run(1).unwrap().approval, None);
}

#[test]
fn a_run_that_is_denied_ends_and_its_slot_says_so() {
    let mut world = parked();
    let (yes, no) = (approve(&world), deny(&world));
    let denied = "denied, cancelled (uid:7 denied it: no)";
    check(
        &mut world,
        &[
            (70, no.clone(), denied),
            (71, no, ""),
            (72, yes, "no: approval `A` was denied by uid:7, so it cannot be approved"),
            (73, StartUnder(1, Allow), ""),
        ],
    );
    assert_eq!(disposition(&world), Disposition::SkippedPolicy);
}

#[test]
fn what_the_orders_forbid_never_begins() {
    let mut world = World::new(every(60), Terms::default());
    world.ask(0, &Add);
    world.ask(60, &Tick);
    let refused = "cancelled (the standing orders do not allow it: `test/all`)";
    check(&mut world, &[(61, StartUnder(1, Deny), refused), (62, StartUnder(1, Allow), "")]);
    assert_eq!(disposition(&world), Disposition::SkippedPolicy);
    assert_eq!(world.run(1).unwrap().ruling.unwrap().verdict, Verdict::Deny);
}

#[test]
fn a10_an_answer_is_too_late_from_its_instant_on() {
    let expired = "lapsed expired, cancelled (nobody answered in time)";
    for (second, expected) in [
        (61 + DAY_S - 1, "approved, until 87360"),
        (61 + DAY_S, expired),
        (61 + DAY_S + 9, expired),
    ] {
        let mut world = parked();
        let yes = approve(&world);
        assert_eq!(world.ask(second, &yes), expected);
    }
    let mut world = parked();
    assert_eq!(world.ask(61 + DAY_S - 1, &Expire(1)), "");
    assert_eq!(world.ask(61 + DAY_S, &Expire(1)), expired);
    // A clock that is set back does not make it good again.
    let yes = approve(&world);
    assert_eq!(world.ask(62, &yes), "no: approval `A` has expired, so it cannot be approved");
    assert_eq!(disposition(&world), Disposition::SkippedPolicy);
}

#[test]
fn an_approved_run_begins_soon_or_not_at_all() {
    let late = "lapsed expired, cancelled (it was approved, and did not begin in time)";
    for (second, expected) in [(70 + SOON_S - 1, BEGUN), (70 + SOON_S, late)] {
        let mut world = parked();
        let yes = approve(&world);
        world.ask(70, &yes);
        assert_eq!(world.ask(second, &StartUnder(1, Asks)), expected);
    }
}

#[test]
fn a03_an_answer_to_another_plan_is_refused() {
    let mut world = parked();
    let other = Answer(1, Command::Approve { shown: "another".into(), note: None, signed: None });
    let refused = "no: approval `A` is about another plan than the one that was shown";
    check(&mut world, &[(70, other, refused)]);
    assert_eq!(world.approval(1).unwrap().1.state.name(), "pending");
}

#[test]
fn a04_a_plan_that_has_changed_since_is_not_begun() {
    let mut world = parked();
    let yes = approve(&world);
    world.ask(70, &yes);
    world.agent.as_mut().unwrap().credential = "env:OTHER".parse().ok();
    let changed = "lapsed changed, cancelled (what would be done now is not what was approved)";
    check(&mut world, &[(71, StartUnder(1, Asks), changed)]);
    assert_eq!(disposition(&world), Disposition::SkippedPolicy);
}

fn footing(program: &str, inode: &str, variables: &[(&str, &str)]) -> Footing {
    Footing {
        program: Executable { path: "/bin/tool".to_owned(), sha256: program.to_owned() },
        directory: Some(Directory { device: "1".to_owned(), inode: inode.to_owned() }),
        variables: variables
            .iter()
            .map(|(name, hash)| (name.to_string(), hash.to_string()))
            .collect(),
    }
}

#[test]
fn a08_what_a_plan_stands_on_is_part_of_what_was_approved() {
    const PATH: (&str, &str) = ("PATH", "p");
    const TZ: (&str, &str) = ("TZ", "t");
    let before = || footing("aa", "7", &[PATH, TZ]);
    let not = "lapsed changed, cancelled (what would be done now is not what was approved";
    let changed = |parts: &str| format!("{not}: changed since it was asked: {parts})");
    let missing = || Err(Cause::new("not_started", "there is no program"));
    let gone = "lapsed changed, cancelled (what was approved cannot be done any more: there is no program)";
    let table = [
        (Ok(Some(before())), Ok(Some(before())), BEGUN.to_owned()),
        (Ok(Some(before())), Ok(Some(footing("bb", "7", &[PATH, TZ]))), changed("program")),
        (Ok(Some(before())), Ok(Some(footing("aa", "8", &[PATH, TZ]))), changed("directory")),
        (Ok(Some(before())), Ok(Some(footing("aa", "7", &[("PATH", "q"), TZ]))), changed("PATH")),
        (Ok(Some(before())), Ok(Some(footing("aa", "7", &[PATH]))), changed("TZ")),
        (
            Ok(Some(before())),
            Ok(Some(footing("bb", "7", &[PATH, TZ, ("X", "x")]))),
            changed("program, X"),
        ),
        (Ok(Some(before())), Ok(None), format!("{not})")),
        (Ok(Some(before())), missing(), gone.to_owned()),
        // It was asked before anybody looked at such things.
        (Ok(None), Ok(Some(before())), changed("program, directory, PATH, TZ")),
    ];
    for (asked, begun, expected) in table {
        let mut world = World::new(every(60), Terms::default());
        world.standing.looked = asked;
        world.ask(0, &Add);
        world.ask(60, &Tick);
        assert_eq!(world.ask(61, &StartUnder(1, Asks)), ASKED);
        let yes = approve(&world);
        assert_eq!(world.ask(70, &yes), APPROVED);
        world.standing.looked = begun;
        assert_eq!(world.ask(71, &StartUnder(1, Asks)), expected);
        let told = world.approval(1).unwrap().1.changed.join(", ");
        assert!(expected.contains(&told), "{told}");
    }
}

#[test]
fn nobody_is_asked_about_what_cannot_be_done() {
    let mut world = World::new(every(60), Terms::default());
    world.ask(0, &Add);
    world.ask(60, &Tick);
    world.standing.looked = Err(Cause::new("not_started", "there is no program"));
    assert_eq!(world.ask(61, &StartUnder(1, Asks)), "failed (there is no program)");
}

#[test]
fn a11_a_revoked_approval_begins_nothing() {
    let mut world = parked();
    let yes = approve(&world);
    let revoked = "lapsed revoked, cancelled (uid:7 took the approval back)";
    check(
        &mut world,
        &[
            (70, yes.clone(), APPROVED),
            (71, revoke(), revoked),
            (72, revoke(), ""),
            (73, StartUnder(1, Asks), ""),
            (74, yes, "no: approval `A` was revoked, so it cannot be approved"),
        ],
    );
}

#[test]
fn a_deny_after_an_approval_takes_it_back() {
    let mut world = parked();
    let (yes, no) = (approve(&world), deny(&world));
    check(&mut world, &[(70, yes, APPROVED), (71, no, "denied, cancelled (uid:7 denied it: no)")]);
}

#[test]
fn b06_only_a_human_with_the_role_answers() {
    let asks = [
        ("observer", Role::Observer, false),
        ("run:run_1", Role::Runner, false),
        ("ada", Role::Operator, true),
        ("ada", Role::Maintainer, true),
    ];
    for (name, role, may) in asks {
        let mut world = parked();
        (world.actor.name, world.actor.role) = (name.to_owned(), role);
        for ask in [approve(&world), deny(&world), revoke()] {
            let mut world = parked();
            (world.actor.name, world.actor.role) = (name.to_owned(), role);
            let ask = match ask {
                Answer(_, Command::Approve { .. }) => approve(&world),
                Answer(_, Command::Deny { .. }) => deny(&world),
                other => other,
            };
            let said = world.ask(70, &ask);
            assert_eq!(!said.starts_with("no: this needs a human"), may, "{name}: {said}");
            assert_eq!(world.approval(1).unwrap().1.state.name() == "pending", !may);
        }
    }
}

#[test]
fn b07_another_try_needs_another_answer() {
    let mut world = parked();
    let yes = approve(&world);
    world.ask(70, &yes);
    assert_eq!(world.ask(71, &StartUnder(1, Asks)), BEGUN);
    let failed = Ask::Finish(1, 1, broken(true));
    assert!(world.ask(72, &failed).starts_with("failed"));
    world.ask(73, &Run(1, RunCommand::Retry));
    assert!(world.ask(74, &StartUnder(1, Asks)).starts_with("asked"));
}

#[test]
fn a_question_goes_with_its_run() {
    let cancel = Run(1, RunCommand::Cancel { note: None });
    let cancelled = "lapsed runended, cancelled (uid:7 cancelled it)";
    let mut world = parked();
    check(&mut world, &[(70, cancel.clone(), cancelled), (71, Expire(1), "")]);
    assert_eq!(disposition(&world), Disposition::Cancelled);
    let mut world = parked();
    let yes = approve(&world);
    check(&mut world, &[(70, yes, APPROVED), (71, cancel, cancelled)]);
}

#[test]
fn a_parked_run_is_live_for_its_schedule() {
    let mut world = parked();
    assert_eq!(world.ask(120, &Tick), "skipped_overlap 120");
    assert!(world.ask(121, &Fire("k")).starts_with("no:"));
    let mut world =
        World::new(every(60), Terms { overlap: Overlap::CancelOther, ..Terms::default() });
    world.ask(0, &Add);
    world.ask(60, &Tick);
    world.ask(61, &StartUnder(1, Asks));
    let decided = world.ask(120, &Tick);
    assert!(decided.contains("lapsed runended, cancelled"), "{decided}");
}

#[test]
fn orders_that_do_not_ask_any_more_need_no_answer() {
    let mut world = parked();
    let yes = approve(&world);
    world.ask(70, &yes);
    let begun = "lapsed notneeded, started 1 1 tier 0 repeatable";
    assert_eq!(world.ask(71, &StartUnder(1, Allow)), begun);
    assert_eq!(world.run(1).unwrap().approval, None);
    assert_eq!(world.approval(1).unwrap().1.plan.run, RunId::of(1));
}

#[test]
fn nothing_reaches_outside_without_a_human_whoever_allows_it() {
    let mut world = World::new(every(60), Terms::default());
    world.agent.as_mut().unwrap().tier = Tier::External;
    world.ask(0, &Add);
    world.ask(60, &Tick);
    assert_eq!(world.ask(61, &StartUnder(1, Allow)), ASKED);
    assert_eq!(world.approval(1).unwrap().1.plan.tier, Tier::External);
}

#[test]
fn an_edit_of_the_schedule_makes_another_plan() {
    let mut world = parked();
    let yes = approve(&world);
    world.ask(70, &yes);
    world.definition.terms.priority = 9;
    assert!(world.ask(71, &Ask::Edit).starts_with("changed"));
    assert!(world.ask(72, &StartUnder(1, Asks)).starts_with("lapsed changed"));
}

/// A yes of this person, brought by themselves or signed.
fn yes_of(world: &mut World, name: &str, role: Role, is_signed: bool) -> Ask {
    let by = Actor { name: name.to_owned(), role };
    let signed = is_signed.then(|| Signed {
        by: by.clone(),
        signature: Signature {
            token: TokenId::of(1),
            text: "mws_00".to_owned(),
            expires_at: at(61 + DAY_S),
        },
    });
    world.actor = if is_signed { Actor::local_user(7) } else { by };
    Answer(1, Command::Approve { shown: shown(world), note: None, signed })
}

/// A run that waits under such orders, of a schedule that these have written.
fn parked_by(authors: &[&str], posture: Posture, approvers: Approvers) -> World {
    let mut world = World::new(every(60), Terms::default());
    world.standing = Standing { posture, approvers, signatures_hold: true, ..Standing::default() };
    let (first, later) = authors.split_first().unwrap();
    world.actor = Actor { name: (*first).to_owned(), role: Role::Maintainer };
    world.ask(0, &Add);
    for (edit, author) in later.iter().enumerate() {
        world.actor.name = (*author).to_owned();
        world.definition.name = format!("edit {edit}");
        world.ask(0, &Ask::Edit);
    }
    assert!(world.ask(60, &Tick).contains("fires 60"));
    assert_eq!(world.ask(61, &StartUnder(1, Asks)), ASKED);
    world
}

#[test]
fn b05_two_persons_are_two_persons() {
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
        let yes = yes_of(&mut world, name, Role::Operator, false);
        assert_eq!(world.ask(second, &yes), expected, "{name} at {second}");
        let state = world.run(1).unwrap().state.name();
        assert_eq!(state, if second < 72 { "waiting_permission" } else { "queued" });
    }
    assert_eq!(world.ask(75, &StartUnder(1, Asks)), BEGUN);
    let happened = world.approval(1).unwrap().1.happened();
    assert_eq!(happened, "was approved by ada and bob, and its run has begun");

    let mut world = parked_by(&["eve"], Posture::Staging, two);
    let yes = yes_of(&mut world, "ada", Role::Operator, false);
    world.ask(70, &yes);
    let no = deny(&world);
    assert!(world.ask(71, &no).starts_with("denied, cancelled"), "one no is enough");
}

#[test]
fn b04_who_wrote_it_does_not_approve_it_where_others_must() {
    let two = Approvers { persons: 2, role: Role::Operator };
    let one = Approvers::default();
    // Who wrote it, in which posture, who must say yes, and what is said to the author, a user of the
    // machine, and somebody else.
    let author = "no: `eve` has written the schedule, and approval `A` needs somebody else";
    let nobody = "no: approval `A` needs a person who is known by a token of their own";
    let unsigned = "no: approval `A` needs a signature made with the approver's own key";
    type Case<'a> = (&'a [&'a str], Posture, Approvers, bool, [&'a str; 3]);
    let table: [Case<'_>; 9] = [
        (&["eve"], Posture::Staging, one, false, [APPROVED, APPROVED, APPROVED]),
        (&["eve"], Posture::Staging, two, false, [author, nobody, "assented by ada"]),
        (&["bob", "eve"], Posture::Staging, two, false, [author, nobody, "assented by ada"]),
        (&["eve"], Posture::StrictProd, one, false, [unsigned, unsigned, unsigned]),
        (&["eve"], Posture::StrictProd, one, true, [author, nobody, APPROVED]),
        // An assistant's doing is its person's.
        (&["mcp:eve"], Posture::StrictProd, one, true, [author, nobody, APPROVED]),
        // Nor does an agent that has a person's token.
        (&["agent:eve"], Posture::Staging, one, false, [author, APPROVED, APPROVED]),
        (&["agent:eve"], Posture::StrictProd, one, true, [author, nobody, "assented by ada"]),
        // Who wrote it could be ada.
        (
            &["uid:7"],
            Posture::StrictProd,
            one,
            true,
            ["assented by eve", nobody, "assented by ada"],
        ),
    ];
    for (authors, posture, approvers, is_signed, expected) in table {
        for (name, expected) in ["eve", "uid:9", "ada"].into_iter().zip(expected) {
            let mut world = parked_by(authors, posture, approvers);
            let yes = yes_of(&mut world, name, Role::Operator, is_signed);
            assert_eq!(world.ask(70, &yes), expected, "{authors:?} {posture} {name}");
        }
    }
}

/// However many have changed it since: of them only runs are not told one from another for ever, and those
/// approve nothing.
#[test]
fn b04_whoever_changed_a_schedule_is_never_forgotten() {
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
            let yes = yes_of(&mut world, early, Role::Operator, false);
            let refused = format!(
                "no: `{early}` has written the schedule, and approval `A` needs somebody else"
            );
            assert_eq!(world.ask(70, &yes), refused);
        }
    }
    let many: Vec<String> = (0..90).map(|it| format!("run:{}", RunId::of(it))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let authors = parked_by(&many, Posture::Staging, two).approval(1).unwrap().1.authors;
    assert_eq!(authors.len(), 33, "of runs there is no end, and of these there is one");
}

#[test]
fn b06_a_rule_can_want_a_maintainer() {
    let maintainer = Approvers { persons: 1, role: Role::Maintainer };
    let mut world = parked_by(&["eve"], Posture::Staging, maintainer);
    let yes = yes_of(&mut world, "ada", Role::Operator, false);
    assert!(world.ask(70, &yes).starts_with("no: this needs a human with the role `maintainer`"));
    let yes = yes_of(&mut world, "ada", Role::Maintainer, false);
    assert_eq!(world.ask(70, &yes), APPROVED);
}

#[test]
fn a_copy_of_the_data_directory_does_not_use_the_approval_too() {
    let mut world = parked();
    let yes = approve(&world);
    assert_eq!(world.ask(70, &yes), APPROVED);
    world.standing.place = Some("7/8");
    let elsewhere = world.ask(71, &StartUnder(1, Asks));
    assert!(elsewhere.starts_with("lapsed changed, cancelled"), "{elsewhere}");
    assert!(elsewhere.contains("changed since it was asked: data directory"), "{elsewhere}");
}

#[test]
fn a_question_under_other_rules_can_only_be_denied() {
    let mut world = parked();
    world.rules = Some("4567".to_owned());
    let (yes, no) = (approve(&world), deny(&world));
    let refused = "no: approval `A` was asked under other rules than those in force, and a yes would begin \
                   nothing";
    assert_eq!(world.ask(70, &yes), refused);
    assert!(world.ask(71, &no).starts_with("denied, cancelled"));
    // Rules that are as they were again are no other ones.
    let mut world = parked();
    let yes = approve(&world);
    assert_eq!(world.ask(70, &yes), APPROVED);
}

#[test]
fn a_signature_must_still_hold_when_the_run_begins() {
    for (holds, expected) in [
        (true, BEGUN),
        (
            false,
            "lapsed unsigned, cancelled (a signature under its approval does not hold any more)",
        ),
    ] {
        let mut world = parked_by(&["eve"], Posture::StrictProd, Approvers::default());
        let yes = yes_of(&mut world, "ada", Role::Operator, true);
        assert_eq!(world.ask(70, &yes), APPROVED);
        world.standing.signatures_hold = holds;
        assert_eq!(world.ask(71, &StartUnder(1, Asks)), expected);
    }
}

#[test]
fn what_was_denied_is_not_asked_again_for_a_while() {
    let mut world = parked();
    let no = deny(&world);
    world.ask(70, &no);
    assert_eq!(world.ask(120, &Tick), "slot fires 120");
    let silent = "cancelled (a human has denied the same before)";
    assert_eq!(world.ask(121, &StartUnder(2, Asks)), silent);
    // Somebody who starts it by hand is there to be asked.
    world.ask(122, &Fire("now"));
    assert!(world.ask(123, &StartUnder(3, Asks)).starts_with("asked"));
    world.ask(124, &Run(3, RunCommand::Cancel { note: None }));
    // Another prompt is another question.
    world.definition.action =
        Action::Prompt { agent: "ada".parse().unwrap(), prompt: "else".into() };
    world.ask(130, &Ask::Edit);
    assert!(world.ask(180, &Tick).starts_with("slot fires 180"));
    assert!(world.ask(181, &StartUnder(4, Asks)).starts_with("asked"));
}

#[test]
fn what_was_denied_is_asked_again_later() {
    let mut world = parked();
    let no = deny(&world);
    world.ask(70, &no);
    let until = 70 + DENIED_FOR_US / 1_000_000;
    assert!(world.ask(until - 10, &Tick).contains("fires"));
    assert!(world.ask(until - 1, &StartUnder(2, Asks)).starts_with("cancelled"));
    assert!(world.ask(until + 50, &Tick).contains("fires"));
    assert!(world.ask(until + 51, &StartUnder(3, Asks)).starts_with("asked"));
}

/// Two runs, of which the first waits for an answer and the second would ask next.
fn two_runs() -> World {
    let mut world = World::new(every(60), Terms { overlap: Overlap::Allow(3), ..Terms::default() });
    world.ask(0, &Add);
    world.ask(60, &Tick);
    assert_eq!(world.ask(61, &StartUnder(1, Asks)), ASKED);
    assert_eq!(world.ask(120, &Tick), "slot fires 120");
    world
}

#[test]
fn the_same_is_not_asked_twice_while_nobody_has_answered() {
    let already = |world: &World| {
        let id = world.approval(1).unwrap().0;
        format!("cancelled (approval `{id}` asks the same, and nobody has answered it yet)")
    };
    let mut world = two_runs();
    assert_eq!(world.ask(121, &StartUnder(2, Asks)), already(&world));
    assert_eq!(world.counter(&Counter::PendingAsks("ada".parse().unwrap())), 1);
    // Also not by hand, and one yes begins one run.
    world.ask(122, &Fire("now"));
    assert_eq!(world.ask(123, &StartUnder(3, Asks)), already(&world));
    let yes = approve(&world);
    assert_eq!(world.ask(130, &yes), "approved, until 1030");
    let begun = [1, 2, 3].map(|run| world.ask(131, &StartUnder(run, Asks)));
    assert_eq!(begun, [BEGUN, "", ""]);
}

#[test]
fn what_is_answered_or_is_about_something_else_keeps_no_question_back() {
    type Change = fn(&mut World);
    let table: [Change; 6] = [
        |world| {
            let yes = approve(world);
            world.ask(121, &yes);
        },
        |world| drop(world.ask(121, &revoke())),
        |world| drop(world.ask(121, &Run(1, RunCommand::Cancel { note: None }))),
        |world| world.standing.looked = Ok(Some(footing("aa", "7", &[]))),
        |world| world.agent.as_mut().unwrap().tier = Tier::External,
        |world| {
            world.definition.action =
                Action::Prompt { agent: "ada".parse().unwrap(), prompt: "else".into() };
            world.ask(121, &Ask::Edit);
        },
    ];
    for (place, change) in table.iter().enumerate() {
        let mut world = two_runs();
        change(&mut world);
        assert!(world.ask(122, &StartUnder(2, Asks)).starts_with("asked"), "{place}");
    }
    // One that has run out waits for nobody, though nobody has noticed.
    let mut world = two_runs();
    let late = world.ask(61 + DAY_S, &StartUnder(2, Asks));
    assert!(late.starts_with("asked"), "{late}");
}

#[test]
fn an_agent_that_is_always_denied_is_not_asked_about_until_a_human_wants_it() {
    let often = DENIED_FOR_US / 1_000_000 + 100;
    let denied = || {
        let mut world = World::new(every(60), Terms::default());
        world.ask(0, &Add);
        for number in 1..=u128::from(DENIALS_MAX) {
            let second = i64::try_from(number).unwrap() * often / 60 * 60;
            assert!(world.ask(second, &Tick).contains("fires"), "{number}");
            assert!(world.ask(second, &StartUnder(number, Asks)).starts_with("asked"), "{number}");
            let shown = world.approval(number).unwrap().1.plan_hash;
            let no = Answer(number, Command::Deny { shown, note: None });
            assert!(world.ask(second + 1, &no).starts_with("denied"));
        }
        (world, i64::from(DENIALS_MAX + 1) * often / 60 * 60)
    };
    let eleventh = u128::from(DENIALS_MAX) + 1;
    let (mut world, later) = denied();
    world.ask(later, &Tick);
    let silent = "cancelled (the last 10 questions about agent `ada` were denied)";
    assert_eq!(world.ask(later, &StartUnder(eleventh, Asks)), silent);
    // What needs no human begins as ever.
    world.ask(later + 60, &Tick);
    assert!(world.ask(later + 60, &StartUnder(eleventh + 1, Allow)).starts_with("started"));
    // What an agent starts is not what a human wants.
    let (mut world, later) = denied();
    let human = world.actor.clone();
    world.actor = human.clone().assistant();
    assert!(world.actor.is_assistant());
    world.ask(later, &Fire("now"));
    world.actor = human;
    assert_eq!(world.ask(later, &StartUnder(eleventh, Asks)), silent);
    // Somebody starts one by hand and approves it.
    let (mut world, later) = denied();
    world.ask(later, &Fire("now"));
    assert!(world.ask(later, &StartUnder(eleventh, Asks)).starts_with("asked"));
    assert_eq!(world.agent.as_ref().unwrap().denials, DENIALS_MAX);
    let shown = world.approval(eleventh).unwrap().1.plan_hash;
    world.ask(later, &Answer(eleventh, Command::Approve { shown, note: None, signed: None }));
    assert_eq!(world.agent.as_ref().unwrap().denials, 0);
}

#[test]
fn questions_are_counted_while_they_are_open() {
    let pending = |world: &World| world.counter(&Counter::PendingAsks("ada".parse().unwrap()));
    let ends: [fn(&World) -> Ask; 4] =
        [approve, deny, |_| revoke(), |_| Run(1, RunCommand::Cancel { note: None })];
    for end in ends {
        let mut world = parked();
        assert_eq!(pending(&world), 1);
        let end = end(&world);
        world.ask(70, &end);
        assert_eq!(pending(&world), 0, "{end:?}");
        world.ask(71, &StartUnder(1, Asks));
        world.ask(71 + SOON_S, &Expire(1));
        assert_eq!(pending(&world), 0, "{end:?}");
    }
    let mut world = parked();
    world.ask(61 + DAY_S, &Expire(1));
    assert_eq!(pending(&world), 0);
}
