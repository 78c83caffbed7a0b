//! The only code that reads the time of day or waits for it.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::{BoxFuture, FutureExt};
use kernel::installation::AcceptedClock;
use kernel::posture::{Finding, check_clock_ahead};
use kernel::{Now, Timestamp};
use store::Store;
use tokio::time::sleep;

/// How long to sleep before checking the clock again, on systems that do not report that it was set.
const RECHECK_EVERY: Duration = Duration::from_secs(1);

pub trait Clock: Debug + Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// Returns when this clock shows an instant. It may return early, for example when the clock is set: the
    /// caller checks again.
    fn reaches(&self, at: Timestamp) -> BoxFuture<'_, ()>;

    /// Time since an arbitrary moment, by a clock that cannot be set and that keeps counting while the machine is
    /// suspended. `None` where there is no such clock.
    fn steady(&self) -> Option<Duration>;

    /// An unpredictable number. A simulation supplies predictable ones.
    fn random(&self) -> u64 {
        getrandom::u64().unwrap_or_default()
    }
}

/// The current time of an installation, and ids that sort by it.
///
/// A clock that is 30 days or more ahead of what is known otherwise is not trusted. Until it is set, or accepted by a start,
/// [`Time::now`] returns the time that is known, so that no entry carries a wrong one.
#[derive(Debug)]
pub(crate) struct Time {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The clock and the steady clock when a daemon started by it. A command has only the ledger to compare with.
    started: OnceLock<(Timestamp, Option<Duration>)>,
    /// An accepted clock that is behind the ledger.
    accepted: Mutex<Option<AcceptedClock>>,
    /// Ids made so far, modulo 2^16.
    ids_made: AtomicU16,
}

impl Time {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Time {
        let (started, accepted) = (OnceLock::new(), Mutex::default());
        Time { store, clock, started, accepted, ids_made: AtomicU16::new(0) }
    }

    /// The time, if the clock can be trusted; else the time that is known otherwise.
    pub(crate) fn now(&self) -> Timestamp {
        let (shown, known) = (self.shown(), self.known());
        known.filter(|known| check_clock_ahead(shown, *known).is_some()).unwrap_or(shown)
    }

    /// What the clock shows, right or wrong: the database's if the store has one, because several processes may share it;
    /// else the machine's.
    pub(crate) fn shown(&self) -> Timestamp {
        now_of(&*self.store, &*self.clock)
    }

    /// The time for anything that expires: never earlier than the ledger, so a clock that is set back gives nothing more
    /// time.
    pub(crate) fn monotonic_now(&self) -> Now {
        let clock = self.now();
        let latest = clock.max(self.ledger());
        if let Some(accepted) = &mut *self.accepted() {
            accepted.latest = accepted.latest.max(clock);
        }
        Now { clock, latest }
    }

    /// The time of the last entry, or the latest since a maintainer accepted a clock behind it.
    pub(crate) fn ledger(&self) -> Timestamp {
        let last = Timestamp::from_micros(self.store.last_entry_us());
        self.accepted_behind().map_or(last, |accepted| accepted.latest)
    }

    /// The accepted clock, while it is behind the last entry.
    pub(crate) fn accepted_behind(&self) -> Option<AcceptedClock> {
        let last = Timestamp::from_micros(self.store.last_entry_us());
        self.accepted().filter(|accepted| last <= accepted.ledger)
    }

    /// Follows what the ledger says about an accepted clock.
    pub(crate) fn set_accepted(&self, clock: Option<AcceptedClock>) {
        *self.accepted() = clock;
    }

    /// A daemon starts by this clock: the checks found nothing, or a person accepted what they found.
    pub(crate) fn start(&self) {
        let _ = self.started.set((self.shown(), self.steady()));
    }

    /// The clock is so far ahead that it is not trusted: nothing is started, and only stops are accepted.
    pub(crate) fn untrusted(&self) -> Option<Finding> {
        self.known().and_then(|known| check_clock_ahead(self.shown(), known))
    }

    /// The latest time that is known without the clock: that of the ledger, and in a daemon that of the steady clock.
    /// `None`: nothing is known.
    fn known(&self) -> Option<Timestamp> {
        let ledger = Some(self.ledger()).filter(|ledger| 0 < ledger.as_micros());
        match self.started.get() {
            None => ledger,
            Some((clock, steady)) => {
                let elapsed = self.steady()?.saturating_sub((*steady)?);
                Some(clock.after_us(micros(elapsed))).max(ledger)
            }
        }
    }

    fn accepted(&self) -> MutexGuard<'_, Option<AcceptedClock>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn after(&self, span: Duration) -> Timestamp {
        self.now().after_us(micros(span))
    }

    /// Waits until [`Time::now`] reaches an instant. It may return early.
    pub(crate) async fn wait_until(&self, at: Timestamp) {
        let ahead = at.as_micros().saturating_sub(self.now().as_micros());
        let on_clock = self.clock.now().as_micros().saturating_add(ahead);
        self.clock.reaches(Timestamp::from_micros(on_clock)).await;
    }

    pub(crate) fn steady(&self) -> Option<Duration> {
        self.clock.steady()
    }

    pub(crate) fn random(&self) -> u64 {
        self.clock.random()
    }

    /// A number for a new id. It sorts by time, and within one microsecond by the order in which ids were made.
    pub(crate) fn time_ordered(&self, now: Timestamp) -> u128 {
        let time = u128::try_from(now.as_micros()).unwrap_or_default();
        let turn = u64::from(self.ids_made.fetch_add(1, Ordering::Relaxed)) << 48;
        time << 64 | u128::from(turn | self.random() >> 16)
    }
}

pub(crate) fn now_of(store: &dyn Store, clock: &dyn Clock) -> Timestamp {
    store.shared_clock_us().map_or_else(|| clock.now(), Timestamp::from_micros)
}

/// A measured time, for a metric.
pub(crate) fn whole_micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

pub(crate) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    fn now(&self) -> Timestamp {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
    }

    fn reaches(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        async move {
            let Ok(span_us) = u64::try_from(at.as_micros() - self.now().as_micros()) else {
                return;
            };
            #[cfg(target_os = "linux")]
            if let Ok(alarm) = alarm::Alarm::at(at) {
                return alarm.rings().await;
            }
            sleep(RECHECK_EVERY.min(Duration::from_micros(span_us))).await;
        }
        .boxed()
    }

    #[cfg(target_os = "linux")]
    fn steady(&self) -> Option<Duration> {
        let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::try_from(since_boot).ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn steady(&self) -> Option<Duration> {
        None
    }
}

/// A timer on the time of day. Unlike a sleep, it stays right when the machine is suspended or the clock is set.
#[cfg(target_os = "linux")]
mod alarm {
    use std::io;
    use std::os::fd::OwnedFd;

    use kernel::Timestamp;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    pub(super) struct Alarm(AsyncFd<OwnedFd>);

    impl Alarm {
        pub(super) fn at(at: Timestamp) -> io::Result<Alarm> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Realtime, flags)?;
            let micros = at.as_micros().max(1);
            let value = Timespec {
                tv_sec: micros.div_euclid(1_000_000),
                tv_nsec: micros.rem_euclid(1_000_000) * 1_000,
            };
            let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
            // It also fires when the clock is set.
            let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
            timerfd_settime(&timer, flags, &once)?;
            #[expect(
                deprecated,
                reason = "unsound only for descriptors that may be closed meanwhile"
            )]
            let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
            Ok(Alarm(timer))
        }

        pub(super) async fn rings(&self) {
            let _ = self.0.readable().await;
        }
    }
}
