//! The regular expressions of the table in [`crate::patterns`].
//!
//! `regex` searches in linear time and has no look-around. So a part that must stay visible is an
//! earlier alternative that captures nothing, and brackets are matched to a fixed depth. A match
//! consumes everything that it had to scan: then the search for all matches is linear, too.

use regex::Regex;

/// Part of a key that names a secret.
pub(crate) const SECRET_WORD: &str = concat!(
    "(?i-u:secret|token|password|passwd|passphrase|authorization|credential|bearer",
    "|(?:api|private|access)[_-]?key)",
);
/// The start of a token that names its issuer, which stays visible.
pub(crate) const TOKEN_PREFIX: &str =
    "(?:sk-|mw[at]_|gh[oprsu]_|github_pat_|glpat-|xox[abeprs]-|xapp-)";
/// An authentication scheme, which stays visible before its secret.
const SCHEME: &str = "(?i-u:bearer|basic|digest|negotiate|token|apikey)";
/// A character of a key or a token.
const NAME: &str = "[A-Za-z0-9_.-]";
/// Before a key.
const NAME_START: &str = r"(?:^|[^A-Za-z0-9_.-]|\x1b\[[0-9;]*[A-Za-z])";
/// Before a token, which may be a part of a name or follow `\n` in an escaped text.
const TOKEN_START: &str = r"(?:^|[^A-Za-z0-9]|\\[nrt]|\x1b\[[0-9;]*[A-Za-z])";
/// A space or a terminal colour.
const BLANK: &str = r"(?:[\x20\t]|\x1b\[[0-9;]*[A-Za-z])";
/// Spaces and terminal colours, of which one may be cut off.
const BLANKS: &str = r"(?:[\x20\t]|\x1b(?:\[[0-9;]*[A-Za-z]?)?)*";
/// A quotation mark, escaped or not.
const QUOTE: &str = r#"(?:\\*["'`])"#;
/// The first line of a private key in PEM.
const PEM_BEGIN: &str = r"-----BEGIN\x20[^\n-]*(?i-u:private\x20key)[^\n-]*-----";

/// The backslashes before a quotation mark in plain text, in a JSON string, and in JSON inside that.
const BACKSLASHES: [usize; 3] = [0, 1, 3];
/// Brackets nested deeper are redacted to the end of the text.
const BRACKETS_MAX: usize = 4;

#[expect(clippy::expect_used, reason = "the expressions are constants that the tests compile")]
pub(crate) fn compile(expression: &str) -> Regex {
    Regex::new(expression).expect("the expression is valid")
}

pub(crate) fn private_key_block() -> Regex {
    compile(&format!(r"{PEM_BEGIN}((?s:.)*?)(?:-----END|{QUOTE}|\z)"))
}

