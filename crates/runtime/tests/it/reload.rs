//! Reloading the configuration while the engine runs.

use api::{Code, ConfigReload, StatusShow};
use kernel::Role;
use kernel::authority::Lease;
use store::Store;

use crate::steps::*;
use crate::world::{Files, World, run_engine};

const DAY_US: i64 = 86_400_000_000;

async fn reload(world: &World) -> Result<Vec<String>, Code> {
    let answer = world.send_as(Role::Maintainer, ConfigReload {}).await;
    answer.map(|it| it.reloaded.changed).map_err(|error| error.code)
}

async fn policy(world: &World) -> String {
    world.send(StatusShow {}).await.unwrap().daemon.policy
}

#[tokio::test(start_paused = true)]
async fn a_shorter_lease_takes_effect_at_the_reload() {
    let mut world = world().await;
    world.lease = Lease { ask_after_us: 14 * DAY_US, pause_after_us: 28 * DAY_US };
    world.reopen().await.unwrap();
    let files = Files::of(&mut world).await;
    let schedule = add(&world, every("7d", "hello")).await;
    run_engine(&world, async {
        set(&world, 2 * DAY_US).await;
        let first = fire(&world, &schedule).await;
        wait_until_idle().await;
        assert_eq!(shown(&world, &first).await.state.as_str(), "done");
        files.change(|it| {
            it.lease = Lease { ask_after_us: DAY_US, ..it.lease };
            it.keys[0].value = DAY_US.to_string();
        });
        assert_eq!(reload(&world).await, Ok(vec!["lease.ask_after".to_owned()]));
        let second = fire(&world, &schedule).await;
        wait_until_idle().await;
        assert_eq!(shown(&world, &second).await.state.as_str(), "waiting_permission");
        assert_eq!(reload(&world).await, Ok(vec![]));
    })
    .await;
    let reloads = world.kinds().await.iter().filter(|it| *it == "config.reloaded").count();
    assert_eq!(reloads, 2);
}

/// A configuration takes effect only with its entry.
#[tokio::test(start_paused = true)]
async fn a_reload_that_cannot_be_committed_has_no_effect() {
    let mut world = world().await;
    let files = Files::of(&mut world).await;
    let before = policy(&world).await;
    files.change(|it| it.policy = vec![("policy.toml".to_owned(), "# others\n".to_owned())]);
    world.store.stop_writing("it was bitten".to_owned());
    assert_eq!(reload(&world).await, Err(Code::LogDamaged));
    assert_eq!(policy(&world).await, before);
}

#[tokio::test(start_paused = true)]
async fn only_a_maintainer_reloads() {
    let mut world = world().await;
    assert_eq!(reload(&world).await, Err(Code::NotNow));
    let _files = Files::of(&mut world).await;
    for role in [Role::Observer, Role::Runner, Role::Operator] {
        let refused = world.send_as(role, ConfigReload {}).await.unwrap_err();
        assert_eq!(refused.code, Code::RoleTooLow, "{role:?}");
    }
    assert_eq!(reload(&world).await, Ok(vec![]));
}
