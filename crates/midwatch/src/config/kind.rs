//! Kinds of keys: what a value of each kind may be, and where in [`Config`] it goes.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use agents::Way;
use kernel::backend::{SecretRef, Url};
use kernel::money::Money;
use mcp::{Toolset, UnknownToolset};
use store_postgres::Target;

use super::nearest::nearest;
use super::text::quoted;
use super::{Config, Level, Posture, Setting};

/// What a list is called.
pub(super) const LIST: &str = "a list";

/// The kind of a key: its place in [`Config`] and what may stand there.
pub(super) enum Kind {
    Posture(fn(&mut Config) -> &mut Posture),
    Level(fn(&mut Config) -> &mut Level),
    Bytes {
        field: fn(&mut Config) -> &mut u64,
        min: u64,
        max: u64,
    },
    Count {
        field: fn(&mut Config) -> &mut u32,
        min: u32,
        max: u32,
    },
    File(fn(&mut Config) -> &mut Option<PathBuf>),
    /// The url of a database, or nothing.
    Database(fn(&mut Config) -> &mut Option<String>),
    /// Where a secret is found, or nothing.
    Secret(fn(&mut Config) -> &mut Option<SecretRef>),
    /// Where requests are sent, or nothing.
    Url(fn(&mut Config) -> &mut Option<Url>),
    /// A program and its arguments, or nothing.
    Argv(fn(&mut Config) -> &mut Vec<String>),
    /// From `min` to `max`, or zero.
    Span {
        field: fn(&mut Config) -> &mut Duration,
        min: Duration,
        max: Duration,
    },
    /// As much as there is, if zero.
    Money(fn(&mut Config) -> &mut Money),
    Flag(fn(&mut Config) -> &mut bool),
    /// An address of this machine, or nothing.
    Listen(fn(&mut Config) -> &mut Option<SocketAddr>),
    /// Groups of tools, or nothing.
    Toolsets(fn(&mut Config) -> &mut Vec<Toolset>),
}

