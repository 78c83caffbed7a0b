//! The proof that a page of ours sent a form: a signature by the page key of the device.
//!
//! Cookies know no port, so another server of this machine may have the cookie. The private key is in the storage of our
//! origin, which no other origin reads, and the browser does not give it out.

use api::{Code, Error};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use http::header::ORIGIN;
use http::{HeaderMap, HeaderName};
use ring::digest::{SHA256, digest};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

use super::Session;
use super::nonces::Nonces;
use crate::origin::single;

const PROOF: HeaderName = HeaderName::from_static("midwatch-proof");
const TIME: HeaderName = HeaderName::from_static("midwatch-time");
const NONCE: HeaderName = HeaderName::from_static("midwatch-nonce");
/// How far the time of a proof may be from ours.
const FRESH_US: i64 = 300_000_000;
const NONCE_DIGITS: usize = 32;

/// What is signed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed<'a> {
    pub(super) path: &'a str,
    pub(super) body: &'a [u8],
}

impl Signed<'_> {
    fn text(&self, origin: &str, time: &str, nonce: &str) -> String {
        let hash = digest(&SHA256, self.body);
        let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("midwatch-proof-v1\n{origin}\nPOST\n{}\n{hash}\n{time}\n{nonce}", self.path)
    }
}

/// Checks the proof in the headers of a form. Returns its number, which is used up.
pub(super) fn check(
    session: &Session,
    headers: &HeaderMap,
    signed: Signed<'_>,
    nonces: &Nonces,
    started_us: i64,
) -> Result<String, Error> {
    let header = |name: &HeaderName| single(headers, name).ok().flatten();
    let parts = (header(&PROOF), header(&TIME), header(&NONCE), header(&ORIGIN));
    let (Some(signature), Some(time), Some(nonce), Some(origin)) = parts else {
        return Err(needed());
    };
    let key = session.page_key.as_deref().ok_or_else(needed)?;
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_nonce = nonce.len() == NONCE_DIGITS && nonce.bytes().all(is_digit);
    // Clocks of browsers have fractions of a millisecond.
    let whole = time.split_once('.').map_or(time, |(whole, _)| whole);
    let time_ms: i64 = whole.parse().ok().filter(|_| is_nonce).ok_or_else(invalid)?;
    let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid());
    let text = signed.text(origin, time, nonce);
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, decode(key)?)
        .verify(text.as_bytes(), &decode(signature)?)
        .map_err(|_| invalid())?;
    let (time_us, now_us) = (time_ms.saturating_mul(1_000), session.caller.now_us);
    // The numbers of forms are in memory, so one that was sent before the start could be sent again.
    if FRESH_US < time_us.abs_diff(now_us).try_into().unwrap_or(i64::MAX) || time_us < started_us {
        let error = Error::new(Code::Denied, "this form was signed at another time");
        return Err(error.hint("check the clock of your device, and send the form again"));
    }
    nonces.use_up(&session.device, nonce, time_us.saturating_add(FRESH_US), now_us)?;
    Ok(nonce.to_owned())
}

/// A cookie alone decides nothing.
fn needed() -> Error {
    Error::new(Code::Denied, "this needs proof that the page is ours; a cookie is not enough")
        .hint("send the form from the page, or with your token in it")
}

