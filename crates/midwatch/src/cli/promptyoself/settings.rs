//! The settings of promptyoself in the environment. Pure: the caller reads the environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agents::PLACEHOLDER_TOKEN;
use api::{Code, Error};

const CLOUD: &str = "https://api.letta.com";
const LOCAL: &str = "http://localhost:8283";
/// Variables that a `.env` file may set. None belongs to the configuration, which can start programs, because
/// anyone may have written the file.
const ENV_FILE_VARIABLES: [&str; 10] = [
    "LETTA_AGENT_ID",
    "LETTA_API_KEY",
    "LETTA_BASE_URL",
    "LETTA_SERVER_PASSWORD",
    "MIDWATCH_DATA",
    "MIDWATCH_TOKEN",
    "PROMPTYOSELF_DB",
    "PROMPTYOSELF_DB_PATH",
    "PROMPTYOSELF_INTERVAL",
    "PROMPTYOSELF_SELF_ONLY",
];
/// Names of this machine in addresses.
const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
const BASE_URL: &str = "LETTA_BASE_URL";
const CREDENTIALS: [&str; 2] = ["LETTA_API_KEY", "LETTA_SERVER_PASSWORD"];
const INTERVAL_DEFAULT: &str = "60";

pub(in crate::cli) type Variables = BTreeMap<String, String>;

/// A Letta server and its credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Letta {
    pub url: String,
    /// The variable that holds the secret.
    pub credential: Option<&'static str>,
}

impl Letta {
    /// With an API key and no LETTA_BASE_URL, the server is Letta Cloud.
    pub(in crate::cli) fn from_environment(variables: &Variables) -> Letta {
        let has = |name: &str| value(variables, name).is_some();
        let url = Letta::base_url(variables);
        let default = if has("LETTA_API_KEY") { CLOUD } else { LOCAL };
        Letta {
            url: url.unwrap_or(default).to_owned(),
            credential: CREDENTIALS.into_iter().find(|name| has(name)),
        }
    }

    /// The value of LETTA_BASE_URL.
    pub(super) fn base_url(variables: &Variables) -> Option<&str> {
        value(variables, BASE_URL).map(|url| url.trim_end_matches('/'))
    }

    pub(super) fn token<'a>(&self, variables: &'a Variables) -> &'a str {
        self.credential.and_then(|name| value(variables, name)).unwrap_or(PLACEHOLDER_TOKEN)
    }
}

/// Whether two addresses are those of one server. The names of this machine are the same.
pub(super) fn is_same_server(one: &str, other: &str) -> bool {
    let normalized = |url: &str| {
        let url = url.trim_end_matches('/').to_ascii_lowercase();
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", &url));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let default_port = if scheme == "https" { ":443" } else { ":80" };
        let authority = authority.strip_suffix(default_port).unwrap_or(authority);
        let local = LOOPBACK_HOSTS.iter().find_map(|host| {
            let port = authority.strip_prefix(host)?;
            (port.is_empty() || port.starts_with(':')).then(|| format!("localhost{port}"))
        });
        (scheme.to_owned(), local.unwrap_or_else(|| authority.to_owned()), path.to_owned())
    };
    normalized(one) == normalized(other)
}

/// The agent that the caller is limited to, if PROMPTYOSELF_SELF_ONLY is set.
pub(in crate::cli) fn only_agent(variables: &Variables) -> Result<Option<&str>, Error> {
    let self_only = value(variables, "PROMPTYOSELF_SELF_ONLY").unwrap_or_default();
    match self_only.to_ascii_lowercase().as_str() {
        "" | "0" | "false" | "no" | "off" => return Ok(None),
        _ => {}
    }
    let id = value(variables, "LETTA_AGENT_ID");
    id.map(Some).ok_or_else(|| {
        let what = "PROMPTYOSELF_SELF_ONLY is set, but LETTA_AGENT_ID is not";
        Error::new(Code::InvalidInput, what).hint("set LETTA_AGENT_ID to the id of the agent")
    })
}

/// The agent of prompts that name none.
pub(in crate::cli) fn default_agent(variables: &Variables) -> Option<&str> {
    let names = ["PROMPTYOSELF_DEFAULT_AGENT_ID", "LETTA_AGENT_ID", "LETTA_DEFAULT_AGENT_ID"];
    names.into_iter().find_map(|name| value(variables, name))
}

pub(super) fn interval(variables: &Variables) -> &str {
    value(variables, "PROMPTYOSELF_INTERVAL").unwrap_or(INTERVAL_DEFAULT)
}

/// The database of the earlier program.
pub(super) fn database(variables: &Variables) -> Option<PathBuf> {
    let names = ["PROMPTYOSELF_DB", "PROMPTYOSELF_DB_PATH"];
    names.into_iter().find_map(|name| value(variables, name)).map(PathBuf::from)
}

/// The data directory that belongs to a database of the earlier program.
pub(super) fn data_beside(database: &Path) -> PathBuf {
    database.with_extension("midwatch")
}

/// Adds the variables of a `.env` file that are not set yet. Its server gets no key from elsewhere, because anyone may have
/// written the file.
pub(super) fn with_env_file(mut variables: Variables, file: &str) -> Variables {
    let has_key = CREDENTIALS.iter().any(|name| value(&variables, name).is_some());
    let allowed = |name: &str| ENV_FILE_VARIABLES.contains(&name) && !(has_key && name == BASE_URL);
    for line in file.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.trim();
        if !line.starts_with('#') && allowed(name) {
            variables.entry(name.to_owned()).or_insert_with(|| unquoted(value.trim()).to_owned());
        }
    }
    variables
}

