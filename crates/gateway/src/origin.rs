//! Rejects requests that a foreign web page made a browser send, by their `Host` and `Origin` headers.

use api::{Code, Error};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode, Uri};

use crate::rejection::Rejection;

/// Host names of this machine that a request may be addressed to.
const HOSTS: [&str; 4] = ["localhost", "127.0.0.1", "[::1]", "midwatch.localhost"];

const FORM: &str = "application/x-www-form-urlencoded";
const FORM_IN_UTF_8: &str = "application/x-www-form-urlencoded;charset=utf-8";

/// Middleware that passes on only what [`check_host_and_origin`] accepts. `port` is the one this server listens on.
pub(crate) async fn require_own_host_and_origin(
    State(port): State<u16>,
    request: Request,
    next: Next,
) -> Result<Response, Rejection> {
    check_host_and_origin(request.uri(), request.headers(), port)?;
    Ok(next.run(request).await)
}

/// Rejects requests addressed to a foreign host name, which DNS rebinding points here, and requests from web
/// pages of other origins.
fn check_host_and_origin(uri: &Uri, headers: &HeaderMap, port: u16) -> Result<(), Rejection> {
    // An absolute request target has an authority of its own.
    let is_own = single(headers, &HOST)?.is_some_and(is_own_host)
        && uri.authority().is_none_or(|authority| is_own_host(authority.as_str()));
    if !is_own {
        let error = Error::new(Code::Denied, "the host name is not one of this server");
        let error = error.hint("use http://127.0.0.1 or http://localhost");
        return Err(Rejection { status: StatusCode::FORBIDDEN, error });
    }
    let is_own_origin =
        |origin: &str| HOSTS.iter().any(|host| origin == format!("http://{host}:{port}"));
    if headers.contains_key(ORIGIN) && !single(headers, &ORIGIN)?.is_some_and(is_own_origin) {
        let error = Error::new(Code::Denied, "requests from other origins are not allowed");
        return Err(Rejection { status: StatusCode::FORBIDDEN, error });
    }
    // With both headers, a proxy could see two requests where we see one.
    if headers.contains_key(TRANSFER_ENCODING) {
        let error = Error::new(Code::InvalidInput, "the request has no `Content-Length`");
        let error = error.hint("send `Content-Length` and no `Transfer-Encoding`");
        return Err(Rejection { status: StatusCode::LENGTH_REQUIRED, error });
    }
    Ok(())
}

/// Accepts a form only from our own page, under the same host name that the form is sent to. Every browser sends
/// `Origin` with it; a server on the same port of another local address is not ours.
pub(crate) fn check_form(headers: &HeaderMap) -> Result<(), Rejection> {
    let host = single(headers, &HOST)?.unwrap_or_default();
    if single(headers, &ORIGIN)? != Some(&format!("http://{host}")) {
        let error = Error::new(Code::Denied, "the form was not sent from this server's page");
        let error = error.hint("open the link again and send the form from there");
        return Err(Rejection { status: StatusCode::FORBIDDEN, error });
    }
    // Scripts of browsers add the charset, forms do not.
    let kind = single(headers, &CONTENT_TYPE)?.unwrap_or_default().to_ascii_lowercase();
    if !matches!(kind.replace(' ', "").as_str(), FORM | FORM_IN_UTF_8) {
        let error = Error::new(Code::InvalidInput, "the request is not a form");
        return Err(Rejection { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, error });
    }
    Ok(())
}

/// The value of a header that may occur only once: of two, one could be checked and the other used.
pub(crate) fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, Rejection> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        let error =
            Error::new(Code::InvalidInput, format!("the header `{name}` occurs more than once"));
        return Err(Rejection { status: StatusCode::BAD_REQUEST, error });
    }
    Ok(first.and_then(|value| value.to_str().ok()))
}

/// Whether an authority is a host name of this machine, with or without a port.
fn is_own_host(authority: &str) -> bool {
    HOSTS.iter().filter_map(|host| authority.strip_prefix(host)).any(|rest| {
        let port = rest.strip_prefix(':');
        rest.is_empty()
            || port.is_some_and(|port| port.parse::<u16>().is_ok_and(|_| !port.starts_with('+')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_to_mcp(headers: &[(&'static str, &'static str)]) -> Result<(), StatusCode> {
        sent_to("/mcp", headers)
    }

    fn sent_to(target: &str, headers: &[(&'static str, &'static str)]) -> Result<(), StatusCode> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        check_host_and_origin(&target.parse().unwrap(), &map, 7400)
            .map_err(|rejection| rejection.status)
    }

    #[test]
    fn foreign_hosts_and_origins_are_rejected() {
        for host in [
            "localhost",
            "localhost:7400",
            "127.0.0.1:7400",
            "[::1]:7400",
            "127.0.0.1",
            "midwatch.localhost:7400",
        ] {
            assert_eq!(sent_to_mcp(&[("host", host)]), Ok(()), "{host}");
        }
        let foreign = [
            "evil.example",
            "evil.example:7400",
            "0.0.0.0",
            "0.0.0.0:7400",
            "[::ffff:127.0.0.1]",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "midwatch.localhost.evil.example",
            "evil.midwatch.localhost",
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
        for host in foreign {
            assert_eq!(sent_to_mcp(&[("host", host)]), Err(StatusCode::FORBIDDEN), "{host}");
        }
        assert_eq!(sent_to_mcp(&[]), Err(StatusCode::FORBIDDEN));
        let twice = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(sent_to_mcp(&twice), Err(StatusCode::BAD_REQUEST));
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
            assert_eq!(sent_to_mcp(&from), Err(StatusCode::FORBIDDEN), "{origin}");
        }
        let from_here = [("host", "localhost"), ("origin", "http://localhost:7400")];
        assert_eq!(sent_to_mcp(&from_here), Ok(()));
        let host = [("host", "localhost")];
        for target in ["http://evil.example/mcp", "http://localhost@evil.example/mcp"] {
            assert_eq!(sent_to(target, &host), Err(StatusCode::FORBIDDEN), "{target}");
        }
        assert_eq!(sent_to("http://127.0.0.1:7400/mcp", &host), Ok(()));
        let chunked = [("host", "localhost"), ("transfer-encoding", "chunked")];
        assert_eq!(sent_to_mcp(&chunked), Err(StatusCode::LENGTH_REQUIRED));
    }
}
