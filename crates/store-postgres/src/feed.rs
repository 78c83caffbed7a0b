//! Notices new entries of any process, and reads the database's clock.
//!
//! The feed polls the head of the ledger while a reader waits. A notification by another process only
//! makes it poll sooner. Notifications are sent outside transactions; inside, they would delay every
//! commit of the database.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use store::Error;
use tokio::select;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_postgres::{AsyncMessage, Client};
use tracing::debug;

use crate::connect::connect;
use crate::error::classify;
use crate::now;
use crate::session::{check_not_rewound, decode_chain};
use crate::store::Shared;
use crate::target::Target;

/// How often the head is polled while a reader waits.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The shortest time between two notifications.
const NOTIFY_INTERVAL_MIN: Duration = Duration::from_millis(50);
/// The longest pause before connecting again; the first is a poll interval.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Poll intervals after which the head and the time are read even if no reader waits.
const IDLE_POLLS_MAX: u32 = 200;

const CHANNEL: &str = "midwatch";

/// Runs until it is dropped. Connects again after a lost connection.
pub(crate) async fn run(target: Target, shared: Arc<Shared>) {
    let mut pause = POLL_INTERVAL;
    loop {
        let polls_before = shared.polls();
        match follow(&target, &shared).await {
            Err(error @ Error::Rewound(_)) => return shared.stop.set(error),
            Err(error) => debug!(%error, "lost the feed's connection"),
            Ok(()) => {}
        }
        pause = match shared.polls() == polls_before {
            true => (pause * 2).min(RECONNECT_PAUSE_MAX),
            false => POLL_INTERVAL,
        };
        sleep(pause).await;
    }
}

async fn follow(target: &Target, shared: &Shared) -> Result<(), Error> {
    let (client, mut connection) = connect(target).await?;
    let notified = Notify::new();
    let driver = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message.map_err(classify)? {
                notified.notify_one();
            }
        }
        Ok::<(), Error>(())
    };
    select! {
        ended = driver => ended,
        ended = poll_repeatedly(&client, shared, &notified) => ended,
    }
}

async fn poll_repeatedly(client: &Client, shared: &Shared, notified: &Notify) -> Result<(), Error> {
    poll(client, shared).await?;
    // A standby refuses `LISTEN`, and behind a pooler it may have no effect: polling is enough.
    match client.batch_execute(&format!("LISTEN {CHANNEL}")).await.map_err(classify) {
        Ok(()) | Err(Error::ReadOnly) => {}
        Err(error) => return Err(error),
    }
    let (mut polls, mut notifies) = (interval(POLL_INTERVAL), interval(NOTIFY_INTERVAL_MIN));
    polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
    notifies.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut idle_polls = 0;
    loop {
        select! {
            () = notified.notified() => {}
            _ = polls.tick() => {
                idle_polls += 1;
                if !shared.has_waiters() && idle_polls < IDLE_POLLS_MAX {
                    continue;
                }
            }
            () = shared.wait_for_local_commit() => {
                notifies.tick().await;
                client.batch_execute(&format!("NOTIFY {CHANNEL}")).await.map_err(classify)?;
                continue;
            }
        }
        idle_polls = 0;
        poll(client, shared).await?;
    }
}

/// Reads the head of the ledger and the time. Fails if the ledger lost an entry seen before.
async fn poll(client: &Client, shared: &Shared) -> Result<(), Error> {
    check_not_rewound(client, shared.last_head()).await?;
    let sql = "SELECT chain, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM head";
    let started = now();
    let row = client.query_one(sql, &[]).await.map_err(classify)?;
    let duration = started.elapsed();
    shared.record_head(&decode_chain(row.get(0))?);
    // The database read its clock at some moment during the query.
    shared.record_time(row.get(1), started + duration / 2);
    Ok(())
}
