//! Who is let in: first where the request thinks that it is, then who makes it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use api::wire::Secret;
use api::{Code, Error, Handle};
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, ORIGIN, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode, Uri};

/// Names under which this machine knows itself.
const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Whoever knows tokens.
pub trait Door: Send + Sync {
    /// The one with this token, as far as an agent may speak for them.
    fn admit(&self, token: Secret) -> BoxFuture<'_, Result<Guest, Error>>;

    /// The one with this token in person. A process of a run is let in as that run, whatever it shows.
    fn receive(&self, token: Secret, ends: Ends) -> BoxFuture<'_, Result<Guest, Error>>;
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    pub theirs: SocketAddr,
    pub ours: SocketAddr,
}

/// Somebody who was let in.
pub struct Guest {
    /// By which all of their tokens are known.
    pub name: String,
    /// What speaks for them.
    pub handle: Arc<dyn Handle>,
}

impl fmt::Debug for Guest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Guest({})", self.name)
    }
}

/// Why somebody is turned away.
#[derive(Debug)]
pub(crate) struct Turned {
    pub(crate) status: StatusCode,
    pub(crate) error: Error,
}

/// A name that leads here only by a trick is not ours, and a page from elsewhere has no business here.
/// `port` is where this listens.
pub(crate) fn check_place(uri: &Uri, headers: &HeaderMap, port: u16) -> Result<(), Turned> {
    // The target may name a place of its own.
    let is_ours = only(headers, &HOST)?.is_some_and(is_ours)
        && uri.authority().is_none_or(|authority| is_ours(authority.as_str()));
    if !is_ours {
        let error = Error::new(Code::Denied, "this server is not known by that name");
        let error = error.hint("use http://127.0.0.1 or http://localhost");
        return Err(Turned { status: StatusCode::FORBIDDEN, error });
    }
    let from_here =
        |origin: &str| HOSTS.iter().any(|host| origin == format!("http://{host}:{port}"));
    if headers.contains_key(ORIGIN) && !only(headers, &ORIGIN)?.is_some_and(from_here) {
        let error = Error::new(Code::Denied, "pages from elsewhere are not let in here");
        return Err(Turned { status: StatusCode::FORBIDDEN, error });
    }
    // Beside a length it would be one request for us and two for whoever is in between.
    if headers.contains_key(TRANSFER_ENCODING) {
        let error = Error::new(Code::InvalidInput, "a request says how long it is");
        let error = error.hint("send `Content-Length` and no `Transfer-Encoding`");
        return Err(Turned { status: StatusCode::LENGTH_REQUIRED, error });
    }
    Ok(())
}

/// A form comes from a page of ours, under the very name that it is sent to. Every browser says so; what is on the
/// same port of another address of this machine is not ours.
pub(crate) fn check_form(headers: &HeaderMap) -> Result<(), Turned> {
    let host = only(headers, &HOST)?.unwrap_or_default();
    if only(headers, &ORIGIN)? != Some(&format!("http://{host}")) {
        let error = Error::new(Code::Denied, "this form is not from the page that it is sent to");
        let error = error.hint("open the link again, and send the form from there");
        return Err(Turned { status: StatusCode::FORBIDDEN, error });
    }
    if only(headers, &CONTENT_TYPE)? != Some("application/x-www-form-urlencoded") {
        let error = Error::new(Code::InvalidInput, "this is no form");
        return Err(Turned { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, error });
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
            "`midwatch token create --role operator --name NAME` gives one out to a person, `--role runner` to \
             the agent of that name; send it as `Authorization: Bearer TOKEN`",
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

/// Whether this is a name of this machine, alone or with a port, and nothing else.
fn is_ours(authority: &str) -> bool {
    HOSTS.iter().filter_map(|host| authority.strip_prefix(host)).any(|rest| {
        let port = rest.strip_prefix(':');
        rest.is_empty()
            || port.is_some_and(|port| port.parse::<u16>().is_ok_and(|_| !port.starts_with('+')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(headers: &[(&'static str, &'static str)]) -> Result<(), StatusCode> {
        sent_to("/mcp", headers)
    }

    fn sent_to(target: &str, headers: &[(&'static str, &'static str)]) -> Result<(), StatusCode> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        check_place(&target.parse().unwrap(), &map, 7400).map_err(|turned| turned.status)
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
            "[::1]evil.example",
            "[::1]:7400evil.example",
            "localhost:evil.example",
            "localhost:+1",
            "localhost:",
            "::1",
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
            "http://localhost",
            "http://localhost:7401",
            "https://localhost:7400",
            "http://localhost:7400/",
            "http://[::1]evil.example:7400",
        ] {
            let from = [("host", "localhost"), ("origin", origin)];
            assert_eq!(place(&from), Err(StatusCode::FORBIDDEN), "{origin}");
        }
        let from_here = [("host", "localhost"), ("origin", "http://localhost:7400")];
        assert_eq!(place(&from_here), Ok(()));
        let host = [("host", "localhost")];
        for target in ["http://evil.example/mcp", "http://localhost@evil.example/mcp"] {
            assert_eq!(sent_to(target, &host), Err(StatusCode::FORBIDDEN), "{target}");
        }
        assert_eq!(sent_to("http://127.0.0.1:7400/mcp", &host), Ok(()));
        let chunked = [("host", "localhost"), ("transfer-encoding", "chunked")];
        assert_eq!(place(&chunked), Err(StatusCode::LENGTH_REQUIRED));
    }
}
