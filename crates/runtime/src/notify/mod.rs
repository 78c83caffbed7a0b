//! Notices to people: what needs a person is delivered to the operator's channels, from the committed ledger.
//!
//! Each channel follows the ledger from a cursor of its own that outlives the process. A delivery is a digest of a range of
//! entries. The range is saved before the digest is sent, and its end after it was; so a crash in between repeats the digest
//! under the same id, and no notice is lost.
//!
//! A channel delivers one digest at a time: the first at once, the next no sooner than [`SPACING`] later, with everything that
//! came meanwhile. No other part waits for it.

mod cursor;
mod deliveries;
mod digest;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use api::display::on_one_line;
use api::{DIGEST_FORMAT, DIGEST_ITEMS_MAX, Digest, Error, Notice, TestDelivery};
use futures::future::{BoxFuture, FutureExt, join_all, pending, select};
use kernel::installation::{ChannelFailing, Event as InstallationEvent};
use kernel::notice::Kind;
use kernel::schedule::Schedule;
use kernel::{ScheduleId, Timestamp};
use metrics::Registry;
use store::Store;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{error, warn};

use crate::clock::{Time, micros};
use crate::commit::rows::row_key;
use crate::commit::transaction::Transactions;
use crate::config::Config;
use crate::errors;
use crate::installation::Installation;
use crate::timestamps::rfc3339;
use cursor::{Cursor, CursorFile};
pub(crate) use deliveries::Deliveries;
use digest::PendingNotices;

/// From the end of one delivery to the start of the next.
const SPACING: Duration = Duration::from_secs(10);
/// Seconds before each further attempt at a failed delivery; after the last one it is given up.
const RETRY_AFTER_S: [u64; 8] = [10, 30, 60, 120, 300, 300, 300, 300];
/// The shortest time between two reads of a ledger that grows without notices.
const READ_PAUSE: Duration = Duration::from_millis(200);
/// Entries without notices that another process may have to read again.
const UNSAVED_ENTRIES_MAX: u64 = 1_000;
/// Entries read at a time.
const PAGE_ENTRIES: usize = 512;

/// A way to reach a person, with limits of its own on time and size.
pub trait Channel: Debug + Send + Sync + 'static {
    /// A word that never changes, because the cursor is saved under it.
    fn name(&self) -> &'static str;

    fn deliver<'a>(&'a self, digest: &'a Digest) -> BoxFuture<'a, Result<(), DeliveryError>>;
}

/// Why a digest was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryError {
    /// A clause for people, without secrets.
    pub what: String,
    /// Another attempt cannot help.
    pub is_permanent: bool,
}

#[derive(Debug)]
pub(crate) struct Notifier {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) config: Arc<Config>,
    pub(crate) installation: Arc<Installation>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) deliveries: Deliveries,
    pub(crate) metrics: Arc<Registry>,
    /// The configured channels. A reload replaces them.
    pub(crate) channels: watch::Sender<Vec<Arc<dyn Channel>>>,
}

/// A channel and its cursor.
#[derive(Debug)]
pub(crate) struct OpenChannel {
    channel: Arc<dyn Channel>,
    file: CursorFile,
    cursor: Cursor,
}

/// What came of reading the ledger.
enum Read {
    Nothing,
    Delivered,
}

impl Notifier {
    /// Loads the cursor of each channel. A new channel starts at the present end of the ledger.
    pub(crate) async fn open_channels(
        &self,
        channels: Vec<Arc<dyn Channel>>,
    ) -> Result<Vec<OpenChannel>, Error> {
        let data = &self.installation.settings.data;
        let names: Vec<&str> = channels.iter().map(|it| it.name()).collect();
        self.deliveries.open(&names);
        cursor::remove_others(data, &names);
        let mut open = Vec::new();
        if channels.is_empty() {
            return Ok(open);
        }
        let size = self.store.head().await.map_err(errors::store)?.size();
        for channel in channels {
            let mut file = CursorFile::new(data, channel.name());
            let cursor = match file.read().filter(|cursor| cursor.through <= size) {
                Some(cursor) => cursor,
                None => file.save(Cursor::at(size)).await,
            };
            open.push(OpenChannel { channel, file, cursor });
        }
        Ok(open)
    }

