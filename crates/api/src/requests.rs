//! What follows from the table of requests in `lib.rs`: [`Request`](crate::Request), [`Response`](crate::Response) and
//! dispatch to handlers. The table is the only one about requests. Whose objects a caller may change is a rule of the
//! kernel, not of the table.

use crate::{ApiRequest, Error, ScheduleAdd};

/// How the policy treats a request. The text is a capability of the crate `policy`, such as `run.start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Changes nothing. A runner sees what the capability allows it to see.
    Read(&'static str),
    /// Changes something. A runner may do it only if the policy allows the capability.
    Change(&'static str),
    /// Changes something. Only people may do it, whatever the policy says.
    People,
}

/// What a request is about. An agent may read only what belongs to it; the policy decides on a change by its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// No object: a read is about the caller alone, and on a change the policy decides by its capability.
    Caller,
    /// The schedule with this id.
    Schedule(&'a str),
    /// The run with this id.
    Run(&'a str),
    /// The approval with this id.
    Approval(&'a str),
    /// The agent with this name.
    Agent(&'a str),
    /// Schedules and runs with these ids.
    SchedulesAndRuns(&'a [String]),
    /// Schedules to add, by the agent that each prompts. `None` stands for a tool call.
    NewSchedules(Vec<Option<&'a str>>),
    /// A list, which [`Request::narrow_to`] limits to the objects of one agent.
    List,
    /// The whole installation. An agent must not see it.
    Installation,
}

impl Subject<'_> {
    /// The id of the one schedule or run, by which rules of the policy can name it.
    pub fn id(&self) -> Option<&str> {
        match self {
            Subject::Schedule(id) | Subject::Run(id) => Some(id),
            _ => None,
        }
    }
}

/// What a field of a request refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Referent {
    Schedule,
    Run,
    Approval,
    Token,
    Device,
    /// An agent, which has a name and no id.
    Agent,
    /// A schedule or a run.
    Object,
}

/// A field that refers to an object: its id, a unique prefix of the id, or its name. The engine replaces it by the id.
#[derive(Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    pub to: Referent,
    pub text: &'a mut String,
}

/// A field with any number of references.
pub(crate) trait References {
    fn texts_mut(&mut self) -> Vec<&mut String>;
}

impl References for String {
    fn texts_mut(&mut self) -> Vec<&mut String> {
        vec![self]
    }
}

impl References for Option<String> {
    fn texts_mut(&mut self) -> Vec<&mut String> {
        self.iter_mut().collect()
    }
}

impl References for Vec<String> {
    fn texts_mut(&mut self) -> Vec<&mut String> {
        self.iter_mut().collect()
    }
}

/// The schedules that these follow.
impl References for Vec<ScheduleAdd> {
    fn texts_mut(&mut self) -> Vec<&mut String> {
        self.iter_mut().flat_map(|add| add.event_trigger.after.texts_mut()).collect()
    }
}

/// Something that handles requests for callers of some type.
pub trait Service: Sync {
    type Caller: Sync;
}

/// Handles one type of request.
pub trait Serve<R: ApiRequest>: Service {
    fn serve(
        &self,
        caller: &Self::Caller,
        request: R,
    ) -> impl Future<Output = Result<R::Response, Error>> + Send;
}

macro_rules! class {
    (read $capability:literal) => {
        Class::Read($capability)
    };
    (change $capability:literal) => {
        Class::Change($capability)
    };
    (people) => {
        Class::People
    };
}

macro_rules! subject {
    ($request:ident itself) => {
        Subject::Caller
    };
    ($request:ident nothing) => {
        Subject::Installation
    };
    ($request:ident own_schedule $id:ident) => {
        Subject::Schedule(&$request.$id)
    };
    ($request:ident own_run $id:ident) => {
        Subject::Run(&$request.$id)
    };
    ($request:ident own_approval $id:ident) => {
        Subject::Approval(&$request.$id)
    };
    ($request:ident own_agent $name:ident) => {
        Subject::Agent(&$request.$name)
    };
    ($request:ident own_objects $ids:ident) => {
        Subject::SchedulesAndRuns(&$request.$ids)
    };
    ($request:ident own_new $agents:ident) => {
        Subject::NewSchedules($request.$agents())
    };
    ($request:ident own_list $agent:ident) => {
        Subject::List
    };
}

macro_rules! stops {
    () => {
        false
    };
    (at_once) => {
        true
    };
}

macro_rules! narrow {
    ($request:ident to $agent:ident by own_list $field:ident) => {
        $request.$field = Some($agent)
    };
    ($request:ident to $agent:ident by $($other:ident)+) => {
        ()
    };
}

macro_rules! references {
    ($request:ident) => {
        Vec::new()
    };
    ($request:ident $($to:ident $($field:ident).+),+) => {{
        let mut references = Vec::new();
        $(references.extend($request.$($field).+.texts_mut().into_iter().map(|text| Reference {
            to: Referent::$to,
            text,
        }));)+
        references
    }};
}

macro_rules! route {
    ($request:ident $name:literal $response:ident no_route $reason:literal) => {
        HttpRow::NoRoute { name: $name, reason: $reason }
    };
    ($request:ident $name:literal $response:ident $method:ident $path:literal) => {
        HttpRow::Route(Route {
            name: $name,
            method: Method::$method,
            path: $path,
            class: $request::CLASS,
            parse: crate::route::parse::<$request>,
            request_schema: |generator| generator.root_schema_for::<$request>(),
            response_schema: |generator| generator.subschema_for::<$response>(),
        })
    };
}

macro_rules! requests {
    ($(
        $request:ident $name:literal $response:ident
            | $class:ident $($capability:literal)? $(unless $dry_run:ident)? $(, $at_once:ident)?
            | $role:ident
            | $sees:ident $(($field:ident))? $(waits $wait_ms:ident)?
            | $(-)? $($to:ident($($reference:ident).+)),*
            | $method:ident $path:literal;
    )*) => {
        /// Any request.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "call", content = "with")]
        pub enum Request {
            $(#[serde(rename = $name)] $request($request),)*
        }

        #[allow(unused_variables, reason = "few rows need the fields of their request")]
        impl Request {
            /// The wire name of every request.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// How each request is made over HTTP, or why it is not.
            pub const ROUTES: &'static [HttpRow] =
                &[$(route!($request $name $response $method $path)),*];

            /// The wire name and the schema of every request.
            #[cfg(test)]
            pub(crate) fn schemas() -> Vec<(&'static str, schemars::Schema)> {
                vec![$(($name, schemars::schema_for!($request))),*]
            }

            /// The wire name of this request.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Request::$request(_) => $name,)*
                }
            }

            /// How the policy treats this request.
            pub const fn class(&self) -> Class {
                match self {
                    $(Request::$request(_) => $request::CLASS,)*
                }
            }

            /// Whether this request may change something; a dry run does not.
            pub const fn changes(&self) -> bool {
                !matches!(self.class(), Class::Read(_))
                    && match self {
                        $(Request::$request(request) => true $(&& !request.$dry_run)?,)*
                    }
            }

            /// Whether this request stops something: it takes effect before it is recorded, and even if it cannot be.
            pub const fn stops(&self) -> bool {
                match self {
                    $(Request::$request(_) => stops!($($at_once)?),)*
                }
            }

            /// The least role of a caller. The kernel may require more for one object.
            pub const fn least_role(&self) -> Role {
                match self {
                    $(Request::$request(_) => Role::$role,)*
                }
            }

            /// What this request is about.
            pub fn subject(&self) -> Subject<'_> {
                match self {
                    $(Request::$request(request) => subject!(request $sees $($field)?),)*
                }
            }

            /// Limits a list to the objects of one agent. Leaves other requests as they are.
            pub fn narrow_to(&mut self, agent: String) {
                match self {
                    $(Request::$request(request) => narrow!(request to agent by $sees $($field)?),)*
                }
            }

            /// How long this request waits for changes, in milliseconds. `None` for requests that never wait.
            pub fn wait_ms_mut(&mut self) -> Option<&mut u32> {
                match self {
                    $(Request::$request(request) => None $(.or(Some(&mut request.$wait_ms)))?,)*
                }
            }

            /// The fields that refer to objects.
            pub fn references_mut(&mut self) -> Vec<Reference<'_>> {
                match self {
                    $(Request::$request(request) => references!(request $($to $($reference).+),*),)*
                }
            }

            /// Passes this request to its handler.
            pub async fn serve<S>(self, service: &S, caller: &S::Caller) -> Result<Response, Error>
            where
                S: Service $(+ Serve<$request>)*,
            {
                match self {
                    $(Request::$request(request) => {
                        service.serve(caller, request).await.map(Response::$request)
                    })*
                }
            }
        }

        /// The response to any request.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "call", content = "answer")]
        pub enum Response {
            $(#[serde(rename = $name)] $request($response),)*
            /// The response of the first call with this idempotency key; this call changed nothing.
            #[serde(rename = "replayed")]
            Replayed(Box<Response>),
        }

        impl Response {
            /// The response alone, as `--json` prints it.
            pub fn to_json(&self) -> serde_json::Result<serde_json::Value> {
                match self {
                    $(Response::$request(response) => serde_json::to_value(response),)*
                    Response::Replayed(first) => first.to_json(),
                }
            }
        }

        $(const _: () = assert!(
            !matches!($request::CLASS, Class::People)
                || matches!(Role::$role, Role::Operator | Role::Maintainer),
            "a request that only people may make needs at least the role `Operator`"
        );)*

        $(const _: () = assert!(
            !matches!($request::CLASS, Class::Change(_))
                || matches!(
                    stringify!($sees).as_bytes(),
                    b"itself" | b"own_schedule" | b"own_run" | b"own_new"
                ),
            "a change is about `itself`, `own_schedule`, `own_run` or `own_new`: the policy decides on it"
        );)*

        $(impl ApiRequest for $request {
            type Response = $response;
            const CLASS: Class = class!($class $($capability)?);

            fn into_request(self) -> Request {
                Request::$request(self)
            }

            fn into_response(response: $response) -> Response {
                Response::$request(response)
            }

            fn from_response(response: Response) -> Option<$response> {
                match response.first() {
                    Response::$request(response) => Some(response),
                    _ => None,
                }
            }
        })*
    };
}
pub(crate) use {class, narrow, references, requests, route, stops, subject};
