//! Every command that README and the manual name exists, with its flags. The walk runs some of them; this parses all.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

/// Where a command is written: what may be left out depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A line of a block, to be typed as it is.
    Block,
    /// Code within a sentence, which may leave out arguments.
    Sentence,
}

#[test]
fn every_command_of_the_manual_is_valid() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (place, command) in commands(&text) {
            count += 1;
            if let Err(error) = parse(place, &command) {
                wrong.push(format!("{}: `{}`: {error}", page.display(), command.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    assert!(200 < count, "only {count} commands were found");
}

/// README and the pages of `docs` that are not generated.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["docs", "docs/howto"].map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let files = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    let pages = files.filter(|path| path.extension().is_some_and(|it| it == "md"));
    pages.filter(|path| !path.ends_with("commands.md")).chain([root.join("README.md")]).collect()
}

fn parse(place: Place, words: &[String]) -> Result<(), String> {
    let Err(error) = midwatch::cli::definition().try_get_matches_from(words) else { return Ok(()) };
    let is_placeholder = |word: &String| {
        word.contains('…') || word.chars().all(|it| it.is_ascii_uppercase() || "[]|".contains(it))
    };
    let is_accepted = match (error.kind(), place) {
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _) => true,
        (ErrorKind::InvalidValue | ErrorKind::ValueValidation, Place::Block) => {
            words.iter().any(is_placeholder)
        }
        (ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand, _) => false,
        (_, place) => place == Place::Sentence,
    };
    let what = error.to_string();
    if is_accepted { Ok(()) } else { Err(what.lines().next().unwrap_or_default().to_owned()) }
}

/// The commands of a page, as words that begin with `midwatch`.
fn commands(page: &str) -> Vec<(Place, Vec<String>)> {
    let mut found = Vec::new();
    for (index, part) in page.split("```").enumerate() {
        // Every second part is a fenced block; its first line is its kind.
        let (place, texts): (Place, Vec<String>) = match index % 2 {
            1 => (
                Place::Block,
                part.replace("\\\n", " ").lines().skip(1).map(str::to_owned).collect(),
            ),
            _ => {
                let joined = part.replace('\n', " ");
                let code = joined.split('`').skip(1).step_by(2);
                (Place::Sentence, code.map(str::to_owned).collect())
            }
        };
        for text in texts {
            let text = text.trim_start_matches("$ ");
            for words in split(place, text) {
                let begin = words.iter().rposition(|word| word == "midwatch");
                let command = begin.and_then(|begin| words.get(begin..)).unwrap_or_default();
                if 1 < command.len() && is_typed(&words, begin.unwrap_or_default()) {
                    found.push((place, command.to_vec()));
                }
            }
        }
    }
    found
}

/// Whether what precedes `midwatch` makes it the program that is run: nothing, variables, `sudo` or another program's
/// arguments up to `--`.
fn is_typed(words: &[String], begin: usize) -> bool {
    let before = &words[..begin];
    let is_run_by = |word: &String| word == "--" || word.contains('=');
    before.last().is_none_or(is_run_by)
        || before.first().is_some_and(|word| word == "sudo" || word == "env")
}

/// Splits a line into commands and those into words, as a shell does. In a sentence no character is an operator.
fn split(place: Place, line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => word.push(c),
            (None, '\'' | '"') => quote = Some(c),
            (None, '#') if word.is_empty() => break,
            (None, '|' | '&' | ';' | '>' | '<' | '(' | ')') if place == Place::Block => {
                end_word(&mut commands, &mut word);
                commands.push(Vec::new());
            }
            (None, ' ') => end_word(&mut commands, &mut word),
            (None, _) => word.push(c),
        }
    }
    commands
}

/// An ellipsis of its own stands for words that are left out.
fn end_word(commands: &mut [Vec<String>], word: &mut String) {
    let word = std::mem::take(word);
    if !word.is_empty() && word != "…" {
        commands.last_mut().unwrap().push(word);
    }
}

#[test]
fn commands_are_found_in_blocks_and_sentences() {
    let page = "Use `midwatch run\nlist --bad` and `agent list`.\n```\n$ A=b midwatch status --all > file  # comment\n\
                claude mcp add midwatch -- midwatch mcp\ncrontab -l | midwatch schedule import --from crontab - \\\n  \
                --tz 'Europe/Berlin'\nmidwatch 0.1.0 is running\n```\n";
    let found: Vec<(Place, String)> =
        commands(page).into_iter().map(|(place, words)| (place, words.join(" "))).collect();
    let expected = [
        (Place::Sentence, "midwatch run list --bad"),
        (Place::Block, "midwatch status --all"),
        (Place::Block, "midwatch mcp"),
        (Place::Block, "midwatch schedule import --from crontab - --tz Europe/Berlin"),
        (Place::Block, "midwatch 0.1.0 is running"),
    ];
    assert_eq!(found, expected.map(|(place, text)| (place, text.to_owned())));
    let refused = |words: &str| {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        parse(Place::Sentence, &words).is_err()
    };
    assert!(refused("midwatch run list --bad") && refused("midwatch gone"));
    assert!(!refused("midwatch run show"));
}
