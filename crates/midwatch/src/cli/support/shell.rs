//! Words quoted for a shell.

/// A program and its arguments as they would be typed into a shell.
pub(in crate::cli) fn shell_line(argv: &[String]) -> String {
    argv.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" ")
}

fn shell_quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@+,%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in [
            ("echo", "echo"),
            ("--key=a/b.c", "--key=a/b.c"),
            ("größe", "größe"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$HOME", "'$HOME'"),
            ("*", "'*'"),
            ("~", "'~'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(shell_quoted(word), expected);
        }
    }
}
