//! How things stand, and what the standing orders say.

use api::{Code, Error, HealthAsk, PolicyDecide, StatusAsk};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::schema::Kind::{Flag, Object, Objects, Text, Texts};
use crate::tool::{Input, Through, Tool, fields, shown, with};
use crate::toolset::Toolset;

pub(super) const TOOLS: &[Tool] = &[
    Tool::reads::<ServerHealth>(
        "server_health",
        Toolset::Core,
        "status",
        "Tell whether the watch is kept and its log is sound. Not for what is going on: that is status_get.",
        &[("ok", Flag), ("kept", Flag), ("version", Text), ("posture", Text)],
    ),
    Tool::reads::<ServerCapabilities>(
        "server_capabilities",
        Toolset::Core,
        "status --capabilities",
        "List what this server can do, and whether each is switched on now. Ask before you rely on a feature.",
        &[("version", Text), ("posture", Text), ("capabilities", Objects)],
    ),
    Tool::reads::<StatusGet>(
        "status_get",
        Toolset::Core,
        "status",
        "Show what runs, what is due next, what waits for a human and what nobody knows the end of. Begin here.",
        &[("watch", Object), ("runs", Object), ("approvals", Texts), ("unknown", Texts)],
    ),
    Tool::reads::<BudgetGet>(
        "budget_get",
        Toolset::Core,
        "status",
        "Show how much of today's budget is used, and what the lease of the watch still allows.",
        &[("budget", Object), ("authority", Object)],
    ),
    Tool::reads::<PermissionDecide>(
        "permission_decide",
        Toolset::Core,
        "policy explain --request",
        "Ask the standing orders about something that you or your host want to do with another tool. \
         It does nothing itself, and its answer is no approval.",
        &[("behavior", Text), ("message", Text), ("ruling", Object)],
    )
    .not_scheduled("it answers whoever is about to do something"),
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ServerHealth {}

impl Input for ServerHealth {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let health = through.read(HealthAsk {}).await?;
        let is_well = health.is_well();
        let watch = health.watch;
        let answer = json!({
            "ok": is_well,
            "kept": watch.kept,
            "version": watch.version,
            "posture": watch.posture,
            "log_entries": health.entries,
            "warnings": watch.warnings,
        });
        Ok(match (watch.kept, health.stopped) {
            (_, Some(stopped)) => with(answer, "problem", stopped),
            (false, None) => with(answer, "problem", "no daemon keeps the watch: nothing fires"),
            (true, None) => answer,
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ServerCapabilities {}

impl Input for ServerCapabilities {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let status = through.read(StatusAsk {}).await?;
        Ok(fields([
            ("version", status.watch.version.into()),
            ("posture", status.watch.posture.into()),
            ("capabilities", shown(&status.capabilities)?),
        ]))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusGet {}

impl Input for StatusGet {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let status = through.read(StatusAsk {}).await?;
        let needs_human = !status.approvals.is_empty() || !status.unknown.is_empty();
        let mut answer = shown(&status)?;
        if let Value::Object(answer) = &mut answer {
            answer.remove("capabilities");
        }
        Ok(with(answer, "needs_human", needs_human))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BudgetGet {}

impl Input for BudgetGet {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let status = through.read(StatusAsk {}).await?;
        let (budget, authority) = (shown(&status.budget)?, shown(&status.authority)?);
        Ok(fields([("budget", budget), ("authority", authority)]))
    }
}

/// How hosts name tools of this server, which is `midwatch` to them.
const OWN_PREFIX: &str = "mcp__midwatch__";

/// As hosts of agents ask, and in our own words.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PermissionDecide {
    /// The tool that is about to be called, as its host names it, such as `Bash`, `Write`, `WebFetch`.
    tool_name: Option<String>,
    /// What that tool is called with.
    #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
    input: Option<Value>,
    /// The host's own id of the call; it is not looked at.
    #[serde(rename = "tool_use_id")]
    _tool_use_id: Option<String>,
    /// Instead of a tool: the class of what is to be done, such as `shell.run`, `net.read`, `filesystem.write`.
    capability: Option<String>,
    /// What it is done to.
    resource: Option<String>,
    /// The machine that is reached, for classes of the family `net`.
    host: Option<String>,
    /// The absolute path, for classes of the family `filesystem`.
    path: Option<String>,
    /// The program and its arguments, for `shell.run`.
    argv: Option<Vec<String>>,
}

impl Input for PermissionDecide {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let input = self.input.clone().unwrap_or_else(|| json!({}));
        let own = self.tool_name.as_deref().and_then(|name| name.strip_prefix(OWN_PREFIX));
        if own.is_some_and(|name| through.selection.find(name).is_some()) {
            return Ok(fields([
                ("behavior", "allow".into()),
                ("message", "the watch judges a call of its own tools when it is made".into()),
                ("updatedInput", input),
            ]));
        }
        let asked = self.into_request()?;
        let decided = through.read(asked).await?;
        let is_allowed = decided.ruling.verdict == "allow";
        let answer = fields([
            ("behavior", if is_allowed { "allow" } else { "deny" }.into()),
            ("message", decided.sentence.into()),
            ("ruling", shown(&decided.ruling)?),
        ]);
        Ok(if is_allowed { with(answer, "updatedInput", input) } else { answer })
    }
}

impl PermissionDecide {
    /// What the tool goes by. Without it nobody can say what the tool would do.
    fn given(&self, name: &str) -> Result<String, Error> {
        let found = self.input.as_ref().and_then(|input| input.get(name)?.as_str());
        found.map(str::to_owned).ok_or_else(|| {
            let tool = self.tool_name.as_deref().unwrap_or_default();
            let what =
                format!("`{tool}` is asked about without `{name}` in its `input`, as a text");
            Error::new(Code::InvalidInput, what).hint("give `input` as the tool itself gets it")
        })
    }

    /// What the standing orders are asked. A tool that nobody knows is of no class, and so of the highest tier.
    ///
    /// A tool that looks through a directory names no path: what is below may be forbidden, so every rule that
    /// is narrowed by a path has a say.
    fn into_request(self) -> Result<PolicyDecide, Error> {
        let own = [&self.capability, &self.resource, &self.host, &self.path];
        let is_own = own.into_iter().any(Option::is_some) || self.argv.is_some();
        let wrong = match (is_own, &self.tool_name) {
            (true, Some(_)) => Some("a tool and a class of our own are two questions"),
            (true, None) if self.input.is_some() => Some("an `input` is that of a tool"),
            (false, None) => Some("nothing is asked about"),
            (true, None) | (false, Some(_)) => None,
        };
        if let Some(wrong) = wrong {
            let hint = "give `tool_name` and `input`, or `capability` and what belongs to it";
            return Err(Error::new(Code::InvalidInput, wrong).hint(hint));
        }
        let bash = |command| vec!["/bin/bash".to_owned(), "-c".to_owned(), command];
        let (capability, argv, path, host) = match self.tool_name.as_deref() {
            Some("Bash") => ("shell.run", Some(bash(self.given("command")?)), None, None),
            Some("Read") => ("filesystem.read", None, Some(self.given("file_path")?), None),
            Some("NotebookRead") => {
                ("filesystem.read", None, Some(self.given("notebook_path")?), None)
            }
            Some("Glob" | "Grep" | "LS") => ("filesystem.read", None, None, None),
            Some("Write" | "Edit" | "MultiEdit") => {
                ("filesystem.write", None, Some(self.given("file_path")?), None)
            }
            Some("NotebookEdit") => {
                ("filesystem.write", None, Some(self.given("notebook_path")?), None)
            }
            Some("WebFetch") => ("net.read", None, None, host_of(&self.given("url")?)),
            Some("WebSearch") => ("net.read", None, None, None),
            Some(_) | None => ("", None, None, None),
        };
        let tool = self.tool_name.map(|name| format!("tool:{name}"));
        let own = self.capability.unwrap_or_else(|| capability.to_owned());
        Ok(PolicyDecide {
            capability: if own.is_empty() { "tool.call".to_owned() } else { own },
            resource: self.resource.or(tool),
            host: self.host.or(host),
            path: self.path.or(path),
            argv: self.argv.or(argv).unwrap_or_default(),
        })
    }
}

/// The machine that an address names.
fn host_of(url: &str) -> Option<String> {
    let rest = url.split_once("://")?.1;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = match host.strip_prefix('[') {
        Some(literal) => literal.split(']').next()?,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(question: Value) -> Result<PolicyDecide, Error> {
        serde_json::from_value::<PermissionDecide>(question).unwrap().into_request()
    }

    #[test]
    fn a_tool_is_judged_by_what_it_goes_by_and_by_nothing_beside_it() {
        for (tool, input, path) in [
            ("Write", json!({"file_path": "/a", "notebook_path": "/b"}), "/a"),
            ("NotebookEdit", json!({"file_path": "/a", "notebook_path": "/b"}), "/b"),
            ("NotebookRead", json!({"file_path": "/a", "notebook_path": "/b"}), "/b"),
        ] {
            let request = asked(json!({"tool_name": tool, "input": input})).unwrap();
            assert_eq!(request.path.as_deref(), Some(path), "{tool}");
        }
    }

    #[test]
    fn a_tool_that_nobody_knows_the_target_of_is_not_judged() {
        for (tool, input) in [
            ("Read", json!({"file_path": 7})),
            ("Read", json!("x")),
            ("Edit", json!({"notebook_path": "/b"})),
            ("NotebookEdit", json!({"file_path": "/a"})),
            ("Bash", json!({})),
            ("WebFetch", json!({"url": null})),
        ] {
            let refused = asked(json!({"tool_name": tool, "input": input})).unwrap_err();
            assert_eq!(refused.code, Code::InvalidInput, "{tool}");
        }
        assert!(asked(json!({"tool_name": "Read"})).is_err());
    }
}
