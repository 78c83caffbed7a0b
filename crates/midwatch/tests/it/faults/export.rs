//! An export that is cut short.

use std::fs;

use super::{add, injected};
use crate::world::{Outcome, World, copy_dir};

/// The program is killed at each flush and each renaming in turn, while it writes a month again.
#[test]
fn an_export_that_is_cut_short_leaves_one_that_restores() {
    let history = World::new();
    history.ok(&add("first"));
    history.ok(&["ledger", "export"]);
    history.ok(&add("second"));
    let mut ended = Vec::new();
    let calls = ["fsync", "fdatasync", "rename"];
    for (call, nth) in calls.iter().flat_map(|call| (1..20).map(move |n| (call, n))) {
        if ended.contains(call) {
            continue;
        }
        let world = history.copy();
        let exports = world.data().join("exports");
        let mut killed = injected(&world, call, &format!("signal=KILL:when={nth}"), &[]);
        let outcome = Outcome::from(killed.args(["ledger", "export"]).output().unwrap());
        if outcome.code == Some(0) {
            ended.push(*call);
        } else {
            assert_eq!(outcome.code, None, "{call} {nth}: {outcome:?}");
        }
        let from = exports.to_str().unwrap();
        let verified = world.run(&["ledger", "verify", "--export", from]);
        assert_eq!(verified.code, Some(0), "{call} {nth}: {verified:?}");
        let restored = World::new();
        restored.ok(&["ledger", "rebuild", "--from-export", from]);
        assert_eq!(restored.agents()[0], "first", "{call} {nth}");
        restored.verified();

        // The next one ends it.
        world.ok(&["ledger", "export"]);
        assert_eq!(fs::read_dir(&exports).unwrap().count(), 2, "{call} {nth}");
        let elsewhere = world.root().join("elsewhere");
        copy_dir(&exports, &elsewhere);
        world.ok(&["ledger", "verify", "--export", elsewhere.to_str().unwrap()]);
    }
    assert_eq!(ended, calls);
}
