//! The form of a schedule, with a preview: when it fires next, and whether its runs ask.

use api::{AgentList, Error, Role, ScheduleShow};
use calendar::relative;
use maud::{Markup, html};

use super::Content;
use crate::form::{KINDS, ScheduleForm};
use crate::parts::{form, schedule_link};
use crate::region::Region;
use crate::scene::Scene;
use crate::view::encode;

/// Agents that the form offers.
const AGENTS_MAX: u32 = 200;

pub(super) async fn add(scene: &Scene<'_>, fields: &ScheduleForm) -> Result<Content, Error> {
    let mut fields = fields.clone();
    if fields.kind.is_empty() {
        fields.kind = "every".to_owned();
    }
    if fields.tz.is_empty() {
        fields.tz = scene.times.zone.name().to_owned();
    }
    let agents = agent_names(scene).await?;
    if fields.agent.is_empty()
        && let [only] = agents.as_slice()
    {
        fields.agent.clone_from(only);
    }
    let content = html! {
        h1 { "Add a schedule" }
        @if agents.is_empty() {
            p.lead { "A schedule prompts an agent, and there is none yet." }
            (form(scene.viewer, Role::Operator, "/agents/add", html! {
                input type="hidden" name="name" value="echo";
                input type="hidden" name="backend" value="builtin";
                button.primary type="submit" { "Add the agent echo, which repeats its prompt" }
            }))
            p.muted { "A real one: " code { "midwatch agent add reviewer --backend command --cwd ~/src/project -- claude -p" } }
        } @else {
            (editor(scene, &fields, &agents, "/schedules/add", "Add the schedule"))
        }
    };
    Ok(Content::new("Add a schedule", vec![Region::new("editor", &content)]))
}

pub(super) async fn edit(scene: &Scene<'_>, id: &str) -> Result<Content, Error> {
    let schedule = scene.ask(ScheduleShow { id: id.to_owned() }).await?.schedule;
    let agents = agent_names(scene).await?;
    let fields = ScheduleForm::of(&schedule);
    let action = format!("/schedules/{}/edit", encode(&schedule.id));
    let content = html! {
        h1 { "Edit " (schedule_link(Some(&schedule.id), Some(&schedule.name))) }
        @if fields.when.is_empty() {
            p.muted { "Its trigger (" (schedule.describe) ") has options that this form does not show; leave it empty to keep it." }
        }
        (editor(scene, &fields, &agents, &action, "Save"))
    };
    Ok(Content::new("Edit", vec![Region::new("editor", &content)]))
}

async fn agent_names(scene: &Scene<'_>) -> Result<Vec<String>, Error> {
    let list = AgentList { limit: Some(AGENTS_MAX), ..AgentList::default() };
    Ok(scene.ask(list).await?.agents.into_iter().map(|agent| agent.name).collect())
}

