//! Calling a human: what needs one is told to the operator's receivers, from the committed log.
//!
//! Each channel follows the log from a position of its own that outlives the process. A delivery is a
//! digest of a range of the log. Which range is on the disk before the digest goes out, and that it is
//! done afterwards; so a crash between the two repeats it under the same id, and nothing is left out.
//!
//! Deliveries are one at a time, the first at once and the next no sooner than [`SPACING`]; what came
//! meanwhile goes together. Nothing here is awaited by anything else.

mod channels;
mod needed;
mod position;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use api::{DIGEST_FORMAT, DIGEST_ITEMS_MAX, Digest, Error, Notice};
use futures::future::{BoxFuture, join_all};
use kernel::Timestamp;
use kernel::notice::Kind;
use tokio::time::sleep;
use tracing::{error, warn};

use crate::errors;
use crate::keep::micros;
use crate::watch::Engine;
pub(crate) use channels::Channels;
use needed::Needed;
use position::{Place, Position};

/// From the end of one delivery to the beginning of the next.
const SPACING: Duration = Duration::from_secs(10);
/// Seconds before each further try of a delivery that failed; after the last it is given up.
const RETRY_AFTER_S: [u64; 8] = [10, 30, 60, 120, 300, 300, 300, 300];
/// The least time between two looks at a log that grows and needs nobody.
const LOOK_PAUSE: Duration = Duration::from_millis(200);
/// Entries that need nobody and that another process may look at once more.
const UNNOTED_ENTRIES_MAX: u64 = 1_000;
/// Entries that are read at once.
const PAGE_ENTRIES: usize = 512;

/// A way to reach a human, with limits of its own on time and size.
pub trait Messenger: Debug + Send + Sync + 'static {
    /// One word that never changes: its position is kept under it.
    fn channel(&self) -> &'static str;

    fn tell<'a>(&'a self, digest: &'a Digest) -> BoxFuture<'a, Result<(), Untold>>;
}

/// Why a digest did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// A clause for people, without secrets.
    pub what: String,
    /// Another try cannot help.
    pub is_permanent: bool,
}

/// A channel at work.
#[derive(Debug)]
pub(crate) struct Caller {
    messenger: Arc<dyn Messenger>,
    place: Place,
    position: Position,
}

/// What came of a look at the log.
enum Looked {
    NobodyNeeded,
    Called,
}

impl Engine {
    /// Where each channel goes on. A new one begins at the end of the log as it is now; that is found
    /// out before this process adds to it.
    pub(crate) async fn callers(
        &self,
        messengers: Vec<Arc<dyn Messenger>>,
    ) -> Result<Vec<Caller>, Error> {
        let names: Vec<&str> = messengers.iter().map(|it| it.channel()).collect();
        self.channels().begin(&names);
        position::forget_others(&self.settings().data, &names);
        let mut callers = Vec::new();
        if messengers.is_empty() {
            return Ok(callers);
        }
        let size = self.store().head().await.map_err(errors::store)?.size();
        for messenger in messengers {
            let mut place = Place::new(&self.settings().data, messenger.channel());
            let position = match place.read().filter(|position| position.through <= size) {
                Some(position) => position,
                None => place.keep(Position::at(size)).await,
            };
            callers.push(Caller { messenger, place, position });
        }
        Ok(callers)
    }

    pub(crate) async fn call_humans(&self, callers: Vec<Caller>) {
        join_all(callers.into_iter().map(|caller| self.call(caller))).await;
    }

    async fn call(&self, mut caller: Caller) {
        loop {
            self.store().grown_past(caller.position.done).await;
            self.until_notices().await;
            match self.look_and_call(&mut caller).await {
                Ok(Looked::NobodyNeeded) => sleep(LOOK_PAUSE).await,
                Ok(Looked::Called) => self.pause(SPACING).await,
                Err(failed) => {
                    warn!(%failed, "whether a human is needed could not be found out");
                    self.pause(SPACING).await;
                }
            }
        }
    }

