//! The time zone of entries that do not name one: `--tz`, else that of the other program's configuration, else that of
//! this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use api::{Code, Error};
use calendar::{Hint, UnknownZone, Zone};

const LOCALTIME: &str = "/etc/localtime";
const TIMEZONE: &str = "/etc/timezone";
/// The folder of zone files, in the target of `/etc/localtime`.
const ZONE_FILES: &str = "/zoneinfo/";

/// The zone of `--tz`, or what is needed to find another.
#[derive(Clone, Debug)]
pub(super) struct ZoneSource {
    flag: Option<Zone>,
    /// `TZ` of the environment.
    variable: Option<String>,
}

impl ZoneSource {
    pub(super) fn new(
        flag: Option<&str>,
        environment: &BTreeMap<String, String>,
    ) -> Result<ZoneSource, Error> {
        let flag = flag.map(parse).transpose()?;
        Ok(ZoneSource { flag, variable: environment.get("TZ").cloned() })
    }

    /// The zone of `--tz`.
    pub(super) fn flag(&self) -> Option<&'static str> {
        self.flag.as_ref().map(Zone::name)
    }

    /// The zone of `--tz`, else the configured one, else that of this machine.
    pub(super) fn or_configured(&self, configured: Option<String>) -> Result<String, Error> {
        let configured = configured.filter(|name| !name.trim().is_empty());
        match (&self.flag, configured) {
            (Some(zone), _) => Ok(zone.name().to_owned()),
            (None, Some(name)) => parse(name.trim()).map(|zone| zone.name().to_owned()),
            (None, None) => self.of_machine(),
        }
    }

    fn of_machine(&self) -> Result<String, Error> {
        let variable = self.variable.as_deref().map(|name| name.trim_start_matches(':'));
        let link = fs::read_link(LOCALTIME).ok().map(|path| path.display().to_string());
        let file = fs::read_to_string(TIMEZONE).ok();
        let name = variable.filter(|name| !name.is_empty()).map(str::to_owned);
        let name = name.or_else(|| Some(link?.split_once(ZONE_FILES)?.1.to_owned()));
        let name = name.or_else(|| file.map(|text| text.trim().to_owned()));
        match name.and_then(|name| name.parse::<Zone>().ok()) {
            Some(zone) => Ok(zone.name().to_owned()),
            // A machine without a setting uses UTC.
            None if self.variable.is_none() && !Path::new(LOCALTIME).exists() => {
                Ok("UTC".to_owned())
            }
            None => Err(Error::new(
                Code::InvalidInput,
                "an entry names no time zone, and that of this machine is unknown",
            )
            .hint("name the zone that the other program used, as in `--tz Europe/Berlin`")),
        }
    }
}

fn parse(name: &str) -> Result<Zone, Error> {
    name.parse().map_err(|error: UnknownZone| {
        Error::new(Code::InvalidInput, error.reason()).hint(error.hint())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_precedes_the_configuration_and_that_the_machine() {
        let zone = |flag, configured: Option<&str>| {
            let environment = BTreeMap::from([("TZ".to_owned(), ":America/New_York".to_owned())]);
            let source = ZoneSource::new(flag, &environment).unwrap();
            source.or_configured(configured.map(str::to_owned))
        };
        assert_eq!(zone(Some("UTC"), Some("Asia/Tokyo")), Ok("UTC".to_owned()));
        assert_eq!(zone(None, Some(" Asia/Tokyo ")), Ok("Asia/Tokyo".to_owned()));
        assert_eq!(zone(None, Some("")), Ok("America/New_York".to_owned()));
        assert_eq!(zone(None, Some("Mars")).unwrap_err().code, Code::InvalidInput);
    }
}
