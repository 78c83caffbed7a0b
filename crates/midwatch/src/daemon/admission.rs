//! Which connections of the socket are served. Whatever other processes do, a person can connect to stop them.
//!
//! Connections are limited in all, for each process, and for all processes of runs. If the daemon serves as many as it
//! can, it closes the oldest one that has not made a request yet. If all have made one, a new connection is still
//! admitted, but only to stop something.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::process_tree::Ancestry;

const CONNECTIONS_MAX: usize = 256;
/// Connections of one process.
const PROCESS_CONNECTIONS_MAX: usize = 192;
/// Connections of processes that runs started, or that may belong to a run.
const RUN_CONNECTIONS_MAX: usize = 64;
/// Connections that can only stop something, while all others are in use.
const STOP_CONNECTIONS_MAX: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Admission(Mutex<Admitted>);

#[derive(Debug, Default)]
struct Admitted {
    /// Connections admitted so far.
    count: u64,
    /// The open ones, oldest first.
    open: BTreeMap<u64, OpenConnection>,
}

#[derive(Debug)]
struct OpenConnection {
    process: Option<i32>,
    is_of_run: bool,
    only_stops: bool,
    /// Closes it; absent once it has made a request.
    close: Option<CancellationToken>,
}

/// The place of one connection, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    admission: Arc<Admission>,
    number: u64,
    /// Whether it may only stop something.
    pub(super) only_stops: bool,
    /// Cancelled when the connection must be closed before its first request.
    pub(super) closed: CancellationToken,
}

impl Admission {
    /// Returns `None` for a connection that is not served. Never waits: a waiting connection would need a place, too.
    pub(super) fn admit(
        self: &Arc<Admission>,
        process: Option<i32>,
        ancestry: &Ancestry,
    ) -> Option<Place> {
        let mut admitted = self.admitted();
        let is_of_run = *ancestry != Ancestry::External;
        let of_process = admitted.count(|it| process.is_some() && it.process == process);
        let of_runs = admitted.count(|it| it.is_of_run);
        if PROCESS_CONNECTIONS_MAX <= of_process || (is_of_run && RUN_CONNECTIONS_MAX <= of_runs) {
            return None;
        }
        let is_full = |admitted: &Admitted| CONNECTIONS_MAX <= admitted.count(|it| !it.only_stops);
        let only_stops = is_full(&admitted) && !admitted.close_oldest(|it| !it.only_stops);
        if only_stops && STOP_CONNECTIONS_MAX <= admitted.count(|it| it.only_stops) {
            admitted.close_oldest(|it| it.only_stops);
        }
        let (number, closed) = (admitted.count, CancellationToken::new());
        admitted.count += 1;
        let close = Some(closed.clone());
        admitted.open.insert(number, OpenConnection { process, is_of_run, only_stops, close });
        Some(Place { admission: Arc::clone(self), number, only_stops, closed })
    }

    fn admitted(&self) -> MutexGuard<'_, Admitted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admitted {
    fn count(&self, is_counted: impl Fn(&OpenConnection) -> bool) -> usize {
        self.open.values().filter(|it| is_counted(it)).count()
    }

    /// Closes the oldest such connection that has not made a request yet. Returns whether there was one.
    fn close_oldest(&mut self, may_close: impl Fn(&OpenConnection) -> bool) -> bool {
        let mut silent = self.open.iter().filter(|(_, it)| it.close.is_some() && may_close(it));
        let Some(oldest) = silent.next().map(|(number, _)| *number) else { return false };
        let connection = self.open.remove(&oldest);
        connection.and_then(|it| it.close).iter().for_each(CancellationToken::cancel);
        true
    }
}

impl Place {
    /// The connection has made a request, so it is not closed for others any more.
    pub(super) fn keep(&self) {
        if let Some(connection) = self.admission.admitted().open.get_mut(&self.number) {
            connection.close = None;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.admission.admitted().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(admission: &Arc<Admission>, process: i32) -> Option<Place> {
        admission.admit(Some(process), &Ancestry::External)
    }

    #[test]
    fn oldest_silent_connection_is_closed_for_a_new_one() {
        let admission = Arc::new(Admission::default());
        let places: Vec<Place> =
            (0..256).map(|number| admit(&admission, number / 32).unwrap()).collect();
        places[0].keep();
        let new = admit(&admission, 1_000).unwrap();
        assert!(!new.only_stops);
        let closed = |place: &&Place| place.closed.is_cancelled();
        assert_eq!(places.iter().filter(closed).count(), 1);
        assert!(places[1].closed.is_cancelled());
    }

    #[test]
    fn person_can_stop_while_all_connections_are_in_use() {
        let admission = Arc::new(Admission::default());
        let places: Vec<Place> =
            (0..256).map(|number| admit(&admission, number / 32).unwrap()).collect();
        places.iter().for_each(Place::keep);
        let more: Vec<Place> = (0..40).map(|it| admit(&admission, 1_000 + it).unwrap()).collect();
        assert!(more.iter().all(|place| place.only_stops));
        assert!(places.iter().all(|place| !place.closed.is_cancelled()));
        assert_eq!(more.iter().filter(|place| place.closed.is_cancelled()).count(), 8);
        drop(places);
        assert!(!admit(&admission, 2_000).unwrap().only_stops);
    }

    #[test]
    fn process_and_all_runs_together_are_limited() {
        let admission = Arc::new(Admission::default());
        let of_one: Vec<Place> = (0..200).map_while(|_| admit(&admission, 7)).collect();
        assert_eq!(of_one.len(), 192);
        drop(of_one);
        let of_runs = (0..100).map_while(|it| admission.admit(Some(it), &Ancestry::Descendant(it)));
        assert_eq!(of_runs.collect::<Vec<Place>>().len(), 64);
    }
}