    /// Delivers through the channels until they are replaced, and then through the new ones. A delivery that is under way
    /// then is repeated under the same id, as after a crash.
    pub(crate) async fn run(&self, mut channels: Vec<OpenChannel>) {
        let mut replaced = self.channels.subscribe();
        loop {
            let follow = join_all(channels.into_iter().map(|channel| self.follow(channel)));
            // Without channels there is nothing to follow.
            let follow = follow.then(|_| pending::<()>());
            select(Box::pin(follow), Box::pin(replaced.changed())).await;
            channels = loop {
                let next = self.channels.borrow().clone();
                match self.open_channels(next).await {
                    Ok(open) => break open,
                    Err(failed) => {
                        warn!(%failed, "failed to open the notification channels");
                        self.pause(SPACING).await;
                    }
                }
            };
        }
    }

    /// Sends a test message through every channel, one after the other.
    pub(crate) async fn send_test(&self) -> Vec<TestDelivery> {
        let channels = self.channels.borrow().clone();
        let digest = self.test_digest();
        let mut results = Vec::new();
        for channel in channels {
            let name = channel.name();
            let failure = match channel.deliver(&digest).await {
                Ok(()) => {
                    self.record_delivery(name, None);
                    None
                }
                Err(DeliveryError { what, .. }) => {
                    self.record_delivery(name, Some(what.clone()));
                    Some(what)
                }
            };
            results.push(TestDelivery { channel: name.to_owned(), failure });
        }
        results
    }

    /// Records how an attempt to deliver went.
    fn record_delivery(&self, channel: &str, failure: Option<String>) {
        let outcome = if failure.is_some() { "failed" } else { "delivered" };
        self.metrics.notices.add(&[channel, outcome], 1);
        match failure {
            None => self.deliveries.succeeded(channel, self.time.now()),
            Some(what) => self.deliveries.failed(channel, self.time.now(), what),
        }
    }

    fn test_digest(&self) -> Digest {
        let (instance, now) = (&self.installation.instance, self.time.now());
        let item = Notice {
            seq: 0,
            kind: "test".to_owned(),
            id: instance.clone(),
            at: rfc3339(now),
            text: "This is a test message of Midwatch; nothing needs you.".to_owned(),
            command: "midwatch notice list".to_owned(),
            schedule_id: None,
            schedule_name: None,
            link: None,
        };
        Digest {
            format: DIGEST_FORMAT,
            id: format!("ntc_{instance}_test_{}", now.as_micros()),
            instance: instance.clone(),
            text: item.text.clone(),
            items: vec![item],
            more: 0,
        }
    }

    async fn follow(&self, mut channel: OpenChannel) {
        loop {
            self.store.wait_for_entries_after(channel.cursor.done).await;
            self.config.notices_enabled().await;
            match self.deliver_pending(&mut channel).await {
                Ok(Read::Nothing) => sleep(READ_PAUSE).await,
                Ok(Read::Delivered) => self.pause(SPACING).await,
                Err(failed) => {
                    warn!(%failed, "failed to read the ledger for notices");
                    self.pause(SPACING).await;
                }
            }
        }
    }

    async fn deliver_pending(&self, channel: &mut OpenChannel) -> Result<Read, Error> {
        let pending = self.pending_for(channel).await?;
        if pending.notices.is_empty() {
            channel.skip_to(pending.through).await;
            return Ok(Read::Nothing);
        }
        channel.start_delivery(pending.through).await;
        let name = channel.channel.name();
        self.deliveries.set_pending(name, pending.notices.len());
        self.deliver(channel, pending).await?;
        self.deliveries.set_pending(name, 0);
        channel.finish_delivery().await;
        Ok(Read::Delivered)
    }

    /// Returns when the digest was delivered, is not needed any more, or was given up.
    async fn deliver(
        &self,
        channel: &OpenChannel,
        mut pending: PendingNotices,
    ) -> Result<(), Error> {
        let name = channel.channel.name();
        let mut waits = RETRY_AFTER_S.map(Duration::from_secs).into_iter();
        loop {
            let digest = self.digest(channel.cursor, pending.notices).await?;
            let Err(DeliveryError { what, is_permanent }) = channel.channel.deliver(&digest).await
            else {
                self.record_delivery(name, None);
                return Ok(());
            };
            warn!(channel = name, id = digest.id, what, "failed to deliver a notice");
            self.record_delivery(name, Some(what));
            let Some(wait) = waits.next().filter(|_| !is_permanent) else {
                error!(channel = name, id = digest.id, "gave up on a notice");
                return self.record_failing(name).await;
            };
            self.pause(wait).await;
            self.config.notices_enabled().await;
            pending = self.pending_for(channel).await?;
            if pending.notices.is_empty() {
                return Ok(());
            }
        }
    }

