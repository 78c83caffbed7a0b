//! Who is let in: first where the request thinks that it is, then who makes it.

use std::sync::Arc;

use api::wire::Secret;
use api::{Code, Error, Handle};
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use http::{HeaderMap, StatusCode};

/// Names under which this machine knows itself.
pub(crate) const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Whoever knows tokens.
pub trait Door: Send + Sync {
    /// The handle that speaks for the one with this token, as far as an agent may speak for them.
    fn admit(&self, token: Secret) -> BoxFuture<'_, Result<Arc<dyn Handle>, Error>>;
}

/// Why somebody is turned away.
#[derive(Debug)]
pub(crate) struct Turned {
    pub(crate) status: StatusCode,
    pub(crate) error: Error,
}

/// A name that leads here only by a trick is not ours, and a page from elsewhere has no business here.
pub(crate) fn check_place(headers: &HeaderMap) -> Result<(), Turned> {
    let host = only(headers, &HOST)?.and_then(host_of);
    if !host.is_some_and(|host| HOSTS.contains(&host)) {
        let error = Error::new(Code::Denied, "this server is not known by that name");
        let error = error.hint("use http://127.0.0.1 or http://localhost");
        return Err(Turned { status: StatusCode::FORBIDDEN, error });
    }
    let from_here = |origin: &str| {
        let place = origin.strip_prefix("http://").and_then(host_of);
        place.is_some_and(|host| HOSTS.contains(&host))
    };
    if headers.contains_key(ORIGIN) && !only(headers, &ORIGIN)?.is_some_and(from_here) {
        let error = Error::new(Code::Denied, "pages from elsewhere are not let in here");
        return Err(Turned { status: StatusCode::FORBIDDEN, error });
    }
    Ok(())
}

/// The token that is shown.
pub(crate) fn token(headers: &HeaderMap) -> Result<Secret, Turned> {
    let shown = only(headers, &AUTHORIZATION)?;
    let token = shown.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    token.filter(|token| !token.is_empty()).map(Secret).ok_or_else(|| {
        let error = Error::new(Code::TokenInvalid, "a token is needed");
        unauthorised(error.hint(
            "`midwatch token create --role runner --name NAME` gives one out; send it as \
             `Authorization: Bearer TOKEN`",
        ))
    })
}

pub(crate) fn unauthorised(error: Error) -> Turned {
    Turned { status: StatusCode::UNAUTHORIZED, error }
}

/// A header that stands once. Of two, one would be checked and the other used.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Turned> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        let error = Error::new(Code::InvalidInput, format!("`{name}` stands twice"));
        return Err(Turned { status: StatusCode::BAD_REQUEST, error });
    }
    Ok(first.and_then(|value| value.to_str().ok()))
}

/// The name without its port.
fn host_of(authority: &str) -> Option<&str> {
    match authority.strip_prefix('[') {
        Some(literal) => literal.split_once(']').map(|(host, _)| host),
        None => authority.split(':').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(headers: &[(&'static str, &'static str)]) -> Result<(), StatusCode> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        check_place(&map).map_err(|turned| turned.status)
    }

    #[test]
    fn b10_only_names_of_this_machine_lead_here() {
        for host in ["localhost", "localhost:7400", "127.0.0.1:7400", "[::1]:7400", "127.0.0.1"] {
            assert_eq!(place(&[("host", host)]), Ok(()), "{host}");
        }
        let strange = [
            "evil.example",
            "evil.example:7400",
            "0.0.0.0",
            "0.0.0.0:7400",
            "[::ffff:127.0.0.1]",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "127.1",
            "2130706433",
            "[::]",
            "",
        ];
        for host in strange {
            assert_eq!(place(&[("host", host)]), Err(StatusCode::FORBIDDEN), "{host}");
        }
        assert_eq!(place(&[]), Err(StatusCode::FORBIDDEN));
        let twice = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(place(&twice), Err(StatusCode::BAD_REQUEST));
        for origin in [
            "https://evil.example",
            "null",
            "",
            "file://",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example:80",
            "http://evil.example/?http://localhost",
        ] {
            let from = [("host", "localhost"), ("origin", origin)];
            assert_eq!(place(&from), Err(StatusCode::FORBIDDEN), "{origin}");
        }
        let from_here = [("host", "localhost"), ("origin", "http://localhost:7400")];
        assert_eq!(place(&from_here), Ok(()));
    }
}
