//! Requests about devices.

use api::{Code, wire::Secret};
use api::{
    DeviceEnd, DeviceLink, DeviceLinked, DeviceList, DeviceRevoke, DeviceRevoked, Error, Serve,
};
use kernel::device::{Command, Device, EndReason, decide};
use kernel::{DeviceId, EventBody, Noun, Role};

use crate::commit::caller::Caller;
use crate::commit::codec::decode_item;
use crate::engine::Engine;
use crate::errors::{self, internal};
use crate::pages::{self, Order, PageRequest};
use crate::timestamps::rfc3339;
use crate::wire;

/// The name of this machine in links. No other page of this machine has it, so none gets its cookies; `localhost` and
/// 127.0.0.1 belong to many.
const LINK_HOST: &str = "midwatch.localhost";

impl Serve<DeviceLink> for Engine {
    async fn serve(&self, caller: &Caller, link: DeviceLink) -> Result<DeviceLinked, Error> {
        let port = self.installation.http_url.as_deref().and_then(|url| url.rsplit_once(':'));
        let Some((_, port)) = port else {
            let error = Error::new(Code::SwitchedOff, "the dashboard is off, because HTTP is");
            return Err(error.hint("set `http.listen` in the configuration, as 127.0.0.1:7400"));
        };
        let (Secret(code), expires_at) =
            self.devices.create_link(&caller.actor, link.at_terminal)?;
        let url = format!("http://{LINK_HOST}:{port}/enter#{code}");
        Ok(DeviceLinked { url, expires_at: rfc3339(expires_at) })
    }
}

impl Serve<DeviceList> for Engine {
    async fn serve(&self, caller: &Caller, list: DeviceList) -> Result<api::Devices, Error> {
        let sees_all = Role::Operator <= caller.actor.role;
        let page = PageRequest {
            noun: Noun::Device,
            order: Order::NewestFirst(None),
            limit: list.limit,
            cursor: list.cursor,
        };
        let (devices, cursor) = pages::page::<DeviceId, _>(&*self.store, page, |item| {
            let device = decode_item::<Device>(item)?;
            let device = device.ok_or_else(|| internal("a listed device has no state"))?;
            let is_own = device.person == *caller.actor.principal();
            let id = item.id.parse().map_err(internal)?;
            Ok((sees_all || is_own).then(|| self.wire_device(&id, &device)))
        })
        .await?;
        Ok(api::Devices { devices, cursor })
    }
}

impl Serve<DeviceRevoke> for Engine {
    async fn serve(&self, caller: &Caller, revoke: DeviceRevoke) -> Result<DeviceRevoked, Error> {
        let id: DeviceId = revoke.id.parse().map_err(|_| {
            let what = format!("`{}` is not the id of a device", revoke.id);
            Error::new(Code::NotFound, what).hint("`midwatch device list` shows the devices")
        })?;
        let decide = |device: Option<&Device>, now| {
            let event = decide(id.as_str(), device, &caller.actor, Command::Revoke, now);
            let event = event.map_err(errors::refused)?;
            Ok(event.map(|event| EventBody::Device(id.clone(), event)))
        };
        let respond = |before: Option<&Device>, after: Option<&Device>| {
            let device = after.ok_or_else(|| internal("the revoked device does not exist"))?;
            Ok(DeviceRevoked { device: self.wire_device(&id, device), changed: before != after })
        };
        self.transactions.change::<DeviceRevoke, Device>(caller, &id, decide, respond).await
    }
}

impl Engine {
    fn wire_device(&self, id: &DeviceId, device: &Device) -> api::Device {
        let revoked = device.revoked.as_ref();
        api::Device {
            id: id.to_string(),
            person: device.person.to_string(),
            role: wire::role(device.role),
            browser: device.browser.to_string(),
            can_sign: device.page_key.is_some(),
            token_id: device.token.as_ref().map(ToString::to_string),
            added_at: rfc3339(device.added_at),
            expires_at: rfc3339(device.expires_at),
            used_at: self.devices.used_at(id).map(rfc3339),
            ended_by: revoked.map(|it| it.by.to_string()),
            ended_at: revoked.map(|it| rfc3339(it.at)),
            ended: revoked.map(|it| match it.why {
                EndReason::Revoked => DeviceEnd::Revoked,
                EndReason::Expired => DeviceEnd::Expired,
                EndReason::Idle => DeviceEnd::Idle,
            }),
        }
    }
}
