//! Describes the machine, and measures its disk and this process.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

const FLUSHES: usize = 200;
const FLUSH_BYTES: usize = 4_096;

pub(crate) fn describe() {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    println!("cpu      {} × {cores}", model.trim_start_matches(['\t', ' ', ':']));
    println!("kernel   {}", read("/proc/sys/kernel/osrelease").trim());
    println!("load     {}", read("/proc/loadavg").trim());
}

/// The load of the last 1, 5 and 15 minutes.
pub(crate) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// How long the disk takes to flush a page: median and 99th percentile, in milliseconds.
pub(crate) fn flush_ms(dir: &Path) -> anyhow::Result<(f64, f64)> {
    let mut file = File::create(dir.join("flush"))?;
    let mut spans = Vec::with_capacity(FLUSHES);
    for _ in 0..FLUSHES {
        let started = Instant::now();
        file.write_all(&[7; FLUSH_BYTES])?;
        file.sync_data()?;
        spans.push(started.elapsed().as_secs_f64() * 1e3);
    }
    spans.sort_by(f64::total_cmp);
    let at = |part: usize| spans.get(FLUSHES * part / 100).copied().unwrap_or(f64::NAN);
    Ok((at(50), at(99)))
}

/// Processor time of this process in seconds. Unlike elapsed time, it hardly depends on other load.
pub(crate) fn cpu_seconds() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which may contain blanks, user and system time are fields 12 and 13.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks =
        fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_SECOND
}

/// Bytes that this process has written to any file. They hardly depend on other load.
pub(crate) fn written_bytes() -> u64 {
    let counts = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let written = counts.lines().find_map(|line| line.strip_prefix("wchar: "));
    written.and_then(|count| count.parse().ok()).unwrap_or_default()
}
