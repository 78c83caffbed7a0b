//! What a client may report about its own tool calls.

use api::wire::Hello;
use serde_json::json;

use super::duplicate_keys::send_frames;
use crate::support::world::World;

/// A client cannot claim a change that never happened: only the request of a call makes the entry of a success.
#[test]
fn client_cannot_report_the_end_of_a_call_that_changed_something() {
    let world = World::new();
    let daemon = world.up();
    let hello = serde_json::to_string(&Hello::new("test")).unwrap();
    let ended = json!({"tool": "schedule_create", "changes": true, "counted": false});
    let reply = send_frames(&world, &[&hello, &json!({"report": {"ended": ended}}).to_string()]);
    assert!(reply.contains("recorded"), "{reply}");
    // A failed call is recorded, so reports do arrive.
    let failed = json!({
        "tool": "schedule_create", "changes": true, "counted": false, "code": "invalid_input",
    });
    send_frames(&world, &[&hello, &json!({"report": {"ended": failed}}).to_string()]);
    let calls = world.events_of("tool.called");
    let codes: Vec<_> = calls.iter().map(|it| it["body"]["code"].clone()).collect();
    assert_eq!(codes, ["invalid_input"], "{calls:?}");
    drop(daemon);
}
