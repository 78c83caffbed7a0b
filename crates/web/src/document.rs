//! The frame around every page: head, navigation, state line, and the drawings.

use api::Error;
use api::display::visible;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::asset::{SCRIPT_PATH, STYLE_PATH};
use crate::parts::coded;
use crate::region::Page;
use crate::view::View;
use crate::viewer::{Theme, Viewer};

/// The drawings of marks and controls, 12 by 12.
const GLYPHS: &str = include_str!("../assets/glyphs.svg");

impl Page {
    /// The whole document.
    pub fn document(&self, view: &View, viewer: &Viewer) -> String {
        let (nav, rest) = match self.regions.split_first() {
            Some((nav, rest)) => (Some(nav), rest),
            None => (None, self.regions.as_slice()),
        };
        let body = html! {
            a.skip-link href="#main" { "Skip to the content" }
            @if let Some(nav) = nav { (PreEscaped(&nav.html)) }
            div.page {
                (state_line(viewer))
                div #alert.alert role="alert" hidden {}
                div #spoken.visually-hidden role="status" {}
                main #main tabindex="-1" {
                    @for region in rest { (PreEscaped(&region.html)) }
                }
            }
            (find_dialog())
            (keys_dialog())
        };
        let live = Live { view: view.address(), seq: self.seq };
        document(&self.title, Some(viewer), Some(live), &body)
    }
}

/// What the script needs to keep a page up to date.
struct Live<'a> {
    view: &'a str,
    seq: u64,
}

/// Whether the page is live, and how to search. The script fills in the state.
fn state_line(viewer: &Viewer) -> Markup {
    html! {
        header.state {
            span #live.live-state data-state="still" { "as of now" }
            span.zone title="the time zone of this page" { (viewer.times().zone.name()) }
            a #find-open.button.quiet href="/find" { "Find" kbd { "/" } }
        }
    }
}

fn find_dialog() -> Markup {
    html! {
        dialog #find aria-label="Find" {
            form method="get" action="/find" role="search" {
                label.visually-hidden for="find-q" { "Find a page, a schedule, a run or an agent" }
                input #find-q name="q" type="search" autocomplete="off" placeholder="Name or the beginning of an id";
            }
            div #find-results {}
        }
    }
}

fn keys_dialog() -> Markup {
    let keys = [
        ("/", "find"),
        ("g w", "Watch"),
        ("g a", "Approvals"),
        ("g s", "Schedules"),
        ("g r", "Runs"),
        ("g t", "Timeline"),
        ("j k", "next, previous row"),
        ("Enter", "open the row"),
        ("?", "these keys"),
    ];
    html! {
        dialog #keys aria-label="Keys" {
            h2 { "Keys" }
            dl.facts { @for (key, what) in keys { div { dt { kbd { (key) } } dd { (what) } } } }
            p.muted { "No key decides anything." }
            form method="dialog" { button.quiet { "Close" } label.inline { input #keys-off type="checkbox"; "Turn keys off in this browser" } }
        }
    }
}

/// A page for an error, inside the frame if somebody is signed in.
pub fn error_document(error: &Error, viewer: Option<&Viewer>) -> String {
    let body = html! {
        div.page.narrow {
            main #main {
                h1 { "Not possible" }
                p.lead { (coded(&visible(&error.message))) }
                @if let Some(hint) = &error.hint { p.muted { (coded(&visible(hint))) } }
                p { a.button href="/" { "Back to Watch" } }
            }
        }
    };
    document("Not possible", viewer, None, &body)
}

/// The page of a sign-in link. The script sends the code that stands after `#` in the address; without script, people
/// paste it.
pub fn enter_document(error: Option<&Error>) -> String {
    let body = html! {
        div.page.narrow {
            main #main {
                h1 { (crate::parts::glyph("watch")) "Sign in to Midwatch" }
                @if let Some(error) = error {
                    div.alert role="alert" {
                        p { (visible(&error.message)) }
                        @if let Some(hint) = &error.hint { p { (visible(hint)) } }
                    }
                }
                p.muted #entering hidden { "Signing in…" }
                form #enter method="post" action="/enter" autocomplete="off" {
                    input type="hidden" name="key" value="";
                    label { "Code from the link" input name="code" required autocomplete="off" spellcheck="false"; }
                    button.primary { "Sign in" }
                }
                p.muted { "A link works once, for ten minutes. In a terminal, " code { "midwatch open" } " makes a new one." }
            }
        }
    };
    document("Sign in", None, None, &body)
}

fn document(title: &str, viewer: Option<&Viewer>, live: Option<Live<'_>>, body: &Markup) -> String {
    let theme = viewer.map(|viewer| viewer.theme).unwrap_or_default();
    let theme = (theme != Theme::System).then(|| theme.as_str());
    let now_ms = viewer.map(|viewer| viewer.now_us / 1_000);
    let zone = viewer.map(|viewer| viewer.zone.as_str());
    let version = viewer.map(|viewer| viewer.version);
    let seq = live.as_ref().map(|live| live.seq);
    let view = live.as_ref().map(|live| live.view);
    let document = html! {
        (DOCTYPE)
        html lang="en" data-theme=[theme] data-now=[now_ms] data-tz=[zone] data-version=[version] data-view=[view] data-seq=[seq] {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover";
                meta name="color-scheme" content="light dark";
                title { (title) " · Midwatch" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href=(STYLE_PATH.as_str());
                script src=(SCRIPT_PATH.as_str()) defer {}
            }
            body {
                (PreEscaped(GLYPHS))
                (body)
            }
        }
    };
    document.0
}
