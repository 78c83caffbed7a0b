//! Command lines of services (`ExecStart=`), as lines of a shell. Pure.
//!
//! A service runs its commands without a shell. Here an agent that is a shell runs them, so every word is quoted; only
//! variables are left to the shell.

use super::super::{LeftOut, shell_word};

/// What `%` specifiers stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Specifiers<'a> {
    /// The full name of the service.
    pub unit: &'a str,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Variable(String),
}

type Word = Vec<Piece>;

/// One or more lines for a shell, from one `ExecStart=`.
pub(super) fn to_shell(text: &str, specifiers: Specifiers<'_>) -> Result<Vec<String>, LeftOut> {
    let (mut rest, mut ignores_failure, mut expands) = (text.trim(), false, true);
    while let Some(prefix) = rest.chars().next().filter(|c| "-@:+!|".contains(*c)) {
        match prefix {
            '-' => ignores_failure = true,
            ':' => expands = false,
            other => {
                return Err(LeftOut::new(
                    format!("`{other}` before its command is not supported"),
                    "add it by hand with `midwatch schedule add`",
                ));
            }
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    let commands = split_commands(rest, expands, specifiers)?;
    let lines = commands.iter().filter(|words| !words.is_empty()).map(|words| {
        let line = words.iter().map(render).collect::<Vec<_>>().join(" ");
        if ignores_failure { format!("{line} || true") } else { line }
    });
    Ok(lines.collect())
}

fn render(word: &Word) -> String {
    match word.as_slice() {
        [] => "''".to_owned(),
        [Piece::Literal(text)] => shell_word(text),
        // A variable that is a word of its own is split at spaces, as systemd does.
        [Piece::Variable(name)] if name.starts_with('$') => name.clone(),
        pieces => {
            let pieces = pieces.iter().map(|piece| match piece {
                Piece::Literal(text) => escape(text),
                Piece::Variable(name) => name.clone(),
            });
            format!("\"{}\"", pieces.collect::<String>())
        }
    }
}

/// Escapes text for double quotes.
fn escape(text: &str) -> String {
    let escaped = text.chars().flat_map(|c| match c {
        '"' | '\\' | '$' | '`' => vec!['\\', c],
        c => vec![c],
    });
    escaped.collect()
}

/// Splits a line into commands, at each `;` that is a word of its own, and those into words.
fn split_commands(
    text: &str,
    expands: bool,
    specifiers: Specifiers<'_>,
) -> Result<Vec<Vec<Word>>, LeftOut> {
    let mut commands: Vec<Vec<Word>> = Vec::new();
    let mut words: Vec<Word> = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            c if quote.is_none() && c.is_whitespace() => words.extend(word.take()),
            ';' if quote.is_none() && word.is_none() && ends_word(chars.peek()) => {
                commands.push(std::mem::take(&mut words));
            }
            '\\' => {
                let escaped = chars.next().and_then(unescape).ok_or_else(|| {
                    LeftOut::new(
                        "its command has an escape that is not supported",
                        "add it by hand",
                    )
                })?;
                push(word.get_or_insert_default(), escaped);
            }
            '%' => {
                let name = chars.next().unwrap_or(' ');
                push_specifier(word.get_or_insert_default(), name, specifiers)?;
            }
            '$' if expands && chars.peek() == Some(&'$') => {
                chars.next();
                push(word.get_or_insert_default(), '$');
            }
            '$' if expands && chars.peek() == Some(&'{') => {
                let name: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                word.get_or_insert_default().push(Piece::Variable(format!("${{{name}}}")));
            }
            '$' if expands && quote.is_none() && word.is_none() => {
                let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
                let mut name = String::new();
                while let Some(c) = chars.next_if(is_name) {
                    name.push(c);
                }
                let piece = match ends_word(chars.peek()) && !name.is_empty() {
                    true => Piece::Variable(format!("${name}")),
                    false => Piece::Literal(format!("${name}")),
                };
                word.get_or_insert_default().push(piece);
            }
            c => push(word.get_or_insert_default(), c),
        }
    }
    match quote {
        Some(_) => Err(LeftOut::new("a quotation in its command does not end", "correct the unit")),
        None => {
            words.extend(word);
            commands.push(words);
            Ok(commands)
        }
    }
}

fn ends_word(next: Option<&char>) -> bool {
    next.is_none_or(|c| c.is_whitespace())
}

fn push(word: &mut Word, c: char) {
    match word.last_mut() {
        Some(Piece::Literal(text)) => text.push(c),
        _ => word.push(Piece::Literal(c.to_string())),
    }
}

fn unescape(c: char) -> Option<char> {
    match c {
        'n' => Some('\n'),
        't' => Some('\t'),
        's' => Some(' '),
        '\\' | '"' | '\'' | ';' => Some(c),
        _ => None,
    }
}

fn push_specifier(word: &mut Word, name: char, specifiers: Specifiers<'_>) -> Result<(), LeftOut> {
    let Specifiers { unit } = specifiers;
    let stem = unit.rsplit_once('.').map_or(unit, |(stem, _)| stem);
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    let text = match name {
        '%' => "%",
        'n' => unit,
        'N' => stem,
        'p' => prefix,
        'i' => instance,
        'h' => {
            word.push(Piece::Variable("${HOME}".to_owned()));
            return Ok(());
        }
        other => {
            let reason = format!("`%{other}` in its command is not supported");
            return Err(LeftOut::new(reason, "write the value into the unit, then import again"));
        }
    };
    text.chars().for_each(|c| push(word, c));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let specifiers = Specifiers { unit: "backup@home.service" };
        let found = to_shell(text, specifiers).map(|lines| lines.join("\n"));
        let found = found.map_err(|left_out| left_out.reason);
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn command_means_the_same_to_a_shell() {
        for (text, expected) in [
            ("/usr/bin/backup --all", "/usr/bin/backup --all"),
            ("/bin/sh -c 'a | b > \"c\"'", "/bin/sh -c 'a | b > \"c\"'"),
            ("-/bin/false", "/bin/false || true"),
            ("/bin/echo a ; /bin/echo b", "/bin/echo a\n/bin/echo b"),
            ("/bin/echo a \\; b", "/bin/echo a ';' b"),
            ("/bin/echo \"two words\" it\\'s ''", "/bin/echo 'two words' 'it'\\''s' ''"),
            ("/bin/echo $HOME ${USER}x $$5 a$b", "/bin/echo $HOME \"${USER}x\" '$5' 'a$b'"),
            (":/bin/echo ${USER}", "/bin/echo '${USER}'"),
            ("%h/bin/run %i %n 100%%", "\"${HOME}/bin/run\" home backup@home.service 100%"),
            ("/bin/echo \"${A} \\\"$\"", "/bin/echo \"${A} \\\"\\$\""),
        ] {
            check(text, Ok(expected));
        }
        check("+/bin/true", Err("`+` before its command is not supported"));
        check("/bin/echo %t", Err("`%t` in its command is not supported"));
        check("/bin/echo 'a", Err("a quotation in its command does not end"));
    }
}
