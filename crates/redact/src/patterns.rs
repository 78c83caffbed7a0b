//! Redaction by pattern: a table with one regular expression for each form of a secret.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Match, Regex, RegexSet};

use crate::MARK;
use crate::expressions::{self, SECRET_WORD, TOKEN_PREFIX, compile};

/// Redacting one form can reveal another, so the table is applied until nothing changes, but at most
/// this often.
const PASSES_MAX: usize = 4;

/// A form in which secrets appear.
struct Form {
    /// A cheap expression that matches every text in which the form occurs.
    trigger: &'static str,
    /// The unnamed group that takes part in a match is the secret. The group `key` is its name, and
    /// `quote` is the quotation mark to put around [`MARK`].
    expression: LazyLock<Regex>,
}

/// Applied in this order.
static FORMS: [Form; 15] = [
    // The body of a PEM block.
    Form::new("-----BEGIN", expressions::private_key_block),
    // `scheme://user:password@host`
    Form::new("://", expressions::url_password),
    // The same with a slash in the password, which is invalid but common.
    Form::new("://", expressions::url_password_with_slash),
    // `https://token@host`
    Form::new("://", expressions::url_token),
    // `key = "value"` and `"key": "value"`
    Form::new(SECRET_WORD, expressions::quoted_value),
    // `--key "value"` and `"--key", "value"`
    Form::new("--", expressions::quoted_argument),
    // `Authorization: Scheme value`
    Form::new("(?i-u:authorization)", expressions::authorization_header),
    // `key=value` and `key: Scheme value`
    Form::new(SECRET_WORD, expressions::bare_value),
    // `--key value`
    Form::new("--", expressions::bare_argument),
    // `Bearer value`
    Form::new("(?i-u:bearer)", expressions::bearer_token),
    // A signing key in the format of signed notes.
    Form::new(r"PRIVATE\+KEY\+", expressions::signing_key),
    // `sk-…`, `ghp_…`
    Form::new(TOKEN_PREFIX, expressions::prefixed_token),
    // `AIza…`
    Form::new("AIza", expressions::google_key),
    // `AKIA…`
    Form::new("A[KS]IA", expressions::amazon_key),
    // `eyJ….….…`
    Form::new("eyJ", expressions::json_web_token),
];

#[expect(clippy::expect_used, reason = "the expressions are constants that the tests compile")]
static TRIGGERS: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(FORMS.iter().map(|form| form.trigger)).expect("the triggers are valid")
});

/// Redacts everything that has the form of a secret: credentials in URLs and headers, values whose
/// key names a secret, tokens with a known prefix, private keys.
///
/// ```
/// use redact::redact;
///
/// assert_eq!(redact("GET https://me:hunter2@host/"), "GET https://me:[redacted]@host/");
/// assert_eq!(redact("api_key=abc user=me"), "api_key=[redacted] user=me");
/// assert_eq!(redact("token: env:LETTA_TOKEN"), "token: env:LETTA_TOKEN");
/// ```
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut redacted = Cow::Borrowed(text);
    for _ in 0..PASSES_MAX {
        match redact_once(&redacted) {
            Some(next) => redacted = Cow::Owned(next),
            None => break,
        }
    }
    redacted
}

/// `None` if nothing changes.
fn redact_once(text: &str) -> Option<String> {
    let triggered = TRIGGERS.matches(text);
    let forms = FORMS.iter().enumerate().filter(|(index, _)| triggered.matched(*index));
    forms.fold(None, |redacted: Option<String>, (_, form)| {
        form.redact(redacted.as_deref().unwrap_or(text)).or(redacted)
    })
}

impl Form {
    const fn new(trigger: &'static str, expression: fn() -> Regex) -> Form {
        Form { trigger, expression: LazyLock::new(expression) }
    }

    /// `None` if nothing changes.
    fn redact(&self, text: &str) -> Option<String> {
        let mut redacted = String::new();
        let mut copied = 0;
        for captures in self.expression.captures_iter(text) {
            let Some(secret) = self.secret(text, &captures) else { continue };
            let quote = captures.name("quote").map_or("", |quote| quote.as_str());
            redacted.push_str(text.get(copied..secret.start()).unwrap_or_default());
            redacted.extend([quote, MARK, quote]);
            copied = secret.end();
        }
        if copied == 0 {
            return None;
        }
        redacted.push_str(text.get(copied..).unwrap_or_default());
        Some(redacted)
    }

    fn secret<'t>(&self, text: &str, captures: &Captures<'t>) -> Option<Match<'t>> {
        let groups = captures.iter().zip(self.expression.capture_names()).skip(1);
        let mut unnamed = groups.filter(|(_, name)| name.is_none());
        let secret = unnamed.find_map(|(group, _)| group)?;
        let is_visible = match captures.name("key").map(|key| key.as_str()) {
            Some(key) => !is_secret_key(key) || is_harmless(key, secret.as_str()),
            None => secret.is_empty() || secret.as_str() == MARK,
        };
        (!is_visible && !splits_colour(text, &secret)).then_some(secret)
    }
}

/// Whether a match starts inside a terminal colour, such as `ESC [ 3 1 m`.
fn splits_colour(text: &str, secret: &Match<'_>) -> bool {
    let before = text.get(..secret.start()).unwrap_or_default();
    let is_parameter = |c: char| c.is_ascii_digit() || c == ';';
    match secret.as_str().chars().next() {
        Some('[') => before.ends_with('\x1b'),
        Some(c) if c.is_ascii_alphanumeric() || c == ';' => {
            before.trim_end_matches(is_parameter).ends_with("\x1b[")
        }
        _ => false,
    }
}

/// Whether a key names a secret. `token_file` and `token_files` name paths.
pub(crate) fn is_secret_key(key: &str) -> bool {
    static SECRET: LazyLock<Regex> = LazyLock::new(|| compile(SECRET_WORD));
    static PATH: LazyLock<Regex> = LazyLock::new(|| compile("(?i-u:token_files?)$"));
    SECRET.is_match(key) && !PATH.is_match(key)
}

/// Whether a value stays visible even if its key names a secret: nothing, a literal, a reference to
/// a secret, or a number of tokens.
pub(crate) fn is_harmless(key: &str, value: &str) -> bool {
    static HARMLESS: LazyLock<Regex> = LazyLock::new(expressions::harmless_value);
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    HARMLESS.is_match(value) || is_number && key.to_ascii_lowercase().contains("tokens")
}
