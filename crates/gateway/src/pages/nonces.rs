//! The numbers that proofs were made with. Each is used once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use api::{Code, Error};

/// Proofs of one device that are remembered, and so the forms that it may send within their validity.
const NONCES_MAX: usize = 256;

/// By device: each number, and until when its proof could be used.
#[derive(Debug, Default)]
pub(super) struct Nonces(Mutex<HashMap<String, HashMap<String, i64>>>);

impl Nonces {
    /// Remembers a number of a device until its proof is too old. Fails if it was used before.
    pub(super) fn use_up(
        &self,
        device: &str,
        nonce: &str,
        until_us: i64,
        now_us: i64,
    ) -> Result<(), Error> {
        let mut devices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        devices.retain(|_, nonces| {
            nonces.retain(|_, until_us| now_us <= *until_us);
            !nonces.is_empty()
        });
        let nonces = devices.entry(device.to_owned()).or_default();
        if NONCES_MAX <= nonces.len() {
            let what = "this browser has sent too many forms in a few minutes";
            return Err(Error::new(Code::LimitReached, what).hint("wait a minute"));
        }
        match nonces.insert(nonce.to_owned(), until_us) {
            None => Ok(()),
            Some(_) => Err(Error::new(Code::Denied, "this form was sent before")
                .hint("open the page again and send the form from there")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_used_once_per_device_while_its_proof_is_valid() {
        let nonces = Nonces::default();
        assert!(nonces.use_up("dev_1", "a", 100, 0).is_ok());
        assert!(nonces.use_up("dev_2", "a", 100, 0).is_ok());
        assert!(nonces.use_up("dev_1", "a", 100, 100).is_err());
        assert!(nonces.use_up("dev_1", "b", 300, 200).is_ok());
        assert_eq!(nonces.0.lock().unwrap().len(), 1, "the others are forgotten");
    }

    #[test]
    fn numbers_are_limited() {
        let nonces = Nonces::default();
        for number in 0..NONCES_MAX {
            assert!(nonces.use_up("dev_1", &number.to_string(), 100, 0).is_ok());
        }
        assert!(nonces.use_up("dev_1", "more", 100, 0).is_err());
        assert!(nonces.use_up("dev_1", "more", 300, 200).is_ok());
    }
}
