//! Percent signs in cron commands, translated for a shell.
//!
//! For cron the first `%` ends the command, the rest is the command's input, and each further `%`
//! ends a line of the input; `\%` is a percent sign. The input becomes a here-document of the whole
//! command, because the command may be a pipe or a list.

use compat::import::LeftOut;

/// The end of the here-document, unless a line of the input is the same.
const END_MARK: &str = "END_OF_INPUT";

/// The script for an agent that is a shell. A command without `%` stays unchanged.
pub(super) fn to_shell(command: &str) -> Result<String, LeftOut> {
    let (command, input) = split_input(command);
    let command = command.trim_end();
    if command.is_empty() {
        let hint = "write `\\%` for a percent sign; a bare one ends the command";
        return Err(LeftOut::new("no command before the first `%`", hint));
    }
    let Some(input) = input.filter(|input| !input.is_empty()) else { return Ok(command.into()) };
    if has_open_quote_or_bracket(command) {
        return Err(LeftOut::new(
            "a `%` ends the command within quotes or brackets, so cron cannot run it either",
            "write `\\%` for a percent sign, then import again",
        ));
    }
    let mut mark = END_MARK.to_owned();
    while input.lines().any(|line| line == mark) {
        mark.push('_');
    }
    let end = if input.ends_with('\n') { "" } else { "\n" };
    Ok(format!("{{ {command}\n}} <<'{mark}'\n{input}{end}{mark}"))
}

/// The command without its input.
pub(super) fn without_input(command: &str) -> String {
    split_input(command).0
}

/// Splits at the first bare `%`. A backslash is kept, except before a `%`.
fn split_input(text: &str) -> (String, Option<String>) {
    let mut command = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '%' => return (command, Some(input_lines(rest.as_str()))),
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

fn input_lines(input: &str) -> String {
    let pieces = input.split("\\%").map(|piece| piece.replace('%', "\n"));
    pieces.collect::<Vec<_>>().join("%")
}

/// Whether a quotation or bracket is still open at the end. Not a real parser, but enough to find the
/// common mistake `date +%F`.
fn has_open_quote_or_bracket(text: &str) -> bool {
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
        let found = to_shell(command).map_err(|refusal| refusal.reason);
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(found, expected, "{command}");
    }

    #[test]
    fn percent_signs_mean_what_they_mean_to_cron() {
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
            ("% in", Err("no command before the first `%`")),
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
