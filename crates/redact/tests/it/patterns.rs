//! Redaction by pattern: a table of texts for each form.

use std::borrow::Cow;

use redact::redact;

fn check(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(redact(text), *expected, "{text}");
        assert_eq!(redact(expected), *expected, "twice: {text}");
    }
}

/// Texts that stay visible and are not copied.
fn check_plain(texts: &[&str]) {
    for text in texts {
        assert!(matches!(redact(text), Cow::Borrowed(it) if it == *text), "{text}");
    }
}

#[test]
fn url_credentials() {
    check(&[
        ("https://me:hunter2@host/a?b#c", "https://me:[redacted]@host/a?b#c"),
        ("redis://:hunter2@host:6379", "redis://:[redacted]@host:6379"),
        ("postgres://a:p@ss:w@db/x", "postgres://a:[redacted]@db/x"),
        ("https://0123456789abcdef@github.com/x", "https://[redacted]@github.com/x"),
        ("postgres://a:p/w+x=@db/x y@z", "postgres://a:[redacted]@db/x y@z"),
        ("x=\"http://a:b@c\" y", "x=\"http://a:[redacted]@c\" y"),
        ("https://h/?access_token=abc&x=1", "https://h/?access_token=[redacted]&x=1"),
    ]);
    check_plain(&[
        "https://host:8080/users/@me",
        "ssh://git@host/repo",
        "https://host/a@b",
        "http://[2001:db8::1]:80/a@b",
        "https://a:@host",
        "mailto:me@host",
        "://",
    ]);
}

#[test]
fn headers_and_bearer_tokens() {
    check(&[
        ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
        (
            "authorization: Basic dXNlcjpwYXNz\r\nHost: h",
            "authorization: Basic [redacted]\r\nHost: h",
        ),
        ("Authorization: Custom abc", "Authorization: [redacted]"),
        ("Authorization: abc", "Authorization: [redacted]"),
        ("Authorization: Digest a=b, c=d e", "Authorization: Digest [redacted] e"),
        (
            "curl -H 'Authorization: Bearer abc' url",
            "curl -H 'Authorization: Bearer [redacted]' url",
        ),
        ("{\"Authorization\":\"Bearer abc\"}", "{\"Authorization\":\"Bearer [redacted]\"}"),
        ("Proxy-Authorization: x", "Proxy-Authorization: [redacted]"),
        ("X-Api-Key: abc", "X-Api-Key: [redacted]"),
        ("sent BEARER abcdef, then", "sent BEARER [redacted], then"),
        ("token: Bearer abc", "token: Bearer [redacted]"),
    ]);
    check_plain(&[
        "a bearer token is missing",
        "Bearer authentication",
        "Bearer <token>",
        "bearer",
    ]);
}

#[test]
fn assignments() {
    check(&[
        ("password=hunter2", "password=[redacted]"),
        ("PASSWORD = hunter2 x", "PASSWORD = [redacted] x"),
        ("db_passwd: 'a b'", "db_passwd: '[redacted]'"),
        ("password=don't", "password=[redacted]"),
        ("(secret=abc), next", "(secret=[redacted]), next"),
        ("secret=a,b;c next", "secret=[redacted] next"),
        ("clientSecret=abc.", "clientSecret=[redacted]."),
        ("api-key => abc", "api-key => [redacted]"),
        ("run{token=abc user=me}", "run{token=[redacted] user=me}"),
        ("token=ünïcode ok", "token=[redacted] ok"),
        ("token=[redacted]rest", "token=[redacted]"),
        ("password=a<b", "password=[redacted]"),
        ("--token abc --x", "--token [redacted] --x"),
        ("[\"--api-key\", \"abc\"]", "[\"--api-key\", \"[redacted]\"]"),
        ("token: Some(\"abc\"), x", "token: [redacted], x"),
        ("token: Token { value: \"}abc\" } x", "token: [redacted] x"),
        ("secret=ab\\cd", "secret=[redacted]"),
        (
            "\u{1b}[3mtoken\u{1b}[0m\u{1b}[2m=\u{1b}[0mabc",
            "\u{1b}[3mtoken\u{1b}[0m\u{1b}[2m=\u{1b}[0m[redacted]",
        ),
        ("token=\u{1b}[é", "token=\u{1b}[[redacted]"),
    ]);
    check_plain(&[
        "token",
        "token=",
        "token=\"\"",
        "token: env:LETTA_TOKEN",
        "\"api_key\":\"env:KEY\"",
        "secret=file:/run/secrets/x, next",
        "has_token=true",
        "\"password\":null",
        "token: None",
        "--token <TOKEN>",
        "`--token` is missing",
        "use crate::token::Parser",
        "secret://vault/name",
        "tokens=1500",
        "input_tokens: 12, output_tokens: 34",
        "{\"max_tokens\":4096}",
        "tokens=10,cost=3",
        "posture=staging",
        "WARN runtime::token_files: a token file is not obeyed",
        "`feature_flags.token_files = \"yes\"` is neither true nor false",
    ]);
}

