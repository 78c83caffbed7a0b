//! An open data directory: the store, who signs its log, and what requests need besides.

use std::path::PathBuf;
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use agents::AgentBackend;
use api::{Code, Error, ProgressSink};
use kernel::approval;
use kernel::posture::{self, Finding};
use kernel::ruling::Posture;
use kernel::run::Event as RunEvent;
use kernel::schedule::Event as ScheduleEvent;
use kernel::watch::{Event as WatchEvent, Genesis, Identity, LOG_FORMAT};
use kernel::{Actor, Body, Counter, Event, Noun, Now, State, Timestamp};
use ledger::{Chain, SigningKey};
use store::{Commit, Outcome, Store};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::checks::Kept;
use crate::clock::Clock;
use crate::desk::Desk;
use crate::errors::{self, internal};
use crate::export::Ended;
use crate::handle::Local;
use crate::holder::Holder;
use crate::keep::{CHECKPOINT_AFTER, CHECKPOINT_ENTRIES, micros};
use crate::notices::Channels;
use crate::principals::Refusals;
use crate::rebuild::rebuild;
use crate::reload::Reader;
use crate::remembered::Remembered;
use crate::sealing::Sealing;
use crate::standing::{InForce, Snapshot, Standing};
use crate::tallies::Tallies;
use crate::timer::{Bell, Known};
use crate::tokens::has_maintainer;
use crate::tools::Tools;
use crate::transact::Done;
use crate::turns::Turns;
use crate::{checkpoints, damage, key, stored};

/// What the watch must be told, and holds for as long as its process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data directory.
    pub data: PathBuf,
    /// Of the program.
    pub version: String,
    pub posture: Posture,
    /// A file elsewhere to which every checkpoint is copied.
    pub checkpoint_copy: Option<PathBuf>,
    /// Zero: none.
    pub heartbeat: Duration,
    /// How long runs may go on when the watch is told to stop.
    pub drain: Duration,
    /// The variables that hold secrets of the watch, and are for no agent.
    pub secret_variables: Vec<String>,
}

/// Cheap to clone; all clones are the same watch.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    /// The configured one, or that in which the watch was last kept.
    posture: Posture,
    /// Tells the data directory from its copies, where the log is in it.
    place: Option<String>,
    identity: Identity,
    key: SigningKey,
    /// Held while a checkpoint is made, so that no size is signed twice.
    signing: tokio::sync::Mutex<()>,
    /// Set once the copy of the checkpoints was found to be one of this log's.
    copy_confirmed: tokio::sync::OnceCell<()>,
    /// Held while files are exported; what needs not be looked at again.
    exporting: tokio::sync::Mutex<Ended>,
    /// When this process began to keep the watch.
    kept_since: OnceLock<Timestamp>,
    /// Who works on runs, while this process keeps the watch.
    holder: OnceLock<Holder>,
    /// Who does the work of runs, once that is known.
    doer: OnceLock<Arc<dyn AgentBackend>>,
    /// The tools that schedules may call.
    tools: OnceLock<Arc<dyn Tools>>,
    /// Where the pages for humans are.
    pages: OnceLock<String>,
    /// How tools do.
    tallies: Tallies,
    /// Wakes the timer.
    bell: Bell,
    /// Definitions of schedules that fire.
    known: Known,
    /// Rows that are at hand.
    remembered: Remembered,
    turns: Turns,
    /// Runs that wait and runs at work.
    desk: Desk,
    /// Stops tests of agents.
    tests: CancellationToken,
    /// How calling a human went.
    channels: Channels,
    asked: Notify,
    refusals: Refusals,
    /// Tells of every change of what the watch may do.
    authority_changed: Notify,
    /// What may be told anew.
    snapshot: Snapshot,
    /// Where that is read again, while this process keeps the watch.
    reader: OnceLock<Arc<dyn Reader>>,
    /// Held while it is.
    reloading: tokio::sync::Mutex<()>,
    /// What the checks had to say when this process began.
    found: OnceLock<Vec<Finding>>,
    /// Where secrets are found.
    kept_secrets: OnceLock<Kept>,
    /// Counts the ids of runs, over and over.
    runs_made: AtomicU16,
    sealing: Sealing,
    /// What the background check has found so far.
    check: Mutex<String>,
    /// Why an earlier process found the log to be damaged.
    verdict: Mutex<Option<String>>,
}

