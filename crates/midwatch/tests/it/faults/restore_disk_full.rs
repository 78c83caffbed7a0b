//! `ledger rebuild --from-export` on a disk that becomes full.

use std::fs;
use std::path::Path;

use super::inject_fault;
use crate::support::world::{Outcome, World};

fn files(world: &World) -> Vec<String> {
    let names = fs::read_dir(world.data()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "lock").collect()
}

/// The disk is full from each write to the new database on, in turn; the last of these writes copy the write-ahead
/// log into it.
#[test]
fn restore_on_a_full_disk_leaves_no_files() {
    let history = World::new();
    (0..20).for_each(|number| history.add_agent(&format!("agent-{number}")));
    let dir = history.root().join("exported");
    history.ok(&["ledger", "export", "--dir", dir.to_str().unwrap()]);
    let from = ["--json", "ledger", "rebuild", "--from-export", dir.to_str().unwrap()];

    let mut failures = 0;
    for nth in 1.. {
        assert!(nth < 200, "every restore failed");
        let world = World::new();
        fs::create_dir(world.data()).unwrap();
        let database = world.data().join("restoring.db");
        let full = format!("error=ENOSPC:when={nth}+");
        let mut full = inject_fault(&world, "pwrite64", &full, &[&database as &Path]);
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