fn editor(
    scene: &Scene<'_>,
    fields: &ScheduleForm,
    agents: &[String],
    action: &str,
    verb: &str,
) -> Markup {
    let content = html! {
        div.fields data-preview="/schedules/preview" {
            label { "Name" input name="name" value=(fields.name) required maxlength="64" autocomplete="off"; }
            label { "Agent"
                select name="agent" {
                    @for name in agents { option value=(name) selected[*name == fields.agent] { (name) } }
                }
            }
            fieldset.when {
                legend { "When" }
                label { "Trigger"
                    select name="kind" {
                        @for (kind, name, _) in KINDS { option value=(kind) selected[fields.kind == kind] { (name) } }
                    }
                }
                label { "Value" input name="when" value=(fields.when) autocomplete="off" spellcheck="false" aria-describedby="when-hint"; }
                label { "Time zone" input name="tz" value=(fields.tz) autocomplete="off" spellcheck="false"; }
                p.muted #when-hint {
                    "For example "
                    @for (index, (_, name, example)) in KINDS.iter().enumerate() {
                        @if index != 0 { " · " }
                        (name) " " code { (example) }
                    }
                }
            }
            label { "Prompt" textarea name="prompt" rows="4" { (fields.prompt) } }
            details {
                summary { "Terms" }
                div.grid {
                    label { "Tier" select name="tier" {
                        option value="" { "of the agent" }
                        @for tier in ["0", "1", "2"] { option value=(tier) selected[fields.tier == tier] { (tier) @if tier == "2" { ": ask me every time" } } }
                    } }
                    label { "If a run is live" select name="overlap" {
                        option value="" { "default" }
                        @for (value, name) in [("skip", "skip the slot"), ("buffer_one", "wait, one slot"), ("buffer_all", "wait, all slots"), ("allow", "run both"), ("cancel_other", "cancel the other")] {
                            option value=(value) selected[fields.overlap == value] { (name) }
                        }
                    } }
                    label { "Missed slots" select name="missed" {
                        option value="" { "default" }
                        @for (value, name) in [("latest", "run the latest"), ("earliest", "run the earliest"), ("all", "run all"), ("skip", "skip")] {
                            option value=(value) selected[fields.missed == value] { (name) }
                        }
                    } }
                    label { "Attempts" input name="attempts" type="number" min="1" max="100" value=(fields.attempts); }
                    label { "Runs a day" input name="per_day" type="number" min="1" value=(fields.per_day); }
                    label { "Pause after failures" input name="pause_after" type="number" min="0" value=(fields.pause_after); }
                }
            }
        }
        div #preview.preview aria-live="polite" {}
        div.buttons {
            button.primary type="submit" { (verb) }
            button.quiet type="submit" formaction="/schedules/preview" formmethod="get" formnovalidate { "Preview" }
        }
    };
    html! { section.card.editor { (form(scene.viewer, Role::Operator, action, content)) } }
}

/// What the form would do. The script shows it below the form.
pub(super) async fn preview(scene: &Scene<'_>, fields: &ScheduleForm) -> Result<Content, Error> {
    let named = |fields: &ScheduleForm| {
        let name = if fields.name.is_empty() { "preview".to_owned() } else { fields.name.clone() };
        ScheduleForm { name, ..fields.clone() }
    };
    let request = match named(fields).add(true) {
        Ok(request) => scene.ask(request).await,
        Err(error) => Err(error),
    };
    let content = match request {
        Ok(added) => html! {
            p { strong { (added.schedule.describe) } }
            @for warning in &added.warnings { p.warning { (scene.sentence(warning)) } }
            @if added.next.is_empty() { p { "It has no next time." } }
            ol.lines { @for next in &added.next { li { (zoned(scene, &added.schedule.tz, next)) } } }
            @if let Some(policy) = &added.policy { p { (scene.sentence(&policy.sentence)) } }
            @if !added.created { p.warning { "The same schedule exists already." } }
        },
        Err(error) => html! {
            p.warning { (scene.sentence(&error.message)) }
            @if let Some(hint) = &error.hint { p.muted { (scene.sentence(hint)) } }
        },
    };
    let heading =
        html! { h1 { "Preview" } p.muted { "Go back to change the form or to send it." } };
    let content = html! { div.card { h2 { "It would fire" } (content) } };
    // The script takes the second region alone, into the page of the form.
    let regions =
        vec![Region::new("preview-heading", &heading), Region::new("preview-result", &content)];
    Ok(Content::new("Preview", regions))
}

/// An instant in the viewer's zone, and in the schedule's if that is another one.
fn zoned(scene: &Scene<'_>, zone: &str, instant: &str) -> Markup {
    let zone =
        zone.parse::<calendar::Zone>().ok().filter(|it| it.name() != scene.times.zone.name());
    let at_us = calendar::parse_instant(instant, None).ok();
    html! {
        time datetime=(instant) { (scene.times.time(instant)) }
        @if let (Some(zone), Some(at_us)) = (zone, at_us) { span.muted { " (" (scene.times.time_in(&zone, at_us)) " " (zone.name()) ")" } }
        @if let Some(at_us) = at_us { " " span.muted { (relative(at_us, scene.times.now_us)) } }
    }
}
