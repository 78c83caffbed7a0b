//! Redaction by value: registered secrets, in all their encodings.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use crate::encodings::encodings;
use crate::{MARK, redact};

/// A shorter value is not registered, because it would redact ordinary text.
pub const SECRET_BYTES_MIN: usize = 4;

/// The most secrets that can be registered.
pub const SECRETS_MAX: usize = 1_000;

/// The length of the prefix by which values are indexed.
const PREFIX_BYTES: usize = SECRET_BYTES_MIN;

type Prefix = [u8; PREFIX_BYTES];

/// Redacts registered secrets and everything that has the form of a secret. Shared between threads,
/// because secrets are registered at run time.
#[derive(Default)]
pub struct Redactor {
    known: RwLock<KnownValues>,
}

#[derive(Default)]
struct KnownValues {
    secrets: usize,
    /// Every encoding of every secret, by its first bytes.
    by_prefix: BTreeMap<Prefix, Vec<String>>,
}

impl Redactor {
    pub fn new() -> Redactor {
        Redactor::default()
    }

    /// Registers a secret, without the space around it. Returns whether it will be redacted: not if
    /// it is shorter than [`SECRET_BYTES_MIN`] or exceeds [`SECRETS_MAX`].
    pub fn add(&self, secret: &str) -> bool {
        let secret = secret.trim();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.contains(secret) {
            return true;
        }
        if secret.len() < SECRET_BYTES_MIN || SECRETS_MAX <= known.secrets {
            return false;
        }
        known.secrets += 1;
        for value in encodings(secret) {
            let Some(prefix) = value.as_bytes().first_chunk::<PREFIX_BYTES>() else { continue };
            if !known.contains(&value) {
                known.by_prefix.entry(*prefix).or_default().push(value);
            }
        }
        true
    }

    /// Redacts registered secrets, then everything that has the form of a secret.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redact_known(text) {
            Cow::Borrowed(text) => redact(text),
            Cow::Owned(text) => Cow::Owned(redact(&text).into_owned()),
        }
    }

    /// Redacts registered secrets only.
    pub fn redact_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.secrets == 0 {
            return Cow::Borrowed(text);
        }
        let found = known.find_all(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut redacted = String::with_capacity(text.len());
        let mut copied = 0;
        for range in found {
            redacted.push_str(text.get(copied..range.start).unwrap_or_default());
            redacted.push_str(MARK);
            copied = range.end;
        }
        redacted.push_str(text.get(copied..).unwrap_or_default());
        Cow::Owned(redacted)
    }
}

impl KnownValues {
    fn contains(&self, value: &str) -> bool {
        let prefix = value.as_bytes().first_chunk::<PREFIX_BYTES>();
        let candidates = prefix.and_then(|prefix| self.by_prefix.get(prefix));
        candidates.is_some_and(|candidates| candidates.iter().any(|it| it == value))
    }

    /// The positions of known values, from left to right; those that overlap are merged.
    fn find_all(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut mark_end = 0;
        for (start, prefix) in text.as_bytes().windows(PREFIX_BYTES).enumerate() {
            let rest = text.as_bytes().get(start..).unwrap_or_default();
            if rest.starts_with(MARK.as_bytes()) {
                mark_end = start + MARK.len();
            }
            if start < mark_end {
                continue;
            }
            let Some(length) = self.longest_match(prefix, rest) else { continue };
            match found.last_mut() {
                Some(last) if start < last.end => last.end = last.end.max(start + length),
                _ => found.push(start..start + length),
            }
        }
        found
    }

