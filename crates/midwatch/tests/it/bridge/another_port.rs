//! A server on another port of this machine gets the cookie of the dashboard, in a real browser. It can do nothing with it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use super::dashboard::{signed_in, up, with_port};
use crate::support::world::World;

/// A page with a form that sends itself to the dashboard, and tries everything else that a script can.
fn page(port: u16) -> String {
    let target = format!("http://midwatch.localhost:{port}");
    format!(
        "<!doctype html><title>evil</title><iframe name=it></iframe>\
         <form target=it method=post action='{target}/freeze'><input name=reason value=evil></form>\
         <script>(async () => {{ const tried = [];\
         const attempt = async (name, work) => {{ try {{ tried.push(name + ' ' + await work()) }} \
         catch {{ tried.push(name + ' failed') }} }};\
         await attempt('post', async () => (await fetch('{target}/freeze', {{ method: 'POST', \
         credentials: 'include', body: new URLSearchParams('reason=evil') }})).status);\
         await attempt('read', async () => (await fetch('{target}/', {{ credentials: 'include' }})).status);\
         await attempt('stream', () => new Promise((done, fail) => {{ const it = new EventSource(\
         '{target}/live?view=/&after=0', {{ withCredentials: true }}); it.onopen = () => done('open'); \
         it.onerror = fail; }}));\
         document.forms[0].submit();\
         document.querySelector('iframe').onload = () => {{ document.title = tried.join(', ') }};\
         }})()</script>"
    )
}

/// Serves the page on another port of the same name, and sends on the cookies that it gets.
fn evil_server(port: u16) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own_port = listener.local_addr().unwrap().port();
    let (sender, cookies) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
            let cookie = head.iter().find_map(|line| line.strip_prefix("Cookie: "));
            sender.send(cookie.unwrap_or_default().to_owned()).unwrap_or_default();
            let page = page(port);
            let length = page.len();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
            let _ = write!(&stream, "{head}\r\nContent-Length: {length}\r\n\r\n{page}");
        }
    });
    (own_port, cookies)
}

#[test]
fn server_on_another_port_gets_the_cookie_and_cannot_use_it() {
    let mut world = World::new();
    let port = with_port(&mut world);
    let (terminal, link) = up(&world);
    let browser = signed_in(&link);
    let (evil_port, cookies) = evil_server(port);
    browser.goto(&format!("http://midwatch.localhost:{evil_port}/")).unwrap();
    let cookie = cookies.recv().unwrap();
    assert!(cookie.contains("midwatch="), "browsers keep cookies apart by port now: {cookie}");
    let title = || browser.script("return document.title", json!([])).unwrap();
    browser.wait_until(|| Ok(title() != "evil")).unwrap();
    assert_eq!(title(), "post failed, read failed, stream failed");
    assert_eq!(world.json(&["status"])["authority"]["frozen"], Value::Null);
    assert_eq!(world.count_events("authority.frozen"), 0);
    // The key of the pages is in the storage of their port.
    let databases = browser.script_async("return (await indexedDB.databases()).length").unwrap();
    assert_eq!(databases, 0);
    drop(terminal);
}

#[test]
fn link_of_another_site_leads_to_the_page_although_the_cookie_is_kept_back() {
    let mut world = World::new();
    let port = with_port(&mut world);
    let (terminal, link) = up(&world);
    let browser = signed_in(&link);
    let target = format!("http://midwatch.localhost:{port}/schedules");
    let page = format!("data:text/html,<a href='{target}'>link</a>");
    browser.goto(&page).unwrap();
    browser.click("a").unwrap();
    browser.wait_until(|| Ok(browser.url()? == target)).unwrap();
    browser.wait_for_text("Schedules").unwrap();
    drop(terminal);
}
