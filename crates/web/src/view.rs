//! The addresses of the pages. Every view is one `GET` address, so it can be bookmarked, reloaded and sent to others.

use api::{Code, Error, RunState};

use crate::form::ScheduleForm;

/// The address of a page, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub(crate) address: String,
    pub(crate) target: Target,
}

/// What a page is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Watch,
    Timeline { after: Option<u64>, all: bool },
    Approvals { all: bool, cursor: Option<String> },
    Approval { id: String },
    Schedules { agent: Option<String>, cursor: Option<String> },
    ScheduleNew(ScheduleForm),
    SchedulePreview(ScheduleForm),
    Schedule { id: String },
    ScheduleEdit { id: String },
    ScheduleRemove { id: String },
    Slot { id: String, at: String },
    Runs(RunFilter),
    Run { id: String },
    RunSettle { id: String },
    RunCancel { id: String },
    Agents { cursor: Option<String> },
    Agent { name: String },
    Ledger { after: Option<u64> },
    Entry { seq: u64 },
    Policy,
    Explain { run: String },
    Budgets,
    Settings(Section),
    Find { query: String },
    Freeze,
    Lease,
    More,
}

/// Which runs a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunFilter {
    pub(crate) state: Option<RunState>,
    pub(crate) agent: Option<String>,
    pub(crate) schedule: Option<String>,
    pub(crate) cursor: Option<String>,
}

/// A page of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    You,
    Devices,
    Tokens,
    Notices,
    Config,
    Doctor,
}

impl Section {
    pub(crate) const ALL: [Section; 6] = [
        Section::You,
        Section::Devices,
        Section::Tokens,
        Section::Notices,
        Section::Config,
        Section::Doctor,
    ];

    pub(crate) const fn path(self) -> &'static str {
        match self {
            Section::You => "/settings",
            Section::Devices => "/settings/devices",
            Section::Tokens => "/settings/tokens",
            Section::Notices => "/settings/notices",
            Section::Config => "/settings/config",
            Section::Doctor => "/settings/doctor",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Section::You => "You",
            Section::Devices => "Devices",
            Section::Tokens => "People and tokens",
            Section::Notices => "Notices",
            Section::Config => "Configuration",
            Section::Doctor => "Doctor",
        }
    }
}

/// Longer queries are refused.
const QUERY_BYTES_MAX: usize = 16 * 1024;

impl View {
    /// The view at a path with a query, both percent-encoded. `not_found` if there is none.
    pub fn parse(path: &str, query: &str) -> Result<View, Error> {
        if QUERY_BYTES_MAX < path.len() + query.len() {
            return Err(Error::new(Code::InvalidInput, "the address is too long"));
        }
        let query_of = Query::parse(query);
        let segments: Vec<String> = path.trim_matches('/').split('/').map(decode).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let target = target(&segments, &query_of)?;
        let address = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        Ok(View { address, target })
    }

    /// The path and query of the view.
    pub fn address(&self) -> &str {
        &self.address
    }
}

