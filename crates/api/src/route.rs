//! Requests over HTTP: the method and path of each, and how its fields are read.
//!
//! A request is the same as on the socket; only its fields come from three places. A field that is in none of them, or in two,
//! is refused.

use std::fmt;

use schemars::{Schema, SchemaGenerator};
use serde::de::value::MapDeserializer;
use serde::de::{self, DeserializeOwned, IntoDeserializer, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};
use serde_json::{Map, Value};

use crate::{ApiRequest, Class, Code, Error, Request, Response, json};

/// Where the routes are.
pub const API_PREFIX: &str = "/api/v1";

/// What the table of requests says about HTTP.
#[derive(Debug)]
pub enum HttpRow {
    Route(Route),
    NoRoute { name: &'static str, reason: &'static str },
}

/// The methods of routes. Their names are those of HTTP, as the table writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    GET,
    POST,
    /// Edits an object.
    PATCH,
    DELETE,
}

/// How one request is made over HTTP.
#[derive(Clone, Copy)]
pub struct Route {
    /// The wire name of the request.
    pub name: &'static str,
    pub method: Method,
    /// The path below [`API_PREFIX`], such as `/runs/{id}/cancel`.
    pub path: &'static str,
    pub class: Class,
    pub(crate) parse: fn(Method, Fields<'_>) -> Result<Request, Error>,
    pub(crate) request_schema: fn(&mut SchemaGenerator) -> Schema,
    pub(crate) response_schema: fn(&mut SchemaGenerator) -> Schema,
}

/// The fields of a request, as they arrive.
#[derive(Clone, Debug, Default)]
pub struct Fields<'a> {
    /// The parameters of the path, decoded.
    pub path: Vec<(String, String)>,
    /// The parameters of the query, decoded.
    pub query: Vec<(String, String)>,
    pub body: &'a [u8],
}

impl Method {
    pub const fn as_str(self) -> &'static str {
        match self {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
        }
    }

    /// Whether the fields of a request are in its body.
    pub const fn has_body(self) -> bool {
        matches!(self, Method::POST | Method::PATCH)
    }

    /// Whether a request changes an object that its caller has read, so that it names the version.
    pub const fn is_edit(self) -> bool {
        matches!(self, Method::PATCH)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Route({} {})", self.method, self.path)
    }
}

impl Route {
    /// All routes, in the order of the table of requests.
    pub fn all() -> impl Iterator<Item = &'static Route> {
        Request::ROUTES.iter().filter_map(|row| match row {
            HttpRow::Route(route) => Some(route),
            HttpRow::NoRoute { .. } => None,
        })
    }

    /// The names of the parameters in the path.
    pub fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path
            .split('/')
            .filter_map(|part| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')))
    }

    /// Whether the response is a list, which says at which position of the ledger it was read.
    pub fn is_list(&self) -> bool {
        self.name.ends_with(".list")
    }

    /// The request that these fields make.
    pub fn request(&self, fields: Fields<'_>) -> Result<Request, Error> {
        (self.parse)(self.method, fields)
    }
}

impl Response {
    /// The version of the object that this response shows, which an edit of it names.
    pub fn version(&self) -> Option<u64> {
        match self {
            Response::ScheduleShow(shown) => Some(shown.schedule.revision.into()),
            Response::ScheduleEdit(edited) => Some(edited.schedule.revision.into()),
            Response::AgentShow(shown) => Some(shown.agent.version),
            Response::AgentEdit(edited) => Some(edited.agent.version),
            Response::Replayed(first) => first.version(),
            _ => None,
        }
        .filter(|version| *version != 0)
    }
}

/// Reads the fields of a request `R`.
pub(crate) fn parse<R: ApiRequest>(method: Method, fields: Fields<'_>) -> Result<Request, Error> {
    let request: R = match method.has_body() {
        true => from_body(fields)?,
        false => from_query(fields)?,
    };
    Ok(request.into_request())
}

fn from_body<R: DeserializeOwned>(Fields { path, query, body }: Fields<'_>) -> Result<R, Error> {
    if let Some((name, _)) = query.first() {
        return Err(invalid(format!("unknown parameter `{name}`"))
            .hint("the fields of this request are in its body, a JSON object"));
    }
    let mut object: Map<String, Value> = match body {
        [] => Map::new(),
        body => json::read(body)
            .map_err(|error| invalid(format!("the body is not a JSON object: {error}")))?,
    };
    for (name, value) in path {
        if object.contains_key(&name) {
            return Err(invalid(format!("the field `{name}` is in the path and in the body"))
                .hint("leave it out of the body"));
        }
        object.insert(name, Value::String(value));
    }
    serde_json::from_value(Value::Object(object)).map_err(invalid)
}

fn from_query<R: DeserializeOwned>(Fields { path, query, body }: Fields<'_>) -> Result<R, Error> {
    if !body.is_empty() {
        return Err(invalid("this request has no body")
            .hint("its fields are parameters of the path and of the query"));
    }
    let pairs = path.into_iter().chain(query).map(|(name, value)| (name, Text(value)));
    R::deserialize(MapDeserializer::<_, de::value::Error>::new(pairs)).map_err(invalid)
}

