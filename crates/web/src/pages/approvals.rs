//! Approvals: the inbox, and the one plan that a person decides on.

use api::display::{Prompt, on_one_line, plan_and_prompt};
use api::{Approval, ApprovalList, ApprovalShow, ApprovalState, Error, Role};
use maud::{Markup, html};

use super::Content;
use crate::parts::{
    agent_link, approval_state, empty, foreign_text, form, next_page, reason_field, run_link,
    schedule_link, table, text_facts,
};
use crate::region::Region;
use crate::scene::Scene;
use crate::view::encode;

pub(super) async fn list(
    scene: &Scene<'_>,
    all: bool,
    cursor: Option<String>,
) -> Result<Content, Error> {
    let request = ApprovalList { all, cursor, ..ApprovalList::default() };
    let page = scene.ask(request).await?;
    let rows: Vec<Vec<Markup>> = page.approvals.iter().map(|it| list_row(scene, it)).collect();
    let content = html! {
        header.title {
            h1 { "Approvals" }
            nav.tabs aria-label="Which approvals" {
                a href="/approvals" aria-current=[(!all).then_some("page")] { "Waiting" }
                a href="/approvals?all=1" aria-current=[all.then_some("page")] { "All" }
            }
        }
        section.card {
            @if rows.is_empty() {
                (empty("Nothing waits for you.", html! {
                    "A run that the policy does not let start by itself waits here, until you decide or its time is up. "
                    a href="/policy" { "The policy" } " says which runs ask."
                }))
            } @else {
                (table("Approvals", &["State", "Run of", "What", "Asked", "Decide before", ""], &rows))
            }
        }
        (next_page("/approvals", if all { "all=1&" } else { "" }, page.cursor.as_deref()))
    };
    Ok(Content::new("Approvals", vec![Region::new("approvals", &content)]))
}

fn list_row(scene: &Scene<'_>, approval: &Approval) -> Vec<Markup> {
    let href = format!("/approvals/{}", encode(&approval.id));
    let is_pending = approval.state == ApprovalState::Pending;
    vec![
        approval_state(approval.state),
        schedule_link(Some(&approval.schedule_id), approval.schedule_name.as_deref()),
        html! { (scene.sentence(&approval.action())) ", tier " (approval.tier) },
        scene.moment(&approval.requested_at),
        html! { @if let (true, Some(by)) = (is_pending, &approval.approve_by) { (scene.moment(by)) } @else { "–" } },
        html! {
            @if is_pending { a.button.primary href=(href) { "Decide" } } @else { a.button href=(href) { "Show" } }
        },
    ]
}

pub(super) async fn show(scene: &Scene<'_>, id: &str) -> Result<Content, Error> {
    let approval = scene.ask(ApprovalShow { id: id.to_owned() }).await?.approval;
    let name = on_one_line(approval.schedule_name.as_deref().unwrap_or_else(|| approval.about()));
    let heading = html! {
        header.title {
            h1 {
                @if approval.state == ApprovalState::Pending { "May this run of " (name) " start?" } @else { "A run of " (name) }
            }
            (approval_state(approval.state))
        }
        p.links {
            (schedule_link(Some(&approval.schedule_id), Some("the schedule"))) " · " (run_link(&approval.run_id, "the run"))
            @if let Some(agent) = &approval.agent { " · agent " (agent_link(agent)) }
            " · " a href={ "/policy/explain?run=" (encode(&approval.run_id)) } { "why it asks" }
        }
    };
    let regions = vec![
        Region::new("approval", &heading),
        Region::new("plan", &plan(scene, &approval)),
        Region::new("decision", &decision(scene, &approval)),
    ];
    Ok(Content::new(name, regions))
}

/// What would be done, in our words, then exactly as hashed; text by agents comes after it.
fn plan(scene: &Scene<'_>, approval: &Approval) -> Markup {
    let time = |instant: &str| scene.times.time(instant);
    let (plan, prompt) = plan_and_prompt(&approval.plan, approval.unsealed.as_deref());
    let authors = match approval.authors.is_empty() {
        true => "not written by Midwatch".to_owned(),
        false => format!("written by {}", approval.authors.join(", ")),
    };
    html! {
        section.card { h2 { "What will be done, and why it asks" } (text_facts(&approval.facts(time))) }
        @match &prompt {
            Prompt::Absent => {},
            Prompt::Hidden => section.card { h2 { "The prompt" } p.muted { "The prompt is sensitive; only operators see it." } },
            Prompt::Plain(text) | Prompt::Unsealed(text) => {
                section.card {
                    h2 { "The prompt (" (authors) ", shown unchanged)" }
                    @if matches!(prompt, Prompt::Unsealed(_)) { p.muted { "Sealed in the plan; unsealed by Midwatch." } }
                    (foreign_text(text))
                }
            },
        }
        section.card {
            h2 { "The exact plan" }
            pre tabindex="0" { (plan) }
            (text_facts(&approval.details(time)))
        }
    }
}

/// The form stands after the plan. The style sheet shows the button that approves after two seconds.
fn decision(scene: &Scene<'_>, approval: &Approval) -> Markup {
    let action = format!("/approvals/{}/decide", encode(&approval.id));
    html! {
        @match approval.state {
            ApprovalState::Pending => section.card.decision {
                h2 { "Your decision" }
                (consequences(scene, approval))
                @if approval.needs.signed {
                    p { "Approving needs your signature: " code { "midwatch approval sign " (approval.id) } ", then " code { "midwatch approval approve --signature" } "." }
                }
                (form(scene.viewer, Role::Operator, &action, html! {
                    input type="hidden" name="plan_hash" value=(approval.plan_hash);
                    (reason_field())
                    div.buttons {
                        @if !approval.needs.signed {
                            button.approve type="submit" name="decision" value="approve" { "Approve exactly this" }
                        }
                        button.deny type="submit" name="decision" value="deny" { "Deny" }
                    }
                }))
            },
            ApprovalState::Approved => section.card.decision {
                h2 { "Not started yet" }
                p { "The run has not started. Until it does, the approval can be taken back." }
                (form(scene.viewer, Role::Operator, &action, html! {
                    (reason_field())
                    div.buttons { button.deny type="submit" name="decision" value="revoke" { "Revoke the approval" } }
                }))
            },
            _ => section.card.decision {
                h2 { "Decided" }
                p {
                    (approval_state(approval.state))
                    @if let Some(by) = &approval.decided_by { " by " (on_one_line(by)) }
                    @if let Some(at) = &approval.decided_at { ", " (scene.moment(at)) }
                    @if let Some(note) = &approval.note { ": " (on_one_line(note)) }
                }
            },
        }
    }
}

/// What yes, no and silence lead to.
fn consequences(scene: &Scene<'_>, approval: &Approval) -> Markup {
    let again = approval.previous.is_some();
    html! {
        dl.facts {
            div { dt { "If you approve" } dd { "the run starts, once, with exactly this plan" @if approval.needs.persons != 1 { ", when " (approval.needs.persons) " people have approved" } "." } }
            div { dt { "If you deny" } dd { @if again { "it is not attempted again, and the run ends as failed." } @else { "the run does not start, and ends as cancelled." } } }
            div { dt { "If you do nothing" } dd {
                @match &approval.approve_by {
                    Some(by) => { "it expires " (scene.moment(by)) ", like a denial." },
                    None => "it keeps waiting.",
                }
            } }
        }
    }
}
