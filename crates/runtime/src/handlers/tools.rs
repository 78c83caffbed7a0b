//! Lists how often tools were called, how long the calls took and how many failed.

use std::collections::BTreeMap;

use api::{Error, Serve, ToolList, ToolTally, ToolUse, Tools};
use kernel::Noun;
use kernel::budget::day;
use kernel::tool::{self, CallCounts, ToolStats};

use crate::commit::caller::Caller;
use crate::commit::codec;
use crate::engine::Engine;
use crate::errors;
use crate::timestamps::rfc3339;

/// Tools listed at most.
const TOOLS_MAX: usize = 1_000;

/// All tools that were called, including calls that are not written yet.
impl Serve<ToolList> for Engine {
    async fn serve(&self, _: &Caller, _: ToolList) -> Result<Tools, Error> {
        let items = self.store.list(Noun::Tool.name(), "", TOOLS_MAX).await;
        let mut stats: BTreeMap<String, ToolStats> = BTreeMap::new();
        for item in items.map_err(errors::store)? {
            let stored = codec::decode_item(&item)?;
            // A tool that was never called has a row if people gave a schedule with it a tier.
            let called = stored.filter(|stored: &ToolStats| !stored.days.is_empty());
            stats.extend(called.map(|stored| (item.id, stored)));
        }
        let now = self.time.now();
        for (tool, counts) in &self.tool_metrics.unwritten().tools {
            let stored = stats.remove(tool.as_str());
            stats.insert(tool.to_string(), tool::add_calls(stored, counts, now));
        }
        let today = day(now);
        let tools = stats.into_iter().map(|(tool, stats)| {
            let mut all = CallCounts::default();
            stats.days.iter().for_each(|day| all.add(&day.tally));
            let today = stats.days.iter().find(|it| it.day == today).map(|it| it.tally);
            let (today, all) = (wire(&today.unwrap_or_default()), wire(&all));
            ToolUse { tool, today, all, alerted_at: stats.alerted_at.map(rfc3339) }
        });
        Ok(Tools { tools: tools.collect() })
    }
}

fn wire(counts: &CallCounts) -> ToolTally {
    let CallCounts { calls, failures, took_us, longest_us, bytes_in, bytes_out, runs } = *counts;
    let mean_us = took_us.checked_div(calls).unwrap_or_default();
    ToolTally { calls, failures, mean_us, longest_us, bytes_in, bytes_out, runs }
}