pub(crate) fn url_password() -> Regex {
    compile(r#"://[^\x00-\x20"'`<>\\/?\#:]*:([^\x00-\x20"'`<>\\/?\#]+)@"#)
}

pub(crate) fn url_password_with_slash() -> Regex {
    compile(
        r#"(?x)
        # The user; an IPv6 address is not one.
        :// (?: [^\x00-\x20"'`<>\\/?\#:@\[] [^\x00-\x20"'`<>\\/?\#:@]* )? :
        (
            # Not a port.
            [0-9]* [^\x00-\x20"'`<>\\/?\#@0-9] [^\x00-\x20"'`<>\\/?\#@]*
            [/?\#] [^\x00-\x20"'`<>\\@]{0,127}
        ) @"#,
    )
}

pub(crate) fn url_token() -> Regex {
    compile(r#"(?i-u:https?)://([^\x00-\x20"'`<>\\/?\#:]+)@"#)
}

pub(crate) fn quoted_value() -> Regex {
    let (key, separator, strings) = (key(), separator(), strings());
    compile(&format!("(?x) (?P<key> {key} ) {QUOTE}? {separator} (?: {strings} )"))
}

pub(crate) fn quoted_argument() -> Regex {
    let (key, strings) = (key(), strings());
    compile(&format!(
        "(?x) {NAME_START} (?P<key> -- {key} )
        (?: {QUOTE} {BLANKS} , {BLANKS} | {BLANK}+ )
        (?: {strings} )"
    ))
}

/// An unknown scheme may be a part of the secret.
pub(crate) fn authorization_header() -> Regex {
    let (separator, words) = (separator(), words());
    compile(&format!(
        "(?x) (?P<key> {NAME}* (?i-u:authorization) {NAME}* ) {separator}
        (?: {SCHEME} {BLANK}+ ( {words} ) | ( [A-Za-z-]+ {BLANK}+ {words} ) )"
    ))
}

pub(crate) fn bare_value() -> Regex {
    let (key, separator, value) = (key(), separator(), bare());
    compile(&format!(
        r"(?x)
        # Visible: paths of code, URLs, placeholders, PEM blocks and numbers of tokens.
        {key} {QUOTE}? {BLANKS} (?: :: | :// )
      | {key} {QUOTE}? {separator} (?: < | {PEM_BEGIN} )
      | {NAME}* (?i-u:tokens) {NAME}* {QUOTE}? {separator} [0-9]+ (?: [\x00-\x20,;)\]}}] | \z )
      | (?P<key> {key} ) (?P<quote> {QUOTE} )? {separator} {value}"
    ))
}

pub(crate) fn bare_argument() -> Regex {
    let (key, value) = (key(), bare());
    compile(&format!(
        "(?x) {NAME_START} (?P<key> -- {key} )
        (?:
            {BLANK}+ (?: -- | < ) # another argument, or a placeholder
          | (?: {BLANK}+ | (?P<quote> {QUOTE} ) {BLANKS} , {BLANKS} ) {value}
        )"
    ))
}

pub(crate) fn bearer_token() -> Regex {
    let (word, words) = (word(), words());
    compile(&format!(
        r"(?x) {TOKEN_START} (?P<key> (?i-u:bearer) ) {BLANK}+
        (?:
            [=:<]
          | (?i-u: tokens? | auth | authentication | scheme ) (?: [^A-Za-z0-9] | \z ) # prose
          | {SCHEME} {BLANK}+ ( {words} )
          | ( ['`]? {word} )
        )"
    ))
}

pub(crate) fn signing_key() -> Regex {
    compile(&format!(r"(?x) PRIVATE\+KEY\+ ( ['`]? {} )", word()))
}

pub(crate) fn prefixed_token() -> Regex {
    compile(&format!("(?x) {TOKEN_START} {TOKEN_PREFIX} ( {NAME}{{7,}} [A-Za-z0-9_-] )"))
}

pub(crate) fn google_key() -> Regex {
    compile(&format!("(?x) {TOKEN_START} AIza ( {NAME}{{19,}} [A-Za-z0-9_-] )"))
}

pub(crate) fn amazon_key() -> Regex {
    compile(&format!("(?x) {TOKEN_START} A[KS]IA ( [A-Z0-9]{{12}} (?: {NAME}* [A-Za-z0-9_-] )? )"))
}

/// The header of a JSON web token is a JSON object in base64, so it starts with `eyJ`.
pub(crate) fn json_web_token() -> Regex {
    compile(&format!(r"(?x) {TOKEN_START} ( eyJ [A-Za-z0-9_-]{{7,}} \. {NAME}* [A-Za-z0-9_-] )"))
}

pub(crate) fn harmless_value() -> Regex {
    compile(
        r"(?x) ^
        (?: [:=>]*
          | \[redacted\]
          | (?i-u: true | false | null | none | nil )
          | env: [A-Za-z0-9_]+
          | file: [A-Za-z0-9_.~+@-]* / [A-Za-z0-9_.~+@/-]*
        ) $",
    )
}

/// The name of a secret.
fn key() -> String {
    format!("{NAME}* {SECRET_WORD} {NAME}*")
}

/// `=`, `:`, `=>` or the like.
fn separator() -> String {
    format!("{BLANKS} [:=] [=>]* {BLANKS}")
}

/// A value without quotes as the secret. A known scheme stays visible.
fn bare() -> String {
    let (structure, word, words) = (structure(), word(), words());
    format!("(?: ( {structure} ) | {SCHEME} {BLANK}+ ( {words} ) | ( {word} ) )")
}

/// Words separated by commas: the parameters of a scheme.
fn words() -> String {
    let word = word();
    format!("{word} (?: , {BLANK}* {word} )*")
}

/// Characters up to a space, a quotation mark or `&`, without the punctuation at the end. Brackets
/// are balanced; an apostrophe inside a word does not end it.
fn word() -> String {
    let brackets = brackets(r"[(\[{]", BRACKETS_MAX);
    let character = r#"[^\x00-\x20\x7f"&'`\\()\[\]{},;.]"#;
    let punctuation = r"(?: \\* [,;.)\]}] )";
    let part = format!(r"{punctuation}* \\* (?: {character} | {brackets} )");
    let apostrophe = "['`] [A-Za-z0-9]";
    format!(
        "(?: (?: {part} | {punctuation}+ {apostrophe} )
             (?: {part} | {punctuation}* {apostrophe} )* )"
    )
}

/// A struct as Rust prints it for debugging: `Token { value: 1 }`.
fn structure() -> String {
    format!(r"[A-Z] [A-Za-z0-9_]* \x20 {}", brackets(r"\{", BRACKETS_MAX))
}

/// Balanced brackets of any kind. Unclosed ones reach to the end of the text.
fn brackets(open: &str, depth: usize) -> String {
    let inner = match depth {
        0 => r"[(\[{] (?s:.)*".to_owned(),
        _ => brackets(r"[(\[{]", depth - 1),
    };
    let strings = BACKSLASHES.map(|backslashes| {
        let Quoted { open, content, close } = quoted('"', backslashes);
        format!("{open} {content} {close}")
    });
    let strings = strings.join(" | ");
    format!(
        r#"{open} (?: [^()\[\]{{}}"\\] | {strings} | \\+ " [^"]* "? | \\+ | {inner} )* (?: [)\]}}] | \z )"#
    )
}

/// Strings with their content as the secret, whatever their quotation mark and its backslashes. A
/// known scheme stays visible.
fn strings() -> String {
    let mut strings = Vec::new();
    for mark in ['"', '\'', '`'] {
        for backslashes in BACKSLASHES {
            let Quoted { open, content, close } = quoted(mark, backslashes);
            strings.push(format!("{open} (?: {SCHEME} {BLANK}+ )? ( {content} ) {close}"));
        }
        strings.push(format!(r"\\+ {mark} ( [^{mark}\\]* )"));
    }
    strings.join(" | ")
}

/// The parts of a string.
struct Quoted {
    open: String,
    content: String,
    close: String,
}

/// A string whose quotation marks follow a number of backslashes. Each level of quoting doubles the
/// backslashes inside it and adds one for the mark, so the number before a mark tells whose mark it
/// is: an inner one belongs to the content, an outer one ends the string. An unclosed string reaches
/// to the end of the text.
fn quoted(mark: char, backslashes: usize) -> Quoted {
    let period = 2 * (backslashes + 1);
    let (inner_min, inner_max) = (backslashes + 1, backslashes + period - 1);
    let inner = format!(r"(?: \\{{{period}}} )* \\{{{inner_min},{inner_max}}} {mark}");
    Quoted {
        open: format!(r"\\{{{backslashes}}} {mark}"),
        content: format!(r"(?: [^{mark}\\] | \\+ [^{mark}\\] | {inner} )* (?: \\{{{period}}} )*"),
        close: format!(r"(?: \\{{0,{backslashes}}} {mark} | \\* \z )"),
    }
}
