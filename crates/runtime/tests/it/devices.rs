//! Devices: links, sessions, and what ends them.

use api::wire::Secret;
use api::{Code, DeviceLink, TokenCreate, TokenRevoke, send};
use kernel::{Actor, Role};
use runtime::{Credentials, DeviceUse, ProcessOrigin, SignIn, token_hash};

use crate::world::{DAY_US, OCTOBER_US, World};

const MINUTE_US: i64 = 60_000_000;
const HOUR_US: i64 = 60 * MINUTE_US;

fn person() -> Actor {
    Actor::local_user(1000)
}

/// The code of a new link.
async fn link(world: &World, actor: &Actor, at_terminal: bool) -> Secret {
    let handle = world.engine.handle(actor.clone());
    let url = send(&handle, DeviceLink { at_terminal }).await.unwrap().url;
    let code = url.strip_prefix("http://midwatch.localhost:7400/enter#").unwrap();
    assert_eq!(code.len(), 22, "128 bits in base64url");
    Secret(code.to_owned())
}

async fn sign_in(world: &World, code: Secret) -> Result<Secret, Code> {
    let browser = "Firefox on Linux".parse().unwrap();
    let sign_in = SignIn { code, page_key: None, browser };
    world.engine.sign_in(sign_in).await.map_err(|error| error.code)
}

/// Who a session is, and with which role.
async fn who(world: &World, session: &Secret, by: DeviceUse) -> Result<(String, Role), Code> {
    let signed_in = world.engine.authenticate_device(session, by).await;
    let signed_in = signed_in.map_err(|error| error.code)?;
    Ok((signed_in.actor.name().to_owned(), signed_in.actor.role))
}

#[tokio::test(start_paused = true)]
async fn link_expires_after_ten_minutes_and_works_once() {
    let world = World::with_http().await;
    let (first, second) =
        (link(&world, &person(), true).await, link(&world, &person(), true).await);
    world.set_now(OCTOBER_US + 10 * MINUTE_US - 1);
    let session = sign_in(&world, first.clone()).await.unwrap();
    assert_eq!(sign_in(&world, first).await, Err(Code::TokenInvalid));
    world.set_now(OCTOBER_US + 10 * MINUTE_US);
    assert_eq!(sign_in(&world, second).await, Err(Code::TokenInvalid));
    let found = who(&world, &session, DeviceUse::ByPerson).await;
    assert_eq!(found, Ok(("uid:1000".to_owned(), Role::Maintainer)));
    let Secret(text) = &session;
    for other in [text[1..].to_owned(), format!("{text}A"), token_hash(text)] {
        let found = who(&world, &Secret(other), DeviceUse::ByPerson).await;
        assert_eq!(found, Err(Code::TokenInvalid));
    }
}

#[tokio::test(start_paused = true)]
async fn device_ends_when_it_is_not_used() {
    let world = World::with_http().await;
    let session = sign_in(&world, link(&world, &person(), true).await).await.unwrap();
    // A forgotten page that keeps itself up to date does not keep its device.
    world.set_now(OCTOBER_US + 12 * HOUR_US - 1);
    assert!(who(&world, &session, DeviceUse::ByItself).await.is_ok());
    world.set_now(OCTOBER_US + 12 * HOUR_US);
    assert_eq!(who(&world, &session, DeviceUse::ByPerson).await, Err(Code::TokenInvalid));
    world.set_clock(OCTOBER_US);
    assert_eq!(who(&world, &session, DeviceUse::ByPerson).await, Err(Code::TokenInvalid));
}

#[tokio::test(start_paused = true)]
async fn device_ends_after_a_week_of_use() {
    let world = World::with_http().await;
    let session = sign_in(&world, link(&world, &person(), true).await).await.unwrap();
    for hours in (6..7 * 24).step_by(6) {
        world.set_now(OCTOBER_US + hours * HOUR_US);
        assert!(who(&world, &session, DeviceUse::ByPerson).await.is_ok(), "{hours}");
    }
    world.set_now(OCTOBER_US + 7 * DAY_US);
    assert_eq!(who(&world, &session, DeviceUse::ByPerson).await, Err(Code::TokenInvalid));
}

#[tokio::test(start_paused = true)]
async fn change_of_a_device_that_has_ended_meanwhile_is_refused() {
    let world = World::with_http().await;
    let session = sign_in(&world, link(&world, &person(), true).await).await.unwrap();
    let signed_in = world.engine.authenticate_device(&session, DeviceUse::ByPerson).await.unwrap();
    let handle = world.engine.handle(signed_in.actor.clone());
    let revoke = api::DeviceRevoke { id: signed_in.id.to_string() };
    send(&world.engine.handle(person()), revoke).await.unwrap();
    let refused = send(&handle, api::LeaseRenew { note: None }).await.unwrap_err();
    assert_eq!(refused.code, Code::TokenInvalid);
}

#[tokio::test(start_paused = true)]
async fn device_of_a_token_ends_with_it() {
    let world = World::with_http().await;
    let secret = format!("mwt_{}", "ab".repeat(32));
    let create = TokenCreate {
        name: "otto".to_owned(),
        role: api::Role::Operator,
        hash: token_hash(&secret),
        key: None,
        client: None,
    };
    let token = send(&world.engine.handle(person()), create).await.unwrap().token.id;
    let secret = Secret(secret);
    let origin = ProcessOrigin::External;
    let credentials = Credentials { token: Some(&secret), origin, ..Credentials::unknown() };
    let otto = world.engine.authenticate(credentials).await.unwrap();
    let unused = link(&world, &otto, true).await;
    let session = sign_in(&world, link(&world, &otto, true).await).await.unwrap();
    let found = who(&world, &session, DeviceUse::ByPerson).await;
    assert_eq!(found, Ok(("otto".to_owned(), Role::Operator)));
    send(&world.engine.handle(person()), TokenRevoke { id: token, note: None }).await.unwrap();
    assert_eq!(who(&world, &session, DeviceUse::ByPerson).await, Err(Code::TokenInvalid));
    assert_eq!(sign_in(&world, unused).await, Err(Code::TokenInvalid), "a link of it, too");
}

#[tokio::test(start_paused = true)]
async fn only_people_get_links_and_only_at_a_terminal_ones_that_decide() {
    let world = World::with_http().await;
    let session = sign_in(&world, link(&world, &person(), false).await).await.unwrap();
    let found = who(&world, &session, DeviceUse::ByPerson).await;
    assert_eq!(found, Ok(("uid:1000".to_owned(), Role::Observer)));
    let session = sign_in(&world, link(&world, &person(), true).await).await.unwrap();
    let device = world.engine.authenticate_device(&session, DeviceUse::ByPerson).await.unwrap();
    let others = [
        (Actor::for_unknown_run(), Code::RoleTooLow),
        (person().into_assistant(), Code::RoleTooLow),
        (device.actor, Code::Denied),
    ];
    for (actor, expected) in others {
        let handle = world.engine.handle(actor.clone());
        let refused = send(&handle, DeviceLink { at_terminal: true }).await.unwrap_err();
        assert_eq!(refused.code, expected, "{actor:?}");
    }
    // Too many links at once.
    let handle = world.engine.handle(person());
    let mut refused = None;
    for _ in 0..33 {
        refused = send(&handle, DeviceLink { at_terminal: true }).await.err();
    }
    assert_eq!(refused.map(|error| error.code), Some(Code::LimitReached));
}
