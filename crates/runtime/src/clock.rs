//! The one place where the time of day is read and waited for.

use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::{BoxFuture, FutureExt};
use kernel::Timestamp;
use tokio::time::sleep;

/// The longest wait without a look at the clock, where nothing tells that it was set.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub trait Clock: Debug + Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// Returns when this clock shows an instant. It may return early, and does when it was set: the
    /// caller looks again.
    fn reaches(&self, at: Timestamp) -> BoxFuture<'_, ()>;

    /// The time since some moment, by a clock that nobody can set and that goes on while the machine is
    /// suspended. Nothing, where there is none.
    fn steady(&self) -> Option<Duration>;

    /// A number that nobody can foresee. A simulation foresees it, and with it all that happens.
    fn random(&self) -> u64 {
        getrandom::u64().unwrap_or_default()
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the clock is read")]
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
            sleep(LOOK_EVERY.min(Duration::from_micros(span_us))).await;
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

/// An alarm on the time of day: unlike a span, it is right after the machine was suspended and after
/// the clock was set.
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
            // It also rings when the clock is set.
            let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
            timerfd_settime(&timer, flags, &once)?;
            #[expect(deprecated, reason = "it is unsound only for what may be closed meanwhile")]
            let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
            Ok(Alarm(timer))
        }

        pub(super) async fn rings(&self) {
            let _ = self.0.readable().await;
        }
    }
}