fn invalid(what: impl fmt::Display) -> Error {
    Error::new(Code::InvalidInput, what)
}

/// The value of a parameter: a text, or a number or `true` or `false` where a field is one.
struct Text(String);

impl IntoDeserializer<'_> for Text {
    type Deserializer = Text;

    fn into_deserializer(self) -> Text {
        self
    }
}

macro_rules! parsed {
    ($($deserialize:ident $visit:ident)*) => {
        $(fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            match self.0.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => visitor.visit_string(self.0),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Text {
    type Error = de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    parsed! {
        deserialize_bool visit_bool
        deserialize_u8 visit_u8
        deserialize_u16 visit_u16
        deserialize_u32 visit_u32
        deserialize_u64 visit_u64
        deserialize_i64 visit_i64
    }

    forward_to_deserialize_any! {
        i8 i16 i32 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn route(name: &str) -> &'static Route {
        Route::all().find(|route| route.name == name).unwrap()
    }

    fn pairs(text: &[(&str, &str)]) -> Vec<(String, String)> {
        text.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// What the request is with these fields, or the error.
    fn check(
        name: &str,
        path: &[(&str, &str)],
        query: &[(&str, &str)],
        body: &str,
        expected: Result<Value, &str>,
    ) {
        let fields = Fields { path: pairs(path), query: pairs(query), body: body.as_bytes() };
        let parsed = route(name).request(fields).map_err(|error| {
            assert_eq!(error.code, Code::InvalidInput);
            error.message
        });
        let expected = expected
            .map(|with| serde_json::from_value(json!({"call": name, "with": with})).unwrap());
        assert_eq!(parsed, expected.map_err(str::to_owned), "{name} {path:?} {query:?} {body}");
    }

    #[test]
    fn fields_come_from_path_query_and_body() {
        let id = [("id", "run_1")];
        check("run.show", &id, &[], "", Ok(json!({"id": "run_1"})));
        check("run.read", &id, &[("from", "7")], "", Ok(json!({"id": "run_1", "from": 7})));
        let (limit, all) = (("limit", "3"), ("all", "true"));
        check("approval.list", &[], &[limit, all], "", Ok(json!({"limit": 3, "all": true})));
        let state = [("state", "done"), ("agent", "17")];
        check("run.list", &[], &state, "", Ok(json!({"state": "done", "agent": "17"})));
        check("run.cancel", &id, &[], "", Ok(json!({"id": "run_1"})));
        let note = r#"{"note": "17"}"#;
        check("run.cancel", &id, &[], note, Ok(json!({"id": "run_1", "note": "17"})));
    }

    #[test]
    fn unknown_repeated_and_misplaced_fields_are_refused() {
        let id = [("id", "run_1")];
        let twice = "duplicate field `id`";
        check("run.show", &id, &id, "", Err(twice));
        let unknown = "unknown field `more`, expected `id`";
        check("run.show", &id, &[("more", "1")], "", Err(unknown));
        check("run.show", &id, &[], "{}", Err("this request has no body"));
        let number = "invalid type: string \"x\", expected u64";
        check("run.read", &id, &[("from", "x")], "", Err(number));
        check(
            "run.read",
            &id,
            &[("from", "-1")],
            "",
            Err("invalid type: string \"-1\", expected u64"),
        );
        let flag = "invalid type: string \"1\", expected a boolean";
        check("approval.list", &[], &[("all", "1")], "", Err(flag));
        check("run.cancel", &id, &[("note", "x")], "", Err("unknown parameter `note`"));
        let body = "the field `id` is in the path and in the body";
        check("run.cancel", &id, &[], r#"{"id": "run_2"}"#, Err(body));
        let repeated = "the body is not a JSON object: the key `note` occurs twice in one object at line 1 column 20";
        check("run.cancel", &id, &[], r#"{"note": "a", "note": "b"}"#, Err(repeated));
        let more = "unknown field `more`, expected `id` or `note`";
        check("run.cancel", &id, &[], r#"{"more": 1}"#, Err(more));
        let list = "the body is not a JSON object: invalid type: sequence, expected a map at line 1 column 0";
        check("run.cancel", &id, &[], "[]", Err(list));
    }

    #[test]
    fn routes_are_unique_and_name_fields_of_their_request() {
        let mut paths = BTreeSet::new();
        for route in Route::all() {
            assert!(paths.insert((route.method, route.path)), "{route:?} is there twice");
            assert!(route.path.starts_with('/') && !route.path.ends_with('/'), "{route:?}");
            let schema = (route.request_schema)(&mut SchemaGenerator::default()).to_value();
            for name in route.path_parameters() {
                assert!(schema["properties"][name].is_object(), "{route:?} has no field `{name}`");
            }
            let reads = matches!(route.class, Class::Read(_));
            assert!(reads || route.method != Method::GET, "{route:?} changes something");
        }
    }
}
