//! Tables that fit the width of the terminal. Nothing is wrapped: columns are shortened, and the least important are left
//! out.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::page::next_page;
use crate::view::View;

const GAP: &str = "  ";

/// A column, and what happens to it in a table that is too wide.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Column {
    head: &'static str,
    /// The width to which it may be shortened.
    shortest: Option<usize>,
    /// Columns with the highest number are left out first; `None` stays.
    left_out: Option<u8>,
}

/// A column that always stays as it is.
pub(in crate::cli) const fn whole(head: &'static str) -> Column {
    Column { head, shortest: None, left_out: None }
}

/// A column whose texts may be cut off to this many characters.
pub(in crate::cli) const fn shortened(head: &'static str, shortest: usize) -> Column {
    Column { head, shortest: Some(shortest), left_out: None }
}

impl Column {
    /// The same column, left out if the others need its place; those with the highest number first.
    pub(in crate::cli) const fn or_left_out(self, order: u8) -> Column {
        Column { left_out: Some(order), ..self }
    }
}

/// A table of these columns, with one row of cells each.
pub(in crate::cli) fn table<const N: usize>(
    view: &View,
    columns: [Column; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let rows: Vec<[String; N]> =
        rows.into_iter().map(|row| row.map(|cell| one_line(&cell))).collect();
    let shown = fit(view.width, &columns, &rows);
    let head = columns.map(|column| column.head.to_owned());
    let lines = std::iter::once(&head).chain(&rows).map(|row| line(row, &shown));
    lines.collect::<Vec<_>>().join("\n")
}

/// A table of one page of a list, and the command that continues it if there is more.
pub(in crate::cli) fn table_with_cursor<const N: usize>(
    view: &View,
    columns: [Column; N],
    rows: impl IntoIterator<Item = [String; N]>,
    cursor: Option<&str>,
) -> String {
    let mut text = table(view, columns, rows);
    if let Some(cursor) = cursor {
        text.push_str(&format!("\nmore: {}", next_page(view, cursor)));
    }
    text
}

/// The index and the width of each column that is shown.
fn fit<const N: usize>(
    width: usize,
    columns: &[Column; N],
    rows: &[[String; N]],
) -> Vec<(usize, usize)> {
    let natural = |index: usize, head: &str| {
        let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.width());
        cells.max().unwrap_or_default().max(head.width())
    };
    let mut shown: Vec<(usize, usize, Column)> = (0..N)
        .zip(columns)
        .map(|(index, column)| (index, natural(index, column.head), *column))
        .collect();
    let shortest = |(_, natural, column): &(usize, usize, Column)| match column.shortest {
        Some(shortest) => shortest.max(column.head.width()).min(*natural),
        None => *natural,
    };
    while width < total(shown.iter().map(&shortest)) {
        let next = shown.iter().enumerate().filter(|(_, it)| it.2.left_out.is_some());
        let Some((place, _)) = next.max_by_key(|(_, it)| it.2.left_out) else { break };
        shown.remove(place);
    }
    while width < total(shown.iter().map(|it| it.1)) {
        let can_shrink = shown.iter_mut().filter(|it| shortest(it) < it.1);
        let Some(widest) = can_shrink.max_by_key(|it| it.1) else { break };
        widest.1 -= 1;
    }
    shown.into_iter().map(|(index, width, _)| (index, width)).collect()
}

fn total(widths: impl Iterator<Item = usize>) -> usize {
    let (count, sum) = widths.fold((0_usize, 0), |(count, sum), width| (count + 1, sum + width));
    sum + count.saturating_sub(1) * GAP.len()
}

fn line(row: &[String], shown: &[(usize, usize)]) -> String {
    let cells = shown.iter().filter_map(|(index, width)| {
        let cell = cut(row.get(*index)?, *width);
        let padding = width.saturating_sub(cell.width());
        Some(format!("{cell}{:padding$}", ""))
    });
    cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
}

/// The text, cut off so that it fits.
pub(in crate::cli) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or_default();
        if width < used {
            break;
        }
        short.push(c);
    }
    short + "…"
}

/// A cell is one line, whatever its text.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\t', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        whole("RUN"),
        shortened("SCHEDULE", 8),
        whole("AGE").or_left_out(2),
        shortened("REASON", 6).or_left_out(1),
    ];

    fn check(width: usize, expected: &[&str]) {
        let view = View::fixed(width, "UTC", "2026-03-28T12:30:00Z");
        let rows = [
            ["run_0001", "the nightly report", "5m ago", "exit code 1\nof x"].map(str::to_owned),
            ["run_0002", "größe", "", ""].map(str::to_owned),
        ];
        let text = table(&view, COLUMNS, rows);
        assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{width}");
        assert!(text.lines().all(|line| line.width() <= width), "{width}: {text}");
    }

    #[test]
    fn columns_are_shortened_and_then_left_out() {
        check(
            60,
            &[
                "RUN       SCHEDULE            AGE     REASON",
                "run_0001  the nightly report  5m ago  exit code 1 of x",
                "run_0002  größe",
            ],
        );
        check(
            40,
            &[
                "RUN       SCHEDULE    AGE     REASON",
                "run_0001  the night…  5m ago  exit code…",
                "run_0002  größe",
            ],
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 26..=80 {
            let view = View::fixed(width, "UTC", "2026-03-28T12:30:00Z");
            let row = ["run_0001", "名前の長いスケジュール", "5m ago", "exit_code"];
            let text = table(&view, COLUMNS, [row.map(str::to_owned)]);
            assert!(text.lines().all(|line| line.width() <= width), "{width}: {text}");
        }
    }
}
