//! What the environment says to promptyoself. Pure: it is read elsewhere, once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agents::NO_TOKEN;
use api::{Code, Error};

const CLOUD: &str = "https://api.letta.com";
const LOCAL: &str = "http://localhost:8283";
/// Variables that `.env` may set. Nothing of the configuration is among them: the file may be anybody's, and
/// the configuration starts programs.
const OF_FILE: [&str; 10] = [
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
const INTERVAL_DEFAULT: &str = "60";

pub(in crate::cli) type Variables = BTreeMap<String, String>;

/// A server of Letta, and how to be let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Letta {
    pub url: String,
    /// The variable that holds the secret.
    pub credential: Option<&'static str>,
}

impl Letta {
    /// Whoever has a key and names no server means that of the key.
    pub(in crate::cli) fn of(variables: &Variables) -> Letta {
        let has = |name: &str| given(variables, name).is_some();
        let names = ["LETTA_API_KEY", "LETTA_SERVER_PASSWORD"];
        let url = Letta::named(variables);
        let otherwise = if has("LETTA_API_KEY") { CLOUD } else { LOCAL };
        Letta {
            url: url.unwrap_or(otherwise).to_owned(),
            credential: names.into_iter().find(|name| has(name)),
        }
    }

    /// The server that was named in so many words.
    pub(super) fn named(variables: &Variables) -> Option<&str> {
        given(variables, "LETTA_BASE_URL").map(|url| url.trim_end_matches('/'))
    }

    pub(super) fn token<'a>(&self, variables: &'a Variables) -> &'a str {
        self.credential.and_then(|name| given(variables, name)).unwrap_or(NO_TOKEN)
    }
}

/// The agent beyond which nothing is scheduled, if the caller is held to itself.
pub(in crate::cli) fn held_to(variables: &Variables) -> Result<Option<&str>, Error> {
    let asked = given(variables, "PROMPTYOSELF_SELF_ONLY").unwrap_or_default();
    match asked.to_ascii_lowercase().as_str() {
        "" | "0" | "false" | "no" | "off" => return Ok(None),
        _ => {}
    }
    let own = given(variables, "LETTA_AGENT_ID");
    own.map(Some).ok_or_else(|| {
        let what = "PROMPTYOSELF_SELF_ONLY is set, and LETTA_AGENT_ID does not say who that is";
        Error::new(Code::InvalidInput, what).hint("set LETTA_AGENT_ID to the id of the agent")
    })
}

/// The agent that is meant where none is named.
pub(in crate::cli) fn default_agent(variables: &Variables) -> Option<&str> {
    let names = ["PROMPTYOSELF_DEFAULT_AGENT_ID", "LETTA_AGENT_ID", "LETTA_DEFAULT_AGENT_ID"];
    names.into_iter().find_map(|name| given(variables, name))
}

pub(super) fn interval(variables: &Variables) -> &str {
    given(variables, "PROMPTYOSELF_INTERVAL").unwrap_or(INTERVAL_DEFAULT)
}

/// The database of the earlier program.
pub(super) fn database(variables: &Variables) -> Option<PathBuf> {
    let names = ["PROMPTYOSELF_DB", "PROMPTYOSELF_DB_PATH"];
    names.into_iter().find_map(|name| given(variables, name)).map(PathBuf::from)
}

/// The data directory that a database stands for.
pub(super) fn data_beside(database: &Path) -> PathBuf {
    database.with_extension("midwatch")
}

/// What a `.env` file says; what is set already stays as it is.
pub(super) fn with_file(mut variables: Variables, file: &str) -> Variables {
    for line in file.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.trim();
        if !line.starts_with('#') && OF_FILE.contains(&name) {
            variables.entry(name.to_owned()).or_insert_with(|| unquoted(value.trim()).to_owned());
        }
    }
    variables
}

/// Without its quotes, or without the comment behind it.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = value.strip_prefix(quote).and_then(|rest| rest.split_once(quote));
        if let Some((inner, _)) = inner {
            return inner;
        }
    }
    value.split_once(" #").map_or(value, |(value, _)| value.trim_end())
}

fn given<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
    variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(text: &str) -> Variables {
        with_file(Variables::new(), text)
    }

    #[test]
    fn a_file_of_anybody_sets_nothing_of_the_configuration() {
        let set = variables("MIDWATCH_NOTICE_COMMAND=evil\nLETTA_API_KEY=k\nLD_PRELOAD=x");
        assert_eq!(set.into_keys().collect::<Vec<_>>(), ["LETTA_API_KEY"]);
    }

    #[test]
    fn a_key_without_a_server_is_for_the_cloud() {
        for (text, url, credential, token) in [
            ("", LOCAL, None, NO_TOKEN),
            ("LETTA_API_KEY=k", CLOUD, Some("LETTA_API_KEY"), "k"),
            ("LETTA_SERVER_PASSWORD=p", LOCAL, Some("LETTA_SERVER_PASSWORD"), "p"),
            (
                "LETTA_API_KEY=k\nLETTA_SERVER_PASSWORD=p\nLETTA_BASE_URL=http://l:1/",
                "http://l:1",
                Some("LETTA_API_KEY"),
                "k",
            ),
            ("LETTA_API_KEY=\nLETTA_BASE_URL= ", LOCAL, None, NO_TOKEN),
        ] {
            let variables = variables(text);
            let letta = Letta::of(&variables);
            assert_eq!((letta.url.as_str(), letta.credential), (url, credential), "{text}");
            assert_eq!(letta.token(&variables), token, "{text}");
        }
    }

    #[test]
    fn a_file_adds_what_is_not_set_and_only_what_is_ours() {
        let file = "# LETTA_BASE_URL=no\nexport LETTA_API_KEY=\"b # b\"\nLETTA_BASE_URL = c # c\n\
                    PATH=/evil\nLETTA_AGENT_ID='d'\nPROMPTYOSELF_INTERVAL\nPROMPTYOSELF_DB=\n\
                    LETTA_SERVER_PASSWORD=a=b\n";
        let set = Variables::from([("LETTA_AGENT_ID".to_owned(), "kept".to_owned())]);
        let found = with_file(set, file);
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
    fn a_database_names_the_directory_beside_it() {
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
    fn who_is_held_to_itself_must_be_somebody() {
        let held = |text: &str| held_to(&variables(text)).map(|own| own.map(str::to_owned));
        for off in ["", "PROMPTYOSELF_SELF_ONLY=0", "PROMPTYOSELF_SELF_ONLY=False"] {
            assert_eq!(held(off), Ok(None), "{off}");
        }
        let both = "PROMPTYOSELF_SELF_ONLY=1\nLETTA_AGENT_ID=agent-1";
        assert_eq!(held(both), Ok(Some("agent-1".to_owned())));
        assert!(held("PROMPTYOSELF_SELF_ONLY=true").is_err());
    }
}
