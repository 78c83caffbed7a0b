//! A proxy between a store and its database that drops commits, or the replies to them.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::databases::Rng;

const SOCKET: &str = ".s.PGSQL.5432";
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Runs until it is dropped.
pub(crate) struct Proxy {
    directory: PathBuf,
    cuts: Arc<AtomicUsize>,
    _connections: JoinSet<()>,
}

/// What the proxy does with a commit.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    /// The commit does not arrive.
    DropCommit,
    /// The commit arrives, but its reply does not.
    DropReply,
}

impl Proxy {
    /// Forwards to the server's socket in `directory`.
    pub(crate) fn new(directory: &str, seed: u64) -> Proxy {
        println!("seed {seed}");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let proxy_directory =
            std::env::temp_dir().join(format!("proxy-{}-{number}", std::process::id()));
        fs::create_dir_all(&proxy_directory).unwrap();
        let listener = UnixListener::bind(proxy_directory.join(SOCKET)).unwrap();
        let (server, cuts) = (PathBuf::from(directory).join(SOCKET), Arc::default());
        let (counted, rng) = (Arc::clone(&cuts), Arc::new(Mutex::new(Rng(seed))));
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut forwarded = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let Ok(server) = UnixStream::connect(&server).await else { continue };
                let (cuts, rng) = (Arc::clone(&counted), Arc::clone(&rng));
                forwarded.spawn(async move { forward(client, server, &cuts, &rng).await });
            }
        });
        Proxy { directory: proxy_directory, cuts, _connections: connections }
    }

    /// The URL of the same database through the proxy.
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

async fn forward(client: UnixStream, server: UnixStream, cuts: &AtomicUsize, rng: &Mutex<Rng>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let requests = async {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let count = match from_client.read(&mut bytes).await {
                Ok(0) | Err(_) => return Fault::None,
                Ok(count) => count,
            };
            let fault = choose_fault(&bytes[..count], rng);
            if !matches!(fault, Fault::DropCommit)
                && to_server.write_all(&bytes[..count]).await.is_err()
            {
                return Fault::None;
            }
            if !matches!(fault, Fault::None) {
                cuts.fetch_add(1, Ordering::Relaxed);
                return fault;
            }
        }
    };
    tokio::select! {
        // Checked first, so that the reply to a cut commit is not forwarded.
        biased;
        _ = requests => {}
        _ = copy(&mut from_server, &mut to_client) => {}
    }
}

fn choose_fault(bytes: &[u8], rng: &Mutex<Rng>) -> Fault {
    if !bytes.windows(7).any(|part| part == b"COMMIT\0") {
        return Fault::None;
    }
    match rng.lock().unwrap().below(4) {
        0 => Fault::DropCommit,
        1 => Fault::DropReply,
        _ => Fault::None,
    }
}
