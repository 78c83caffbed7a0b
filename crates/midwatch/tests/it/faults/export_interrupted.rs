//! An export that is killed.

use std::fs;

use super::inject_fault;
use crate::support::world::{Outcome, World, copy_dir};

/// The program is killed at each flush and each rename in turn, while it rewrites a month.
#[test]
fn killed_export_leaves_files_that_restore() {
    let history = World::new();
    history.add_agent("first");
    history.ok(&["ledger", "export"]);
    history.add_agent("second");
    let mut completed = Vec::new();
    let calls = ["fsync", "fdatasync", "rename"];
    for (call, nth) in calls.iter().flat_map(|call| (1..20).map(move |n| (call, n))) {
        if completed.contains(call) {
            continue;
        }
        let world = history.copy();
        let exports = world.data().join("exports");
        let mut killed = inject_fault(&world, call, &format!("signal=KILL:when={nth}"), &[]);
        let outcome = Outcome::from(killed.args(["ledger", "export"]).output().unwrap());
        if outcome.code == Some(0) {
            completed.push(*call);
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

        // The next export completes it.
        world.ok(&["ledger", "export"]);
        assert_eq!(fs::read_dir(&exports).unwrap().count(), 2, "{call} {nth}");
        let elsewhere = world.root().join("elsewhere");
        copy_dir(&exports, &elsewhere);
        world.ok(&["ledger", "verify", "--export", elsewhere.to_str().unwrap()]);
    }
    assert_eq!(completed, calls);
}
