//! `midwatch device list`

use std::process::ExitCode;

use api::{Device, DeviceList, Devices, Error};
use clap::Args;

use crate::access::send;
use crate::cli::support::page::Page;
use crate::cli::support::short_id::short_ids;
use crate::cli::support::table::{Column, shortened, table_with_cursor, whole};
use crate::context::Context;
use crate::view::View;

const COLUMNS: [Column; 6] = [
    whole("DEVICE"),
    shortened("PERSON", 8),
    shortened("ROLE", 8),
    shortened("BROWSER", 8).or_left_out(2),
    whole("SIGNED IN").or_left_out(1),
    whole("ENDS"),
];

/// List the browsers in which people have signed in, newest first
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    #[command(flatten)]
    page: Page,
}

pub(super) async fn run(context: &Context, list: List) -> Result<ExitCode, Error> {
    let List { page: Page { limit, cursor } } = list;
    let answer = send(context, DeviceList { limit, cursor }).await?;
    context.output.show(&answer, |answer| render(answer, &context.view));
    Ok(ExitCode::SUCCESS)
}

fn render(answer: &Devices, view: &View) -> String {
    if answer.devices.is_empty() {
        return "no browser has signed in yet; open the dashboard with `midwatch open`".into();
    }
    let ids = short_ids(answer.devices.iter().map(|device| device.id.as_str()));
    let rows = answer.devices.iter().zip(ids).map(|(device, id)| {
        let Device { person, role, browser, added_at, expires_at, ended, .. } = device;
        let ends = ended.map_or_else(|| view.time(expires_at), |why| why.to_string());
        [id, person.clone(), role.to_string(), browser.clone(), view.time(added_at), ends]
    });
    let table = table_with_cursor(view, COLUMNS, rows, answer.cursor.as_deref());
    format!("{table}\ntimes are {}", view.zone_name())
}
