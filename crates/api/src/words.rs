//! Closed lists of words on the wire: states, decisions, verdicts, roles.
//!
//! A word is parsed once, where it enters the program, and is an enum from there on. A word that is not in the list is
//! refused, also in a response: a client of another version must not guess what a state means.

use std::fmt;

use crate::{Code, Error};

/// Most characters of an unknown word in a message.
const SHOWN_CHARS_MAX: usize = 80;

/// A word that is not in its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    /// What the word should have been, such as `state`.
    noun: &'static str,
    /// The start of the word.
    word: String,
    valid: &'static [&'static str],
}

impl UnknownWord {
    pub(crate) fn new(
        noun: &'static str,
        word: &str,
        valid: &'static [&'static str],
    ) -> UnknownWord {
        UnknownWord { noun, word: word.chars().take(SHOWN_CHARS_MAX).collect(), valid }
    }

    fn what(&self) -> String {
        format!("unknown {} `{}`", self.noun, self.word)
    }

    /// How to write it instead, such as `` use `done` or `failed` ``.
    fn hint(&self) -> String {
        let words: Vec<String> = self.valid.iter().map(|word| format!("`{word}`")).collect();
        match words.split_last() {
            Some((last, [])) => format!("use {last}"),
            Some((last, others)) => format!("use {} or {last}", others.join(", ")),
            None => String::new(),
        }
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}; {}", self.what(), self.hint())
    }
}

impl std::error::Error for UnknownWord {}

impl From<UnknownWord> for Error {
    fn from(unknown: UnknownWord) -> Error {
        Error::new(Code::InvalidInput, unknown.what()).hint(unknown.hint())
    }
}

/// Defines an enum by the words that stand for its variants on the wire. The text after its name says in errors what
/// the words are. A variant may have aliases, which are only read: `StrictProd "strict-prod" | "unattended"`.
macro_rules! words {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident $noun:literal {
            $($(#[$doc:meta])* $variant:ident $word:literal $(| $alias:literal)*,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),*];
            const WORDS: &[&str] = &[$($word),*];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(word: &str) -> Result<$name, $crate::UnknownWord> {
                match word {
                    $($word $(| $alias)* => Ok($name::$variant),)*
                    _ => Err($crate::UnknownWord::new($noun, word, $name::WORDS)),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                let word = <String as serde::Deserialize>::deserialize(from)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }

        /// A string of these words, without a name of its own: some MCP clients follow no references.
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": $name::WORDS })
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use crate::*;

    /// A word is the same on the wire, when it is parsed and when it is printed.
    fn check<W>(all: &[W], words: &[&str])
    where
        W: Copy + PartialEq + std::fmt::Debug + Display,
        W: FromStr<Err = UnknownWord> + Serialize + DeserializeOwned,
    {
        let printed: Vec<String> = all.iter().map(W::to_string).collect();
        assert_eq!(printed, words);
        for (value, word) in all.iter().zip(words) {
            assert_eq!(word.parse(), Ok(*value));
            assert_eq!(serde_json::to_value(value).unwrap(), json!(word));
            assert_eq!(serde_json::from_value::<W>(json!(word)).unwrap(), *value);
        }
        for other in [json!("?"), json!(""), json!(words[0].to_uppercase()), json!(null), json!(1)]
        {
            assert!(serde_json::from_value::<W>(other.clone()).is_err(), "{other}");
        }
    }

    #[test]
    fn words_are_the_wire_format() {
        let states =
            ["queued", "waiting_permission", "running", "done", "failed", "cancelled", "unknown"];
        check(RunState::ALL, &states);
        let origins = ["slot", "catch_up", "buffer", "manual", "after", "event", "backfill"];
        check(RunOrigin::ALL, &origins);
        check(SettledState::ALL, &["done", "failed"]);
        let approvals = [
            "pending",
            "approved",
            "denied",
            "consumed",
            "expired",
            "revoked",
            "changed",
            "unsigned",
            "cancelled",
            "not_needed",
        ];
        check(ApprovalState::ALL, &approvals);
        check(Decision::ALL, &["approve", "deny", "revoke"]);
        check(Verdict::ALL, &["allow", "ask", "deny"]);
        check(FingerprintCheck::ALL, &["as_it_was", "changed"]);
        check(ScheduleStatus::ALL, &["active", "paused", "ended", "removed"]);
        check(LeaseState::ALL, &["full", "ask", "paused"]);
        check(StartObstacle::ALL, &["no_daemon", "stopping", "frozen"]);
        check(Posture::ALL, &["strict-prod", "staging", "debug"]);
        check(Role::ALL, &["observer", "runner", "operator", "maintainer"]);
        let roles = ["observer", "runner", "operator", "maintainer", "system"];
        check(ActorRole::ALL, &roles);
    }

    #[test]
    fn unknown_word_is_refused_with_the_valid_words() {
        let unknown = "maybe".parse::<Decision>().unwrap_err();
        let text = "unknown decision `maybe`; use `approve`, `deny` or `revoke`";
        assert_eq!(unknown.to_string(), text);
        let error = Error::from(unknown);
        assert_eq!((error.code, &*error.message), (Code::InvalidInput, "unknown decision `maybe`"));
        assert_eq!(error.hint.as_deref(), Some("use `approve`, `deny` or `revoke`"));

        let request = json!({"id": "apr_1", "decision": "maybe"});
        let error = serde_json::from_value::<ApprovalDecide>(request).unwrap_err();
        assert_eq!(error.to_string(), text);
        let missing = serde_json::from_value::<ApprovalDecide>(json!({"id": "apr_1"}));
        assert_eq!(missing.unwrap_err().to_string(), "missing field `decision`");

        let long = "é".repeat(10_000).parse::<Verdict>().unwrap_err().to_string();
        assert!(long.starts_with("unknown verdict `éé") && long.chars().count() < 150, "{long}");
    }

    #[test]
    fn aliases_are_read_and_not_written() {
        assert_eq!("unattended".parse(), Ok(Posture::StrictProd));
        assert_eq!("supervised".parse::<Posture>().unwrap().to_string(), "staging");
    }

    #[test]
    fn schema_lists_the_words() {
        let schema = schemars::schema_for!(ApprovalDecide).to_value();
        let expected = json!({
            "type": "string", "enum": ["approve", "deny", "revoke"],
            "description": "What the human decided.",
        });
        assert_eq!(schema["properties"]["decision"], expected);
    }
}
