//! Submitted forms: read within limits, and parsed.

use std::collections::HashSet;

use api::{Code, Error};
use axum::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};

use crate::body::read_body;
use crate::byte_budget::{ByteBudget, FREE_BYTES_MAX};
use crate::origin::single;
use crate::rejection::Rejection;

const FORM_BYTES_MAX: usize = FREE_BYTES_MAX;

/// The fields of a form, in their order. Invariant: no name occurs twice.
#[derive(Debug)]
pub(super) struct Form {
    /// As it was sent.
    pub(super) body: Bytes,
    pub(super) fields: Vec<(String, String)>,
}

pub(super) fn is_form(headers: &HeaderMap) -> bool {
    let kind = single(headers, &CONTENT_TYPE).ok().flatten();
    kind.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"))
}

/// Reads a form. A form is so small that it needs no reservation.
pub(super) async fn read_form(body: Body) -> Result<Form, Rejection> {
    let mut reservation = ByteBudget::new(0, 0).reserve(String::new());
    let body = read_body(body, FORM_BYTES_MAX, &mut reservation).await?;
    let fields = parse(&body);
    let invalid = |error| Rejection { status: StatusCode::BAD_REQUEST, error };
    fields.map(|fields| Form { body, fields }).map_err(invalid)
}

/// Refuses a repeated field: of two decisions, one could be shown and the other used.
fn parse(body: &[u8]) -> Result<Vec<(String, String)>, Error> {
    let fields: Vec<_> = form_urlencoded::parse(body).into_owned().collect();
    let mut names = HashSet::new();
    match fields.iter().all(|(name, _)| names.insert(name)) {
        true => Ok(fields),
        false => Err(Error::new(Code::InvalidInput, "a field of the form is repeated")
            .hint("open the page again and send the form from there")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_fields_are_refused() {
        let fields = parse(b"a=1&b=%C3%BC+x").unwrap();
        assert_eq!(fields, [("a", "1"), ("b", "ü x")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert!(parse(b"a=1&a=1").is_err() && parse(b"a=1&%61=2").is_err());
    }
}
