//! Tools for status, health, budget and policy decisions.

use api::{Code, Error, Health, HealthShow, PolicyDecide, Status, StatusShow, Verdict};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::schema::FieldType::{Boolean, Object, Objects, Text, Texts};
use crate::tool::{Tool, ToolContext, ToolInput, from_json, object, to_json, with_field};
use crate::tools::Toolset;

pub(super) const TOOLS: &[Tool] = &[
    Tool::new::<HealthShow>(
        "server_health",
        Toolset::Core,
        "status",
        "Check whether the daemon is running and the ledger is intact. For runs and approvals, use status_get.",
        &[("ok", Boolean), ("kept", Boolean), ("version", Text), ("posture", Text)],
    )
    .then(health),
    Tool::new::<StatusShow>(
        "server_capabilities",
        Toolset::Core,
        "status --capabilities",
        "List the features of this server, and whether each is enabled now. Check before you rely on one.",
        &[("version", Text), ("posture", Text), ("capabilities", Objects)],
    )
    .then(capabilities),
    Tool::new::<StatusShow>(
        "status_get",
        Toolset::Core,
        "status",
        "Show running runs, what is due next, pending approvals and runs with unknown outcome. Start here.",
        &[("watch", Object), ("runs", Object), ("approvals", Texts), ("unknown", Texts)],
    )
    .then(status),
    Tool::new::<StatusShow>(
        "budget_get",
        Toolset::Core,
        "status --budgets",
        "Show how much of today's budget is used, and what the lease still allows.",
        &[("budget", Object), ("authority", Object)],
    )
    .then(budget),
    Tool::new::<PermissionDecideInput>(
        "permission_decide",
        Toolset::Core,
        "policy explain --request",
        "Check whether the policy allows a call of another tool that you or your host want to make. \
         It performs nothing, and its answer is not an approval.",
        &[("behavior", Text), ("message", Text), ("ruling", Object)],
    )
    .text_only()
    .not_schedulable("its answer is for the host of an agent that is about to call a tool"),
];

fn health(health: Value) -> Result<Value, Error> {
    let health: Health = from_json(health)?;
    let is_well = health.is_well();
    let daemon = health.daemon;
    let answer = json!({
        "ok": is_well,
        "kept": daemon.running,
        "version": daemon.version,
        "posture": daemon.posture,
        "log_entries": health.entries,
        "warnings": daemon.warnings,
    });
    Ok(match (daemon.running, health.stopped) {
        (_, Some(stopped)) => with_field(answer, "problem", stopped),
        (false, None) => with_field(answer, "problem", "no daemon is running, so nothing fires"),
        (true, None) => answer,
    })
}

fn capabilities(status: Value) -> Result<Value, Error> {
    let status: Status = from_json(status)?;
    Ok(object([
        ("version", status.daemon.version.into()),
        ("posture", status.daemon.posture.as_str().into()),
        ("capabilities", to_json(&status.capabilities)?),
    ]))
}

fn status(mut answer: Value) -> Result<Value, Error> {
    let status: Status = from_json(answer.clone())?;
    if let Value::Object(answer) = &mut answer {
        answer.remove("capabilities");
    }
    let needs_human = !status.approvals.is_empty() || !status.unknown.is_empty();
    Ok(with_field(answer, "needs_human", needs_human))
}

fn budget(status: Value) -> Result<Value, Error> {
    let status: Status = from_json(status)?;
    let (budget, authority) = (to_json(&status.budget)?, to_json(&status.authority)?);
    Ok(object([("budget", budget), ("authority", authority)]))
}

/// Prefix with which hosts name the tools of this server, if they know it as `midwatch`.
const OWN_PREFIX: &str = "mcp__midwatch__";

/// Either a tool call as an agent's host describes it, or a capability class.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PermissionDecideInput {
    /// The tool that is about to be called, by the host's name for it, such as `Bash`, `Write`, `WebFetch`.
    tool_name: Option<String>,
    /// The arguments of that tool.
    #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
    input: Option<Value>,
    /// The host's id of the call. Ignored; accepted for compatibility.
    #[serde(rename = "tool_use_id")]
    _tool_use_id: Option<String>,
    /// Instead of a tool: a capability class such as `shell.run`, `net.read`, `filesystem.write`.
    capability: Option<String>,
    /// The object of the action.
    resource: Option<String>,
    /// The host to connect to, for `net.*` classes.
    host: Option<String>,
    /// The absolute path, for `filesystem.*` classes.
    path: Option<String>,
    /// The program and its arguments, for `shell.run`.
    argv: Option<Vec<String>>,
}

