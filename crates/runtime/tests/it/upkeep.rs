//! What goes on while nobody asks: starts and stops, heartbeats, checkpoints, exports, the check.

use std::fs;
use std::time::Duration;

use api::{LedgerCheckpoint, LedgerExport, LedgerRebuild, ProgressSink, StatusAsk};
use kernel::Role;
use ledger::verify::{Anchors, Verdict, verify_export};
use runtime::{ExportDir, last_note, verify};
use store::{Commit, Store, Write};
use tokio::time::sleep;

use crate::world::{DAY_US, OCTOBER_US, World, builtin, keep};

/// Virtual time passes as soon as nothing else can happen.
#[tokio::test(start_paused = true)]
async fn the_watch_tells_of_itself() {
    let world = World::new().await;
    keep(&world, sleep(Duration::from_secs(150))).await;
    let kinds = world.kinds().await;
    let expected =
        ["genesis", "watch.started", "watch.heartbeat", "watch.heartbeat", "watch.stopped"];
    assert_eq!(kinds, expected);
    let status = world.ask(StatusAsk {}).await.unwrap();
    assert_eq!((status.log.checkpoint, status.log.entries), (5, 5), "a stop signs everything");
    let copy = last_note(&world.data.path().join("elsewhere.log")).unwrap().unwrap();
    assert_eq!(copy.unverified().size, 5);
}

#[tokio::test(start_paused = true)]
async fn entries_are_signed_within_a_minute() {
    let world = World::new().await;
    keep(&world, async {
        sleep(Duration::from_secs(30)).await;
        world.ask(builtin("ada")).await.unwrap();
        sleep(Duration::from_secs(61)).await;
        let status = world.ask(StatusAsk {}).await.unwrap();
        assert!(3 <= status.log.checkpoint, "{status:?}");
    })
    .await;
    let report = verify(&*world.store, Anchors::default(), &ProgressSink::default()).await.unwrap();
    assert_eq!(report.verdict, Verdict::Ok);
    assert!(2 <= report.checkpoints);
}

#[tokio::test]
async fn a_size_is_never_signed_twice() {
    let world = World::new().await;
    let first = world.ask(LedgerCheckpoint {}).await.unwrap();
    let again = world.ask(LedgerCheckpoint {}).await.unwrap();
    assert_eq!(first, again);
    let file = fs::read_to_string(world.data.path().join("checkpoints.log")).unwrap();
    assert_eq!(file, first.checkpoint.note);
}

#[tokio::test(start_paused = true)]
async fn a_month_that_has_ended_is_exported_by_itself() {
    let world = World::new().await;
    world.ask(builtin("ada")).await.unwrap();
    keep(&world, sleep(Duration::from_secs(10))).await;
    assert!(!world.kinds().await.contains(&"ledger.exported".to_owned()));
    world.set_now(OCTOBER_US + 31 * DAY_US);
    keep(&world, sleep(Duration::from_secs(10))).await;
    let exported: Vec<_> =
        world.events().await.into_iter().filter(|event| event.kind == "ledger.exported").collect();
    assert_eq!(exported.len(), 1);
    assert_eq!(
        (&exported[0].body["month"], &exported[0].body["first"]),
        (&"2026-10".into(), &1.into())
    );
    let dir = ExportDir(world.data.path().join("exports"));
    let report = verify_export(&dir, Anchors::default(), &mut |_| {}).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:?}");
    // It is not done again.
    keep(&world, sleep(Duration::from_secs(10))).await;
    let again = world.kinds().await.iter().filter(|kind| *kind == "ledger.exported").count();
    assert_eq!(again, 1);
}

