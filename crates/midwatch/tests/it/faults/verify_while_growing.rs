//! Verifying a ledger that grows meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use super::inject_fault;
use crate::support::world::{Outcome, World};

/// One read of the verifier is delayed, a different one each time, so that entries and checkpoints are added
/// between two reads.
#[test]
fn ledger_that_grows_while_it_is_verified_is_not_reported_truncated() {
    let world = World::new();
    let daemon = world.up();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                world.add_agent(&format!("agent-{number}"));
                world.ok(&["ledger", "checkpoint"]);
                if is_done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let side = world.data().join("midwatch.db-shm");
        let outcomes: Vec<Outcome> = (1..=16)
            .map(|nth| {
                let late = format!("delay_enter=60ms:when={nth}");
                let mut slow = inject_fault(&world, "fcntl", &late, &[&side]);
                Outcome::from(slow.args(["--json", "ledger", "verify"]).output().unwrap())
            })
            .collect();
        is_done.store(true, Ordering::Relaxed);
        for outcome in outcomes {
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
        }
    });
    drop(daemon);
    world.verified();
}