impl ToolInput for PermissionDecideInput {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let input = self.input.clone().unwrap_or_else(|| json!({}));
        let own_tool = self.tool_name.as_deref().and_then(|name| name.strip_prefix(OWN_PREFIX));
        if own_tool.is_some_and(|name| context.selection.find(name).is_some()) {
            return Ok(object([
                ("behavior", "allow".into()),
                ("message", "Midwatch checks calls of its own tools when they are made".into()),
                ("updatedInput", input),
            ]));
        }
        let request = self.into_request()?;
        let decided = context.read(request).await?;
        let is_allowed = match decided.ruling.verdict {
            Verdict::Allow => true,
            Verdict::Ask | Verdict::Deny => false,
        };
        let answer = object([
            ("behavior", if is_allowed { "allow" } else { "deny" }.into()),
            ("message", decided.sentence.into()),
            ("ruling", to_json(&decided.ruling)?),
        ]);
        Ok(if is_allowed { with_field(answer, "updatedInput", input) } else { answer })
    }
}

impl PermissionDecideInput {
    /// The argument of the tool that determines its target. The policy cannot decide without it.
    fn required_argument(&self, name: &str) -> Result<String, Error> {
        let found = self.input.as_ref().and_then(|input| input.get(name)?.as_str());
        found.map(str::to_owned).ok_or_else(|| {
            let tool = self.tool_name.as_deref().unwrap_or_default();
            let what = format!("the `input` of `{tool}` has no text `{name}`");
            Error::new(Code::InvalidInput, what)
                .hint("pass `input` exactly as the tool would get it")
        })
    }

    /// The request to the policy. An unknown tool has no capability class, and so counts as the highest tier.
    ///
    /// Tools that search a directory pass no path: files below the directory may be forbidden, so every rule with a
    /// path condition must apply.
    fn into_request(self) -> Result<PolicyDecide, Error> {
        let class_fields = [&self.capability, &self.resource, &self.host, &self.path];
        let is_class = class_fields.into_iter().any(Option::is_some) || self.argv.is_some();
        let problem = match (is_class, &self.tool_name) {
            (true, Some(_)) => Some("both `tool_name` and a capability are given"),
            (true, None) if self.input.is_some() => Some("`input` is given without `tool_name`"),
            (false, None) => Some("neither `tool_name` nor `capability` is given"),
            (true, None) | (false, Some(_)) => None,
        };
        if let Some(problem) = problem {
            let hint = "pass `tool_name` and `input`, or `capability` and its fields";
            return Err(Error::new(Code::InvalidInput, problem).hint(hint));
        }
        let bash = |command| vec!["/bin/bash".to_owned(), "-c".to_owned(), command];
        let (capability, argv, path, host) = match self.tool_name.as_deref() {
            Some("Bash") => {
                ("shell.run", Some(bash(self.required_argument("command")?)), None, None)
            }
            Some("Read") => {
                ("filesystem.read", None, Some(self.required_argument("file_path")?), None)
            }
            Some("NotebookRead") => {
                ("filesystem.read", None, Some(self.required_argument("notebook_path")?), None)
            }
            Some("Glob" | "Grep" | "LS") => ("filesystem.read", None, None, None),
            Some("Write" | "Edit" | "MultiEdit") => {
                ("filesystem.write", None, Some(self.required_argument("file_path")?), None)
            }
            Some("NotebookEdit") => {
                ("filesystem.write", None, Some(self.required_argument("notebook_path")?), None)
            }
            Some("WebFetch") => ("net.read", None, None, host_of(&self.required_argument("url")?)),
            Some("WebSearch") => ("net.read", None, None, None),
            Some(_) | None => ("", None, None, None),
        };
        let tool = self.tool_name.map(|name| format!("tool:{name}"));
        let capability = self.capability.unwrap_or_else(|| capability.to_owned());
        Ok(PolicyDecide {
            capability: if capability.is_empty() { "tool.call".to_owned() } else { capability },
            resource: self.resource.or(tool),
            host: self.host.or(host),
            path: self.path.or(path),
            argv: self.argv.or(argv).unwrap_or_default(),
        })
    }
}

/// The host part of a URL, in lower case.
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

    fn request(arguments: Value) -> Result<PolicyDecide, Error> {
        serde_json::from_value::<PermissionDecideInput>(arguments).unwrap().into_request()
    }

    #[test]
    fn the_path_is_taken_from_the_argument_that_the_tool_uses() {
        for (tool, input, path) in [
            ("Write", json!({"file_path": "/a", "notebook_path": "/b"}), "/a"),
            ("NotebookEdit", json!({"file_path": "/a", "notebook_path": "/b"}), "/b"),
            ("NotebookRead", json!({"file_path": "/a", "notebook_path": "/b"}), "/b"),
        ] {
            let request = request(json!({"tool_name": tool, "input": input})).unwrap();
            assert_eq!(request.path.as_deref(), Some(path), "{tool}");
        }
    }

    #[test]
    fn a_tool_without_its_target_argument_is_refused() {
        for (tool, input) in [
            ("Read", json!({"file_path": 7})),
            ("Read", json!("x")),
            ("Edit", json!({"notebook_path": "/b"})),
            ("NotebookEdit", json!({"file_path": "/a"})),
            ("Bash", json!({})),
            ("WebFetch", json!({"url": null})),
        ] {
            let refused = request(json!({"tool_name": tool, "input": input})).unwrap_err();
            assert_eq!(refused.code, Code::InvalidInput, "{tool}");
        }
        assert!(request(json!({"tool_name": "Read"})).is_err());
    }
}