impl Engine {
    /// Opens a data directory whose lock the caller holds. A new one gets its key and the first
    /// entry of its log.
    pub async fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        settings: Settings,
        standing: Standing,
    ) -> Result<Engine, Error> {
        let mut in_force = InForce::of(settings.posture, &settings.data, standing.clone())?;
        checkpoints::check_not_rewound(&*store, &settings).await?;
        let is_empty = store.head().await.map_err(errors::store)?.size() == 0;
        let verdict = damage::read(&settings.data);
        let sealing = Sealing::new(&settings.data);
        let is_new = is_empty && store.stopped_writing().is_none() && verdict.is_none();
        let (identity, key) = match is_new {
            true => begin(&*store, &*clock, &settings).await?,
            false => recognise(&*store, &*clock, &settings).await?,
        };
        let posture = holds(&*store, &identity.instance, settings.posture).await?;
        if posture != settings.posture {
            in_force = InForce::of(posture, &settings.data, standing)?;
        }
        let place = store.place();
        let watch = Engine(Arc::new(Inner {
            store,
            clock,
            settings,
            posture,
            place,
            identity,
            key,
            signing: tokio::sync::Mutex::new(()),
            copy_confirmed: tokio::sync::OnceCell::new(),
            exporting: tokio::sync::Mutex::new(Ended::none()),
            kept_since: OnceLock::new(),
            holder: OnceLock::new(),
            doer: OnceLock::new(),
            tools: OnceLock::new(),
            pages: OnceLock::new(),
            tallies: Tallies::default(),
            bell: Bell::default(),
            known: Known::default(),
            remembered: Remembered::default(),
            turns: Turns::default(),
            desk: Desk::default(),
            tests: CancellationToken::new(),
            channels: Channels::default(),
            asked: Notify::new(),
            refusals: Refusals::default(),
            authority_changed: Notify::new(),
            snapshot: Snapshot::of(in_force),
            reader: OnceLock::new(),
            reloading: tokio::sync::Mutex::new(()),
            found: OnceLock::new(),
            kept_secrets: OnceLock::new(),
            runs_made: AtomicU16::new(0),
            sealing,
            check: Mutex::new("not run".to_owned()),
            verdict: Mutex::new(verdict),
        }));
        checkpoints::check_newest(&watch).await?;
        Ok(watch)
    }

    /// A handle that speaks for a principal.
    pub fn handle(&self, actor: Actor) -> Local {
        Local::new(self.clone(), actor)
    }

    pub fn store(&self) -> &dyn Store {
        &*self.0.store
    }

    pub(crate) fn now(&self) -> Timestamp {
        now(self.store(), &*self.0.clock)
    }

    /// By the clock and by the log: for whatever runs out.
    pub(crate) fn by_log(&self) -> Now {
        let clock = self.now();
        let log = Timestamp::from_micros(self.store().last_entry_us());
        Now { clock, latest: clock.max(log) }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn posture(&self) -> Posture {
        self.0.posture
    }

    pub(crate) fn place(&self) -> Option<&str> {
        self.0.place.as_deref()
    }

    pub fn instance(&self) -> &str {
        &self.0.identity.instance
    }

    pub(crate) fn key(&self) -> &SigningKey {
        &self.0.key
    }

    /// The words of sensitive schedules, and what keeps them.
    pub(crate) fn sealing(&self) -> &Sealing {
        &self.0.sealing
    }

    pub(crate) fn signing(&self) -> &tokio::sync::Mutex<()> {
        &self.0.signing
    }

    pub(crate) fn copy_confirmed(&self) -> &tokio::sync::OnceCell<()> {
        &self.0.copy_confirmed
    }

    pub(crate) fn exporting(&self) -> &tokio::sync::Mutex<Ended> {
        &self.0.exporting
    }

    pub(crate) fn kept_since(&self) -> &OnceLock<Timestamp> {
        &self.0.kept_since
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    pub(crate) fn holder(&self) -> &OnceLock<Holder> {
        &self.0.holder
    }

    /// Says who does the work. The first one stays.
    pub fn set_doer(&self, doer: Arc<dyn AgentBackend>) {
        let _ = self.0.doer.set(doer);
    }

    pub(crate) fn doer(&self) -> Option<&Arc<dyn AgentBackend>> {
        self.0.doer.get()
    }

    /// Says which tools schedules may call. The first ones stay.
    pub fn set_tools(&self, tools: Arc<dyn Tools>) {
        let _ = self.0.tools.set(tools);
    }

    pub(crate) fn tools(&self) -> Option<&dyn Tools> {
        self.0.tools.get().map(|tools| &**tools)
    }

    /// Says where the pages for humans are, without a slash at its end. The first place stays.
    pub fn set_pages(&self, place: String) {
        let _ = self.0.pages.set(place);
    }

    pub(crate) fn pages(&self) -> Option<&str> {
        self.0.pages.get().map(String::as_str)
    }

    pub(crate) fn tallies(&self) -> &Tallies {
        &self.0.tallies
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.0.bell
    }

    pub(crate) fn known(&self) -> &Known {
        &self.0.known
    }

    pub(crate) fn remembered(&self) -> &Remembered {
        &self.0.remembered
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.0.desk
    }

    pub(crate) fn tests(&self) -> &CancellationToken {
        &self.0.tests
    }

    pub(crate) fn channels(&self) -> &Channels {
        &self.0.channels
    }

    /// Tells of every change of an approval.
    pub(crate) fn asked(&self) -> &Notify {
        &self.0.asked
    }

    pub(crate) fn refusals(&self) -> &Refusals {
        &self.0.refusals
    }

    pub(crate) fn authority_changed(&self) -> &Notify {
        &self.0.authority_changed
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.0.snapshot
    }

    pub(crate) fn reader(&self) -> &OnceLock<Arc<dyn Reader>> {
        &self.0.reader
    }

    pub(crate) fn reloading(&self) -> &tokio::sync::Mutex<()> {
        &self.0.reloading
    }

    pub(crate) fn kept_secrets(&self) -> &OnceLock<Kept> {
        &self.0.kept_secrets
    }

    pub(crate) fn found(&self) -> &OnceLock<Vec<Finding>> {
        &self.0.found
    }

    pub(crate) fn runs_made(&self) -> &AtomicU16 {
        &self.0.runs_made
    }

    /// Something was committed: timer and desk learn what concerns them.
    pub(crate) fn noticed(&self, done: &Done) {
        for body in &done.bodies {
            match body {
                Body::Run(id, RunEvent::CancelAsked(_)) => self.desk().stop(id),
                Body::Run(id, _) => {
                    done.after.run(id).into_iter().for_each(|run| self.desk().put(id, run));
                }
                Body::Schedule(id, ScheduleEvent::Removed(_) | ScheduleEvent::Changed(_)) => {
                    self.known().forget(id);
                }
                Body::Approval(_, event) => {
                    self.asked().notify_one();
                    if let approval::Event::Decided(decided) = event {
                        let run = done.after.run(&decided.run);
                        run.into_iter().for_each(|run| self.desk().put(&decided.run, run));
                    }
                }
                Body::Authority(instance, _) => {
                    done.after.authority(instance).into_iter().for_each(|it| self.obey(it));
                    self.authority_changed().notify_one();
                }
                Body::Agent(name, _) => match done.after.agent(name) {
                    Some(agent) => self.desk().know(agent),
                    None => self.desk().forget(name),
                },
                Body::Schedule(..) => {}
                Body::Token(..) | Body::Tool(..) | Body::Watch(..) => {}
            }
        }
        if let Some(due) = done.after.earliest_due() {
            self.bell().ring(due);
        }
    }

    pub(crate) fn check_found(&self) -> String {
        self.0.check.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_check_found(&self, found: impl Into<String>) {
        *self.0.check.lock().unwrap_or_else(PoisonError::into_inner) = found.into();
    }

    /// Why nothing may be written, if so: by what the store knows, or by an earlier verdict.
    pub(crate) fn stopped_writing(&self) -> Option<store::Error> {
        let verdict = || self.verdict().clone().map(store::Error::Damaged);
        self.store().stopped_writing().or_else(verdict)
    }

    pub(crate) fn may_write(&self) -> Result<(), Error> {
        self.stopped_writing().map_or(Ok(()), |reason| Err(errors::store(reason)))
    }

    /// If the log was found to be damaged, the next process shall know it too.
    pub(crate) fn remember_damage(&self) {
        let Some(store::Error::Damaged(reason)) = self.store().stopped_writing() else { return };
        let mut verdict = self.verdict();
        if verdict.is_some() {
            return;
        }
        if let Err(error) = damage::keep(&self.settings().data, &reason) {
            error!(%error, "that the log is damaged could not be noted in the data directory");
        }
        *verdict = Some(reason);
    }

    /// The whole log was found to be sound.
    pub(crate) fn forget_damage(&self) {
        let mut verdict = self.verdict();
        if verdict.is_none() {
            return;
        }
        match damage::forget_damage(&self.settings().data) {
            Ok(()) => *verdict = None,
            Err(error) => error!(%error, "the verdict on the log could not be removed"),
        }
    }

    fn verdict(&self) -> MutexGuard<'_, Option<String>> {
        self.0.verdict.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn commit(&self, commit: Commit) -> Result<Outcome, Error> {
        self.may_write()?;
        self.store().commit(commit).await.map_err(errors::store)
    }

    /// To be called by a command that leaves: the upkeep of a log that grows without a watch. It is
    /// due after many entries, or when the newest that is signed has become old.
    pub async fn leave(&self) -> Result<(), Error> {
        self.remember_damage();
        self.leave_tallies().await;
        let size = self.store().head().await.map_err(errors::store)?.size();
        let last = self.store().last_checkpoint().await.map_err(errors::store)?;
        let signed = last.map_or_else(Chain::empty, |last| last.chain);
        let is_long = signed.size() + CHECKPOINT_ENTRIES <= size;
        let is_old = signed.ts_us() + micros(CHECKPOINT_AFTER) <= self.now().as_micros();
        let is_due = signed.size() < size && (is_long || is_old);
        if is_due && self.stopped_writing().is_none() {
            self.checkpoint().await?;
            self.forget_old_answers().await?;
        }
        Ok(())
    }

    /// Writes an event of the watch about itself.
    pub(crate) async fn note(&self, event: WatchEvent) -> Result<(), Error> {
        self.note_by(&Actor::system(), event).await
    }

    /// Writes an event of the watch to which somebody led.
    pub(crate) async fn note_by(&self, actor: &Actor, event: WatchEvent) -> Result<(), Error> {
        let body = &mut Body::Watch(self.instance().to_owned(), event);
        let event = Event { at: self.now(), actor, cause: "", body };
        let drafts = vec![stored::draft(event)?];
        self.commit(Commit { drafts, ..Commit::default() }).await.map(drop)
    }
}

/// The time that counts: the store's, if it has one, because others may go by it too.
fn now(store: &dyn Store, clock: &dyn Clock) -> Timestamp {
    store.time_us().map_or_else(|| clock.now(), Timestamp::from_micros)
}

/// The first entry of a new log. A key that is there already was made by a start that was cut short.
async fn begin(
    store: &dyn Store,
    clock: &dyn Clock,
    settings: &Settings,
) -> Result<(Identity, SigningKey), Error> {
    let key = match key::read(&settings.data)? {
        Some(key) => key,
        None => key::create(&settings.data, &key::new_instance())?,
    };
    let instance = key::instance(&key)?;
    let public = key.verifying_key().to_text();
    let tzdata = Some(calendar::tzdata_version().to_owned());
    let genesis = Genesis {
        instance: instance.clone(),
        key: public.clone(),
        format: LOG_FORMAT,
        tzdata: tzdata.clone(),
    };
    let body = Body::Watch(instance.clone(), WatchEvent::Genesis(genesis));
    commit_row(store, clock, body).await?;
    Ok((Identity { instance, key: public, tzdata }, key))
}

/// The identity of an existing log, and the key that belongs to it. When the tables do not know it,
/// or cannot be read, they are made anew.
async fn recognise(
    store: &dyn Store,
    clock: &dyn Clock,
    settings: &Settings,
) -> Result<(Identity, SigningKey), Error> {
    let identity = match (identity(store).await, store.counter(&Counter::Agents.name()).await) {
        (Ok(Some(identity)), Ok(_)) => identity,
        _ => {
            if let Some(reason) = damage::read(&settings.data) {
                return Err(errors::store(store::Error::Damaged(reason)));
            }
            let reason = "the tables did not say whose log this is, or could not be read";
            rebuild(store, &Actor::system(), now(store, clock), reason, &ProgressSink::default())
                .await?;
            let missing = || internal("the log does not say whose it is");
            identity(store).await?.ok_or_else(missing)?
        }
    };
    let wrong = |what: String| {
        Error::new(Code::KeyMissing, what)
            .hint("put back the key file of this data directory, from a copy that you kept")
    };
    let path = key::path(&settings.data);
    let key = key::read(&settings.data)?
        .ok_or_else(|| wrong(format!("the signing key `{}` is missing", path.display())))?;
    match key.verifying_key().to_text() == identity.key {
        true => Ok((identity, key)),
        false => Err(wrong(format!("`{}` is not the key that signs this log", path.display()))),
    }
}

/// Who signs this log, by the tables.
pub(crate) async fn identity(store: &dyn Store) -> Result<Option<Identity>, Error> {
    let found = store.list(Noun::Watch.name(), "", 1).await.map_err(errors::store)?;
    let bytes = found.into_iter().next().and_then(|item| item.body);
    match bytes.map(|bytes| stored::state(Noun::Watch, &bytes)).transpose()? {
        Some(State::Watch(identity)) => Ok(Some(identity)),
        _ => Ok(None),
    }
}

/// The posture that holds, whoever opens the watch and with whatever configuration.
async fn holds(store: &dyn Store, instance: &str, configured: Posture) -> Result<Posture, Error> {
    let found = store.load(Noun::Authority.name(), instance).await.map_err(errors::store)?;
    let last = match stored::row(Noun::Authority, found)?.state {
        Some(State::Authority(authority)) => authority.posture,
        _ => None,
    };
    match posture::holds(configured, last) {
        other if other != configured && has_maintainer(store).await? => Ok(other),
        _ => Ok(configured),
    }
}

/// Commits an event of the watch that changes its row.
pub(crate) async fn commit_row(
    store: &dyn Store,
    clock: &dyn Clock,
    mut body: Body,
) -> Result<(), Error> {
    let id = body.label().noun_id.to_owned();
    let loaded = store.load(Noun::Watch.name(), &id).await.map_err(errors::store)?;
    let before = stored::row(Noun::Watch, loaded)?;
    let mut row = before.clone();
    row.apply(Noun::Watch, &id, &body);
    let actor = &Actor::system();
    let event = Event { at: now(store, clock), actor, cause: "", body: &mut body };
    let write = stored::write(Noun::Watch, id, &before, &row)?;
    let drafts = vec![stored::draft(event)?];
    let commit = Commit { drafts, writes: vec![write], ..Commit::default() };
    store.commit(commit).await.map_err(errors::store).map(drop)
}
