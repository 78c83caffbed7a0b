//! What cron does with percent signs, as a text that a shell reads.
//!
//! To cron the first `%` ends the command, what follows is the command's input, and each further `%`
//! ends a line of it; `\%` is a percent sign. Here the input becomes a here-document, around the
//! whole command: it may be a pipe or a list, and cron gives the input to all of it.

use super::crontab::Refusal;

/// Ends the input, unless a line of it is the same.
const MARK: &str = "END_OF_INPUT";

/// The prompt for an agent that is a shell. A command without a `%` stays as it is.
pub(super) fn prompt(command: &str) -> Result<String, Refusal> {
    let (command, input) = divided(command);
    let command = command.trim_end();
    if command.is_empty() {
        let hint = "write `\\%` for a percent sign; a bare one ends the command";
        return Err(Refusal::new("there is no command before the first `%`", hint));
    }
    let Some(input) = input.filter(|input| !input.is_empty()) else { return Ok(command.into()) };
    if is_unfinished(command) {
        return Err(Refusal::new(
            "a `%` ends the command within quotes or brackets, so cron cannot run it either",
            "write `\\%` for a percent sign, then import again",
        ));
    }
    let mut mark = MARK.to_owned();
    while input.lines().any(|line| line == mark) {
        mark.push('_');
    }
    let end = if input.ends_with('\n') { "" } else { "\n" };
    Ok(format!("{{ {command}\n}} <<'{mark}'\n{input}{end}{mark}"))
}

/// Without its input, for people to read.
pub(super) fn alone(command: &str) -> String {
    divided(command).0
}

/// At the first bare `%`. A backslash stays one before anything else than a `%`.
fn divided(text: &str) -> (String, Option<String>) {
    let mut command = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '%' => return (command, Some(lines(rest.as_str()))),
            '\\' => match rest.next() {
                Some('%') => command.push('%'),
                Some(other) => command.extend(['\\', other]),
                None => command.push('\\'),
            },
            other => command.push(other),
        }
    }
    (command, None)
}

fn lines(input: &str) -> String {
    let pieces = input.split("\\%").map(|piece| piece.replace('%', "\n"));
    pieces.collect::<Vec<_>>().join("%")
}

/// Whether a shell that reads this text would wait for the end of a quotation or a bracket. No
/// parser, but enough to find the `date +%F` that everybody writes once.
fn is_unfinished(text: &str) -> bool {
    let (mut quote, mut depth, mut before) = (None, 0, ' ');
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (None | Some('"' | '`'), '\\') => drop(rest.next()),
            (None, '#') if before.is_whitespace() => break,
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
        before = c;
    }
    quote.is_some() || 0 < depth
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expected: Result<&str, &str>) {
        let found = prompt(command).map_err(|refusal| refusal.reason);
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(found, expected, "{command}");
    }

    #[test]
    fn percent_signs_are_those_of_cron() {
        let unfinished =
            Err("a `%` ends the command within quotes or brackets, so cron cannot run it either");
        for (command, expected) in [
            ("backup --all", Ok("backup --all")),
            ("date +\\%Y-\\%m", Ok("date +%Y-%m")),
            ("printf 'a\\n'", Ok("printf 'a\\n'")),
            ("echo \\\\", Ok("echo \\\\")),
            ("echo \\", Ok("echo \\")),
            ("cat %", Ok("cat")),
            ("cat%one", Ok("{ cat\n} <<'END_OF_INPUT'\none\nEND_OF_INPUT")),
            ("cat % a%b%", Ok("{ cat\n} <<'END_OF_INPUT'\n a\nb\nEND_OF_INPUT")),
            ("cat%%b", Ok("{ cat\n} <<'END_OF_INPUT'\n\nb\nEND_OF_INPUT")),
            ("cat%50\\% off\\n", Ok("{ cat\n} <<'END_OF_INPUT'\n50% off\\n\nEND_OF_INPUT")),
            ("cat \\\\%in", Ok("{ cat \\\\\n} <<'END_OF_INPUT'\nin\nEND_OF_INPUT")),
            (
                "cat%END_OF_INPUT%x",
                Ok("{ cat\n} <<'END_OF_INPUT_'\nEND_OF_INPUT\nx\nEND_OF_INPUT_"),
            ),
            (
                "echo \"it's\" # % in",
                Ok("{ echo \"it's\" #\n} <<'END_OF_INPUT'\n in\nEND_OF_INPUT"),
            ),
            ("% in", Err("there is no command before the first `%`")),
            ("(cat) # it's % in", Ok("{ (cat) # it's\n} <<'END_OF_INPUT'\n in\nEND_OF_INPUT")),
            ("date '+%F'", unfinished),
            ("date \"+\\\"%F\"", unfinished),
            ("echo $(date +%F)", unfinished),
            ("echo `date +%F`", unfinished),
        ] {
            check(command, expected);
        }
    }
}
