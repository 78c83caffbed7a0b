//! Requests over HTTP that try to be taken for others.

use serde_json::json;

use crate::support::mcp_http::http_daemon;
use crate::support::world::World;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// The socket: `access::tokens::every_invalid_token_gets_the_same_response`.
#[test]
fn a16_malformed_tokens_get_one_uniform_error() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let token = daemon.token.clone();
    let hostile = [
        token[..token.len() - 1].to_owned(),
        format!("{token}0"),
        token.to_uppercase(),
        token.replace("mwt_", "mwa_"),
        format!("mwt_{}", "0".repeat(64)),
        format!("{token}, {token}"),
    ];
    let host = ("Host", daemon.address.as_str());
    let replies = hostile.iter().map(|token| {
        let reply = daemon.send(&[host, ("Authorization", &format!("Bearer {token}"))], LIST);
        assert!(!reply.body.contains(&daemon.token), "{reply:?}");
        (reply.status, reply.body)
    });
    let mut replies: Vec<_> = replies.collect();
    replies.dedup();
    assert_eq!(replies.len(), 1, "{replies:?}");
    assert_eq!(replies[0].0, 401);
    // The page takes the token from a form, where a NUL can be written.
    let origin = format!("http://{}", daemon.address);
    let form = [host, ("Origin", &origin), ("Content-Type", "application/x-www-form-urlencoded")];
    let path = "/approvals/apr_00064b4b6d9a4000000000000000000b";
    let nul = format!("{token}%00");
    let pages = hostile.iter().take(5).chain([&nul]).map(|token| {
        let page = daemon.request("POST", path, &form, format!("token={token}"));
        (page.status, page.body)
    });
    let mut pages: Vec<_> = pages.collect();
    pages.dedup();
    assert_eq!(pages.len(), 1, "{pages:?}");
    assert_eq!(pages[0].0, 401);
    // What is too long or no header at all is not even read; the daemon may hang up.
    let long = "0".repeat(10 << 20);
    assert_eq!(daemon.request("POST", path, &form, format!("token={long}")).status, 413);
    for token in [format!("{token}\0"), format!("{token}\u{e4}"), long] {
        let reply = daemon.send(&[host, ("Authorization", &format!("Bearer {token}"))], LIST);
        assert!([0, 400, 401, 431].contains(&reply.status), "{reply:?}");
    }
    assert_eq!(daemon.modern("tools/list", json!({})).status, 200);
}

#[test]
fn b12_conflicting_headers_are_refused_and_proxy_headers_ignored() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let bearer = daemon.bearer();
    let host = ("Host", daemon.address.as_str());
    let authorized = ("Authorization", bearer.as_str());
    for more in [
        ("Content-Length", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Authorization", "Bearer x"),
        ("authorization", &bearer),
        ("Host", "evil.example"),
    ] {
        let reply = daemon.send(&[host, authorized, more], LIST);
        assert!([400, 403, 411].contains(&reply.status), "{more:?}: {reply:?}");
        assert_eq!(reply.header("connection"), Some("close"), "{more:?}: {reply:?}");
    }
    let forwarded = [
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-For", "::1"),
        ("X-Real-IP", "127.0.0.1"),
        ("Forwarded", "for=127.0.0.1;host=localhost"),
        ("X-Forwarded-Host", "evil.example"),
    ];
    // They neither replace a token nor take one away.
    let without = daemon.send(&[host], LIST);
    let refused = daemon.send(&[&[host][..], &forwarded].concat(), LIST);
    assert_eq!((refused.status, &refused.body), (401, &without.body));
    let (headers, body) = crate::support::mcp_http::modern("tools/list", json!({}));
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (*name, value.as_str())).chain(forwarded).collect();
    assert_eq!(daemon.post(&headers, &body).status, 200);
}
