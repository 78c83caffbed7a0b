//! A clock that disagrees with the ledger, through the program: the ledger was written by another clock than the machine's.

use std::sync::Arc;
use std::time::Duration;

use api::{AgentAdd, send};
use futures::future::{BoxFuture, FutureExt, pending};
use kernel::{Actor, Timestamp};
use runtime::{Clock, Components, Engine, ReloadableConfig, Settings, SystemClock};
use store_sqlite::Sqlite;

use crate::support::world::{Daemon, World, agent_add};

pub(super) const YEAR_2100: Timestamp = Timestamp::from_micros(4_102_444_800_000_000);
/// The version of the daemon that ran by another clock.
pub(super) const EARLIER_VERSION: &str = "test";
const DAY_US: i64 = 86_400_000_000;

/// A clock that stands still.
#[derive(Debug)]
struct StoppedClock(Timestamp);

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        self.0
    }

    fn reaches(&self, _: Timestamp) -> BoxFuture<'static, ()> {
        pending().boxed()
    }

    fn steady(&self) -> Option<Duration> {
        None
    }
}

/// Runs a daemon by a clock that shows `now`, and adds an agent.
pub(super) fn add_agent_at(world: &World, name: &str, now: Timestamp) {
    let settings = Settings {
        data: world.data().to_owned(),
        version: EARLIER_VERSION.into(),
        posture: kernel::posture::Posture::Staging,
        checkpoint_copy: None,
        heartbeat: Duration::ZERO,
        drain: Duration::ZERO,
        secret_variables: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Arc::new(Sqlite::open(&world.data().join("midwatch.db")).unwrap());
        let components = Components::new(store, Arc::new(StoppedClock(now)));
        let config = ReloadableConfig::default();
        let engine = Engine::open(components, settings, config).await.unwrap();
        let agent =
            AgentAdd { name: name.into(), backend: "builtin".into(), ..AgentAdd::default() };
        let add = async {
            send(&engine.handle(Actor::local_user(0)), agent).await.unwrap();
            "done".to_owned()
        };
        engine.run(&[], Vec::new(), add).await.unwrap();
    });
}

/// The machine's clock, moved by some days.
pub(super) fn days_from_now(days: i64) -> Timestamp {
    SystemClock.now().after_us(days * DAY_US)
}

/// A world whose last entry was written then. No process has opened it since.
pub(super) fn world_of(now: Timestamp) -> World {
    let world = World::new();
    std::fs::create_dir_all(world.data()).unwrap();
    add_agent_at(&world, "ada", now);
    world
}

#[test]
fn person_who_was_away_for_two_months_reads_and_stops_and_learns_how_to_go_on() {
    let world = world_of(days_from_now(-61));
    assert_eq!(world.agents(), ["ada"], "reads work");
    let hint = world.refused(&agent_add("bob"), "unsafe_setup", 4);
    assert!(hint.contains("midwatch up --accept-clock"), "{hint}");
    assert_eq!(world.json(&["freeze"])["recorded"], true);
    assert_eq!(
        world.json(&["status"])["log"]["clock"].as_str().map(|it| it.contains("days ahead")),
        Some(true)
    );
    let (code, stderr) = Daemon::fails(world.command().arg("up"));
    assert_eq!(code, Some(4), "{stderr}");
    assert!(stderr.contains("the check `clock ahead` refuses"), "{stderr}");
    // The freeze did not make the clock known: its entry has the time of the one before.
    let daemon = Daemon::start(world.command().args(["up", "--accept-clock"]));
    assert!(world.wait_for_event("watch.started").is_object());
    let started = world.events_of("watch.started").pop().unwrap();
    assert_eq!(started["body"]["warnings"][0], "clock ahead", "{started}");
    world.ok(&["thaw"]);
    world.add_agent("bob");
    daemon.stop();
    world.add_agent("eve");
    world.verified();
}

#[test]
fn accepted_clock_behind_the_ledger_is_recorded_and_needs_no_flag_again() {
    let world = world_of(YEAR_2100);
    let behind = world.json(&["status"])["log"]["clock"].to_string();
    assert!(behind.contains("2100"), "{behind}");
    Daemon::start(world.command().args(["up", "--accept-clock"])).stop();
    let accepted = world.events_of("watch.clock_anomaly").pop().unwrap();
    assert_eq!(accepted["body"]["is_accepted"], true, "{accepted}");
    assert_eq!(world.json(&["status"])["log"]["clock"], serde_json::Value::Null);
    let daemon = world.up();
    let status = world.json(&["status"]);
    assert_eq!(
        status["watch"]["warnings"].as_array().map(Vec::len).unwrap_or_default(),
        0,
        "{status}"
    );
    let run = world.start_run(&world.add_daily("news", "ada", "hello"));
    world.wait_for_state(&run, "done");
    daemon.stop();
    world.verified();
    assert_eq!(world.rebuild_differences(), 0);
}
