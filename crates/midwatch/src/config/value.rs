//! The types of configuration values: each parses itself and says what it accepts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use agents::Scheme;
use api::nearest;
use kernel::backend::{Invalid, SecretRef, Url};
use kernel::money::Money;
use mcp::{Toolset, UnknownToolset};
use store_postgres::Target;

use super::raw::Raw;
use super::units::{format_bytes, format_span, parse_bytes, parse_span};
use super::{DatabaseUrl, Level, Posture, Setting};

/// A type that a key can have.
pub(super) trait ConfigValue: Sized {
    /// Whether a wrong value may be a secret and must not be quoted.
    const IS_SECRET: bool = false;

    /// What a value is, to follow "must be".
    fn expected() -> String;

    fn parse(raw: &Raw) -> Option<Self>;

    /// How to correct a value that did not parse.
    fn hint(raw: &Raw) -> Option<String>;

    /// The value as `config show` prints it.
    fn setting(&self, raw: &Raw) -> Setting {
        raw.as_setting()
    }
}

/// A type whose keys have limits.
pub(super) trait RangedValue: ConfigValue + PartialOrd + Copy {
    /// What a value within the limits is, to follow "must be".
    fn expected_between(min: Self, max: Self) -> String;

    fn is_between(self, min: Self, max: Self) -> bool {
        min <= self && self <= max
    }
}

/// A type that is written as text. Its keys may be empty: they hold an `Option` of it.
trait TextValue: Sized {
    const EXPECTED: &str;
    const IS_SECRET: bool = false;

    fn parse_text(text: &str) -> Option<Self>;

    fn hint_for(text: &str) -> String;
}

impl<T: TextValue> ConfigValue for Option<T> {
    const IS_SECRET: bool = T::IS_SECRET;

    fn expected() -> String {
        format!("{}, or empty", T::EXPECTED)
    }

    fn parse(raw: &Raw) -> Option<Option<T>> {
        match raw.as_text()? {
            "" => Some(None),
            text => T::parse_text(text).map(Some),
        }
    }

    fn hint(raw: &Raw) -> Option<String> {
        raw.as_text().map(T::hint_for)
    }
}

impl TextValue for PathBuf {
    const EXPECTED: &str = "the absolute path of a file";

    fn parse_text(text: &str) -> Option<PathBuf> {
        let is_file = text.starts_with('/') && !text.ends_with('/') && !text.contains('\0');
        is_file.then(|| PathBuf::from(text))
    }

    fn hint_for(_: &str) -> String {
        "relative paths and `~` depend on who starts the daemon, and from where".to_owned()
    }
}

impl TextValue for DatabaseUrl {
    const EXPECTED: &str = "the url of a database";
    const IS_SECRET: bool = true;

    fn parse_text(text: &str) -> Option<DatabaseUrl> {
        Target::check(text).is_ok().then(|| DatabaseUrl(text.to_owned()))
    }

    fn hint_for(text: &str) -> String {
        Target::check(text).err().map(|invalid| invalid.hint.to_string()).unwrap_or_default()
    }
}

impl TextValue for SecretRef {
    const EXPECTED: &str = "`env:NAME`, `file:/absolute/path`";
    const IS_SECRET: bool = true;

    fn parse_text(text: &str) -> Option<SecretRef> {
        text.parse().ok()
    }

    fn hint_for(_: &str) -> String {
        "the secret itself does not belong in the configuration".to_owned()
    }
}

impl TextValue for Url {
    const EXPECTED: &str = "an `https` or `http` url";
    // A password may be in it, in a form that no pattern finds.
    const IS_SECRET: bool = true;

    fn parse_text(text: &str) -> Option<Url> {
        text.parse().ok().filter(|url| Scheme::of(url).is_some())
    }

    fn hint_for(text: &str) -> String {
        match text.parse::<Url>() {
            Err(invalid @ Invalid::Url(_)) => {
                format!("{invalid}; write it as `https://host/path`, without a password")
            }
            _ => "write it as `https://host/path`, without a password".to_owned(),
        }
    }
}

/// Loopback addresses only: the server checks that requests name the address that it listens on.
impl TextValue for SocketAddr {
    const EXPECTED: &str = "a loopback address and a port";

    fn parse_text(text: &str) -> Option<SocketAddr> {
        let loopback = [Ipv4Addr::LOCALHOST.into(), IpAddr::from(Ipv6Addr::LOCALHOST)];
        text.parse().ok().filter(|address: &SocketAddr| loopback.contains(&address.ip()))
    }

    fn hint_for(_: &str) -> String {
        "write it as `127.0.0.1:7400`".to_owned()
    }
}

impl ConfigValue for Posture {
    fn expected() -> String {
        one_of(&Posture::ALL.map(Posture::name))
    }

    fn parse(raw: &Raw) -> Option<Posture> {
        raw.as_text()?.parse().ok()
    }

    fn hint(raw: &Raw) -> Option<String> {
        did_you_mean(raw, &Posture::NAMES.map(|(name, _)| name))
    }

    fn setting(&self, _: &Raw) -> Setting {
        Setting::Text(self.name().to_owned())
    }
}

impl ConfigValue for Level {
    fn expected() -> String {
        one_of(&Level::ALL.map(Level::name))
    }

