//! A value as it was written, before its type is known.

use std::borrow::Cow;

use super::Setting;
use super::text::quoted;
use super::units::parse_digits;

/// How messages name a list.
pub(super) const LIST: &str = "a list";

/// A value of the file or of the environment.
#[derive(Clone, Debug)]
pub(super) enum Raw<'t> {
    /// A string of the file.
    Text(Cow<'t, str>),
    /// The value of an environment variable, which has no type.
    Variable(&'t str),
    Integer(i128),
    Boolean(bool),
    List(Vec<String>),
    /// A value that no key accepts, by the name of its type.
    Other(&'static str),
}

impl Raw<'_> {
    pub(super) const fn text(text: &'static str) -> Raw<'static> {
        Raw::Text(Cow::Borrowed(text))
    }

    /// The value in a message, after "not".
    pub(super) fn described(&self) -> Cow<'static, str> {
        match self {
            Raw::Text(text) if text.is_empty() => "empty".into(),
            Raw::Variable("") => "empty".into(),
            Raw::Text(text) => quoted(text).into(),
            Raw::Variable(text) => quoted(text).into(),
            Raw::Integer(number) => format!("`{number}`").into(),
            Raw::Boolean(flag) => format!("`{flag}`").into(),
            Raw::List(_) => LIST.into(),
            Raw::Other(name) => (*name).into(),
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Raw::Text(text) => Some(text),
            Raw::Variable(text) => Some(text),
            Raw::Integer(_) | Raw::Boolean(_) | Raw::List(_) | Raw::Other(_) => None,
        }
    }

    pub(super) fn as_integer(&self) -> Option<u64> {
        match self {
            Raw::Integer(number) => u64::try_from(*number).ok(),
            Raw::Variable(text) => parse_digits(text),
            Raw::Text(_) | Raw::Boolean(_) | Raw::List(_) | Raw::Other(_) => None,
        }
    }

    pub(super) fn as_flag(&self) -> Option<bool> {
        match self {
            Raw::Boolean(flag) => Some(*flag),
            Raw::Variable("true" | "1") => Some(true),
            Raw::Variable("false" | "0") => Some(false),
            Raw::Text(_) | Raw::Variable(_) | Raw::Integer(_) | Raw::List(_) | Raw::Other(_) => {
                None
            }
        }
    }

    /// A variable has a list in the same form as the file.
    pub(super) fn as_list(&self) -> Option<Vec<String>> {
        match self {
            Raw::List(words) => Some(words.clone()),
            Raw::Variable("") => Some(Vec::new()),
            Raw::Variable(text) => api::json::read(text.as_bytes()).ok(),
            Raw::Text(_) | Raw::Integer(_) | Raw::Boolean(_) | Raw::Other(_) => None,
        }
    }

    /// The value as it was written, with digits as a number.
    pub(super) fn as_setting(&self) -> Setting {
        match self {
            Raw::Text(text) => Setting::Text(text.clone().into_owned()),
            Raw::Variable(text) => parse_digits(text)
                .map_or_else(|| Setting::Text((*text).to_owned()), Setting::Number),
            Raw::Integer(number) => Setting::Number(u64::try_from(*number).unwrap_or_default()),
            Raw::Boolean(flag) => Setting::Flag(*flag),
            Raw::List(words) => Setting::List(words.clone()),
            Raw::Other(name) => Setting::Text((*name).to_owned()),
        }
    }
}