    fn longest_match(&self, prefix: &[u8], rest: &[u8]) -> Option<usize> {
        let candidates = self.by_prefix.get(prefix.first_chunk::<PREFIX_BYTES>()?)?;
        let matching = candidates.iter().filter(|value| rest.starts_with(value.as_bytes()));
        matching.map(String::len).max()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        out.debug_struct("Redactor").field("secrets", &known.secrets).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;

    use super::*;

    const SECRET: &str = "correct horse/\"battery\"";

    fn redactor(secrets: &[&str]) -> Redactor {
        let redactor = Redactor::new();
        secrets.iter().for_each(|secret| assert!(redactor.add(secret), "{secret}"));
        redactor
    }

    #[test]
    fn every_encoding_is_redacted() {
        let basic = STANDARD.encode(format!("me:{SECRET}"));
        let rows = [
            SECRET.to_owned(),
            format!("{SECRET:?}"),
            STANDARD.encode(SECRET),
            URL_SAFE_NO_PAD.encode(SECRET),
            SECRET.bytes().map(|byte| format!("{byte:02x}")).collect(),
            SECRET.bytes().map(|byte| format!("{byte:02X}")).collect(),
            "correct%20horse%2F%22battery%22".to_owned(),
            "correct%20horse%2f%22battery%22".to_owned(),
            "correct+horse%2F%22battery%22".to_owned(),
        ];
        for text in rows {
            let redacted = redactor(&[SECRET]).redact(&format!("a {text} b")).into_owned();
            let redacted = redacted.replace(['"', '='], "");
            assert_eq!(redacted, "a [redacted] b", "{text}");
        }
        // In the base64 of a longer text, only letters that share bits with it stay visible.
        let redacted = redactor(&[SECRET]).redact(&basic).into_owned();
        assert!(redacted.len() < MARK.len() + 9, "{redacted}");
    }

    #[test]
    fn overlapping_secrets_are_redacted_together() {
        let redactor = redactor(&["abcdef", "defghi", "abcd"]);
        assert_eq!(redactor.redact("_abcdefghi_abcd_"), "_[redacted]_[redacted]_");
    }

    #[test]
    fn short_secrets_are_refused_and_surrounding_space_is_ignored() {
        let redactor = Redactor::new();
        assert!(!redactor.add("abc"));
        assert!(!redactor.add(" abc \n"));
        assert!(redactor.add("abcd\n"));
        assert_eq!(redactor.redact("abc abcd"), "abc [redacted]");
    }

    #[test]
    fn number_of_secrets_is_limited() {
        let redactor = Redactor::new();
        for number in 0..SECRETS_MAX {
            assert!(redactor.add(&format!("secret-{number}")));
        }
        assert!(!redactor.add("one-too-many"));
        assert!(redactor.add("secret-0"), "already registered");
    }

    #[test]
    fn patterns_apply_too_and_plain_text_is_not_copied() {
        let redactor = redactor(&["hunter2 x"]);
        assert_eq!(redactor.redact("password=hunter2 x"), "password=[redacted]");
        assert_eq!(redactor.redact("password=other"), "password=[redacted]");
        assert!(matches!(redactor.redact("plain"), Cow::Borrowed("plain")));
        assert_eq!(format!("{redactor:?}"), "Redactor { secrets: 1, .. }");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn registered_secret_is_redacted_in_every_encoding(
            secret in "[A-Za-zä0-9 /+\"%\\\\]{8,40}",
            around in "[A-Za-z0-9 :=\"]{0,12}",
        ) {
            let secret = secret.trim();
            prop_assume!(SECRET_BYTES_MIN <= secret.len());
            let redactor = redactor(&[secret]);
            for encoding in encodings(secret) {
                let text = format!("{around}{encoding}{around}");
                let once = redactor.redact(&text).into_owned();
                prop_assert!(!once.contains(&encoding), "{} in {}", encoding, once);
                let twice = redactor.redact(&once).into_owned();
                prop_assert_eq!(&twice, &once);
            }
        }

        #[test]
        fn registered_secret_is_redacted_in_the_base64_of_a_longer_text(
            secret in "[A-Za-z0-9]{12,40}",
            before in "[ -~]{0,7}",
            after in "[ -~]{0,7}",
        ) {
            let redacted = STANDARD.encode(format!("{before}{secret}{after}"));
            let redacted = redactor(&[&secret]).redact(&redacted).into_owned();
            let visible = redacted.len() - MARK.len();
            // Letters that share bits with a neighbour stay visible: at most two at each side.
            prop_assert!(visible <= before.len() * 2 + after.len() * 2 + 8, "{}", redacted);
        }
    }
}
