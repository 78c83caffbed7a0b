//! Stands between a store and its database, and loses what it should carry.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::places::Dice;

const SOCKET: &str = ".s.PGSQL.5432";
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Runs until it is dropped.
pub(crate) struct Proxy {
    directory: PathBuf,
    cuts: Arc<AtomicUsize>,
    _connections: JoinSet<()>,
}

/// What happens to a commit that passes.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Passes,
    /// It never arrives.
    Lost,
    /// It arrives, and its answer does not.
    Unanswered,
}

impl Proxy {
    /// Leads to the socket in `directory`.
    pub(crate) fn new(directory: &str, seed: u64) -> Proxy {
        println!("seed {seed}");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let own = std::env::temp_dir().join(format!("proxy-{}-{number}", std::process::id()));
        fs::create_dir_all(&own).unwrap();
        let listener = UnixListener::bind(own.join(SOCKET)).unwrap();
        let (server, cuts) = (PathBuf::from(directory).join(SOCKET), Arc::default());
        let (counted, dice) = (Arc::clone(&cuts), Arc::new(Mutex::new(Dice(seed))));
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut carried = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let Ok(server) = UnixStream::connect(&server).await else { continue };
                let (cuts, dice) = (Arc::clone(&counted), Arc::clone(&dice));
                carried.spawn(async move { carry(client, server, &cuts, &dice).await });
            }
        });
        Proxy { directory: own, cuts, _connections: connections }
    }

    /// The url of the same database through it.
    pub(crate) fn url(&self, url: &str) -> String {
        let (start, database) = url.rsplit_once('/').unwrap();
        let (user, _) = start.rsplit_once('@').unwrap();
        format!("{user}@{}/{database}", self.directory.to_string_lossy().replace('/', "%2F"))
    }

    pub(crate) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

async fn carry(client: UnixStream, server: UnixStream, cuts: &AtomicUsize, dice: &Mutex<Dice>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asking = async {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let count = match from_client.read(&mut bytes).await {
                Ok(0) | Err(_) => return Fate::Passes,
                Ok(count) => count,
            };
            let fate = fate(&bytes[..count], dice);
            if !matches!(fate, Fate::Lost) && to_server.write_all(&bytes[..count]).await.is_err() {
                return Fate::Passes;
            }
            if !matches!(fate, Fate::Passes) {
                cuts.fetch_add(1, Ordering::Relaxed);
                return fate;
            }
        }
    };
    tokio::select! {
        // The answer is not there yet, or is held back with the rest.
        biased;
        _ = asking => {}
        _ = copy(&mut from_server, &mut to_client) => {}
    }
}

fn fate(bytes: &[u8], dice: &Mutex<Dice>) -> Fate {
    if !bytes.windows(7).any(|part| part == b"COMMIT\0") {
        return Fate::Passes;
    }
    match dice.lock().unwrap().below(4) {
        0 => Fate::Lost,
        1 => Fate::Unanswered,
        _ => Fate::Passes,
    }
}
