//! Budgets: what is used today of every limit.

use api::{Amount, BudgetLimit, BudgetList, Error};
use maud::{Markup, html};

use super::Content;
use crate::parts::{Tone, chip, empty, schedule_link, table};
use crate::region::Region;
use crate::scene::Scene;

pub(super) async fn page(scene: &Scene<'_>) -> Result<Content, Error> {
    let budgets = scene.ask(BudgetList {}).await?;
    let rows: Vec<Vec<Markup>> = budgets.budgets.iter().map(list_row).collect();
    let content = html! {
        h1 { "Budgets" }
        p.lead { "Today's limits and what is used of them. All start again at midnight UTC, " (scene.moment(&budgets.until)) "." }
        section.card {
            @if rows.is_empty() { (empty("Nothing is used yet today.", html! { "Limits are in " code { "[budget]" } " of the configuration and in the terms of schedules." })) } @else {
                (table("Budgets", &["State", "Of", "What", "Used", "Limit", "Share"], &rows))
            }
        }
        @if budgets.left_out != 0 { p.muted { (budgets.left_out) " more limits are not shown." } }
    };
    Ok(Content::new("Budgets", vec![Region::new("budgets", &content)]))
}

fn list_row(limit: &BudgetLimit) -> Vec<Markup> {
    let owner = match (limit.scope.as_str(), &limit.name) {
        ("schedule", Some(id)) => schedule_link(Some(id), limit.schedule_name.as_deref()),
        ("agent", Some(name)) => crate::parts::agent_link(name),
        (scope, _) => html! { (scope) },
    };
    let share = share(&limit.used, &limit.most);
    vec![
        if limit.used_up { chip(Tone::Wait, "used up") } else { chip(Tone::Ok, "left") },
        owner,
        html! { (limit.what) },
        html! { (limit.used) },
        html! { (limit.most) },
        html! { @if let Some(share) = share { meter min="0" max="100" high="90" value=(share) aria-label={ (share) " percent used" } {} } },
    ]
}

/// Percent of the limit.
fn share(used: &Amount, most: &Amount) -> Option<u64> {
    let value = |amount: &Amount| match amount {
        Amount::Count(count) => Some(*count as f64),
        Amount::Money(money) => money.parse::<f64>().ok(),
    };
    let (used, most) = (value(used)?, value(most)?);
    (0.0 < most).then(|| (used / most * 100.0).clamp(0.0, 100.0) as u64)
}
