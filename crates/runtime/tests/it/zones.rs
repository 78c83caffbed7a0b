//! A program with newer time zone rules opens an older ledger.

use api::{ScheduleAdd, When};
use calendar::tzdata_version;
use kernel::installation::{Event as InstallationEvent, TzChanged};
use kernel::progress::NextFire;
use kernel::schedule::{Event, Moved, MovedWhy};
use kernel::{EventBody, Row, State, Timestamp};
use ledger::{Draft, Header, canonical_json};
use store::{Commit, Outcome, Store, Write};

use crate::steps::*;
use crate::world::{OCTOBER_US, World, run_engine};

/// Writes an entry like an older program.
async fn write(world: &World, body: EventBody) {
    let label = body.label();
    let header = Header {
        ts_us: OCTOBER_US,
        kind: label.kind,
        version: label.version,
        actor: "midwatch",
        role: "system",
        cause: "",
        noun: body.noun().name(),
        noun_id: label.noun_id,
    };
    let drafts = vec![Draft::new(header, canonical_json(&body).unwrap(), None).unwrap()];
    let mut writes = Vec::new();
    for row in body.changed_rows() {
        let found = world.store.load(row.noun.name(), &row.id).await.unwrap();
        let state = found.body.map(|bytes| {
            let mut bytes = serde_json::Deserializer::from_slice(&bytes);
            State::decode(row.noun, &mut bytes).unwrap()
        });
        let mut after = Row { version: found.version, state };
        after.apply(row.noun, &row.id, &body);
        writes.push(Write {
            noun: row.noun.name(),
            id: row.id,
            expected_version: found.version,
            version: after.version,
            body: after.state.as_ref().map(|state| canonical_json(state).unwrap().into()),
            due_us: after.due().map(Timestamp::as_micros),
            index_key: after.index_key(),
            ..Write::default()
        });
    }
    let commit = Commit { drafts, writes, ..Commit::default() };
    assert!(matches!(world.store.commit(commit).await.unwrap(), Outcome::Committed(_)));
}

/// S11: once, logged, and no wall time fires twice.
#[tokio::test(start_paused = true)]
async fn the_next_slot_follows_new_zone_rules() {
    let mut world = world().await;
    let when =
        When { daily: Some("09:00".into()), tz: Some("Europe/Berlin".into()), ..When::default() };
    let id = add(&world, ScheduleAdd { when, ..every("1h", "hello") }).await;
    let other = add(&world, every("1d", "other")).await;
    assert_eq!(schedule(&world, &id).await.next_run_at, Some(after(7 * HOUR_US)));

    // In the old rules, Berlin was an hour behind.
    let next = Some(Timestamp::from_micros(OCTOBER_US + 8 * HOUR_US));
    let next_fire = NextFire { slot: next, due: next };
    let at = Timestamp::from_micros(OCTOBER_US);
    let moved = Moved { why: MovedWhy::TzRebased, at, next_fire };
    write(&world, EventBody::Schedule(id.parse().unwrap(), Event::Moved(moved))).await;
    let old = TzChanged { from: None, to: "2001a".into(), moved: 1 };
    let instance = world.engine.instance().to_owned();
    write(&world, EventBody::Installation(instance, InstallationEvent::TzChanged(old))).await;
    world.reopen().await.unwrap();
    assert_eq!(schedule(&world, &id).await.next_run_at, Some(after(8 * HOUR_US)));

    run_engine(&world, async {
        wait_until_idle().await;
        assert_eq!(schedule(&world, &id).await.next_run_at, Some(after(7 * HOUR_US)));
        assert_eq!(schedule(&world, &other).await.next_run_at, Some(after(24 * HOUR_US)));
        set(&world, 7 * HOUR_US).await;
        set(&world, 8 * HOUR_US).await;
    })
    .await;
    let changed: Vec<_> = world.events().await;
    let changed: Vec<_> = changed.iter().filter(|it| it.kind == "tz.changed").skip(1).collect();
    assert_eq!(changed.len(), 1, "once");
    let body = &changed[0].body;
    assert_eq!((&body["from"], &body["to"]), (&"2001a".into(), &tzdata_version().into()));
    assert_eq!(body["moved"], 1);
    let slots: Vec<_> = runs(&world).await.into_iter().filter_map(|run| run.slot).collect();
    assert_eq!(slots, [after(7 * HOUR_US)]);

    world.reopen().await.unwrap();
    let before = world.kinds().await.iter().filter(|kind| *kind == "tz.changed").count();
    run_engine(&world, wait_until_idle()).await;
    assert_eq!(world.kinds().await.iter().filter(|kind| *kind == "tz.changed").count(), before);
    verify_ledger(&world).await;
}
