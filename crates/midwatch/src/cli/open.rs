//! `midwatch open`

use std::io::{self, IsTerminal};
use std::process::{ExitCode, Stdio};

use api::{Code, DeviceLink, DeviceLinked, Error};
use clap::Args;

use crate::access::send_to_daemon;
use crate::context::Context;
use crate::output::Format;

/// The program that opens an address in the user's browser.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Open the dashboard in a browser
///
/// Prints a link that signs one browser in, once and within ten minutes, and opens it. The browser then acts for you: it is
/// a device, which `midwatch device revoke` ends. Without a terminal, and for a program, the device can only view.
#[derive(Debug, Args)]
pub(super) struct Open {}

pub(super) async fn run(context: &Context, _: Open) -> Result<ExitCode, Error> {
    let link = create_link(context, is_at_terminal()).await?;
    context.output.show(&link, |link| {
        format!("{}\n\nsigns one browser in, once and within ten minutes", link.url)
    });
    if context.output.format == Format::Human && is_at_terminal() && has_display(context) {
        open_browser(context, &link.url);
    }
    Ok(ExitCode::SUCCESS)
}

/// A link that signs a browser in as the caller.
pub(super) async fn create_link(
    context: &Context,
    at_terminal: bool,
) -> Result<DeviceLinked, Error> {
    let link = send_to_daemon(context, DeviceLink { at_terminal }).await?;
    link.ok_or_else(|| {
        Error::new(Code::Unreachable, "the daemon is not running, so there is no dashboard")
            .hint("start it with `midwatch up`")
    })
}

/// Whether a person runs this command.
pub(super) fn is_at_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

fn has_display(context: &Context) -> bool {
    let is_set = |name: &str| context.environment.get(name).is_some_and(|it| !it.is_empty());
    cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Starts the browser and does not wait for it. If that fails, the link was printed.
#[expect(clippy::disallowed_methods, reason = "starts the user's browser and nothing else")]
fn open_browser(context: &Context, url: &str) {
    let mut command = std::process::Command::new(OPENER);
    command.arg(url).env_remove(crate::access::TOKEN_VARIABLE);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.spawn().is_err() && context.output.format == Format::Human {
        eprintln!("no browser was opened: `{OPENER}` is missing");
    }
}