    fn parse(raw: &Raw) -> Option<Level> {
        Level::from_name(raw.as_text()?)
    }

    fn hint(raw: &Raw) -> Option<String> {
        did_you_mean(raw, &Level::ALL.map(Level::name))
    }

    fn setting(&self, _: &Raw) -> Setting {
        Setting::Text(self.name().to_owned())
    }
}

impl ConfigValue for bool {
    fn expected() -> String {
        "true or false".to_owned()
    }

    fn parse(raw: &Raw) -> Option<bool> {
        raw.as_flag()
    }

    fn hint(raw: &Raw) -> Option<String> {
        without_quotes(raw)
    }

    fn setting(&self, _: &Raw) -> Setting {
        Setting::Flag(*self)
    }
}

impl ConfigValue for Money {
    fn expected() -> String {
        "an amount of money such as \"5.00\"".to_owned()
    }

    fn parse(raw: &Raw) -> Option<Money> {
        raw.as_text()?.parse().ok()
    }

    fn hint(_: &Raw) -> Option<String> {
        Some("write it in quotes, with at most six decimals; the most is 100000000".to_owned())
    }

    fn setting(&self, _: &Raw) -> Setting {
        Setting::Text(self.to_string())
    }
}

/// A program and its arguments; empty: none.
impl ConfigValue for Vec<String> {
    fn expected() -> String {
        "a list of a program and its arguments, or empty".to_owned()
    }

    fn parse(raw: &Raw) -> Option<Vec<String>> {
        let argv = raw.as_list()?;
        let has_program = argv.first().is_none_or(|program| !program.is_empty());
        (has_program && argv.iter().all(|word| !word.contains('\0'))).then_some(argv)
    }

    fn hint(_: &Raw) -> Option<String> {
        Some("write each word as a separate string: `[\"program\", \"argument\"]`".to_owned())
    }

    fn setting(&self, _: &Raw) -> Setting {
        Setting::List(self.clone())
    }
}

impl ConfigValue for Vec<Toolset> {
    fn expected() -> String {
        "a list of toolsets, or empty".to_owned()
    }

    fn parse(raw: &Raw) -> Option<Vec<Toolset>> {
        raw.as_list()?.iter().map(|name| name.parse().ok()).collect()
    }

    fn hint(raw: &Raw) -> Option<String> {
        let unknown = |name: &String| {
            name.parse::<Toolset>().err().map(|unknown: UnknownToolset| unknown.to_string())
        };
        match raw.as_list() {
            Some(names) => names.iter().find_map(unknown),
            None => Some("write `[\"core\", \"run\"]`".to_owned()),
        }
    }

    fn setting(&self, _: &Raw) -> Setting {
        Setting::List(self.iter().map(|toolset| toolset.name().to_owned()).collect())
    }
}

/// A count.
impl ConfigValue for u32 {
    fn expected() -> String {
        "a whole number".to_owned()
    }

    fn parse(raw: &Raw) -> Option<u32> {
        raw.as_integer().and_then(|count| u32::try_from(count).ok())
    }

    fn hint(raw: &Raw) -> Option<String> {
        without_quotes(raw)
    }
}

impl RangedValue for u32 {
    fn expected_between(min: u32, max: u32) -> String {
        format!("{} from {min} to {max}", u32::expected())
    }
}

/// A size in bytes.
impl ConfigValue for u64 {
    fn expected() -> String {
        "a size".to_owned()
    }

    fn parse(raw: &Raw) -> Option<u64> {
        raw.as_integer().or_else(|| raw.as_text().and_then(parse_bytes))
    }

    fn hint(_: &Raw) -> Option<String> {
        Some("write a size with its unit, such as `10MiB` or `500kB`".to_owned())
    }
}

impl RangedValue for u64 {
    fn expected_between(min: u64, max: u64) -> String {
        format!("{} from {} to {}", u64::expected(), format_bytes(min), format_bytes(max))
    }
}

impl ConfigValue for Duration {
    fn expected() -> String {
        "a span".to_owned()
    }

    fn parse(raw: &Raw) -> Option<Duration> {
        raw.as_text().and_then(parse_span)
    }

    fn hint(_: &Raw) -> Option<String> {
        Some("write a span with its unit, such as `90s`, `5m` or `1h30m`".to_owned())
    }
}

/// Zero is always allowed: it turns the setting off.
impl RangedValue for Duration {
    fn expected_between(min: Duration, max: Duration) -> String {
        let (min, max) = (format_span(min), format_span(max));
        format!("{} from {min} to {max}, or 0s", Duration::expected())
    }

    fn is_between(self, min: Duration, max: Duration) -> bool {
        self.is_zero() || (min <= self && self <= max)
    }
}

fn one_of(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("one of {}", names.join(", "))
}

fn did_you_mean(raw: &Raw, names: &[&'static str]) -> Option<String> {
    let near = raw.as_text().and_then(|text| nearest(text, names.iter().copied()));
    near.map(|name| format!("did you mean `{name}`?"))
}

fn without_quotes(raw: &Raw) -> Option<String> {
    matches!(raw, Raw::Text(_)).then(|| "write it without quotes".to_owned())
}
