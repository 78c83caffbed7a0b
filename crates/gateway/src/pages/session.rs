//! Cookies: the session, and what a browser prefers.

use api::wire::Secret;
use axum::body::Body;
use axum::response::Response;
use calendar::Zone;
use http::header::{COOKIE, HeaderValue, REFERER, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, Uri};
use web::{Theme, View, Viewer};

use super::form::{Form, read_form};
use super::{Pages, Session, SessionUse, VERSION, check_same_origin, response};
use crate::origin::{check_form, single};

const SESSION: &str = "midwatch";
const THEME: &str = "theme";
const ZONE: &str = "tz";
/// As long as a device is valid.
const SESSION_SECONDS: u32 = 7 * 86_400;
const PREFERENCE_SECONDS: u32 = 365 * 86_400;

/// The secret of the session that a request shows. Of two cookies none is used: a server on another port can add one.
pub(super) fn secret(headers: &HeaderMap) -> Option<Secret> {
    cookie(headers, SESSION).map(|value| Secret(value.to_owned()))
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = single(headers, &COOKIE).ok().flatten()?;
    let pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value);
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

/// The header that signs a browser in.
pub(super) fn signed_in(Secret(secret): &Secret) -> Option<HeaderValue> {
    let attributes = format!("Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}");
    HeaderValue::from_str(&format!("{SESSION}={secret}; {attributes}")).ok()
}

/// How a request uses its session. Requests of scripts say nothing about a person.
pub(super) fn usage(headers: &HeaderMap) -> SessionUse {
    const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
    match headers.get(SEC_FETCH_DEST).map(HeaderValue::as_bytes) {
        None | Some(b"document") => SessionUse::Look,
        Some(_) => SessionUse::ByItself,
    }
}

impl Pages {
    /// The session of a request, or `None` if it has none that is valid.
    pub(super) async fn session(
        &self,
        headers: &HeaderMap,
        usage: SessionUse,
    ) -> Option<Result<Session, api::Error>> {
        let secret = secret(headers)?;
        match self.devices.authenticate_device(secret, usage).await {
            Err(error) if error.code == api::Code::TokenInvalid => None,
            other => Some(other),
        }
    }
}

/// The person of a session, with what the browser prefers.
pub(super) fn viewer(session: &Session, headers: &HeaderMap) -> Viewer {
    let zone = cookie(headers, ZONE).map(|zone| zone.replace("%2F", "/"));
    let zone = zone.filter(|zone| zone.parse::<Zone>().is_ok());
    Viewer {
        name: session.caller.name.clone(),
        role: session.role,
        zone: zone.unwrap_or_else(|| "UTC".to_owned()),
        theme: cookie(headers, THEME).map(Theme::parse).unwrap_or_default(),
        now_us: session.caller.now_us,
        can_sign: session.page_key.is_some(),
        device: Some(session.device.clone()),
        version: VERSION,
    }
}

/// `POST /settings/theme`: keeps the theme in a cookie, and changes nothing else.
pub(super) async fn set_theme(head: &Parts, body: Body) -> Response {
    let checked = check_same_origin(&head.headers).and_then(|()| check_form(&head.headers));
    if let Err(rejection) = checked {
        return response::error_with(rejection.status, &rejection.error, None);
    }
    let form = match read_form(body).await {
        Ok(form) => form,
        Err(rejection) => return response::error_with(rejection.status, &rejection.error, None),
    };
    let theme = Theme::parse(form.field("theme").unwrap_or_default());
    let back = own_page(&head.headers).unwrap_or_else(|| "/settings".to_owned());
    let mut response = response::see_other(&back);
    let attributes = format!("Path=/; SameSite=Strict; Max-Age={PREFERENCE_SECONDS}");
    let cookie = format!("{THEME}={}; {attributes}", theme.as_str());
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// The page of ours that the request came from.
fn own_page(headers: &HeaderMap) -> Option<String> {
    let referer: Uri = single(headers, &REFERER).ok().flatten()?.parse().ok()?;
    own_address(referer.path_and_query()?.as_str())
}

/// An address of a page of ours. Anything else, such as `//evil.example`, is none.
pub(super) fn own_address(address: &str) -> Option<String> {
    let is_path = address.starts_with('/') && !address.starts_with("//");
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let is_own = is_path && is_plain && View::parse(path, query).is_ok();
    is_own.then(|| address.to_owned())
}

impl Form {
    /// The value of a field.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_ours_are_targets() {
        for address in ["/", "/runs?state=failed", "/approvals/apr_1"] {
            assert_eq!(own_address(address).as_deref(), Some(address));
        }
        for address in [
            "",
            "runs",
            "//evil.example/",
            "/\\evil.example",
            "http://evil.example/",
            "/\nx",
            "/no",
        ] {
            assert_eq!(own_address(address), None, "{address}");
        }
    }

    #[test]
    fn of_two_session_cookies_none_is_used() {
        let secret_of = |cookies: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, HeaderValue::from_static(cookies));
            secret(&headers).map(|Secret(secret)| secret)
        };
        assert_eq!(secret_of("a=1; midwatch=x; tz=UTC").as_deref(), Some("x"));
        assert_eq!(secret_of("midwatch=x; midwatch=y"), None);
        assert_eq!(secret_of("xmidwatch=x"), None);
    }
}