/// Reading the whole past each hour would be much work for nothing.
#[tokio::test(start_paused = true)]
async fn a_month_that_has_ended_is_read_once_in_each_run() {
    let hour = || sleep(Duration::from_secs(3_660));
    let mut world = World::new().await;
    world.set_now(OCTOBER_US + 31 * DAY_US);
    keep(&world, sleep(Duration::from_secs(10))).await;
    let exports = world.data.path().join("exports");
    let lines = exports.join("ledger-2026-10.ndjson.gz");
    let good = fs::read(&lines).unwrap();
    keep(&world, async {
        fs::write(&lines, b"").unwrap();
        hour().await;
        assert_eq!(fs::read(&lines).unwrap(), b"");
        // A file that is gone is noticed, and then all are looked at.
        fs::remove_file(&lines).unwrap();
        hour().await;
        assert_eq!(fs::read(&lines).unwrap(), good);
        // The next month goes on from there.
        world.set_now(OCTOBER_US + 62 * DAY_US);
        hour().await;
        assert!(exports.join("ledger-2026-11.manifest").exists());
        fs::write(&lines, b"").unwrap();
    })
    .await;
    world.reopen().await.unwrap();
    keep(&world, sleep(Duration::from_secs(10))).await;
    assert_eq!(fs::read(&lines).unwrap(), good);
    let report = verify_export(&ExportDir(exports), Anchors::default(), &mut |_| {}).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:?}");
}

#[tokio::test]
async fn several_months_join_and_only_what_changed_is_written_again() {
    let world = World::new().await;
    let export = || LedgerExport { dir: None };
    for month in 0..3 {
        world.set_now(OCTOBER_US + month * 31 * DAY_US);
        world.ask(builtin(&format!("agent-{month}"))).await.unwrap();
    }
    let done = world.ask(export()).await.unwrap();
    let months: Vec<_> = done.exports.iter().map(|it| (it.month.as_str(), it.written)).collect();
    assert_eq!(months, [("2026-10", true), ("2026-11", true), ("2026-12", true)]);
    let written = async || -> Vec<bool> {
        let done = world.ask(export()).await.unwrap();
        done.exports.iter().map(|it| it.written).collect()
    };
    // Nothing came since but the events about the first export.
    let before = world.kinds().await;
    assert_eq!(written().await, [false, false, false]);
    world.set_now(OCTOBER_US + 93 * DAY_US);
    assert_eq!(written().await, [false, false, false]);
    assert_eq!(world.kinds().await, before);
    world.ask(builtin("agent-3")).await.unwrap();
    assert_eq!(written().await, [false, false, true, true]);
    assert_eq!(written().await, [false; 4]);
    let dir = ExportDir(world.data.path().join("exports"));
    let report = verify_export(&dir, Anchors::default(), &mut |_| {}).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:?}");
}

