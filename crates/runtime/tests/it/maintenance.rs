//! Background maintenance: start and stop, heartbeats, checkpoints, exports, the integrity check.

use std::fs;
use std::time::Duration;

use api::{LedgerCheckpoint, LedgerExport, LedgerRebuild, ProgressSink, StatusShow};
use kernel::Role;
use ledger::verify::{Anchors, Verdict, verify_export};
use runtime::{ExportDir, read_last_note, verify};
use store::{Commit, Store, Write};
use tokio::time::sleep;

use crate::world::{DAY_US, OCTOBER_US, World, builtin, run_engine};

/// Virtual time passes when every task waits.
#[tokio::test(start_paused = true)]
async fn start_heartbeats_and_stop_are_recorded() {
    let world = World::new().await;
    run_engine(&world, sleep(Duration::from_secs(150))).await;
    let kinds = world.kinds().await;
    let expected =
        ["genesis", "watch.started", "watch.heartbeat", "watch.heartbeat", "watch.stopped"];
    assert_eq!(kinds, expected);
    let status = world.send(StatusShow {}).await.unwrap();
    assert_eq!(
        (status.ledger.checkpoint, status.ledger.entries),
        (5, 5),
        "a stop signs every entry"
    );
    let copy = read_last_note(&world.data.path().join("elsewhere.log")).unwrap().unwrap();
    assert_eq!(copy.unverified().size, 5);
}

#[tokio::test(start_paused = true)]
async fn entries_are_checkpointed_within_a_minute() {
    let world = World::new().await;
    run_engine(&world, async {
        sleep(Duration::from_secs(30)).await;
        world.send(builtin("ada")).await.unwrap();
        sleep(Duration::from_secs(61)).await;
        let status = world.send(StatusShow {}).await.unwrap();
        assert!(3 <= status.ledger.checkpoint, "{status:?}");
    })
    .await;
    let report = verify(&*world.store, Anchors::default(), &ProgressSink::default()).await.unwrap();
    assert_eq!(report.verdict, Verdict::Ok);
    assert!(2 <= report.checkpoints);
}

#[tokio::test]
async fn no_size_is_signed_twice() {
    let world = World::new().await;
    let first = world.send(LedgerCheckpoint {}).await.unwrap();
    let again = world.send(LedgerCheckpoint {}).await.unwrap();
    assert_eq!(first, again);
    let file = fs::read_to_string(world.data.path().join("checkpoints.log")).unwrap();
    assert_eq!(file, first.checkpoint.note);
}

#[tokio::test(start_paused = true)]
async fn a_past_month_is_exported_automatically() {
    let world = World::new().await;
    world.send(builtin("ada")).await.unwrap();
    run_engine(&world, sleep(Duration::from_secs(10))).await;
    assert!(!world.kinds().await.contains(&"ledger.exported".to_owned()));
    world.set_now(OCTOBER_US + 31 * DAY_US);
    run_engine(&world, sleep(Duration::from_secs(10))).await;
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
    // It is not exported again.
    run_engine(&world, sleep(Duration::from_secs(10))).await;
    let again = world.kinds().await.iter().filter(|kind| *kind == "ledger.exported").count();
    assert_eq!(again, 1);
}

/// Not once an hour.
#[tokio::test(start_paused = true)]
async fn a_past_month_is_read_once_per_process() {
    let hour = || sleep(Duration::from_secs(3_660));
    let mut world = World::new().await;
    world.set_now(OCTOBER_US + 31 * DAY_US);
    run_engine(&world, sleep(Duration::from_secs(10))).await;
    let exports = world.data.path().join("exports");
    let lines = exports.join("ledger-2026-10.ndjson.gz");
    let good = fs::read(&lines).unwrap();
    run_engine(&world, async {
        fs::write(&lines, b"").unwrap();
        hour().await;
        assert_eq!(fs::read(&lines).unwrap(), b"");
        // A missing file is detected, and then all are checked.
        fs::remove_file(&lines).unwrap();
        hour().await;
        assert_eq!(fs::read(&lines).unwrap(), good);
        // The next month continues from there.
        world.set_now(OCTOBER_US + 62 * DAY_US);
        hour().await;
        assert!(exports.join("ledger-2026-11.manifest").exists());
        fs::write(&lines, b"").unwrap();
    })
    .await;
    world.reopen().await.unwrap();
    run_engine(&world, sleep(Duration::from_secs(10))).await;
    assert_eq!(fs::read(&lines).unwrap(), good);
    let report = verify_export(&ExportDir(exports), Anchors::default(), &mut |_| {}).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:?}");
}

#[tokio::test]
async fn exported_months_are_contiguous_and_only_changed_files_are_rewritten() {
    let world = World::new().await;
    let export = || LedgerExport { dir: None };
    // A command without a daemon trusts no clock that is 30 days ahead of the last entry.
    for day in [0, 29, 58, 63] {
        world.set_now(OCTOBER_US + day * DAY_US);
        world.send(builtin(&format!("agent-{day}"))).await.unwrap();
    }
    let done = world.send(export()).await.unwrap();
    let months: Vec<_> = done.exports.iter().map(|it| (it.month.as_str(), it.written)).collect();
    assert_eq!(months, [("2026-10", true), ("2026-11", true), ("2026-12", true)]);
    let written = async || -> Vec<bool> {
        let done = world.send(export()).await.unwrap();
        done.exports.iter().map(|it| it.written).collect()
    };
    // Only the events about the first export are new.
    let before = world.kinds().await;
    assert_eq!(written().await, [false, false, false]);
    world.set_now(OCTOBER_US + 92 * DAY_US);
    assert_eq!(written().await, [false, false, false]);
    assert_eq!(world.kinds().await, before);
    world.send(builtin("agent-3")).await.unwrap();
    assert_eq!(written().await, [false, false, true, true]);
    assert_eq!(written().await, [false; 4]);
    let dir = ExportDir(world.data.path().join("exports"));
    let report = verify_export(&dir, Anchors::default(), &mut |_| {}).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:?}");
}

