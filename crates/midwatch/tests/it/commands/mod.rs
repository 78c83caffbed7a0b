//! What each command prints, for people and for programs, and how it ends.

mod agent;
mod changes;
mod config;
mod demo;
mod errors;
mod flags;
mod health;
mod help;
mod import;
mod keys;
mod ledger;
mod lists;
mod made;
mod manual;
mod plain;
mod policy;
mod schedule;
mod schedules;

use crate::world::{Outcome, World};

/// Commands and what came of them, as a person would see it in a terminal.
struct Transcript<'w> {
    world: &'w World,
    text: String,
    plain: fn(&World, &str) -> String,
}

impl<'w> Transcript<'w> {
    fn new(world: &'w World) -> Transcript<'w> {
        Transcript { world, text: String::new(), plain: plain::plain }
    }

    /// Of commands whose answers do not differ from run to run.
    fn verbatim(world: &'w World) -> Transcript<'w> {
        Transcript { plain: |_, text| text.to_owned(), ..Transcript::new(world) }
    }

    fn run(&mut self, arguments: &[&str]) -> &mut Self {
        let outcome = self.world.run(arguments);
        let command: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        self.add(&command.join(" "), &outcome)
    }

    /// The same command for people and for programs.
    fn both(&mut self, arguments: &[&str]) -> &mut Self {
        self.run(arguments).run(&[&["--json"], arguments].concat())
    }

    fn add(&mut self, command: &str, outcome: &Outcome) -> &mut Self {
        let mut text = format!("$ midwatch {command}\n{}", outcome.stdout);
        for line in outcome.stderr.lines() {
            text.push_str(&format!("stderr: {line}\n"));
        }
        if outcome.code != Some(0) {
            let code = outcome.code.map_or("none".to_owned(), |code| code.to_string());
            text.push_str(&format!("exit code: {code}\n"));
        }
        self.text.push_str(&format!("{}\n", (self.plain)(self.world, &text)));
        self
    }

    fn finish(&self) -> &str {
        &self.text
    }
}

/// As it would be typed.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{word}'"),
    }
}
