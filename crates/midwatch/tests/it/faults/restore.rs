//! A directory that is recreated on a disk that is nearly full.

use std::fs;
use std::path::Path;

use super::{add, injected};
use crate::world::{Outcome, World};

fn files(world: &World) -> Vec<String> {
    let names = fs::read_dir(world.data()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "lock").collect()
}

/// The room ends at each write to the new database in turn; the last of them are those that move
/// into it what was written beside it.
#[test]
fn a_restore_that_runs_out_of_room_leaves_nothing_behind() {
    let history = World::new();
    (0..20).for_each(|number| drop(history.ok(&add(&format!("agent-{number}")))));
    let dir = history.root().join("exported");
    history.ok(&["ledger", "export", "--dir", dir.to_str().unwrap()]);
    let from = ["--json", "ledger", "rebuild", "--from-export", dir.to_str().unwrap()];

    let mut failures = 0;
    for nth in 1.. {
        assert!(nth < 200, "there is always a failure");
        let world = World::new();
        fs::create_dir(world.data()).unwrap();
        let database = world.data().join("restoring.db");
        let full = format!("error=ENOSPC:when={nth}+");
        let mut full = injected(&world, "pwrite64", &full, &[&database as &Path]);
        let outcome = Outcome::from(full.args(from).output().unwrap());
        if outcome.code == Some(0) {
            assert_eq!(world.agents().len(), 20);
            world.verified();
            break;
        }
        failures += 1;
        assert_eq!(outcome.error().0, "disk_full", "{nth}: {outcome:?}");
        assert_eq!(files(&world), Vec::<String>::new(), "{nth}");
        world.ok(&from);
        assert_eq!(world.agents().len(), 20);
        world.verified();
    }
    assert!(1 < failures, "{failures}");
}
