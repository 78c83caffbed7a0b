//! What a browser that has signed in can send, and what an attacker can.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use runtime::{Clock, SystemClock};

use super::dashboard::link_in;
use crate::support::mcp_http::{HttpDaemon, Reply};
use crate::support::terminal::Terminal;
use crate::support::world::World;

pub(super) const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// The cookie and the page key of a device.
pub(super) struct Client {
    pub(super) cookie: String,
    key: EcdsaKeyPair,
    host: String,
}

/// A form with the parts of its proof.
#[derive(Clone, Debug)]
pub(super) struct Signed {
    pub(super) origin: String,
    pub(super) path: String,
    pub(super) body: String,
    pub(super) time_ms: i64,
    pub(super) nonce: String,
    pub(super) signature: String,
}

/// A link for a person at a terminal.
pub(super) fn link(world: &World) -> String {
    link_in(&Terminal::run(world, &["open"]))
}

/// The code in a link.
pub(super) fn code_of(link: &str) -> &str {
    link.split_once('#').unwrap().1
}

pub(super) fn now_ms() -> i64 {
    SystemClock.now().as_micros() / 1_000
}

/// Presents a code as the page `/enter` does.
pub(super) fn enter(daemon: &HttpDaemon, code: &str, key: &str) -> Reply {
    let origin = format!("http://{}", daemon.address);
    let headers = [("Host", daemon.address.as_str()), ("Origin", &origin), FORM];
    daemon.request("POST", "/enter", &headers, format!("code={code}&key={key}"))
}

impl Client {
    /// Signs in by a link.
    pub(super) fn new(daemon: &HttpDaemon, link: &str) -> Client {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        let public = BASE64_URL_SAFE_NO_PAD.encode(key.public_key());
        let entered = enter(daemon, code_of(link), &public);
        assert_eq!((entered.status, entered.header("location")), (303, Some("/")), "{entered:?}");
        let set = entered.header("set-cookie").unwrap();
        for attribute in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800"] {
            assert!(set.contains(attribute), "{set}");
        }
        let cookie = set.split(';').next().unwrap().to_owned();
        Client { cookie, key, host: daemon.address.clone() }
    }

    pub(super) fn get(&self, daemon: &HttpDaemon, path: &str) -> Reply {
        self.get_with(daemon, path, &[])
    }

    pub(super) fn get_with(&self, daemon: &HttpDaemon, path: &str, more: &[(&str, &str)]) -> Reply {
        let own = [("Host", self.host.as_str()), ("Cookie", &self.cookie)];
        daemon.request("GET", path, &[&own, more].concat(), "")
    }

    /// Opens a stream of a page and returns it once it has begun, with its status.
    pub(super) fn live(&self, daemon: &HttpDaemon, view: &str) -> (u16, BufReader<TcpStream>) {
        let headers = [("Host", self.host.as_str()), ("Cookie", &self.cookie)];
        let path = format!("/live?view={view}&after=0");
        let mut stream = BufReader::new(daemon.open("GET", &path, &headers, b""));
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        (line.split(' ').nth(1).unwrap().parse().unwrap(), stream)
    }

    /// Signs a form as the page does.
    pub(super) fn sign(&self, path: &str, body: &str) -> Signed {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).unwrap();
        let unsigned = Signed {
            origin: format!("http://{}", self.host),
            path: path.to_owned(),
            body: body.to_owned(),
            time_ms: now_ms(),
            nonce: hex(&bytes),
            signature: String::new(),
        };
        self.sign_again(&unsigned)
    }

    /// Signs a form with the parts that it has.
    pub(super) fn sign_again(&self, form: &Signed) -> Signed {
        let Signed { origin, path, body, time_ms, nonce, .. } = form;
        let hash = hex(digest(&SHA256, body.as_bytes()).as_ref());
        let text = format!("midwatch-proof-v1\n{origin}\nPOST\n{path}\n{hash}\n{time_ms}\n{nonce}");
        let signature = self.key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        Signed { signature: BASE64_URL_SAFE_NO_PAD.encode(signature), ..form.clone() }
    }

    /// Sends a form with its proof, from a page of ours.
    pub(super) fn send(&self, daemon: &HttpDaemon, form: &Signed) -> Reply {
        self.send_from(daemon, form, &form.origin, &[])
    }

    pub(super) fn send_from(
        &self,
        daemon: &HttpDaemon,
        form: &Signed,
        origin: &str,
        more: &[(&str, &str)],
    ) -> Reply {
        let time = form.time_ms.to_string();
        let own = [
            ("Host", self.host.as_str()),
            ("Cookie", &self.cookie),
            ("Origin", origin),
            FORM,
            ("Accept", "application/json"),
            ("midwatch-proof", &form.signature),
            ("midwatch-time", &time),
            ("midwatch-nonce", &form.nonce),
        ];
        daemon.request("POST", &form.path, &[&own, more].concat(), &form.body)
    }

    /// Sends a form with the cookie alone.
    pub(super) fn send_unsigned(&self, daemon: &HttpDaemon, path: &str, body: &str) -> Reply {
        let origin = format!("http://{}", self.host);
        let headers =
            [("Host", self.host.as_str()), ("Cookie", &self.cookie), ("Origin", &origin), FORM];
        daemon.request("POST", path, &headers, body)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
