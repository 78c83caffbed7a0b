//! Tells this process that the log has grown, whoever made it grow.
//!
//! The log is asked, again and again while somebody waits. A notification by another process only
//! makes the next question come sooner, and is sent outside of any transaction: inside it would hold
//! up every commit of the database.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use store::Error;
use tokio::select;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_postgres::{AsyncMessage, Client};
use tracing::debug;

use crate::error::meaning;
use crate::now;
use crate::session::{chain, check_seen};
use crate::store::Shared;
use crate::target::Target;

/// How far this process may be behind another one.
const POLL: Duration = Duration::from_millis(50);
/// Notifications are not sent more often than this.
const HINT_PAUSE: Duration = Duration::from_millis(50);
/// Before a connection is made again: first no longer than a poll, then longer each time.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often the database's time is asked for when nothing is written.
const QUIET_POLLS_MAX: u32 = 200;

const CHANNEL: &str = "midwatch";

/// Runs until it is dropped; a lost connection is made again.
pub(crate) async fn run(target: Target, shared: Arc<Shared>) {
    let mut pause = POLL;
    loop {
        let looks = shared.looks();
        match follow(&target, &shared).await {
            Err(error @ Error::Rewound(_)) => return shared.stop.set(error),
            Err(error) => debug!(%error, "the feed lost its connection"),
            Ok(()) => {}
        }
        pause = match shared.looks() == looks {
            true => (pause * 2).min(RECONNECT_PAUSE_MAX),
            false => POLL,
        };
        sleep(pause).await;
    }
}

async fn follow(target: &Target, shared: &Shared) -> Result<(), Error> {
    let connected = target.config().connect(target.tls().clone()).await;
    let (client, mut connection) = connected.map_err(meaning)?;
    let hinted = Notify::new();
    let driven = async {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message.map_err(meaning)? {
                hinted.notify_one();
            }
        }
        Ok::<(), Error>(())
    };
    select! {
        ended = driven => ended,
        ended = ask(&client, shared, &hinted) => ended,
    }
}

async fn ask(client: &Client, shared: &Shared, hinted: &Notify) -> Result<(), Error> {
    look(client, shared).await?;
    // On a standby it is refused, behind a pooler it may have no effect: then the polls alone must do.
    match client.batch_execute(&format!("LISTEN {CHANNEL}")).await.map_err(meaning) {
        Ok(()) | Err(Error::ReadOnly) => {}
        Err(error) => return Err(error),
    }
    let (mut polls, mut hints) = (interval(POLL), interval(HINT_PAUSE));
    polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
    hints.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut quiet = 0;
    loop {
        select! {
            () = hinted.notified() => {}
            _ = polls.tick() => {
                quiet += 1;
                if !shared.is_awaited() && quiet < QUIET_POLLS_MAX {
                    continue;
                }
            }
            () = shared.until_grown_here() => {
                hints.tick().await;
                client.batch_execute(&format!("NOTIFY {CHANNEL}")).await.map_err(meaning)?;
                continue;
            }
        }
        quiet = 0;
        look(client, shared).await?;
    }
}

/// Asks for the end of the log and the time. What was seen before must still be there.
async fn look(client: &Client, shared: &Shared) -> Result<(), Error> {
    check_seen(client, shared.seen()).await?;
    let sql = "SELECT chain, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM head";
    let asked = now();
    let row = client.query_one(sql, &[]).await.map_err(meaning)?;
    let looked = asked.elapsed();
    shared.saw(&chain(row.get(0))?);
    // The database looked at its clock at some moment between.
    shared.told_time(row.get(1), asked + looked / 2);
    Ok(())
}
