//! Verifying a log that grows meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{add, injected};
use crate::world::{Outcome, World};

/// One look of the verifier at the database is made to wait, so that entries and their checkpoints
/// come between it and the look before; a different one each time.
#[test]
fn a_log_that_grows_while_it_is_verified_is_not_truncated() {
    let world = World::new();
    let daemon = world.up();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                world.ok(&add(&format!("agent-{number}")));
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
                let mut slow = injected(&world, "fcntl", &late, &[&side]);
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
