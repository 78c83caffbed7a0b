//! Lists the notification channels, and sends a test message through them.

use api::{Code, Error, NoticeChannels, NoticeList, NoticeTest, NoticeTested, Serve};

use crate::commit::caller::Caller;
use crate::engine::Engine;

impl Serve<NoticeList> for Engine {
    async fn serve(&self, _: &Caller, _: NoticeList) -> Result<NoticeChannels, Error> {
        Ok(NoticeChannels { channels: self.notifier.deliveries.list() })
    }
}

impl Serve<NoticeTest> for Engine {
    async fn serve(&self, _: &Caller, _: NoticeTest) -> Result<NoticeTested, Error> {
        // Only the daemon has the environment in which notices are sent.
        if self.lifecycle.running().is_none() {
            let what = "no daemon is running, so no notice is sent";
            return Err(Error::new(Code::NotNow, what).hint("start it with `midwatch up`"));
        }
        if self.notifier.channels.borrow().is_empty() {
            let what = "no notification channel is configured";
            return Err(Error::new(Code::NotFound, what).hint(
                "set `notice.command` or `notice.url`, then `midwatch config reload`; see docs/notices.md",
            ));
        }
        Ok(NoticeTested { results: self.notifier.send_test().await })
    }
}
