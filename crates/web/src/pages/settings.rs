//! Settings: the viewer, devices, people and tokens, notices, configuration, checks.

use api::display::on_one_line;
use api::{
    ConfigShow, Device, DeviceEnd, DeviceList, Error, NoticeList, Role, SetupCheck, TokenList,
};
use maud::{Markup, html};

use super::Content;
use crate::parts::{Tone, button, chip, empty, facts, table};
use crate::region::Region;
use crate::scene::Scene;
use crate::view::{Section, encode};
use crate::viewer::Theme;

pub(super) async fn page(scene: &Scene<'_>, section: Section) -> Result<Content, Error> {
    let body = match section {
        Section::You => you(scene),
        Section::Devices => devices(scene).await?,
        Section::Tokens => tokens(scene).await?,
        Section::Notices => notices(scene).await?,
        Section::Config => config(scene).await?,
        Section::Doctor => doctor(scene).await?,
    };
    let content = html! {
        header.title {
            h1 { "Settings" }
            nav.tabs aria-label="Settings" {
                @for it in Section::ALL { a href=(it.path()) aria-current=[(it == section).then_some("page")] { (it.title()) } }
            }
        }
        (body)
    };
    Ok(Content::new(section.title(), vec![Region::new("settings", &content)]))
}

fn you(scene: &Scene<'_>) -> Markup {
    let viewer = scene.viewer;
    let daemon = &scene.status.daemon;
    let decides = match viewer.can_sign {
        true => "this browser has a key of its own, which signs what you decide",
        false => "this browser has no key: every decision asks for your token",
    };
    let rows = [
        ("signed in as", html! { (viewer.name) }),
        ("role", html! { (viewer.role) }),
        ("deciding", html! { (decides) }),
        ("time zone", html! { (scene.times.zone.name()) span.muted { ", of your browser" } }),
    ];
    let about = [
        ("version", html! { (daemon.version) }),
        ("posture", html! { (daemon.posture) }),
        ("data", html! { code { (daemon.data) } }),
        ("store", html! { (daemon.store) }),
    ];
    html! {
        div.columns {
            section.card {
                h2 { "You" } (facts(&rows))
                form #theme-form method="post" action="/settings/theme" {
                    label { "Colours"
                        select name="theme" { @for theme in Theme::ALL { option value=(theme.as_str()) selected[theme == viewer.theme] { (theme.as_str()) } } }
                    }
                    button.quiet type="submit" { "Use" }
                }
            }
            section.card { h2 { "This installation" } (facts(&about)) }
        }
    }
}

async fn devices(scene: &Scene<'_>) -> Result<Markup, Error> {
    let page = scene.ask(DeviceList::default()).await?;
    let rows: Vec<Vec<Markup>> = page.devices.iter().map(|it| device_row(scene, it)).collect();
    Ok(html! {
        section.card {
            (table("Devices", &["State", "Browser", "Person", "Signed in", "Decides by", ""], &rows))
            p.muted { "A device is a browser in which somebody has signed in by a link. " code { "midwatch open" } " makes a link for another one." }
        }
    })
}

fn device_row(scene: &Scene<'_>, device: &Device) -> Vec<Markup> {
    let is_here = scene.viewer.device.as_deref() == Some(device.id.as_str());
    let action = format!("/devices/{}/revoke", encode(&device.id));
    vec![
        html! { @match device.ended {
            Some(DeviceEnd::Revoked) => (chip(Tone::Cancelled, "revoked")),
            Some(DeviceEnd::Expired) => (chip(Tone::Skip, "expired")),
            Some(DeviceEnd::Idle) => (chip(Tone::Skip, "not used for long")),
            None => (chip(Tone::Ok, "signed in")),
        } },
        html! { (on_one_line(&device.browser)) @if is_here { strong { " (this one)" } } },
        html! { (on_one_line(&device.person)) span.muted { ", " (device.role) } },
        scene.moment(&device.added_at),
        html! { @if device.can_sign { "its own key" } @else { "a token" } },
        html! { @if device.ended.is_none() { (button(scene.viewer, Role::Operator, &action, "Revoke", "danger")) } },
    ]
}