    async fn look_and_call(&self, caller: &mut Caller) -> Result<Looked, Error> {
        let needed = self.needed_after(caller.position).await?;
        if needed.notices.is_empty() {
            caller.pass(needed.through).await;
            return Ok(Looked::NobodyNeeded);
        }
        caller.begin(needed.through).await;
        self.deliver(caller, needed).await?;
        caller.end().await;
        Ok(Looked::Called)
    }

    /// Returns when the digest has arrived, is not needed any more, or was given up.
    async fn deliver(&self, caller: &Caller, mut needed: Needed) -> Result<(), Error> {
        let channel = caller.messenger.channel();
        let mut waits = RETRY_AFTER_S.map(Duration::from_secs).into_iter();
        loop {
            let digest = self.digest(caller.position, needed.notices);
            let Err(untold) = caller.messenger.tell(&digest).await else {
                self.channels().succeeded(channel, self.now());
                return Ok(());
            };
            let Untold { what, is_permanent } = untold;
            warn!(channel, id = digest.id, what, "a human could not be called");
            self.channels().failed(channel, self.now(), what);
            let Some(wait) = waits.next().filter(|_| !is_permanent) else {
                error!(channel, id = digest.id, "a notice was given up");
                return Ok(());
            };
            self.pause(wait).await;
            self.until_notices().await;
            needed = self.needed_after(caller.position).await?;
            if needed.notices.is_empty() {
                return Ok(());
            }
        }
    }

    /// What has called for a human after a position, and still does at the end of the log.
    async fn needed_after(&self, position: Position) -> Result<Needed, Error> {
        let mut needed = Needed::after(position);
        loop {
            let page = self.store().entries(needed.read, PAGE_ENTRIES).await;
            let page = page.map_err(errors::store)?;
            if page.is_empty() {
                return Ok(needed);
            }
            page.iter().for_each(|fields| needed.take(&fields));
        }
    }

    fn digest(&self, Position { done, through }: Position, mut items: Vec<Notice>) -> Digest {
        let more = items.len().saturating_sub(DIGEST_ITEMS_MAX) as u64;
        items.truncate(DIGEST_ITEMS_MAX);
        for item in &mut items {
            let is_approval = item.kind == Kind::ApprovalAsked.name();
            item.link = is_approval.then(|| self.link_to(&item.id)).flatten();
        }
        Digest {
            format: DIGEST_FORMAT,
            id: format!("ntc_{}_{}_{through}", self.instance(), done + 1),
            instance: self.instance().to_owned(),
            text: text(&items, more),
            items,
            more,
        }
    }

    /// Waits on the watch's own clock. If that is set back it ends: better early than very late.
    async fn pause(&self, span: Duration) {
        let begun = self.now();
        let until = Timestamp::from_micros(begun.as_micros().saturating_add(micros(span)));
        loop {
            let now = self.now();
            if until <= now || now < begun {
                return;
            }
            self.reaches(until).await;
        }
    }
}

impl Caller {
    /// Up to there nobody is needed. That is noted now and then, and found out again otherwise.
    async fn pass(&mut self, through: u64) {
        let was_begun = self.position.done < self.position.through;
        self.position = Position::at(through);
        if was_begun || self.place.noted() + UNNOTED_ENTRIES_MAX <= through {
            self.place.keep(self.position).await;
        }
    }

    /// A digest of what is after the position, up to there, is about to go out.
    async fn begin(&mut self, through: u64) {
        let position = Position { done: self.position.done, through };
        self.position = self.place.keep(position).await;
    }

    async fn end(&mut self) {
        self.position = self.place.keep(Position::at(self.position.through)).await;
    }
}

fn text(items: &[Notice], more: u64) -> String {
    let lines = items.iter().map(|item| format!("{} ({})", item.text, item.command));
    let rest = (0 < more).then(|| format!("And {more} more (midwatch status)."));
    lines.chain(rest).collect::<Vec<_>>().join("\n")
}