/// A value as it was written.
#[derive(Clone, Debug)]
pub(super) enum Raw<'t> {
    /// A string of the file.
    Text(Cow<'t, str>),
    /// A word of the environment, which has no types.
    Word(&'t str),
    Integer(i128),
    Boolean(bool),
    List(Vec<String>),
    /// Whatever no key accepts, by its name.
    Other(&'static str),
}

/// What was wrong with a value: what it must be, and perhaps a way to get there.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) expected: String,
    pub(super) hint: Option<String>,
}

impl Kind {
    /// What a value of this kind is, to follow "must be".
    pub(super) fn expected(&self) -> String {
        match self {
            Kind::Posture(_) => one_of(&Posture::ALL.map(Posture::name)),
            Kind::Level(_) => one_of(&Level::ALL.map(Level::name)),
            Kind::Bytes { min, max, .. } => {
                format!("a size from {} to {}", bytes_text(*min), bytes_text(*max))
            }
            Kind::Count { min, max, .. } => format!("a whole number from {min} to {max}"),
            Kind::File(_) => "the absolute path of a file, or empty".to_owned(),
            Kind::Database(_) => "the url of a database, or empty".to_owned(),
            Kind::Secret(_) => "`env:NAME`, `file:/absolute/path`, or empty".to_owned(),
            Kind::Url(_) => "an `https` or `http` url, or empty".to_owned(),
            Kind::Argv(_) => "a list of a program and its arguments, or empty".to_owned(),
            Kind::Span { min, max, .. } => {
                format!("a span from {} to {}, or 0s", span_text(*min), span_text(*max))
            }
            Kind::Money(_) => "an amount of money such as \"5.00\"".to_owned(),
            Kind::Flag(_) => "true or false".to_owned(),
            Kind::Listen(_) => "a loopback address and a port, or empty".to_owned(),
            Kind::Toolsets(_) => "a list of toolsets, or empty".to_owned(),
        }
    }

    /// Puts `raw` into its place. Returns the value as it is shown, or what was wrong with it.
    pub(super) fn set(&self, config: &mut Config, raw: &Raw) -> Result<Setting, Wrong> {
        match self {
            Kind::Posture(field) => {
                let posture: Option<Posture> = raw.as_text().and_then(|word| word.parse().ok());
                let words = Posture::WORDS.map(|(word, _)| word);
                let posture = posture.ok_or_else(|| self.wrong_word(raw, &words))?;
                *field(config) = posture;
                Ok(Setting::Text(posture.name().to_owned()))
            }
            Kind::Level(field) => {
                let level = raw.as_text().and_then(Level::of);
                let names = Level::ALL.map(Level::name);
                let level = level.ok_or_else(|| self.wrong_word(raw, &names))?;
                *field(config) = level;
                Ok(Setting::Text(level.name().to_owned()))
            }
            Kind::Bytes { field, min, max } => {
                let bytes = raw.as_integer().or_else(|| raw.as_text().and_then(bytes));
                let bytes = bytes.filter(|bytes| (min..=max).contains(&bytes));
                let hint = "write a size with its unit, such as `10MiB` or `500kB`";
                *field(config) = bytes.ok_or_else(|| self.wrong(hint))?;
                Ok(raw.shown())
            }
            Kind::Count { field, min, max } => {
                let count = raw.as_integer().and_then(|count| u32::try_from(count).ok());
                let count = count.filter(|count| (min..=max).contains(&count));
                *field(config) = count.ok_or_else(|| self.wrong_bare(raw))?;
                Ok(raw.shown())
            }
            Kind::File(field) => {
                let text = raw.as_text().filter(|text| is_file_path(text));
                let hint = "relative paths and `~` depend on who starts the watch, and from where";
                let text = text.ok_or_else(|| self.wrong(hint))?;
                *field(config) = Some(text).filter(|text| !text.is_empty()).map(PathBuf::from);
                Ok(raw.shown())
            }
            Kind::Database(field) => {
                let text = raw.as_text().ok_or_else(|| self.wrong_bare(raw))?;
                let checked = if text.is_empty() { Ok(()) } else { Target::check(text) };
                checked.map_err(|invalid| self.wrong(invalid.hint))?;
                *field(config) = Some(text).filter(|text| !text.is_empty()).map(str::to_owned);
                Ok(raw.shown())
            }
            Kind::Listen(field) => {
                let hint = "write it as `127.0.0.1:7400`";
                let text = raw.as_text().ok_or_else(|| self.wrong_bare(raw))?;
                let address =
                    Some(text).filter(|text| !text.is_empty()).map(str::parse).transpose();
                let address: Option<SocketAddr> = address.map_err(|_| self.wrong(hint))?;
                // Under any other address the door would not know its own name.
                let here = [Ipv4Addr::LOCALHOST.into(), IpAddr::from(Ipv6Addr::LOCALHOST)];
                let is_here = address.is_none_or(|address| here.contains(&address.ip()));
                *field(config) = if is_here { address } else { return Err(self.wrong(hint)) };
                Ok(raw.shown())
            }
            Kind::Secret(field) => {
                let hint = "the secret itself does not belong into the configuration";
                let text = raw.as_text().ok_or_else(|| self.wrong_bare(raw))?;
                let secret = Some(text).filter(|text| !text.is_empty()).map(str::parse).transpose();
                *field(config) = secret.map_err(|_| self.wrong(hint))?;
                Ok(raw.shown())
            }
            Kind::Url(field) => {
                let hint = "it begins with https://, and holds no password";
                let text = raw.as_text().ok_or_else(|| self.wrong_bare(raw))?;
                let url = Some(text).filter(|text| !text.is_empty()).map(str::parse).transpose();
                let url: Option<Url> = url.map_err(|_| self.wrong(hint))?;
                let is_fit = url.as_ref().is_none_or(|url| Way::to(url).is_some());
                *field(config) = if is_fit { url } else { return Err(self.wrong(hint)) };
                Ok(raw.shown())
            }
            Kind::Argv(field) => {
                let argv = raw.as_list().filter(|argv| is_argv(argv));
                let hint = "write each word as a string of its own: `[\"program\", \"argument\"]`";
                let argv = argv.ok_or_else(|| self.wrong(hint))?;
                *field(config) = argv.clone();
                Ok(Setting::List(argv))
            }
            Kind::Toolsets(field) => {
                let names =
                    raw.as_list().ok_or_else(|| self.wrong("write `[\"core\", \"run\"]`"))?;
                let toolsets = names.iter().map(|name| name.parse()).collect::<Result<_, _>>();
                *field(config) =
                    toolsets.map_err(|unknown: UnknownToolset| self.wrong(&unknown.to_string()))?;
                Ok(Setting::List(names))
            }
            Kind::Span { field, min, max } => {
                let span = raw.as_text().and_then(span);
                let span = span.filter(|span| span.is_zero() || (min..=max).contains(&span));
                let hint = "write a span with its unit, such as `90s`, `5m` or `1h30m`";
                *field(config) = span.ok_or_else(|| self.wrong(hint))?;
                Ok(raw.shown())
            }
            Kind::Money(field) => {
                let money: Option<Money> = raw.as_text().and_then(|text| text.parse().ok());
                let money = money.ok_or_else(|| {
                    self.wrong(
                        "write it in quotes, with at most six decimals; the most is 100000000",
                    )
                })?;
                *field(config) = money;
                Ok(Setting::Text(money.to_string()))
            }
            Kind::Flag(field) => {
                let flag = raw.as_flag().ok_or_else(|| self.wrong_bare(raw))?;
                *field(config) = flag;
                Ok(Setting::Flag(flag))
            }
        }
    }

    fn wrong(&self, hint: &str) -> Wrong {
        Wrong { expected: self.expected(), hint: Some(hint.to_owned()) }
    }

    fn wrong_word(&self, raw: &Raw, words: &[&'static str]) -> Wrong {
        let near = raw.as_text().and_then(|text| nearest(text, words.iter().copied()));
        Wrong {
            expected: self.expected(),
            hint: near.map(|word| format!("did you mean `{word}`?")),
        }
    }

    fn wrong_bare(&self, raw: &Raw) -> Wrong {
        let hint = matches!(raw, Raw::Text(_)).then(|| "write it without quotes".to_owned());
        Wrong { expected: self.expected(), hint }
    }
}

impl Raw<'_> {
    pub(super) const fn text(text: &'static str) -> Raw<'static> {
        Raw::Text(Cow::Borrowed(text))
    }

    /// As a message names it, after "not".
    pub(super) fn named(&self) -> Cow<'static, str> {
        match self {
            Raw::Text(text) if text.is_empty() => "empty".into(),
            Raw::Word("") => "empty".into(),
            Raw::Text(text) => quoted(text).into(),
            Raw::Word(text) => quoted(text).into(),
            Raw::Integer(number) => format!("`{number}`").into(),
            Raw::Boolean(flag) => format!("`{flag}`").into(),
            Raw::List(_) => LIST.into(),
            Raw::Other(name) => (*name).into(),
        }
    }

    fn as_text(&self) -> Option<&str> {
        match self {
            Raw::Text(text) => Some(text),
            Raw::Word(text) => Some(text),
            Raw::Integer(_) | Raw::Boolean(_) | Raw::List(_) | Raw::Other(_) => None,
        }
    }

    fn as_integer(&self) -> Option<u64> {
        match self {
            Raw::Integer(number) => u64::try_from(*number).ok(),
            Raw::Word(text) => digits(text),
            Raw::Text(_) | Raw::Boolean(_) | Raw::List(_) | Raw::Other(_) => None,
        }
    }

    fn as_flag(&self) -> Option<bool> {
        match self {
            Raw::Boolean(flag) => Some(*flag),
            Raw::Word("true" | "1") => Some(true),
            Raw::Word("false" | "0") => Some(false),
            Raw::Text(_) | Raw::Word(_) | Raw::Integer(_) | Raw::List(_) | Raw::Other(_) => None,
        }
    }

    /// In the environment a list is written as in the file.
    fn as_list(&self) -> Option<Vec<String>> {
        match self {
            Raw::List(words) => Some(words.clone()),
            Raw::Word("") => Some(Vec::new()),
            Raw::Word(text) => api::json::read(text.as_bytes()).ok(),
            Raw::Text(_) | Raw::Integer(_) | Raw::Boolean(_) | Raw::Other(_) => None,
        }
    }

    /// As it was written, with numbers as numbers.
    pub(super) fn shown(&self) -> Setting {
        match self {
            Raw::Text(text) => Setting::Text(text.clone().into_owned()),
            Raw::Word(word) => {
                digits(word).map_or_else(|| Setting::Text((*word).to_owned()), Setting::Number)
            }
            Raw::Integer(number) => Setting::Number(u64::try_from(*number).unwrap_or_default()),
            Raw::Boolean(flag) => Setting::Flag(*flag),
            Raw::List(words) => Setting::List(words.clone()),
            Raw::Other(name) => Setting::Text((*name).to_owned()),
        }
    }
}

fn one_of(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    format!("one of {}", words.join(", "))
}

/// An absolute path that names a file, or nothing.
fn is_file_path(text: &str) -> bool {
    text.is_empty() || text.starts_with('/') && !text.ends_with('/') && !text.contains('\0')
}

/// A program that can be named, with words that can be passed to it, or nothing.
fn is_argv(argv: &[String]) -> bool {
    argv.first().is_none_or(|program| !program.is_empty())
        && argv.iter().all(|word| !word.contains('\0'))
}

/// Only digits: `str::parse` would also take a sign.
fn digits(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Splits `10MiB` into its number and its unit; a space may stand between them.
fn number_and_rest(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end)?;
    Some((digits(number)?, rest.trim_start()))
}

const BYTE_UNITS: &[(&str, u64)] = &[
    ("gib", 1 << 30),
    ("mib", 1 << 20),
    ("kib", 1 << 10),
    ("gb", 1_000_000_000),
    ("mb", 1_000_000),
    ("kb", 1_000),
    ("b", 1),
];

/// A size such as `10MiB`; `M` alone is refused, since people mean different things by it.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = number_and_rest(text.trim())?;
    let unit = unit.to_ascii_lowercase();
    let (_, factor) = BYTE_UNITS.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*factor)
}