fn target(segments: &[&str], query: &Query) -> Result<Target, Error> {
    let section = || {
        let path = format!("/{}", segments.join("/"));
        Section::ALL.into_iter().find(|section| section.path() == path)
    };
    Ok(match *segments {
        [""] => Target::Watch,
        ["timeline"] => {
            Target::Timeline { after: query.number("after")?, all: query.get("all").is_some() }
        }
        ["approvals"] => {
            Target::Approvals { all: query.get("all").is_some(), cursor: query.get("cursor") }
        }
        ["approvals", id] => Target::Approval { id: id.to_owned() },
        ["schedules"] => {
            Target::Schedules { agent: query.get("agent"), cursor: query.get("cursor") }
        }
        ["schedules", "new"] => Target::ScheduleNew(ScheduleForm::from_fields(&query.pairs)),
        ["schedules", "preview"] => {
            Target::SchedulePreview(ScheduleForm::from_fields(&query.pairs))
        }
        ["schedules", id] => Target::Schedule { id: id.to_owned() },
        ["schedules", id, "edit"] => Target::ScheduleEdit { id: id.to_owned() },
        ["schedules", id, "remove"] => Target::ScheduleRemove { id: id.to_owned() },
        ["schedules", id, "slots", at] => Target::Slot { id: id.to_owned(), at: at.to_owned() },
        ["runs"] => Target::Runs(RunFilter {
            state: query.get("state").map(|state| state.parse()).transpose()?,
            agent: query.get("agent"),
            schedule: query.get("schedule"),
            cursor: query.get("cursor"),
        }),
        ["runs", id] => Target::Run { id: id.to_owned() },
        ["runs", id, "settle"] => Target::RunSettle { id: id.to_owned() },
        ["runs", id, "cancel"] => Target::RunCancel { id: id.to_owned() },
        ["agents"] => Target::Agents { cursor: query.get("cursor") },
        ["agents", name] => Target::Agent { name: name.to_owned() },
        ["ledger"] => Target::Ledger { after: query.number("after")? },
        ["ledger", seq] => Target::Entry { seq: seq.parse().map_err(|_| no_page())? },
        ["policy"] => Target::Policy,
        ["policy", "explain"] => Target::Explain { run: query.get("run").ok_or_else(no_page)? },
        ["budgets"] => Target::Budgets,
        ["settings", ..] => Target::Settings(section().ok_or_else(no_page)?),
        ["find"] => Target::Find { query: query.get("q").unwrap_or_default() },
        ["freeze"] => Target::Freeze,
        ["lease"] => Target::Lease,
        ["more"] => Target::More,
        _ => return Err(no_page()),
    })
}

fn no_page() -> Error {
    Error::new(Code::NotFound, "there is no page at this address").hint("go to `/`")
}

/// A segment of a path; `+` is no blank there.
pub(crate) fn decode(segment: &str) -> String {
    let pair = format!("s={}", segment.replace('+', "%2B"));
    let decoded = form_urlencoded::parse(pair.as_bytes()).next();
    decoded.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// A text as a segment of a path or a value of a query.
pub(crate) fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

/// The parameters of an address. Empty ones count as absent.
#[derive(Debug)]
struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    fn parse(text: &str) -> Query {
        Query { pairs: form_urlencoded::parse(text.as_bytes()).into_owned().collect() }
    }

    fn get(&self, name: &str) -> Option<String> {
        let found = self.pairs.iter().find(|(key, value)| key == name && !value.is_empty());
        found.map(|(_, value)| value.clone())
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Error> {
        let invalid = |_| Error::new(Code::InvalidInput, format!("`{name}` is not a number"));
        self.get(name).map(|value| value.parse().map_err(invalid)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let parse = |path, query| View::parse(path, query).map(|view| view.target).ok();
        assert_eq!(parse("/", ""), Some(Target::Watch));
        let id = || "sch_1".to_owned();
        assert_eq!(parse("/schedules/sch_1", ""), Some(Target::Schedule { id: id() }));
        let at = "2026-11-18T17:00:00Z".to_owned();
        let slot = parse("/schedules/sch_1/slots/2026-11-18T17%3A00%3A00Z", "");
        assert_eq!(slot, Some(Target::Slot { id: id(), at }));
        let filter = RunFilter { state: Some(RunState::Failed), ..RunFilter::default() };
        assert_eq!(parse("/runs", "state=failed&agent="), Some(Target::Runs(filter)));
        assert_eq!(parse("/settings/tokens", ""), Some(Target::Settings(Section::Tokens)));
        for (path, query) in [
            ("/nowhere", ""),
            ("/settings/other", ""),
            ("/ledger/x", ""),
            ("/runs", "state=odd"),
            ("/timeline", "after=-1"),
            ("/schedules/sch_1/other", ""),
            ("/policy/explain", ""),
        ] {
            assert!(View::parse(path, query).is_err(), "{path}?{query}");
        }
    }

    #[test]
    fn a_segment_survives_encoding() {
        for text in ["a b", "a+b", "ü/ö", "2026-11-18T17:00:00Z", "%2F"] {
            assert_eq!(decode(&encode(text)), text);
        }
    }
}
