//! Drives a real Chromium for tests, over the WebDriver protocol.
//!
//! A [`Browser`] has a profile of its own, which is removed with it, and makes no connection of its own accord. Every call
//! blocks. Console errors are collected; a test reads them with [`Browser::console`].

mod http;
mod server;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use server::{Server, text};

/// The deadline of every wait.
const TIMEOUT: Duration = Duration::from_secs(30);
const POLL_EVERY: Duration = Duration::from_millis(10);
/// How WebDriver marks the reference to an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A running browser with one window.
#[derive(Debug)]
pub struct Browser {
    server: Server,
    session: String,
    profile: TempDir,
}

impl Browser {
    pub fn start() -> Result<Browser> {
        let profile = tempfile::tempdir()?;
        let server = Server::start()?;
        let capabilities = capabilities(&profile.path().join("profile"));
        let started = server.request("POST", "/session", &capabilities)?;
        let session = text(&started, "sessionId").context("no session id")?.to_owned();
        Ok(Browser { server, session, profile })
    }

    /// Opens an address and waits until its page has loaded.
    pub fn goto(&self, url: &str) -> Result<()> {
        self.post("/url", &json!({ "url": url })).map(drop)
    }

    pub fn reload(&self) -> Result<()> {
        self.post("/refresh", &json!({})).map(drop)
    }

    /// The address of the page.
    pub fn url(&self) -> Result<String> {
        Ok(self.get("/url")?.as_str().unwrap_or_default().to_owned())
    }

    /// The text of the page that a person sees.
    pub fn text(&self) -> Result<String> {
        let shown =
            self.script("return document.body ? document.body.innerText : ''", json!([]))?;
        Ok(shown.as_str().unwrap_or_default().to_owned())
    }

    /// Runs a script in the page and returns its result.
    pub fn script(&self, script: &str, arguments: Value) -> Result<Value> {
        self.post("/execute/sync", &json!({ "script": script, "args": arguments }))
    }

    /// Runs a script that returns a promise, and returns what it resolves to.
    pub fn script_async(&self, script: &str) -> Result<Value> {
        let script = format!(
            "const done = arguments[0]; (async () => {{ {script} }})()\
             .then(done, (error) => done({{ error: String(error) }}))"
        );
        self.post("/execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Waits for an element that a selector finds, and presses the first.
    pub fn click(&self, selector: &str) -> Result<()> {
        self.wait_until(|| self.is_shown(selector)).with_context(|| format!("no `{selector}`"))?;
        let element = self.find(selector)?;
        self.post(&format!("/element/{element}/click"), &json!({})).map(drop)
    }

    /// Types into the first element that a selector finds.
    pub fn type_into(&self, selector: &str, text: &str) -> Result<()> {
        let element = self.find(selector)?;
        self.post(&format!("/element/{element}/value"), &json!({ "text": text })).map(drop)
    }

    /// Whether a selector finds anything that is shown.
    pub fn is_shown(&self, selector: &str) -> Result<bool> {
        let script = "const it = document.querySelector(arguments[0]); \
                      return !!it && it.checkVisibility({ opacityProperty: true, visibilityProperty: true })";
        Ok(self.script(script, json!([selector]))?.as_bool().unwrap_or_default())
    }

    /// Waits until the page shows a text.
    pub fn wait_for_text(&self, expected: &str) -> Result<()> {
        let is_there = || Ok(self.text()?.contains(expected));
        match self.wait_until(is_there) {
            Ok(()) => Ok(()),
            Err(_) => bail!("no `{expected}` at {}: {}", self.url()?, self.text()?),
        }
    }

    /// Polls until a condition holds.
    #[expect(clippy::disallowed_methods, reason = "a wait has a deadline")]
    pub fn wait_until(&self, condition: impl Fn() -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while !condition()? {
            if deadline < Instant::now() {
                bail!("the condition did not hold within {TIMEOUT:?}");
            }
            thread::sleep(POLL_EVERY);
        }
        Ok(())
    }

    /// The values of a cookie of this page, which scripts may not be able to read.
    pub fn cookie(&self, name: &str) -> Result<Option<String>> {
        let cookies = self.get("/cookie")?;
        let cookies = cookies.as_array().cloned().unwrap_or_default();
        let found = cookies.iter().find(|cookie| text(cookie, "name") == Some(name));
        Ok(found.and_then(|cookie| text(cookie, "value")).map(str::to_owned))
    }

    /// Opens another window and turns to it. Returns the one that was in front before.
    pub fn open_window(&self) -> Result<String> {
        let before = self.get("/window")?.as_str().unwrap_or_default().to_owned();
        let new = self.post("/window/new", &json!({ "type": "tab" }))?;
        self.switch_to(text(&new, "handle").unwrap_or_default())?;
        Ok(before)
    }

    /// Turns to a window.
    pub fn switch_to(&self, window: &str) -> Result<()> {
        self.post("/window", &json!({ "handle": window })).map(drop)
    }

    /// The errors and warnings in the console since the last call.
    pub fn console(&self) -> Result<Vec<String>> {
        let entries = self.post("/se/log", &json!({ "type": "browser" }))?;
        let entries = entries.as_array().cloned().unwrap_or_default();
        let is_fault = |entry: &&Value| matches!(text(entry, "level"), Some("SEVERE" | "WARNING"));
        let message = |entry: &Value| text(entry, "message").unwrap_or_default().to_owned();
        Ok(entries.iter().filter(is_fault).map(message).collect())
    }

    /// Gives pages a window of this size. A phone is narrower than any window of a desktop.
    pub fn resize(&self, width: u32, height: u32) -> Result<()> {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 640,
        });
        let command = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": size });
        self.post("/goog/cdp/execute", &command).map(drop)
    }

    /// Lets pages run no scripts from the next page on. Those of the test still run.
    pub fn disable_scripts(&self) -> Result<()> {
        let command =
            json!({ "cmd": "Emulation.setScriptExecutionDisabled", "params": { "value": true } });
        self.post("/goog/cdp/execute", &command).map(drop)
    }

    /// A picture of the window, as PNG in base64.
    pub fn screenshot(&self) -> Result<String> {
        Ok(self.get("/screenshot")?.as_str().unwrap_or_default().to_owned())
    }

    fn find(&self, selector: &str) -> Result<String> {
        let query = json!({ "using": "css selector", "value": selector });
        let found = self.post("/element", &query)?;
        text(&found, ELEMENT).map(str::to_owned).with_context(|| format!("no `{selector}`"))
    }

    fn get(&self, path: &str) -> Result<Value> {
        self.server.request("GET", &format!("/session/{}{path}", self.session), &Value::Null)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.server.request("POST", &format!("/session/{}{path}", self.session), body)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let path = format!("/session/{}", self.session);
        // The server ends the browser also when it is killed.
        let _ = self.server.request("DELETE", &path, &Value::Null);
        let _ = self.profile.path();
    }
}

fn capabilities(profile: &Path) -> Value {
    let mut flags: Vec<String> = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--force-color-profile=srgb",
        "--window-size=1280,900",
    ]
    .map(str::to_owned)
    .into();
    flags.push(format!("--user-data-dir={}", profile.display()));
    let always = json!({
        "browserName": "chrome",
        "goog:chromeOptions": { "args": flags },
        "goog:loggingPrefs": { "browser": "ALL" },
        "timeouts": { "script": 30_000, "pageLoad": 30_000 },
    });
    json!({ "capabilities": { "alwaysMatch": always } })
}
