//! Cron expressions of other programs, rewritten so that they mean the same here. Pure.

/// Fields of an expression with seconds.
const FIELDS_WITH_SECONDS: usize = 6;

/// Moves the seconds of a six-field expression from the end, where other programs have them, to the front.
pub fn seconds_first(cron: &str) -> String {
    rotate_fields(cron, |fields| fields.rotate_right(1))
}

/// Moves the seconds of a six-field expression to the end.
pub fn seconds_last(cron: &str) -> String {
    rotate_fields(cron, |fields| fields.rotate_left(1))
}

fn rotate_fields(cron: &str, rotate: impl Fn(&mut [&str])) -> String {
    let mut fields: Vec<&str> = cron.split_whitespace().collect();
    if fields.len() == FIELDS_WITH_SECONDS {
        rotate(&mut fields);
    }
    fields.join(" ")
}

/// Rewrites an expression of a program in which only a bare `*` leaves a day field open. Here any field that starts with
/// a star does, so `*/2` beside a restricted day field is written as a range.
pub fn either_day(cron: &str) -> String {
    let mut fields: Vec<String> = cron.split_whitespace().map(str::to_owned).collect();
    let first = fields.len().saturating_sub(5);
    if let Some([_, _, day, _, weekday]) = fields.get_mut(first..)
        && is_restricted(day)
        && is_restricted(weekday)
    {
        *day = without_star(day, "1-31");
        *weekday = without_star(weekday, "0-6");
    }
    fields.join(" ")
}

fn is_restricted(field: &str) -> bool {
    !matches!(field, "*" | "?")
}

fn without_star(field: &str, range: &str) -> String {
    match field.strip_prefix('*') {
        Some(step) if step.starts_with('/') => format!("{range}{step}"),
        _ => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_move_between_the_end_and_the_front() {
        for (last, first) in [("0 9 * * 1 30", "30 0 9 * * 1"), ("0 9 * * 1", "0 9 * * 1")] {
            assert_eq!((seconds_first(last), seconds_last(first)), (first.into(), last.into()));
        }
        assert_eq!(seconds_first(" 0 9  * * 1 "), "0 9 * * 1");
    }

    #[test]
    fn stepped_star_in_a_day_field_does_not_become_a_condition() {
        for (cron, expected) in [
            ("0 9 */2 * 1", "0 9 1-31/2 * 1"),
            ("0 9 1 * */2", "0 9 1 * 0-6/2"),
            ("30 0 9 */2 * 1", "30 0 9 1-31/2 * 1"),
            ("0 9 */2 * *", "0 9 */2 * *"),
            ("0 9 1 * +1", "0 9 1 * +1"),
            ("bad", "bad"),
        ] {
            assert_eq!(either_day(cron), expected, "{cron}");
        }
    }
}
