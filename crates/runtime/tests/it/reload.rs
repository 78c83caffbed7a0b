//! What is told anew while the watch is kept.

use api::{Code, ConfigReload, StatusAsk};
use kernel::Role;
use kernel::authority::Lease;
use store::Store;

use crate::steps::*;
use crate::world::{Files, World, keep};

const DAY_US: i64 = 86_400_000_000;

async fn reload(world: &World) -> Result<Vec<String>, Code> {
    let answer = world.ask_as(Role::Maintainer, ConfigReload {}).await;
    answer.map(|it| it.reloaded.changed).map_err(|error| error.code)
}

async fn policy(world: &World) -> String {
    world.ask(StatusAsk {}).await.unwrap().watch.policy
}

#[tokio::test(start_paused = true)]
async fn a_shorter_lease_holds_from_the_reload_on() {
    let mut world = world().await;
    world.lease = Lease { ask_after_us: 14 * DAY_US, pause_after_us: 28 * DAY_US };
    world.reopen().await.unwrap();
    let files = Files::of(&world);
    let schedule = add(&world, every("7d", "hello")).await;
    keep(&world, async {
        set(&world, 2 * DAY_US).await;
        let first = fire(&world, &schedule).await;
        settle().await;
        assert_eq!(shown(&world, &first).await.state, "done");
        files.change(|it| {
            it.lease = Lease { ask_after_us: DAY_US, ..it.lease };
            it.keys[0].value = DAY_US.to_string();
        });
        assert_eq!(reload(&world).await, Ok(vec!["lease.ask_after".to_owned()]));
        let second = fire(&world, &schedule).await;
        settle().await;
        assert_eq!(shown(&world, &second).await.state, "waiting_permission");
        assert_eq!(reload(&world).await, Ok(vec![]));
    })
    .await;
    let reloads = world.kinds().await.iter().filter(|it| *it == "config.reloaded").count();
    assert_eq!(reloads, 2);
}

/// What is not in the log does not hold.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_down_is_not_taken_up() {
    let world = world().await;
    let files = Files::of(&world);
    let before = policy(&world).await;
    files.change(|it| it.policy = vec![("policy.toml".to_owned(), "# others\n".to_owned())]);
    world.store.stop_writing("it was bitten".to_owned());
    assert_eq!(reload(&world).await, Err(Code::LogDamaged));
    assert_eq!(policy(&world).await, before);
}

#[tokio::test(start_paused = true)]
async fn nobody_but_a_maintainer_reloads() {
    let world = world().await;
    assert_eq!(reload(&world).await, Err(Code::NotNow));
    let _files = Files::of(&world);
    for role in [Role::Observer, Role::Runner, Role::Operator] {
        let refused = world.ask_as(role, ConfigReload {}).await.unwrap_err();
        assert_eq!(refused.code, Code::RoleTooLow, "{role:?}");
    }
    assert_eq!(reload(&world).await, Ok(vec![]));
}
