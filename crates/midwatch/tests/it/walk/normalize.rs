//! What two outputs of the same command have in common: the words without ids, times, sizes and layout.
//!
//! Layout is left out because the width of a time or a size moves what stands beside it; the tests of tables and
//! wrapped lines check it.

use std::sync::LazyLock;

use regex::Regex;

/// What differs between two walks, and what replaces it. Applied in this order.
const PATTERNS: &[(&str, &str)] = &[
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r"\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+", "+KEY"),
    (r"\b(run|apr|sch|tok|ntc)_[0-9a-f]{8,}", "$1_ID"),
    (r"\bmw([ts])_[A-Za-z0-9_-]+", "mw${1}_SECRET"),
    (r"\b[0-9a-f]{64}\b", "HASH"),
    (r"--plan [0-9a-f]{8,}", "--plan HASH"),
    (r"[A-Za-z0-9+/]{43}=", "HASH"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)", "TIME"),
    (
        r"\b\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)( \d{4})? \d\d:\d\d:\d\d",
        "TIME",
    ),
    (r"\b\d\d:\d\d:\d\d\b", "TIME"),
    (r"\b\d{4}-\d\d(-\d\d)?\b", "DATE"),
    (r"\b((in|under) )?(\d+(\.\d+)?(d|h|m|s| ?ms|µs))+\b( ago)?", "SPAN"),
    (r"\bnow\b", "SPAN"),
    (r" \d+ (second|minute)s? late", ""),
    (r"\b\d+(\.\d+)? ?(bytes|[KMG]iB)", "SIZE"),
    (r"\b\d+ (entries|signatures)", "N $1"),
    (r"\bpid \d+", "pid N"),
    (r"\buid:\d+", "uid:N"),
    (r"\b\d{4,}/\d{4,}\b", "PLACE"),
    (r"\b127\.0\.0\.1:\d+", "ADDRESS"),
];

/// A regular expression whose digits and word boundaries are those of ASCII; the workspace compiles no others.
pub(super) fn ascii_regex(pattern: &str) -> Regex {
    let pattern = pattern.replace(r"\d", "[0-9]").replace(r"\b", r"(?-u:\b)");
    Regex::new(&pattern).unwrap_or_else(|error| panic!("{error}"))
}

static COMPILED: LazyLock<Vec<(Regex, &str)>> =
    LazyLock::new(|| PATTERNS.iter().map(|(pattern, to)| (ascii_regex(pattern), *to)).collect());

/// A line of `run watch` that a run may pass by too fast to be seen.
static PASSING: LazyLock<Regex> =
    LazyLock::new(|| ascii_regex(r"^run `[^`]+` (queued|running|running, attempt .*)$"));

/// The words of an output. Rows of a table that are then equal count once, since a slow machine may make more of them.
pub(super) fn words(output: &str) -> Vec<String> {
    let lines = output.lines().filter(|line| !PASSING.is_match(line));
    let mut lines: Vec<String> = lines.map(without_cut).collect();
    lines.dedup_by(|line, before| {
        let row = replaced(line);
        row.contains("TIME") && row == replaced(before)
    });
    // The end of a line may be within a time.
    let joined = lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    replaced(&joined).split(' ').map(str::to_owned).collect()
}

/// The words, for people to compare.
pub(super) fn text(output: &str) -> String {
    words(output).join(" ")
}

/// The line with each cell of a table that was cut off replaced: how much of it there is depends on its neighbours.
fn without_cut(line: &str) -> String {
    let cells = line.split("  ").map(|cell| if cell.ends_with('…') { "…" } else { cell });
    cells.collect::<Vec<_>>().join("  ")
}

fn replaced(text: &str) -> String {
    COMPILED
        .iter()
        .fold(text.to_owned(), |text, (pattern, to)| pattern.replace_all(&text, *to).into_owned())
}

#[test]
fn times_ids_and_layout_do_not_count() {
    let check = |one: &str, other: &str| assert_eq!(text(one), text(other));
    check(
        "RUN                   STARTED\nrun_0006608eb0e9d268  18 Nov 16:30:30  now\n",
        "RUN                   STARTED\nrun_0006608eb0513bbb  8 Dec 06:30:20  10s ago\n",
    );
    check(
        "lease   renew before 2 Dec 16:30:18 (in\n  13d23h)",
        "lease renew before 2 Dec 16:30:18 (now)",
    );
    check("hello  in 9s  every 10 secon…\n", "hello  in 10s  every 10 seco…\n");
    check("row  18 Nov 16:30:30  x\nrow  18 Nov 16:30:40  x\n", "row  18 Nov 16:30:50  x\n");
    check(
        "fired run run_0006608eb0e9d268 8 seconds late; done",
        "fired run run_0006608eb0e9d269; done",
    );
    check("run `run_0006608eb0e9d268` running\nrun `x` done", "run `x` done");
    check("(3.8 KiB), pid 3, uid:0, 15 entries", "(977 bytes), pid 12, uid:1000, 9 entries");
}

#[test]
fn words_and_states_count() {
    let check = |one: &str, other: &str| assert_ne!(text(one), text(other));
    check("run `run_0006608eb0e9d268` done", "run `run_0006608eb0e9d268` failed");
    check("0 added, 2 unchanged", "2 added, 0 unchanged");
    check("hello  active", "hello  active  paused");
    check("agent `mail` registered", "agent `post` registered");
}
