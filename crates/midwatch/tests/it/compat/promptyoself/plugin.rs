//! The Sanctum plugin: how its host describes and calls it, and the compose file of both.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{json_of, ok, world};
use crate::support::world::{PROGRAM, World};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The plugin, started as the host does: by Python, without input.
fn plugin(world: &World, program: &str, arguments: &[&str]) -> Command {
    let mut command = world.wrapped("python3");
    command.arg(repository().join("plugins/promptyoself/cli.py")).args(arguments);
    command.env("MIDWATCH_BIN", program).env("PYTHONUNBUFFERED", "1").stdin(Stdio::null());
    command
}

#[test]
fn describe_lists_every_command_with_its_parameters() {
    let world = World::new();
    let (code, document) = json_of(&mut plugin(&world, PROGRAM, &["--describe"]));
    assert_eq!((code, &document["contract_version"]), (Some(0), &json!("1.0")));
    assert_eq!(document["plugin"]["name"], "promptyoself");
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{document}")).to_owned();
    assert!(!text(&document["plugin"]["version"]).is_empty());
    let commands = document["commands"].as_array().unwrap();
    let mut shown = Vec::new();
    for command in commands {
        let name = text(&command["name"]);
        assert!(
            format!("promptyoself__{name}").len() <= 64
                && !text(&command["description"]).is_empty()
        );
        for parameter in command["parameters"].as_array().unwrap() {
            let (kind, parameter_name) = (text(&parameter["type"]), text(&parameter["name"]));
            assert!(["string", "integer", "boolean"].contains(&kind.as_str()), "{parameter}");
            assert!(!parameter_name.contains('-'), "the host turns underscores into dashes");
            if kind == "boolean" {
                assert_eq!(parameter["arg_style"], "flag", "{parameter}");
            }
            let required = if parameter["required"] == true { "*" } else { "" };
            shown.push(format!("{name} {parameter_name} {kind}{required}"));
        }
    }
    let expected = [
        "register agent_id string*",
        "register prompt string*",
        "register time string",
        "register cron string",
        "register every string",
        "register start_at string",
        "register max_repetitions integer",
        "register skip_validation boolean",
        "list agent_id string",
        "list all boolean",
        "cancel id integer*",
        "execute loop boolean",
        "execute interval integer",
        "execute report boolean",
        "upload name string",
        "upload description string",
        "upload source_code string*",
    ];
    assert_eq!(shown, expected);
    assert_eq!(commands.len(), 7);
    assert!(!world.data().exists(), "--describe created the data directory");
}

/// A host without `--describe` parses the help: lines with two spaces after the heading, up to a blank line.
#[test]
fn help_lists_the_same_commands_for_older_hosts() {
    let world = World::new();
    let output = plugin(&world, PROGRAM, &["--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let block = help.lines().skip_while(|line| !line.starts_with("Available commands:")).skip(1);
    let block = block.take_while(|line| !line.trim().is_empty() && !line.starts_with("Examples"));
    let commands = block.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let commands: BTreeSet<&str> =
        commands.filter_map(|line| line.split_whitespace().next()).collect();
    let all = ["agents", "cancel", "execute", "list", "register", "test", "upload"];
    assert_eq!(commands, BTreeSet::from(all), "{help}");
}

#[test]
fn plugin_prints_what_the_program_prints() {
    let world = world();
    let register = ["register", "--agent-id", "agent-1", "--prompt", "hi", "--every", "1h"];
    let register = [&register[..], &["--skip-validation"]].concat();
    let (code, document) = json_of(&mut plugin(&world, PROGRAM, &register));
    assert_eq!((code, &document["id"]), (Some(0), &json!(1)), "{document}");
    assert_eq!(json_of(&mut plugin(&world, PROGRAM, &["list"])).1, ok(&world, &["list"]));
    let (code, document) = json_of(&mut plugin(&world, PROGRAM, &["cancel", "--id", "9"]));
    assert_eq!(code, Some(1));
    assert_eq!(document["error"], "Schedule 9 not found or already cancelled");
    let (code, document) = json_of(&mut plugin(&world, "/no/such/midwatch", &["list"]));
    assert_eq!((code, &document["status"]), (Some(1), &json!("error")));
    assert!(document["error"].as_str().unwrap().contains("MIDWATCH_BIN"), "{document}");
}

/// Parses the few forms of YAML that the file uses, since no container engine is at hand.
#[test]
fn compose_file_puts_host_and_scheduler_on_one_volume() {
    let text = fs::read_to_string(repository().join("dist/sanctum/compose.yaml")).unwrap();
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    assert!(lines.iter().all(|line| !line.contains('\t')), "YAML allows no tabs");
    let services = section(&lines, "services", 0);
    let names: Vec<&str> = keys(&services, 2);
    assert_eq!(names, ["midwatch", "sanctum"]);
    for name in names {
        let service = section(&services, name, 2);
        let volumes = section(&service, "volumes", 4).join("\n");
        assert!(volumes.contains("- watch:/data"), "{name}: {volumes}");
        let environment = section(&service, "environment", 4).join("\n");
        assert!(environment.contains("MIDWATCH_DATA: /data"), "{name}: {environment}");
    }
    assert_eq!(keys(&section(&lines, "volumes", 0), 2), ["watch"]);
    let build = section(&section(&services, "midwatch", 2), "build", 4);
    assert!(build.iter().any(|line| line.trim() == "context: ../.."), "{build:?}");
    let dockerfile = fs::read_to_string(repository().join("dist/sanctum/Dockerfile")).unwrap();
    assert!(dockerfile.contains("cargo build --release"));
    for name in ["midwatch", "sanctum"] {
        let build = section(&section(&services, name, 2), "build", 4).join("\n");
        assert!(build.contains("dockerfile: dist/sanctum/Dockerfile"), "{build}");
        assert!(build.contains(&format!("target: {name}")), "{build}");
        assert!(dockerfile.contains(&format!(" AS {name}\n")), "no stage {name}");
    }
    // The host requires a key to listen beyond its machine.
    let host = section(&section(&services, "sanctum", 2), "environment", 4).join("\n");
    assert!(host.contains("MCP_HOST: 0.0.0.0") && host.contains("MCP_API_KEY: ${MCP_API_KEY:?"));
    assert_eq!(section(&section(&services, "sanctum", 2), "depends_on", 4)[0].trim(), "- midwatch");
}

/// The lines below a key.
fn section<'a>(lines: &[&'a str], key: &str, indent: usize) -> Vec<&'a str> {
    let head = format!("{}{key}:", " ".repeat(indent));
    let below = lines.iter().skip_while(|line| **line != head).skip(1);
    let inside = |line: &&&str| line.trim().is_empty() || line.starts_with(&" ".repeat(indent + 1));
    below.take_while(inside).copied().collect()
}

fn keys<'a>(lines: &[&'a str], indent: usize) -> Vec<&'a str> {
    let is_key = |line: &&&str| {
        let rest = line.strip_prefix(&" ".repeat(indent));
        rest.is_some_and(|rest| !rest.starts_with([' ', '-']) && rest.contains(':'))
    };
    lines.iter().filter(is_key).filter_map(|line| line.trim().split(':').next()).collect()
}