fn bytes_text(bytes: u64) -> String {
    let unit = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let whole = unit.into_iter().find(|(_, factor)| bytes != 0 && bytes.is_multiple_of(*factor));
    whole.map_or_else(|| format!("{bytes}B"), |(name, factor)| format!("{}{name}", bytes / factor))
}

const SPAN_UNITS: &[(&str, u64)] =
    &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A span such as `90s` or `1h30m`: units from large to small, each at most once.
fn span(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut units = SPAN_UNITS;
    let mut millis: u64 = 0;
    loop {
        let (number, tail) = number_and_rest(rest)?;
        let end = tail.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(end)?;
        let place = units.iter().position(|(name, _)| *name == unit)?;
        let (_, factor) = units.get(place)?;
        millis = millis.checked_add(number.checked_mul(*factor)?)?;
        (rest, units) = (tail.trim_start(), units.get(place + 1..)?);
        if rest.is_empty() {
            return Some(Duration::from_millis(millis));
        }
    }
}

fn span_text(span: Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let whole = SPAN_UNITS.iter().find(|(_, factor)| millis.is_multiple_of(*factor));
    whole.map_or_else(
        || format!("{millis}ms"),
        |(name, factor)| format!("{}{name}", millis / factor),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(bytes(text), expected, "{text}");
        check("10MiB", Some(10 << 20));
        check(" 10 mib ", Some(10 << 20));
        check("500kB", Some(500_000));
        check("0B", Some(0));
        check("17179869183GiB", Some(17_179_869_183 << 30));
        check("17179869184GiB", None); // 2^64: one past the limit.
        for text in ["", "10", "10M", "MiB", "-1MiB", "+1MiB", "1.5MiB", "1MiBs", "1Mi B", "９MiB"]
        {
            check(text, None);
        }
    }

    #[test]
    fn spans() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(span(text), expected.map(Duration::from_millis), "{text}");
        };
        check("0s", Some(0));
        check("90s", Some(90_000));
        check("1h30m", Some(5_400_000));
        check("1d 2h 3m 4s 5ms", Some(93_784_005));
        check("250ms", Some(250));
        for text in
            ["", "0", "60", "s", "1m1h", "1s1s", "-1s", "1.5s", "1 s x", "1w", "99999999999999999d"]
        {
            check(text, None);
        }
    }

    #[test]
    fn limits_print_in_their_largest_whole_unit() {
        assert_eq!(bytes_text(64 << 10), "64KiB");
        assert_eq!(bytes_text(1500), "1500B");
        assert_eq!(span_text(Duration::from_secs(86_400)), "1d");
        assert_eq!(span_text(Duration::from_secs(90)), "90s");
    }
}