    /// Records that a channel does not deliver, so that the others say so. Once until it delivers again.
    async fn record_failing(&self, name: &str) -> Result<(), Error> {
        if !self.deliveries.report_failing(name) {
            return Ok(());
        }
        let failing = ChannelFailing { channel: name.to_owned(), at: self.time.now() };
        self.transactions.record(InstallationEvent::ChannelFailing(failing)).await
    }

    /// The notices for a channel that still need a person at the end of the ledger. That it failed itself is for the others.
    async fn pending_for(&self, channel: &OpenChannel) -> Result<PendingNotices, Error> {
        let mut pending = PendingNotices::after(channel.cursor);
        let (failing, name) = (Kind::ChannelFailing.name(), channel.channel.name());
        loop {
            let page = self.store.entries(pending.read, PAGE_ENTRIES).await;
            let page = page.map_err(errors::store)?;
            if page.is_empty() {
                pending
                    .notices
                    .retain(|notice| (notice.kind.as_str(), notice.id.as_str()) != (failing, name));
                return Ok(pending);
            }
            page.iter().for_each(|entry| pending.take(&entry));
        }
    }

    async fn digest(
        &self,
        Cursor { done, through }: Cursor,
        mut items: Vec<Notice>,
    ) -> Result<Digest, Error> {
        let more = items.len().saturating_sub(DIGEST_ITEMS_MAX) as u64;
        items.truncate(DIGEST_ITEMS_MAX);
        for item in &mut items {
            let is_approval = item.kind == Kind::ApprovalRequested.name();
            item.link = is_approval.then(|| self.installation.approval_link(&item.id)).flatten();
        }
        self.name_schedules(&mut items).await?;
        let instance = &self.installation.instance;
        Ok(Digest {
            format: DIGEST_FORMAT,
            id: format!("ntc_{instance}_{}_{through}", done + 1),
            instance: instance.clone(),
            text: text(&items, more),
            items,
            more,
        })
    }

    /// Puts the name of its schedule before each text, if only people have written it.
    async fn name_schedules(&self, items: &mut [Notice]) -> Result<(), Error> {
        let ids = items.iter().filter_map(|item| item.schedule_id.as_ref()?.parse().ok());
        let ids: BTreeSet<ScheduleId> = ids.collect();
        let keys: Vec<_> = ids.iter().map(row_key::<Schedule>).collect();
        let rows = self.transactions.load(&keys).await?;
        for item in items {
            let id = item.schedule_id.as_ref().and_then(|id| id.parse().ok());
            let schedule = id.and_then(|id: ScheduleId| rows.get::<Schedule>(&id));
            if let Some(schedule) = schedule.filter(|schedule| schedule.is_written_by_people()) {
                let name = on_one_line(&schedule.definition.name);
                item.text = format!("{name}: {}", item.text);
                item.schedule_name = Some(name);
            }
        }
        Ok(())
    }

    /// Waits by the installation's clock. If the clock is set back, it returns early rather than very late.
    async fn pause(&self, span: Duration) {
        let started = self.time.now();
        let until = Timestamp::from_micros(started.as_micros().saturating_add(micros(span)));
        loop {
            let now = self.time.now();
            if until <= now || now < started {
                return;
            }
            self.time.wait_until(until).await;
        }
    }
}

impl OpenChannel {
    /// No entry up to there needs a person. The cursor is saved only now and then.
    async fn skip_to(&mut self, through: u64) {
        let was_delivering = self.cursor.done < self.cursor.through;
        self.cursor = Cursor::at(through);
        if was_delivering || self.file.saved() + UNSAVED_ENTRIES_MAX <= through {
            self.file.save(self.cursor).await;
        }
    }

    async fn start_delivery(&mut self, through: u64) {
        let cursor = Cursor { done: self.cursor.done, through };
        self.cursor = self.file.save(cursor).await;
    }

    async fn finish_delivery(&mut self) {
        self.cursor = self.file.save(Cursor::at(self.cursor.through)).await;
    }
}

fn text(items: &[Notice], more: u64) -> String {
    let lines = items.iter().map(|item| format!("{} ({})", item.text, item.command));
    let rest = (0 < more).then(|| format!("And {more} more (midwatch status)."));
    lines.chain(rest).collect::<Vec<_>>().join("\n")
}