fn invalid() -> Error {
    Error::new(Code::Denied, "the form is not signed by the page of this browser")
        .hint("sign in again with `midwatch open`")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::Role;
    use http::HeaderValue;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};

    use super::*;
    use crate::authenticate::Authenticated;
    use crate::test_support::AcceptAll;

    const NOW_US: i64 = 1_790_000_000_000_000;
    const ORIGIN_TEXT: &str = "http://midwatch.localhost:7400";
    const NUMBER: &str = "0123456789abcdef0123456789abcdef";

    struct Browser {
        key: EcdsaKeyPair,
        session: Session,
        nonces: Nonces,
    }

    impl Browser {
        fn new() -> Browser {
            let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
            let name = "ada".to_owned();
            let caller = Authenticated { name, handle: Arc::new(AcceptAll), now_us: NOW_US };
            let page_key = Some(BASE64_URL_SAFE_NO_PAD.encode(key.public_key()));
            let device = "dev_1".to_owned();
            let session = Session { caller, role: Role::Operator, device, page_key };
            Browser { key, session, nonces: Nonces::default() }
        }

        fn sign(&self, origin: &str, signed: Signed<'_>, time_us: i64) -> HeaderMap {
            let time = (time_us / 1_000).to_string();
            let text = signed.text(origin, &time, NUMBER);
            let signature = self.key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
            let signature = BASE64_URL_SAFE_NO_PAD.encode(signature);
            let mut headers = HeaderMap::new();
            for (name, value) in
                [(PROOF, signature.as_str()), (TIME, &time), (NONCE, NUMBER), (ORIGIN, origin)]
            {
                headers.insert(name, HeaderValue::from_str(value).unwrap());
            }
            headers
        }

        fn check(&self, headers: &HeaderMap, signed: Signed<'_>) -> Result<(), String> {
            let started_us = NOW_US - 60_000_000;
            let checked = check(&self.session, headers, signed, &self.nonces, started_us);
            checked.map(drop).map_err(|error| error.message)
        }
    }

    const FORM: Signed<'_> = Signed { path: "/thaw", body: b"reason=x" };

    #[test]
    fn signed_form_is_accepted_once() {
        let browser = Browser::new();
        let headers = browser.sign(ORIGIN_TEXT, FORM, NOW_US);
        assert_eq!(browser.check(&headers, FORM), Ok(()));
        let again = browser.check(&headers, FORM).unwrap_err();
        assert!(again.contains("sent before"), "{again}");
    }

    #[test]
    fn proof_of_something_else_is_refused() {
        let browser = Browser::new();
        let headers = browser.sign(ORIGIN_TEXT, FORM, NOW_US);
        for other in [
            Signed { path: "/freeze", ..FORM },
            Signed { body: b"reason=y", ..FORM },
            Signed { body: b"", ..FORM },
        ] {
            let refused = browser.check(&headers, other).unwrap_err();
            assert!(refused.contains("not signed"), "{refused}");
        }
        // Signed for another origin, and sent from ours.
        let mut headers = browser.sign("http://midwatch.localhost:7401", FORM, NOW_US);
        headers.insert(ORIGIN, HeaderValue::from_static(ORIGIN_TEXT));
        assert!(browser.check(&headers, FORM).unwrap_err().contains("not signed"));
        // Signed by the key of another browser.
        let headers = Browser::new().sign(ORIGIN_TEXT, FORM, NOW_US);
        assert!(browser.check(&headers, FORM).unwrap_err().contains("not signed"));
    }

    #[test]
    fn proof_of_another_time_is_refused() {
        let browser = Browser::new();
        for (time_us, is_fresh) in [
            (NOW_US - 300_000_001, false),
            (NOW_US - 61_000_000, false),
            (NOW_US - 60_000_000, true),
            (NOW_US + 301_000_000, false),
        ] {
            let headers = browser.sign(ORIGIN_TEXT, FORM, time_us);
            assert_eq!(browser.check(&headers, FORM).is_ok(), is_fresh, "{time_us}");
        }
    }

    #[test]
    fn cookie_alone_proves_nothing() {
        let mut browser = Browser::new();
        assert!(browser.check(&HeaderMap::new(), FORM).unwrap_err().contains("a cookie"));
        let headers = browser.sign(ORIGIN_TEXT, FORM, NOW_US);
        for name in [PROOF, TIME, NONCE, ORIGIN] {
            let mut without = headers.clone();
            without.remove(&name);
            assert!(browser.check(&without, FORM).is_err(), "{name}");
            without.append(&name, headers[&name].clone());
            without.append(&name, headers[&name].clone());
            assert!(browser.check(&without, FORM).is_err(), "{name} twice");
        }
        browser.session.page_key = None;
        assert!(browser.check(&headers, FORM).is_err(), "a device without a key");
    }
}
