//! Hostile input: every parser accepts or refuses it quickly and without a panic.

use calendar::cron::EXPRESSION_BYTES_MAX;
use calendar::{Cron, Span, TimeOfDay, Times, Weekdays, Zone, parse_instant};
use proptest::prelude::*;

fn parse_everything(text: &str) {
    let zone: Zone = "America/New_York".parse().unwrap();
    if let Ok(cron) = text.parse::<Cron>() {
        assert_eq!(cron.to_string().parse::<Cron>(), Ok(cron.clone()), "{text}");
        assert!(!cron.describe().is_empty());
    }
    if let Ok(span) = text.parse::<Span>() {
        assert_eq!(span.to_string().parse::<Span>(), Ok(span), "{text}");
    }
    if let Ok(at) = parse_instant(text, Some(&zone)) {
        let printed = calendar::format_instant(at);
        assert_eq!(parse_instant(&printed, None), Ok(at), "{text}");
        let wall = zone.wall_time(at).to_string();
        assert_eq!(parse_instant(&wall, None), Ok(at), "{text}");
    }
    let _ = (text.parse::<Zone>(), text.parse::<TimeOfDay>());
    let _ = (text.parse::<Times>(), text.parse::<Weekdays>());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn arbitrary_text(text in ".{0,80}") {
        parse_everything(&text);
    }

    #[test]
    fn text_of_cron_characters(text in "[0-9*,/?LW#+@ -]{0,40}") {
        parse_everything(&text);
    }

    #[test]
    fn almost_valid_cron_fields(
        fields in prop::collection::vec("([*]|[0-9]{1,4}|MON|fri|JAN|L|LW|[0-9]W|5L)([-/,#][0-9L]{0,3}){0,3}", 4..8),
    ) {
        parse_everything(&fields.join(" "));
    }

    #[test]
    fn almost_valid_instants(
        text in "[0-9]{4}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9](:[0-6][0-9])?([.][0-9]{1,7})?(Z|[+-][01][0-9]:[0-5][0-9])?",
    ) {
        parse_everything(&text);
    }
}

#[test]
fn long_texts_are_refused_with_short_messages() {
    let longest = format!("{} * * * *", "0,".repeat((EXPRESSION_BYTES_MAX - 10) / 2) + "10");
    assert_eq!(longest.len(), EXPRESSION_BYTES_MAX);
    assert!(longest.parse::<Cron>().is_ok());
    let refused = format!("{longest} ").parse::<Cron>().unwrap_err().to_string();
    assert_eq!(refused, "the expression has 2049 bytes, more than the 2048 allowed");

    let million = "9".repeat(1_000_000);
    parse_everything(&million);
    for text in [million.clone(), format!("{million} * * * *"), format!("@{million}")] {
        let message = text.parse::<Cron>().unwrap_err().to_string();
        assert!(message.len() < 300, "{}", message.len());
    }
    let inner = format!("{} * * * *", "9".repeat(2000));
    assert!(inner.parse::<Cron>().unwrap_err().to_string().len() < 200);
    let message = million.parse::<Zone>().unwrap_err().to_string();
    assert!(message.len() < 200, "{}", message.len());
}

#[test]
fn longest_canonical_text_is_accepted() {
    let two_of_three = |first: u32, last: u32| {
        let values = (first..=last).filter(|value| value % 3 != 0).map(|value| value.to_string());
        values.collect::<Vec<_>>().join(",")
    };
    let nearest: Vec<String> = (1..=31).map(|day| format!("{day}W")).collect();
    let back: Vec<String> = (1..=30).map(|day| format!("L-{day}")).collect();
    let mut counted = Vec::new();
    for day in 0..7 {
        counted.extend((1..=5).map(|nth| format!("{day}#{nth}")));
        counted.push(format!("{day}L"));
    }
    let text = format!(
        "{} {} {} {},{},{},L,LW {} 1,2,4,5,{} 1970-2199/3,1971-2199/3",
        two_of_three(0, 59),
        two_of_three(0, 59),
        two_of_three(0, 23),
        two_of_three(1, 31),
        nearest.join(","),
        back.join(","),
        two_of_three(1, 12),
        counted.join(","),
    );
    let cron: Cron = text.parse().unwrap();
    let printed = cron.to_string();
    assert!(text.len() < printed.len(), "{} {}", text.len(), printed.len());
    assert_eq!(printed.parse(), Ok(cron), "{}", printed.len());
}
