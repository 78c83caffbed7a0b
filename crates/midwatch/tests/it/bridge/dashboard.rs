//! A daemon with a dashboard, started at a terminal, and what people do with it.

use std::fs;
use std::net::TcpListener;

use test_browser::Browser;

use crate::support::terminal::Terminal;
use crate::support::world::World;

/// Lets the world's daemon serve HTTP, always on the same port. Returns the port.
pub(super) fn with_port(world: &mut World) -> u16 {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    world.set("MIDWATCH_HTTP_LISTEN", format!("127.0.0.1:{port}"));
    port
}

/// The daemon in a terminal, ready, with the link that it has printed.
pub(super) fn up(world: &World) -> (Terminal, String) {
    let mut terminal = Terminal::start(world, &["up"]);
    terminal.wait_for("/enter#");
    terminal.wait_for("ten minutes");
    let link = link_in(terminal.text());
    (terminal, link)
}

/// The one link in a text.
pub(super) fn link_in(text: &str) -> String {
    let mut links = text.split_whitespace().filter(|word| word.contains("/enter#"));
    let link = links.next().unwrap_or_else(|| panic!("no link: {text}")).to_owned();
    assert_eq!(links.next(), None, "{text}");
    link
}

/// A browser that has signed in by a link.
pub(super) fn signed_in(link: &str) -> Browser {
    let browser = Browser::start().unwrap();
    browser.goto(link).unwrap();
    browser.wait_for_text("Needs you").unwrap();
    browser
}

/// Everything that the daemon has logged.
pub(super) fn log(world: &World) -> String {
    let files = fs::read_dir(world.data().join("logs")).unwrap();
    files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}
