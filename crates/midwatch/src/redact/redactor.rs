//! Hiding by value: secrets that are known, in all their forms.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use super::forms::forms;
use super::{MARK, redact};

/// A shorter value is not looked for: it would hide ordinary text.
pub const SECRET_BYTES_MIN: usize = 4;

/// Secrets that are remembered; further ones are refused.
pub const SECRETS_MAX: usize = 1_000;

/// How many bytes of a form lead to it.
const HEAD_BYTES: usize = SECRET_BYTES_MIN;

type Head = [u8; HEAD_BYTES];

/// Hides known secrets and whatever looks like one. Shared: secrets become known at run time.
#[derive(Default)]
pub struct Redactor {
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    secrets: usize,
    /// Every form of every secret, by its first bytes.
    forms: BTreeMap<Head, Vec<String>>,
}

impl Redactor {
    pub fn new() -> Redactor {
        Redactor::default()
    }

    /// Remembers a secret, without the space around it. Returns whether it will be hidden: not if
    /// it is shorter than [`SECRET_BYTES_MIN`], nor beyond [`SECRETS_MAX`].
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
        for form in forms(secret) {
            let Some(head) = form.as_bytes().first_chunk::<HEAD_BYTES>() else { continue };
            if !known.contains(&form) {
                known.forms.entry(*head).or_default().push(form);
            }
        }
        true
    }

    /// Hides known secrets, then what looks like one.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.hide_known(text) {
            Cow::Borrowed(text) => redact(text),
            Cow::Owned(text) => Cow::Owned(redact(&text).into_owned()),
        }
    }

    /// Hides known secrets only.
    pub fn hide_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.secrets == 0 {
            return Cow::Borrowed(text);
        }
        let found = known.places(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut shown = String::with_capacity(text.len());
        let mut copied = 0;
        for place in found {
            shown.push_str(text.get(copied..place.start).unwrap_or_default());
            shown.push_str(MARK);
            copied = place.end;
        }
        shown.push_str(text.get(copied..).unwrap_or_default());
        Cow::Owned(shown)
    }
}

impl Known {
    fn contains(&self, form: &str) -> bool {
        let head = form.as_bytes().first_chunk::<HEAD_BYTES>();
        let same = head.and_then(|head| self.forms.get(head));
        same.is_some_and(|same| same.iter().any(|it| it == form))
    }

    /// Where secrets stand, from left to right; places that overlap are one.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        for (start, head) in text.as_bytes().windows(HEAD_BYTES).enumerate() {
            let rest = text.as_bytes().get(start..).unwrap_or_default();
            if rest.starts_with(MARK.as_bytes()) {
                at = start + MARK.len();
            }
            if start < at {
                continue;
            }
            let Some(length) = self.longest_at(head, rest) else { continue };
            match places.last_mut() {
                Some(last) if start < last.end => last.end = last.end.max(start + length),
                _ => places.push(start..start + length),
            }
        }
        places
    }

    fn longest_at(&self, head: &[u8], rest: &[u8]) -> Option<usize> {
        let forms = self.forms.get(head.first_chunk::<HEAD_BYTES>()?)?;
        let fitting = forms.iter().filter(|form| rest.starts_with(form.as_bytes()));
        fitting.map(String::len).max()
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
    fn every_form_is_hidden() {
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
            let shown = redactor(&[SECRET]).redact(&format!("a {text} b")).into_owned();
            let shown = shown.replace(['"', '='], "");
            assert_eq!(shown, "a [redacted] b", "{text}");
        }
        // Within the encoding of a longer text only the letters that it shares stay.
        let shown = redactor(&[SECRET]).redact(&basic).into_owned();
        assert!(shown.len() < MARK.len() + 9, "{shown}");
    }

    #[test]
    fn secrets_that_overlap_are_hidden_together() {
        let redactor = redactor(&["abcdef", "defghi", "abcd"]);
        assert_eq!(redactor.redact("_abcdefghi_abcd_"), "_[redacted]_[redacted]_");
    }

    #[test]
    fn a_short_secret_is_refused_and_space_is_no_part_of_it() {
        let redactor = Redactor::new();
        assert!(!redactor.add("abc"));
        assert!(!redactor.add(" abc \n"));
        assert!(redactor.add("abcd\n"));
        assert_eq!(redactor.redact("abc abcd"), "abc [redacted]");
    }

    #[test]
    fn secrets_have_a_limit() {
        let redactor = Redactor::new();
        for number in 0..SECRETS_MAX {
            assert!(redactor.add(&format!("secret-{number}")));
        }
        assert!(!redactor.add("one-too-many"));
        assert!(redactor.add("secret-0"), "known already");
    }

    #[test]
    fn patterns_count_too_and_nothing_is_allocated_for_plain_text() {
        let redactor = redactor(&["hunter2 x"]);
        assert_eq!(redactor.redact("password=hunter2 x"), "password=[redacted]");
        assert_eq!(redactor.redact("password=other"), "password=[redacted]");
        assert!(matches!(redactor.redact("plain"), Cow::Borrowed("plain")));
        assert_eq!(format!("{redactor:?}"), "Redactor { secrets: 1, .. }");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_known_value_is_gone_in_every_form(
            secret in "[A-Za-zä0-9 /+\"%\\\\]{8,40}",
            around in "[A-Za-z0-9 :=\"]{0,12}",
        ) {
            let secret = secret.trim();
            prop_assume!(SECRET_BYTES_MIN <= secret.len());
            let redactor = redactor(&[secret]);
            for form in forms(secret) {
                let text = format!("{around}{form}{around}");
                let once = redactor.redact(&text).into_owned();
                prop_assert!(!once.contains(&form), "{} in {}", form, once);
                let twice = redactor.redact(&once).into_owned();
                prop_assert_eq!(&twice, &once);
            }
        }

        #[test]
        fn it_is_gone_from_the_encoding_of_a_longer_text(
            secret in "[A-Za-z0-9]{12,40}",
            before in "[ -~]{0,7}",
            after in "[ -~]{0,7}",
        ) {
            let shown = STANDARD.encode(format!("{before}{secret}{after}"));
            let shown = redactor(&[&secret]).redact(&shown).into_owned();
            let kept = shown.len() - MARK.len();
            // Letters that also belong to a neighbour stay: two at each side at most.
            prop_assert!(kept <= before.len() * 2 + after.len() * 2 + 8, "{}", shown);
        }
    }
}