/// Removes quotes, or else a comment.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = value.strip_prefix(quote).and_then(|rest| rest.split_once(quote));
        if let Some((inner, _)) = inner {
            return inner;
        }
    }
    value.split_once(" #").map_or(value, |(value, _)| value.trim_end())
}

/// The value of a variable, if it is set and not blank.
fn value<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
    variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(text: &str) -> Variables {
        with_env_file(Variables::new(), text)
    }

    #[test]
    fn names_of_this_machine_are_one_server() {
        for (one, other, expected) in [
            ("http://localhost:8283", "http://127.0.0.1:8283/", true),
            ("http://[::1]:8283", "http://LOCALHOST:8283", true),
            ("http://localhost", "http://127.0.0.1:80", true),
            ("http://localhost:8283", "http://localhost:8284", false),
            ("http://localhost:8283", "https://localhost:8283", false),
            ("http://localhost.example:80", "http://127.0.0.1", false),
            ("https://api.letta.com", "https://api.letta.com/", true),
            ("http://letta:1/a", "http://letta:1/b", false),
        ] {
            assert_eq!(is_same_server(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn env_file_cannot_set_the_configuration() {
        let set = variables("MIDWATCH_NOTICE_COMMAND=evil\nLETTA_API_KEY=k\nLD_PRELOAD=x");
        assert_eq!(set.into_keys().collect::<Vec<_>>(), ["LETTA_API_KEY"]);
    }

    #[test]
    fn server_of_an_env_file_gets_no_key_from_the_environment() {
        let process = |name: &str| Variables::from([(name.to_owned(), "secret".to_owned())]);
        let file = "LETTA_BASE_URL=http://evil.example\nLETTA_API_KEY=theirs";
        for name in CREDENTIALS {
            let letta = Letta::from_environment(&with_env_file(process(name), file));
            assert_ne!(letta.url, "http://evil.example", "{name}");
        }
        let letta = Letta::from_environment(&variables(file));
        assert_eq!(
            (letta.url.as_str(), letta.credential),
            ("http://evil.example", Some("LETTA_API_KEY"))
        );
        let letta = Letta::from_environment(&with_env_file(
            process("HOME"),
            "LETTA_BASE_URL=http://localhost:1",
        ));
        assert_eq!((letta.url.as_str(), letta.credential), ("http://localhost:1", None));
    }

    #[test]
    fn api_key_without_base_url_selects_the_cloud() {
        for (text, url, credential, token) in [
            ("", LOCAL, None, PLACEHOLDER_TOKEN),
            ("LETTA_API_KEY=k", CLOUD, Some("LETTA_API_KEY"), "k"),
            ("LETTA_SERVER_PASSWORD=p", LOCAL, Some("LETTA_SERVER_PASSWORD"), "p"),
            (
                "LETTA_API_KEY=k\nLETTA_SERVER_PASSWORD=p\nLETTA_BASE_URL=http://l:1/",
                "http://l:1",
                Some("LETTA_API_KEY"),
                "k",
            ),
            ("LETTA_API_KEY=\nLETTA_BASE_URL= ", LOCAL, None, PLACEHOLDER_TOKEN),
        ] {
            let variables = variables(text);
            let letta = Letta::from_environment(&variables);
            assert_eq!((letta.url.as_str(), letta.credential), (url, credential), "{text}");
            assert_eq!(letta.token(&variables), token, "{text}");
        }
    }

    #[test]
    fn env_file_adds_only_known_variables_that_are_not_set() {
        let file = "# LETTA_BASE_URL=no\nexport LETTA_API_KEY=\"b # b\"\nLETTA_BASE_URL = c # c\n\
                    PATH=/evil\nLETTA_AGENT_ID='d'\nPROMPTYOSELF_INTERVAL\nPROMPTYOSELF_DB=\n\
                    LETTA_SERVER_PASSWORD=a=b\n";
        let set = Variables::from([("LETTA_AGENT_ID".to_owned(), "kept".to_owned())]);
        let found = with_env_file(set, file);
        let found: Vec<String> = found.iter().map(|(name, it)| format!("{name}={it}")).collect();
        let expected = [
            "LETTA_AGENT_ID=kept",
            "LETTA_API_KEY=b # b",
            "LETTA_BASE_URL=c",
            "LETTA_SERVER_PASSWORD=a=b",
            "PROMPTYOSELF_DB=",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn data_directory_is_beside_the_database() {
        for (text, expected) in [
            ("PROMPTYOSELF_DB=/a/b.db", Some("/a/b.midwatch")),
            ("PROMPTYOSELF_DB_PATH=p.db", Some("p.midwatch")),
            ("PROMPTYOSELF_DB_PATH=/x.db\nPROMPTYOSELF_DB=/y", Some("/y.midwatch")),
            ("", None),
        ] {
            let found = database(&variables(text)).map(|path| data_beside(&path));
            assert_eq!(found, expected.map(PathBuf::from), "{text}");
        }
    }

    #[test]
    fn self_only_needs_an_agent_id() {
        let limited = |text: &str| only_agent(&variables(text)).map(|own| own.map(str::to_owned));
        for off in ["", "PROMPTYOSELF_SELF_ONLY=0", "PROMPTYOSELF_SELF_ONLY=False"] {
            assert_eq!(limited(off), Ok(None), "{off}");
        }
        let both = "PROMPTYOSELF_SELF_ONLY=1\nLETTA_AGENT_ID=agent-1";
        assert_eq!(limited(both), Ok(Some("agent-1".to_owned())));
        assert!(limited("PROMPTYOSELF_SELF_ONLY=true").is_err());
    }
}
