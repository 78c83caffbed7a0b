//! A password is sent by SCRAM only, also to a server on this machine.
//!
//! The servers here are not PostgreSQL: they ask for the password in clear text or as an MD5 hash, and
//! record what clients answer.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use store::Error;
use store_postgres::{Postgres, Target};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;

use crate::databases::within_deadline;

/// Messages about authentication: kind, length, method, and for MD5 a salt.
const ASK_CLEAR_TEXT: &[u8] = b"R\0\0\0\x08\0\0\0\x03";
const ASK_MD5: &[u8] = b"R\0\0\0\x0c\0\0\0\x05salt";
/// The code of a message that asks for TLS, in place of a protocol version.
const TLS_REQUEST: u32 = 80_877_103;

/// What each client sent after the server had asked for the password.
type Answers = Arc<Mutex<Vec<Vec<u8>>>>;

/// Asks a client for its password.
async fn ask(mut client: impl AsyncRead + AsyncWrite + Unpin, request: &[u8], answers: &Answers) {
    loop {
        let length = client.read_u32().await.unwrap();
        let code = client.read_u32().await.unwrap();
        if code == TLS_REQUEST {
            client.write_all(b"N").await.unwrap();
            continue;
        }
        let mut parameters = vec![0; length as usize - 8];
        client.read_exact(&mut parameters).await.unwrap();
        break;
    }
    client.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    answers.lock().unwrap().push(answer);
}

/// Opens a store as a writer and as a reader, and checks that neither answers.
async fn check(url: &str, answers: &Answers, form: &str) {
    for sslmode in ["disable", "prefer"] {
        let target = Target::new(&format!("{url}sslmode={sslmode}"), Some("hunter2"), None);
        let target = target.unwrap();
        let writer = within_deadline("opening", Postgres::open(&target)).await;
        let reader = within_deadline("opening", Postgres::open_read_only(&target)).await;
        for error in [writer.unwrap_err(), reader.unwrap_err()] {
            let refused =
                matches!(&error, Error::PasswordNotSent { form: found } if *found == form);
            assert!(refused, "{url}: {error:?}");
        }
    }
    within_deadline("recording the answers", async {
        while answers.lock().unwrap().len() < 4 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(*answers.lock().unwrap(), vec![Vec::<u8>::new(); 4], "{url}");
}

async fn check_loopback(request: &'static [u8], form: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (answers, mut server) = (Answers::default(), JoinSet::new());
    let recorded = Arc::clone(&answers);
    server.spawn(async move {
        loop {
            ask(listener.accept().await.unwrap().0, request, &recorded).await;
        }
    });
    check(&format!("postgres://watch@127.0.0.1:{port}/watch?"), &answers, form).await;
}

async fn check_unix_socket(name: &str, request: &'static [u8], form: &str) {
    let directory = SocketDirectory::new(name);
    let listener = UnixListener::bind(directory.0.join(".s.PGSQL.5432")).unwrap();
    let (answers, mut server) = (Answers::default(), JoinSet::new());
    let recorded = Arc::clone(&answers);
    server.spawn(async move {
        loop {
            ask(listener.accept().await.unwrap().0, request, &recorded).await;
        }
    });
    let host = directory.0.to_string_lossy().replace('/', "%2F");
    check(&format!("postgres://watch@{host}/watch?"), &answers, form).await;
}

struct SocketDirectory(PathBuf);

impl SocketDirectory {
    fn new(name: &str) -> SocketDirectory {
        let path = std::env::temp_dir().join(format!("asking-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        SocketDirectory(path)
    }
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_this_machine_gets_no_password_in_clear_text() {
    check_loopback(ASK_CLEAR_TEXT, "in clear text").await;
    check_unix_socket("clear", ASK_CLEAR_TEXT, "in clear text").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_this_machine_gets_no_password_as_an_md5_hash() {
    check_loopback(ASK_MD5, "as an MD5 hash").await;
    check_unix_socket("md5", ASK_MD5, "as an MD5 hash").await;
}