/// Damages the files of the first month in every way.
#[tokio::test]
async fn an_export_repairs_damaged_files_of_a_past_month() {
    let world = World::new().await;
    for (day, name) in [(29, "ada"), (31, "bob")] {
        world.set_now(OCTOBER_US + day * DAY_US);
        world.send(builtin(name)).await.unwrap();
    }
    world.send(LedgerExport { dir: None }).await.unwrap();
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
        let done = world.send(LedgerExport { dir: None }).await.unwrap();
        assert!(done.exports[0].written, "{path:?} {}", bytes.len());
        assert_eq!(
            (fs::read(&lines).unwrap(), fs::read(&manifest).unwrap()),
            (good.clone(), note.clone())
        );
    }
    let done = world.send(LedgerExport { dir: None }).await.unwrap();
    assert!(!done.exports[0].written);
    let report = verify_export(&ExportDir(exports), Anchors::default(), &mut |_| {}).unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn tables_that_differ_from_the_ledger_are_rebuilt() {
    let world = World::new().await;
    world.send(builtin("ada")).await.unwrap();
    run_engine(&world, sleep(Duration::from_secs(1))).await;
    let right = world.store.load_derived().await.unwrap();
    let wrong = Write {
        noun: "agent",
        id: "ada".into(),
        expected_version: 1,
        version: 2,
        body: Some(b"{}".as_slice().into()),
        ..Write::default()
    };
    world.store.commit(Commit { writes: vec![wrong], ..Commit::default() }).await.unwrap();
    run_engine(&world, sleep(Duration::from_secs(5))).await;
    assert!(world.kinds().await.contains(&"ledger.rebuilt".to_owned()));
    let rebuilt = world.store.load_derived().await.unwrap();
    assert_eq!(rebuilt.items, right.items);
    assert_eq!(
        world.send_as(Role::Maintainer, LedgerRebuild {}).await.unwrap().rebuilt.differences,
        0
    );
}

#[tokio::test]
async fn the_engine_starts_without_its_installation_row() {
    let mut world = World::new().await;
    let id = world.engine.instance().to_owned();
    let gone = Write { noun: "watch", id, expected_version: 1, version: 2, ..Write::default() };
    world.store.commit(Commit { writes: vec![gone], ..Commit::default() }).await.unwrap();
    world.reopen().await.unwrap();
    assert_eq!(world.kinds().await, ["genesis", "ledger.rebuilt"]);
}

#[tokio::test]
async fn a_missing_ledger_is_not_replaced_silently() {
    let mut world = World::new().await;
    world.send(LedgerCheckpoint {}).await.unwrap();
    let refused = world.replace_store().await.unwrap_err();
    assert_eq!(refused.code, api::Code::LogRewound, "{refused:?}");
    assert_eq!(world.store.head().await.unwrap().size(), 0);
}

#[tokio::test(start_paused = true)]
async fn reads_work_after_writing_was_stopped() {
    let world = World::new().await;
    world.send(builtin("ada")).await.unwrap();
    world.store.stop_writing("entry 1 was changed".into());
    run_engine(&world, async {
        let refused = world.send(builtin("bob")).await.unwrap_err();
        assert_eq!(refused.code, api::Code::LogDamaged);
        let status = world.send_as(Role::Observer, StatusShow {}).await.unwrap();
        let reason = status.ledger.stopped.unwrap();
        assert!(reason.contains("entry 1 was changed"), "{reason}");
    })
    .await;
    assert_eq!(world.kinds().await, ["genesis", "agent.registered"]);
}

/// For commands without a daemon: unsigned entries and stored responses never get old.
#[tokio::test]
async fn closing_signs_and_deletes_old_responses_once_a_minute() {
    const SECOND_US: i64 = 1_000_000;
    const WEEK_US: i64 = 7 * DAY_US;
    let world = World::new().await;
    let responses = || async {
        let stored = |key| world.store.response(key);
        let (first, second) = (stored("olga/k1").await.unwrap(), stored("olga/k2").await);
        (first.is_some(), second.unwrap().is_some())
    };
    world.send_with_key("k1", builtin("a")).await.unwrap();
    for (at_us, key, signed) in [
        (0, None, 2),
        (59 * SECOND_US, Some("k2"), 2),
        (60 * SECOND_US, None, 3),
        // No new entry, so nothing to sign.
        (WEEK_US, None, 3),
        (WEEK_US, Some("k3"), 4),
    ] {
        world.set_now(OCTOBER_US + at_us);
        if let Some(key) = key {
            world.send_with_key(key, builtin(key)).await.unwrap();
        }
        world.engine.close().await.unwrap();
        let status = world.send(StatusShow {}).await.unwrap();
        assert_eq!(status.ledger.checkpoint, signed, "{at_us} {key:?}");
        assert_eq!(responses().await, (true, 59 * SECOND_US <= at_us), "{at_us} {key:?}");
    }
    world.set_now(OCTOBER_US + WEEK_US + 60 * SECOND_US);
    world.send(builtin("b")).await.unwrap();
    world.engine.close().await.unwrap();
    assert_eq!(responses().await, (false, false));
}
