//! Reads a request: its headers, the parameters of its path and query, and its body.

use api::{Code, Error, Fields, Request as ApiRequest, Route};
use axum::RequestExt;
use axum::extract::{RawPathParams, Request};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, IF_MATCH};
use http::{HeaderMap, StatusCode};

use crate::body::read_body;
use crate::byte_budget::ByteBudget;
use crate::origin::single;
use crate::rest::problem::Problem;

const BODY_BYTES_MAX: usize = 1 << 20;
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Reads the whole request.
pub(super) async fn read(
    route: &Route,
    bodies: &ByteBudget,
    caller: &str,
    mut request: Request,
) -> Result<ApiRequest, Problem> {
    let path = path_parameters(&mut request).await?;
    let query = query_parameters(&request);
    let content_type = single(request.headers(), &CONTENT_TYPE)?.map(str::to_owned);
    let mut reservation = bodies.reserve(caller.to_owned());
    let body = read_body(request.into_body(), BODY_BYTES_MAX, &mut reservation).await?;
    if !body.is_empty() && !content_type.as_deref().is_some_and(is_json) {
        let error = Error::new(Code::InvalidInput, "the body is not JSON");
        let error = error.hint("send it with `Content-Type: application/json`");
        return Err(Problem::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    Ok(route.request(Fields { path, query, body: &body })?)
}

async fn path_parameters(request: &mut Request) -> Result<Vec<(String, String)>, Problem> {
    let parameters = request.extract_parts::<RawPathParams>().await;
    let parameters = parameters
        .map_err(|_| Error::new(Code::InvalidInput, "a parameter of the path is no UTF-8 text"))?;
    Ok(parameters.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

pub(super) fn query_parameters(request: &Request) -> Vec<(String, String)> {
    let query = request.uri().query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// The idempotency key. A request that changes nothing has none.
pub(super) fn idempotency_key(
    route: &Route,
    headers: &HeaderMap,
) -> Result<Option<String>, Problem> {
    let Some(key) = header(headers, &IDEMPOTENCY_KEY)? else { return Ok(None) };
    if matches!(route.class, api::Class::Read(_)) {
        let error = Error::new(Code::InvalidInput, "this request changes nothing");
        return Err(error.hint("leave out the header `Idempotency-Key`").into());
    }
    Ok(Some(key))
}

/// The version of the object that an edit is about, from `If-Match: "v12"`.
pub(super) fn version(route: &Route, headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let tag = header(headers, &IF_MATCH)?;
    match (tag, route.method.is_edit()) {
        (None, false) => Ok(None),
        (Some(_), false) => {
            let error = Error::new(Code::InvalidInput, "only edits have the header `If-Match`");
            Err(error.hint("leave it out").into())
        }
        (None, true) => {
            let what = "the request does not say which version of the object it changes";
            let hint = "read the object, and send its `ETag` as `If-Match`";
            Err(Error::new(Code::VersionNeeded, what).hint(hint).into())
        }
        (Some(tag), true) => match parse_tag(&tag) {
            Some(version) => Ok(Some(version)),
            None => {
                let error = Error::new(Code::InvalidInput, format!("invalid tag `{tag}`"));
                Err(error.hint("send the `ETag` of the object as it is, such as `\"v12\"`").into())
            }
        },
    }
}

fn parse_tag(tag: &str) -> Option<u64> {
    let digits = tag.strip_prefix("\"v")?.strip_suffix('"')?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// The value of a header that may occur once. A value that is no text is refused, not ignored.
pub(super) fn header(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, Problem> {
    match (headers.contains_key(name), single(headers, name)?) {
        (true, None) => {
            let what = format!("the header `{name}` has other characters than ASCII");
            Err(Error::new(Code::InvalidInput, what).into())
        }
        (_, value) => Ok(value.map(str::to_owned)),
    }
}

/// Refuses a client that does not accept JSON.
pub(super) fn check_accepts_json(headers: &HeaderMap) -> Result<(), Problem> {
    match accepted(headers, &["application/json"]) {
        Some(_) => Ok(()),
        None => Err(not_acceptable("`application/json`")),
    }
}

pub(super) fn not_acceptable(types: &str) -> Problem {
    let error = Error::new(Code::InvalidInput, "the response has no type that the client accepts");
    let error = error.hint(format!("accept {types}"));
    Problem::with_status(StatusCode::NOT_ACCEPTABLE, error)
}

/// The first of these types that the client accepts. Without an `Accept` header it accepts all. Weights are ignored.
pub(super) fn accepted(headers: &HeaderMap, types: &[&'static str]) -> Option<&'static str> {
    let mut ranges = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim())
        .filter(|range| !range.is_empty())
        .peekable();
    if ranges.peek().is_none() {
        return types.first().copied();
    }
    ranges.find_map(|range| {
        let matches = |kind: &&&'static str| {
            let main = kind.split('/').next().unwrap_or_default();
            range.eq_ignore_ascii_case(kind)
                || range == "*/*"
                || range.strip_suffix("/*").is_some_and(|it| it.eq_ignore_ascii_case(main))
        };
        types.iter().find(matches).copied()
    })
}

fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_a_type_that_they_accept() {
        let check = |accept: &[&str], expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(ACCEPT, value.parse().unwrap());
            }
            let types = ["application/json", "application/x-ndjson", "text/event-stream"];
            assert_eq!(accepted(&headers, &types), expected, "{accept:?}");
        };
        check(&[], Some("application/json"));
        check(&["*/*"], Some("application/json"));
        check(&["application/*;q=0.5"], Some("application/json"));
        check(&["text/event-stream"], Some("text/event-stream"));
        check(&["text/html, Text/Event-Stream;q=0.9"], Some("text/event-stream"));
        check(&["text/html", "application/x-ndjson"], Some("application/x-ndjson"));
        check(&["text/html"], None);
        check(&["application/jsonp"], None);
    }

    #[test]
    fn only_strong_tags_of_ours_are_versions() {
        assert_eq!(parse_tag("\"v12\""), Some(12));
        for tag in ["v12", "\"12\"", "W/\"v12\"", "*", "\"v+12\"", "\"v\"", "\"v1\", \"v2\""] {
            assert_eq!(parse_tag(tag), None, "{tag}");
        }
    }
}