#[test]
fn json_members() {
    check(&[
        (r#"{"token":"abc","x":1}"#, r#"{"token":"[redacted]","x":1}"#),
        (r#"{"token":"a\"b\\","x":1}"#, r#"{"token":"[redacted]","x":1}"#),
        (r#"{"token": 123,"x":1}"#, r#"{"token": "[redacted]","x":1}"#),
        (r#"{"credentials":{"a":"b}","c":[1]},"x":1}"#, r#"{"credentials":"[redacted]","x":1}"#),
        (
            r#"{"m":"{\"token\":\"a\\\"b\",\"x\":1}"}"#,
            r#"{"m":"{\"token\":\"[redacted]\",\"x\":1}"}"#,
        ),
        (r#"{"m":"{\"token\":5,\"x\":1}"}"#, r#"{"m":"{\"token\":\"[redacted]\",\"x\":1}"}"#),
        (r#"{"m":"say \"password=abc\" now"}"#, r#"{"m":"say \"password=[redacted]\" now"}"#),
    ]);
}

#[test]
fn token_prefixes() {
    check(&[
        ("sk-ant-REDACTED", "sk-[redacted]"),
        ("(ghp_abcdefgh0123).", "(ghp_[redacted])."),
        ("is gho_abcdefgh0123.", "is gho_[redacted]."),
        ("xoxb-1234-5678-abc", "xoxb-[redacted]"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA[redacted]"),
        ("AIzaSyA-0123456789_0123456789_01234", "AIza[redacted]"),
        ("mwa_abcdefgh mwt_01234567", "mwa_[redacted] mwt_[redacted]"),
        ("PRIVATE+KEY+example.com/l+0123abcd+AXXX/xx+x=", "PRIVATE+KEY+[redacted]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln, x", "[redacted], x"),
        ("{\"m\":\"a\\nsk-0123456789\"}", "{\"m\":\"a\\nsk-[redacted]\"}"),
        ("mwt_my_token_name=abc", "mwt_[redacted]=[redacted]"),
    ]);
    check_plain(&[
        "task-forces-everywhere",
        "sk-learn",
        "ghp_",
        "AKIA-mountain",
        "eyJ",
        "eyJhbGciOiJIUzI1NiJ9eyJ",
        "ASIA-PACIFIC-REGION",
    ]);
}

#[test]
fn private_keys() {
    let begin = "-----BEGIN OPENSSH PRIVATE KEY-----";
    let end = "-----END OPENSSH PRIVATE KEY-----";
    let hidden = format!("x {begin}[redacted]{end} y");
    check(&[
        (&format!("x {begin}\nAA-A\nBBB\n{end} y"), &hidden),
        (&format!("x {begin}\\nAAA\\nBBB\\n{end} y"), &hidden),
        (&format!("key: {begin}\nAAA"), &format!("key: {begin}[redacted]")),
        (&format!("private_key: {begin}\nAAA BBB"), &format!("private_key: {begin}[redacted]")),
        (&format!("{{\"m\":\"{begin}\\nAAA\"}}"), &format!("{{\"m\":\"{begin}[redacted]\"}}")),
    ]);
    check_plain(&["-----BEGIN CERTIFICATE-----\nAAA\n-----END CERTIFICATE-----", begin]);
}
