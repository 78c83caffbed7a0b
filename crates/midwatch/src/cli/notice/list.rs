//! `midwatch notice list`

use std::process::ExitCode;

use api::{Channel, Error, NoticeChannels, NoticeList};

use crate::access::send;
use crate::cli::support::render::count_of;
use crate::cli::support::table::{Column, shortened, table, whole};
use crate::context::Context;
use crate::view::View;
use crate::wrap::fit;

const COLUMNS: [Column; 4] =
    [whole("CHANNEL"), whole("LAST SENT"), whole("PENDING"), shortened("STATE", 20)];

pub(super) async fn run(context: &Context) -> Result<ExitCode, Error> {
    let answer = send(context, NoticeList {}).await?;
    let is_configured = context.load_config()?.config.notice.is_configured();
    context.output.show(&answer, |answer| render(answer, is_configured, &context.view));
    Ok(ExitCode::SUCCESS)
}

fn render(
    NoticeChannels { channels }: &NoticeChannels,
    is_configured: bool,
    view: &View,
) -> String {
    match (channels.is_empty(), is_configured) {
        (true, true) => {
            let text = "channels are configured, but no daemon uses them: `midwatch up`, or `midwatch config reload`";
            return fit(text, view.width);
        }
        (true, false) => {
            let text = "no channel is configured, so no one is notified: set `notice.command` or `notice.url` \
                        (docs/notices.md)";
            return fit(text, view.width);
        }
        (false, _) => {}
    }
    let rows = channels.iter().map(|channel| {
        let sent =
            channel.last_success.as_ref().map_or_else(|| "never".to_owned(), |at| view.time(at));
        [channel.channel.clone(), sent, channel.pending.to_string(), state(channel, view)]
    });
    table(view, COLUMNS, rows)
}

fn state(channel: &Channel, view: &View) -> String {
    let failure = channel.last_failure.as_ref().map(|it| it.what.as_str()).unwrap_or_default();
    match (&channel.failing_since, channel.pending) {
        (Some(since), _) => format!("FAILING since {}: {failure}", view.time(since)),
        (None, 0) => "ok".to_owned(),
        (None, pending) => format!("sending {}", count_of(pending, "notice", "notices")),
    }
}

#[cfg(test)]
mod tests {
    use api::DeliveryFailure;

    use super::*;

    #[test]
    fn list_shows_what_fails_and_what_to_do_without_channels() {
        let channel = |failing: bool| Channel {
            channel: "url".into(),
            last_success: None,
            last_failure: failing
                .then(|| DeliveryFailure { at: "T2".into(), what: "refused".into() }),
            failing_since: failing.then(|| "T1".into()),
            pending: 3,
        };
        let view = View::fixed(120, "UTC", "2026-03-28T12:00:00Z");
        assert_eq!(state(&channel(true), &view), "FAILING since T1: refused");
        assert_eq!(state(&channel(false), &view), "sending 3 notices");
        assert_eq!(state(&Channel { pending: 0, ..channel(false) }, &view), "ok");
        let none = NoticeChannels { channels: Vec::new() };
        assert!(render(&none, false, &view).contains("set `notice.command` or `notice.url`"));
        assert!(render(&none, true, &view).contains("`midwatch up`"));
    }
}