/// The files of the first month, which has ended: spoilt in every way, and mended by an export.
#[tokio::test]
async fn an_export_mends_what_is_damaged_in_a_month_that_has_ended() {
    let world = World::new().await;
    world.set_now(OCTOBER_US + 31 * DAY_US);
    world.ask(builtin("ada")).await.unwrap();
    world.ask(LedgerExport { dir: None }).await.unwrap();
    let exports = world.data.path().join("exports");
    let [lines, manifest] =
        ["ndjson.gz", "manifest"].map(|it| exports.join(format!("ledger-2026-10.{it}")));
    let (good, note) = (fs::read(&lines).unwrap(), fs::read(&manifest).unwrap());
    let mut rotten = good.clone();
    rotten[good.len() / 2] ^= 1;
    for (path, bytes) in
        [(&lines, &good[..good.len() / 2]), (&lines, &rotten), (&lines, b""), (&manifest, b"")]
    {
        fs::write(path, bytes).unwrap();
        let done = world.ask(LedgerExport { dir: None }).await.unwrap();
        assert!(done.exports[0].written, "{path:?} {}", bytes.len());
        assert_eq!(
            (fs::read(&lines).unwrap(), fs::read(&manifest).unwrap()),
            (good.clone(), note.clone())
        );
    }
    let done = world.ask(LedgerExport { dir: None }).await.unwrap();
    assert!(!done.exports[0].written);
    let report = verify_export(&ExportDir(exports), Anchors::default(), &mut |_| {}).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn tables_that_differ_from_the_log_are_made_anew() {
    let world = World::new().await;
    world.ask(builtin("ada")).await.unwrap();
    keep(&world, sleep(Duration::from_secs(1))).await;
    let right = world.store.derived().await.unwrap();
    let wrong = Write {
        noun: "agent",
        id: "ada".into(),
        expected: 1,
        version: 2,
        body: Some(b"{}".as_slice().into()),
        ..Write::default()
    };
    world.store.commit(Commit { writes: vec![wrong], ..Commit::default() }).await.unwrap();
    keep(&world, sleep(Duration::from_secs(5))).await;
    assert!(world.kinds().await.contains(&"ledger.rebuilt".to_owned()));
    let rebuilt = world.store.derived().await.unwrap();
    assert_eq!(rebuilt.items, right.items);
    assert_eq!(
        world.ask_as(Role::Maintainer, LedgerRebuild {}).await.unwrap().rebuilt.differences,
        0
    );
}

#[tokio::test]
async fn a_lost_row_of_the_watch_itself_is_no_reason_not_to_start() {
    let mut world = World::new().await;
    let id = world.watch.instance().to_owned();
    let gone = Write { noun: "watch", id, expected: 1, version: 2, ..Write::default() };
    world.store.commit(Commit { writes: vec![gone], ..Commit::default() }).await.unwrap();
    world.reopen().await.unwrap();
    assert_eq!(world.kinds().await, ["genesis", "ledger.rebuilt"]);
}

#[tokio::test]
async fn a_log_that_is_gone_is_not_begun_again_in_silence() {
    let mut world = World::new().await;
    world.ask(LedgerCheckpoint {}).await.unwrap();
    let refused = world.lose_the_store().await.unwrap_err();
    assert_eq!(refused.code, api::Code::LogRewound, "{refused:?}");
    assert_eq!(world.store.head().await.unwrap().size(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_must_not_write_still_reads() {
    let world = World::new().await;
    world.ask(builtin("ada")).await.unwrap();
    world.store.stop_writing("entry 1 was changed".into());
    keep(&world, async {
        let refused = world.ask(builtin("bob")).await.unwrap_err();
        assert_eq!(refused.code, api::Code::LogDamaged);
        let status = world.ask_as(Role::Observer, StatusAsk {}).await.unwrap();
        let reason = status.log.stopped.unwrap();
        assert!(reason.contains("entry 1 was changed"), "{reason}");
    })
    .await;
    assert_eq!(world.kinds().await, ["genesis", "agent.registered"]);
}

/// Commands that come and go without a daemon: what is left unsigned is never old, nor is an answer.
#[tokio::test]
async fn those_who_leave_sign_and_forget_once_a_minute() {
    const SECOND_US: i64 = 1_000_000;
    const WEEK_US: i64 = 7 * DAY_US;
    let world = World::new().await;
    let answers = || async {
        let kept = |key| world.store.answer(key);
        let (first, second) = (kept("somebody/k1").await.unwrap(), kept("somebody/k2").await);
        (first.is_some(), second.unwrap().is_some())
    };
    world.ask_with_key("k1", builtin("a")).await.unwrap();
    for (at_us, key, signed) in [
        (0, None, 2),
        (59 * SECOND_US, Some("k2"), 2),
        (60 * SECOND_US, None, 3),
        // Nothing is new, so there is nothing to sign.
        (WEEK_US, None, 3),
        (WEEK_US, Some("k3"), 4),
    ] {
        world.set_now(OCTOBER_US + at_us);
        if let Some(key) = key {
            world.ask_with_key(key, builtin(key)).await.unwrap();
        }
        world.watch.leave().await.unwrap();
        let status = world.ask(StatusAsk {}).await.unwrap();
        assert_eq!(status.log.checkpoint, signed, "{at_us} {key:?}");
        assert_eq!(answers().await, (true, 59 * SECOND_US <= at_us), "{at_us} {key:?}");
    }
    world.set_now(OCTOBER_US + WEEK_US + 60 * SECOND_US);
    world.ask(builtin("b")).await.unwrap();
    world.watch.leave().await.unwrap();
    assert_eq!(answers().await, (false, false));
}
