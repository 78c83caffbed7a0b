//! The ledger: entries exactly as recorded.

use api::display::{on_one_line, visible};
use api::{Error, Event, LedgerTail, Role};
use maud::{Markup, html};

use super::Content;
use crate::parts::{Tone, button, chip, facts, number, table};
use crate::region::Region;
use crate::scene::Scene;

/// Entries on one page.
const PAGE_ENTRIES: u64 = 50;

pub(super) async fn list(scene: &Scene<'_>, after: Option<u64>) -> Result<Content, Error> {
    let ledger = &scene.status.ledger;
    let start = after.unwrap_or(ledger.entries.saturating_sub(PAGE_ENTRIES)).min(ledger.entries);
    let request = LedgerTail {
        after: Some(start),
        limit: Some(PAGE_ENTRIES as u32),
        ..LedgerTail::default()
    };
    let page = scene.ask(request).await?;
    let rows: Vec<Vec<Markup>> = page.events.iter().rev().map(|it| list_row(scene, it)).collect();
    let state = match ledger.stopped.as_ref().or(ledger.failing.as_ref()) {
        None => html! { (chip(Tone::Ok, "sound")) },
        Some(why) => html! { (chip(Tone::Fail, "stopped")) " " (on_one_line(why)) },
    };
    let rows_of_state = [
        ("state", state),
        ("entries", html! { (number(ledger.entries)) }),
        ("signed up to", html! { (number(ledger.checkpoint)) }),
        ("last check", html! { (ledger.check) }),
        ("head", html! { code.copy { (ledger.head) } }),
        ("public key", html! { code.copy { (ledger.key) } }),
        (
            "verify offline",
            html! { code { "midwatch ledger export" } ", then on any machine " code { "midwatch ledger verify --export DIR" } },
        ),
    ];
    let summary = html! {
        header.title { h1 { "Ledger" } span.spring {} (button(scene.viewer, Role::Operator, "/ledger/checkpoint", "Sign it now", "quiet")) }
        section.card { (facts(&rows_of_state)) }
    };
    let entries = html! {
        section.card { (table("Entries, newest first", &["Entry", "When", "What", "About", "By", "Hash"], &rows)) }
        p.pages {
            @if 0 < start { a.button href={ "/ledger?after=" (start.saturating_sub(PAGE_ENTRIES)) } { "Older" } }
            @if page.cursor < ledger.entries { a.button href={ "/ledger?after=" (page.cursor) } { "Newer" } a.button href="/ledger" { "Newest" } }
        }
    };
    Ok(Content::new(
        "Ledger",
        vec![Region::new("ledger", &summary), Region::new("entries", &entries)],
    ))
}

fn list_row(scene: &Scene<'_>, event: &Event) -> Vec<Markup> {
    vec![
        html! { a.row-link href={ "/ledger/" (event.seq) } { (number(event.seq)) } },
        scene.moment(&event.at),
        html! { (event.kind) },
        html! { span.clip { (on_one_line(&event.id)) } },
        html! { (on_one_line(&event.actor)) },
        html! { code { (event.hash.chars().take(12).collect::<String>()) } },
    ]
}

pub(super) async fn entry(scene: &Scene<'_>, seq: u64) -> Result<Content, Error> {
    let request =
        LedgerTail { after: Some(seq.saturating_sub(1)), limit: Some(1), ..LedgerTail::default() };
    let found = scene.ask(request).await?.events.into_iter().find(|event| event.seq == seq);
    let missing = || api::Error::new(api::Code::NotFound, format!("the ledger has no entry {seq}"));
    let event = found.ok_or_else(missing)?;
    let rows = [
        ("when", html! { (scene.moment(&event.at)) " " span.muted { (event.at) } }),
        ("kind", html! { (event.kind) " " span.muted { "version " (event.version) } }),
        ("about", html! { (event.noun) " " code.copy { (on_one_line(&event.id)) } }),
        ("by", html! { (on_one_line(&event.actor)) span.muted { ", " (event.role) } }),
        (
            "caused by",
            html! { @if event.cause.is_empty() { "–" } @else { code { (on_one_line(&event.cause)) } } },
        ),
        ("hash", html! { code.copy { (event.hash) } }),
    ];
    let body = serde_json::to_string_pretty(&event.body).unwrap_or_default();
    let content = html! {
        h1 { "Entry " (number(seq)) }
        section.card { (facts(&rows)) }
        section.card { h2 { "Facts, as hashed" } pre tabindex="0" { (visible(&body)) } }
        @if !event.private_fields.is_empty() {
            section.card {
                h2 { "Text, stored apart" }
                @for (name, text) in &event.private_fields { h3 { (name) } (crate::parts::foreign_text(text)) }
            }
        }
        p.pages {
            @if 1 < seq { a.button href={ "/ledger/" (seq - 1) } { "Previous" } }
            @if seq < scene.status.ledger.entries { a.button href={ "/ledger/" (seq + 1) } { "Next" } }
            a.button href={ "/ledger?after=" (seq.saturating_sub(PAGE_ENTRIES / 2)) } { "In the list" }
        }
    };
    Ok(Content::new(format!("Entry {seq}"), vec![Region::new("entry", &content)]))
}