async fn tokens(scene: &Scene<'_>) -> Result<Markup, Error> {
    if let Some(reason) = scene.viewer.lacks(Role::Operator) {
        return Ok(html! { section.card { p.muted { "The list of tokens " (reason) "." } } });
    }
    let page = scene.ask(TokenList::default()).await?;
    let rows: Vec<Vec<Markup>> = page.tokens.iter().map(|token| vec![
        html! { @if token.revoked_at.is_some() { (chip(Tone::Cancelled, "revoked")) } @else { (chip(Tone::Ok, "valid")) } },
        html! { (on_one_line(&token.name)) @if let Some(client) = token.client { span.muted { " for " (client) } } },
        html! { (token.role) },
        html! { (on_one_line(&token.created_by)) ", " (scene.moment(&token.created_at)) },
        html! { @if token.revoked_at.is_none() { (button(scene.viewer, Role::Maintainer, &format!("/tokens/{}/revoke", encode(&token.id)), "Revoke", "danger")) } },
    ]).collect();
    Ok(html! {
        section.card {
            @if rows.is_empty() {
                (empty("No tokens.", html! { "You act as the user of this machine. " code { "midwatch token create --role operator --name NAME" } " makes a token for another person." }))
            } @else { (table("Tokens", &["State", "Person or program", "Role", "Created", ""], &rows)) }
        }
    })
}

async fn notices(scene: &Scene<'_>) -> Result<Markup, Error> {
    if let Some(reason) = scene.viewer.lacks(Role::Operator) {
        return Ok(html! { section.card { p.muted { "Notices: " (reason) "." } } });
    }
    let channels = scene.ask(NoticeList {}).await?.channels;
    let rows: Vec<Vec<Markup>> = channels.iter().map(|it| vec![
        html! { @if it.failing_since.is_some() { (chip(Tone::Fail, "failing")) } @else { (chip(Tone::Ok, "works")) } },
        html! { (on_one_line(&it.channel)) },
        it.last_success.as_ref().map_or(html! { "nothing sent yet" }, |at| scene.moment(at)),
        html! { @if let Some(failure) = &it.last_failure { (scene.moment(&failure.at)) ": " (on_one_line(&failure.what)) } @else { "–" } },
    ]).collect();
    Ok(html! {
        section.card {
            @if rows.is_empty() {
                (empty("No channel: nobody is called when a run waits for approval.", html! { "Set " code { "notice.command" } " or " code { "notice.url" } " in the configuration." }))
            } @else {
                (table("Channels", &["State", "Channel", "Last sent", "Last failure"], &rows))
                (button(scene.viewer, Role::Operator, "/notices/test", "Send a test notice", "quiet"))
            }
        }
    })
}

async fn config(scene: &Scene<'_>) -> Result<Markup, Error> {
    if let Some(reason) = scene.viewer.lacks(Role::Operator) {
        return Ok(html! { section.card { p.muted { "The configuration " (reason) "." } } });
    }
    let values = scene.ask(ConfigShow {}).await?.values;
    let rows: Vec<Vec<Markup>> = values.iter().map(|it| vec![
        html! { code { (it.key) } },
        html! { code { (on_one_line(&it.value)) } },
        html! { @if it.origin == "default" { span.muted { "default" } } @else { (on_one_line(&it.origin)) } },
    ]).collect();
    Ok(html! {
        section.card {
            (table("Active configuration", &["Key", "Value", "From"], &rows))
            (button(scene.viewer, Role::Maintainer, "/config/reload", "Reload the file", "quiet"))
        }
    })
}

async fn doctor(scene: &Scene<'_>) -> Result<Markup, Error> {
    let findings = scene.ask(SetupCheck {}).await?.findings;
    Ok(html! {
        section.card {
            @if findings.is_empty() { p { (chip(Tone::Ok, "no problem found")) } }
            ul.rows {
                @for finding in &findings {
                    li.row {
                        @if finding.refuses { (chip(Tone::Fail, &finding.check)) } @else { (chip(Tone::Wait, &finding.check)) }
                        span.what { (scene.sentence(&finding.what)) br; span.muted { (scene.sentence(&finding.fix)) } }
                    }
                }
            }
            p.muted { "In a terminal, " code { "midwatch doctor" } " also checks what only another process can see." }
        }
    })
}
