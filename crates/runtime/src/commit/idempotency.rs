//! Idempotency keys: a request that is repeated under the same key is executed once.

use api::{Call, Code, Error, Request, Response, ScheduleEdit};
use kernel::{Actor, Timestamp};
use ledger::Hash;
use sha2::{Digest, Sha256};

use crate::errors::internal;
use crate::secrets::sealing::Sealing;

const KEY_BYTES_MAX: usize = 128;

/// An idempotency key, bound to its caller and its request.
#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKey {
    /// As stored: prefixed with the caller, so that callers do not share keys.
    pub name: String,
    pub request_hash: Hash,
}

impl IdempotencyKey {
    pub(crate) fn of(
        call: &Call,
        actor: &Actor,
        sealing: &Sealing,
    ) -> Result<Option<IdempotencyKey>, Error> {
        let Some(key) = &call.key else { return Ok(None) };
        if key.is_empty() || KEY_BYTES_MAX < key.len() || !key.chars().all(|c| c.is_ascii_graphic())
        {
            let what = "an idempotency key is 1 to 128 printable characters without blanks";
            return Err(Error::new(Code::InvalidInput, what));
        }
        let name = format!("{}/{key}", actor.name());
        Ok(Some(IdempotencyKey { name, request_hash: request_hash(&call.request, sealing)? }))
    }

    /// The response as it is stored for a repeated request.
    pub(crate) fn stored_response(
        &self,
        response: &Response,
        at: Timestamp,
    ) -> Result<store::StoredResponse, Error> {
        Ok(store::StoredResponse {
            key: self.name.clone(),
            request_hash: self.request_hash,
            body: serde_json::to_vec(response).map_err(internal)?,
            at_us: at.as_micros(),
        })
    }
}

/// The response that an earlier request with the same key got.
pub(crate) fn earlier_response(body: &[u8]) -> Result<Response, Error> {
    serde_json::from_slice(body).map_err(internal)
}

pub(crate) fn key_taken() -> Error {
    Error::new(Code::KeyTaken, "this idempotency key was used before, for another request")
        .hint("use a new key for a new request")
}

/// The hash of the serialised request. For a sensitive request it is a keyed hash, so that the text cannot be guessed
/// from it.
fn request_hash(request: &Request, sealing: &Sealing) -> Result<Hash, Error> {
    let bytes = serde_json::to_vec(request).map_err(internal)?;
    Ok(Hash::from_bytes(match may_be_sensitive(request) {
        true => sealing.fingerprint(&bytes)?,
        false => Sha256::digest(&bytes).into(),
    }))
}

/// An edit does not tell whether its schedule is sensitive, so its text counts as sensitive.
fn may_be_sensitive(request: &Request) -> bool {
    match request {
        Request::ScheduleAdd(add) => add.sensitive,
        Request::ScheduleAddAll(list) => list.schedules.iter().any(|add| add.sensitive),
        Request::ScheduleEdit(ScheduleEdit { action, .. }) => {
            action.prompt.is_some() || action.payload.is_some()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use api::{Action, ScheduleAdd};

    use super::*;

    #[test]
    fn the_hash_of_a_sensitive_request_needs_the_key() {
        let data = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let ours = || Sealing::new(data[0].path());
        let action = Action { prompt: Some("look at the inbox".into()), ..Action::default() };
        let add =
            |sensitive| ScheduleAdd { action: action.clone(), sensitive, ..Default::default() };
        let edit = ScheduleEdit { action: action.clone(), ..Default::default() };
        let plain = |request: &Request| {
            Hash::from_bytes(Sha256::digest(serde_json::to_vec(request).unwrap()).into())
        };
        let open = Request::ScheduleAdd(add(false));
        assert_eq!(request_hash(&open, &ours()).unwrap(), plain(&open));
        for request in [Request::ScheduleAdd(add(true)), Request::ScheduleEdit(edit)] {
            let hash = request_hash(&request, &ours()).unwrap();
            assert_ne!(hash, plain(&request));
            assert_eq!(request_hash(&request, &ours()).unwrap(), hash, "by another process");
            let theirs = Sealing::new(data[1].path());
            assert_ne!(request_hash(&request, &theirs).unwrap(), hash);
        }
    }
}
